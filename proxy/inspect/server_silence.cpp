#include "proxy/inspect/server_silence.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using record::FindingId;
using record::Timestamp;

void ServerActivity::on_server_datagram(Timestamp now) {
    if (last_datagram_time_ != 0 && now - last_datagram_time_ >= kMinPause) {
        pauses_[num_pauses_++ % kStoredPauses] = {
            .begin = last_datagram_time_,
            .end = now,
            .num_active_sessions =
                count_sessions_reached_since(last_datagram_time_ - kMaxAgeOfRecentAnswer)};
    }
    last_datagram_time_ = std::max(last_datagram_time_, now);
}

ServerActivity::Pause* ServerActivity::find_pause_covering(Timestamp from, Timestamp to) {
    auto* const found = std::ranges::find_if(pauses_, [&](const Pause& pause) {
        return pause.end != 0 && pause.begin <= from + kPauseTolerance &&
               pause.end >= to - kPauseTolerance;
    });
    return found == pauses_.end() ? nullptr : found;
}

std::size_t ServerActivity::count_sessions_reached_since(Timestamp time) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(open_sessions_, [time](const ServerSilenceDetector* each) {
            return each->last_answer_time() >= time;
        }));
}

std::shared_ptr<ServerActivity>
ServerActivityTable::find_or_add_server(const std::string& address) {
    if (servers_.size() >= kCleanupServerCount) {
        std::erase_if(servers_, [](const auto& each) { return each.second.expired(); });
    }
    std::weak_ptr<ServerActivity>& known = servers_[address];
    std::shared_ptr<ServerActivity> server = known.lock();
    if (!server) {
        server = std::make_shared<ServerActivity>();
        known = server;
    }
    return server;
}

ServerSilenceDetector::ServerSilenceDetector(std::shared_ptr<ServerActivity> server)
    : server_activity_{std::move(server)} {
    server_activity_->open_sessions_.push_back(this);
}

ServerSilenceDetector::~ServerSilenceDetector() {
    std::erase(server_activity_->open_sessions_, this);
}

void ServerSilenceDetector::on_datagram(Reporter& reporter) {
    const Timestamp now = reporter.head().time;
    if (reporter.direction() == wire::Direction::s2c) {
        if (server_activity_->silence_to_all_sessions) {
            report_silence(FindingId::session_server_silent,
                           *server_activity_->silence_to_all_sessions, "ended", reporter);
            server_activity_->silence_to_all_sessions.reset();
        }
        end_silence_to_session(reporter);
        server_activity_->on_server_datagram(now);
        last_answer_time_ = now;
        num_unanswered_ = 0;
        waits_in_reported_silence_ = false;
        return;
    }
    if (waits_in_reported_silence_ &&
        !server_activity_->silence_to_all_sessions) { // the server has answered another session
        waits_in_reported_silence_ = false;
        num_unanswered_ = 0;
    }
    count_unanswered_datagram(reporter);
    const bool starts_anew = now - last_unanswered_time_ > kMaxSendPause ||
                             server_activity_->has_sent_since(first_unanswered_time_);
    if (num_unanswered_ == 0 || (!waits_in_reported_silence_ && starts_anew)) {
        num_unanswered_ = 0;
        first_unanswered_time_ = now;
    }
    last_unanswered_time_ = now;
    ++num_unanswered_;
    if (server_activity_->silence_to_all_sessions) {
        ++server_activity_->silence_to_all_sessions->num_unanswered;
    }
    if (waits_in_reported_silence_ || num_unanswered_ < kMinUnansweredDatagrams ||
        now - first_unanswered_time_ < kMinSilence) {
        return;
    }
    waits_in_reported_silence_ = true;
    if (!server_activity_->silence_to_all_sessions) {
        server_activity_->silence_to_all_sessions = ServerActivity::Silence{
            .begin = first_unanswered_time_, .num_unanswered = num_unanswered_};
        report_silence(FindingId::session_server_silent, *server_activity_->silence_to_all_sessions,
                       "began", reporter);
    }
}

/// Counts an unanswered datagram of the client, if the server sends to other sessions at least once
/// a second. Ignores a session that never got an answer, because its sender may not be a game
/// client.
void ServerSilenceDetector::count_unanswered_datagram(Reporter& reporter) {
    const Timestamp now = reporter.head().time;
    if (is_session_silence_reported_) {
        ++silence_to_session_->num_unanswered;
        return;
    }
    if (last_answer_time_ == 0 ||
        !server_activity_->has_sent_since(now - ServerActivity::kMaxAgeOfRecentAnswer)) {
        silence_to_session_.reset();
        return;
    }
    if (!silence_to_session_ || now - last_unanswered_time_ > kMaxSendPause) {
        silence_to_session_ = Silence{.begin = now};
    }
    ++silence_to_session_->num_unanswered;
    if (silence_to_session_->num_unanswered >= kMinUnansweredDatagrams &&
        now - silence_to_session_->begin >= kMinSilence) {
        is_session_silence_reported_ = true;
        report_silence(FindingId::session_unanswered, *silence_to_session_, "began", reporter);
    }
}

void ServerSilenceDetector::end_silence_to_session(Reporter& reporter) {
    if (std::exchange(is_session_silence_reported_, false)) {
        report_silence(FindingId::session_unanswered, *silence_to_session_, "ended", reporter);
    }
    silence_to_session_.reset();
}

void ServerSilenceDetector::on_missed_datagrams() {
    if (!waits_in_reported_silence_) {
        num_unanswered_ = 0;
    }
    if (!is_session_silence_reported_) {
        silence_to_session_.reset();
    }
}

void ServerSilenceDetector::report_silence(FindingId id, const Silence& silence,
                                           std::string_view event, Reporter& reporter) {
    constexpr Timestamp kMillisecond = 1'000'000;
    const Timestamp duration = (reporter.head().time - silence.begin) / kMillisecond;
    const record::FindingRecord finding{.head = reporter.head(),
                                        .id = id,
                                        .lost = silence.num_unanswered,
                                        .value = duration,
                                        .name = reporter.server(),
                                        .detail = event};
    if (record::severity_of(finding) == record::Severity::info) {
        reporter.emit(finding); // this finding was counted when the silence began
    } else {
        reporter.report_finding(finding);
    }
}

} // namespace tw::inspect
