#include "proxy/inspect/server_silence.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using record::FindingId;
using record::Timestamp;

void ServerActivity::on_server_datagram(Timestamp now) {
    if (heard_ != 0 && now - heard_ >= kMinPause) {
        pauses_[num_pauses_++ % kStoredPauses] = {
            .from = heard_,
            .to = now,
            .sessions = count_sessions_answered_since(heard_ - kRecentAnswerTime)};
    }
    heard_ = std::max(heard_, now);
}

ServerActivity::Pause* ServerActivity::find_pause(Timestamp from, Timestamp to) {
    auto* const found = std::ranges::find_if(pauses_, [&](const Pause& pause) {
        return pause.to != 0 && pause.from <= from + kPauseTolerance &&
               pause.to >= to - kPauseTolerance;
    });
    return found == pauses_.end() ? nullptr : found;
}

std::size_t ServerActivity::count_sessions_answered_since(Timestamp time) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sessions_, [time](const ServerSilenceDetector* each) {
            return each->last_answer_time() >= time;
        }));
}

std::shared_ptr<ServerActivity> ServerActivities::find_or_add_server(const std::string& address) {
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
    : server_{std::move(server)} {
    server_->sessions_.push_back(this);
}

ServerSilenceDetector::~ServerSilenceDetector() {
    std::erase(server_->sessions_, this);
}

void ServerSilenceDetector::on_datagram(Reporter& reporter) {
    const Timestamp now = reporter.head().time;
    if (reporter.direction() == wire::Direction::s2c) {
        if (server_->silence) {
            report_silence(FindingId::session_server_silent, *server_->silence, "ended", reporter);
            server_->silence.reset();
        }
        end_silence_to_session(reporter);
        server_->on_server_datagram(now);
        heard_ = now;
        unanswered_ = 0;
        waits_with_all_ = false;
        return;
    }
    if (waits_with_all_ && !server_->silence) { // the server has answered another session
        waits_with_all_ = false;
        unanswered_ = 0;
    }
    count_unanswered_datagram(reporter);
    const bool starts_anew = now - last_ > kMaxSendPause || server_->has_answered_since(since_);
    if (unanswered_ == 0 || (!waits_with_all_ && starts_anew)) {
        unanswered_ = 0;
        since_ = now;
    }
    last_ = now;
    ++unanswered_;
    if (server_->silence) {
        ++server_->silence->unanswered;
    }
    if (waits_with_all_ || unanswered_ < kMinUnansweredDatagrams || now - since_ < kMinSilence) {
        return;
    }
    waits_with_all_ = true;
    if (!server_->silence) {
        server_->silence = ServerActivity::Silence{.since = since_, .unanswered = unanswered_};
        report_silence(FindingId::session_server_silent, *server_->silence, "began", reporter);
    }
}

/// Counts a datagram of the client without an answer, if the server answers other sessions (at
/// least once a second). A session that never got an answer is ignored, because its sender may not
/// be a game client.
void ServerSilenceDetector::count_unanswered_datagram(Reporter& reporter) {
    const Timestamp now = reporter.head().time;
    if (alone_is_reported_) {
        ++silence_to_session_->unanswered;
        return;
    }
    if (heard_ == 0 || !server_->has_answered_since(now - ServerActivity::kRecentAnswerTime)) {
        silence_to_session_.reset();
        return;
    }
    if (!silence_to_session_ || now - last_ > kMaxSendPause) {
        silence_to_session_ = Silence{.since = now};
    }
    ++silence_to_session_->unanswered;
    if (silence_to_session_->unanswered >= kMinUnansweredDatagrams &&
        now - silence_to_session_->since >= kMinSilence) {
        alone_is_reported_ = true;
        report_silence(FindingId::session_unanswered, *silence_to_session_, "began", reporter);
    }
}

void ServerSilenceDetector::end_silence_to_session(Reporter& reporter) {
    if (std::exchange(alone_is_reported_, false)) {
        report_silence(FindingId::session_unanswered, *silence_to_session_, "ended", reporter);
    }
    silence_to_session_.reset();
}

void ServerSilenceDetector::on_missed_datagrams() {
    if (!waits_with_all_) {
        unanswered_ = 0;
    }
    if (!alone_is_reported_) {
        silence_to_session_.reset();
    }
}

void ServerSilenceDetector::report_silence(FindingId id, const Silence& silence,
                                           std::string_view event, Reporter& reporter) {
    constexpr Timestamp kMillisecond = 1'000'000;
    const Timestamp duration = (reporter.head().time - silence.since) / kMillisecond;
    const record::FindingRecord finding{.head = reporter.head(),
                                        .id = id,
                                        .lost = silence.unanswered,
                                        .value = duration,
                                        .name = reporter.server(),
                                        .detail = event};
    if (record::severity_of(finding) == record::Severity::info) {
        reporter.emit(finding); // not counted again: the begin of the silence was counted
    } else {
        reporter.report_finding(finding);
    }
}

} // namespace tw::inspect
