#include "proxy/web/viewers.h"

#include "proxy/record/json.h"
#include "proxy/web/page_json.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::web {

namespace {

constexpr std::chrono::milliseconds kStateInterval{500};
constexpr std::chrono::milliseconds kLogInterval{100};
/// How long a request waits for a snapshot. Servers send several snapshots a second.
constexpr std::chrono::milliseconds kSnapshotTimeout{1500};
/// The maximum number of bytes of log lines in one message; further lines are reported as lost.
constexpr std::size_t kMaxLogBytes = std::size_t{256} << 10U;

// Each viewer and each request may watch a different session.
static_assert(ViewerInterest::kMaxSessions >= Viewers::kMaxViewers + Viewers::kMaxWaitingRequests);

std::shared_ptr<const std::string> make_shared_text(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}

/// Returns whether a peer may add another waiting request. `all`: the number of waiting requests.
/// `of_peer`: the number of the peer's waiting requests.
bool may_add_request(std::size_t all, std::size_t of_peer) {
    return all < Viewers::kMaxWaitingRequests && of_peer < Viewers::kMaxWaitingRequestsPerPeer;
}

} // namespace

bool Viewers::has_room_for(const base::Network& peer) const {
    const auto of_peer = std::ranges::count_if(
        viewers_, [&peer](const auto& viewer) { return viewer->peer == peer; });
    return viewers_.size() < kMaxViewers && static_cast<std::size_t>(of_peer) < kMaxViewersPerPeer;
}

void Viewers::add_viewer(const std::shared_ptr<WebSocket>& socket, const base::Network& peer,
                         std::uint32_t token) {
    const auto viewer = std::make_shared<Viewer>();
    viewer->socket = socket;
    viewer->peer = peer;
    viewer->token = token;
    viewer->frames_lost_before = frames_lost_in_batches_;
    viewers_.push_back(viewer);
    socket->on_text = [this, known = std::weak_ptr{viewer}](std::string_view text) {
        if (const auto still = known.lock()) {
            handle_message(*still, text);
        }
    };
    state_sent_at_ = {}; // the next update sends the state
}

void Viewers::disconnect_viewers_with_other_token(std::uint32_t token) {
    for (const auto& viewer : viewers_) {
        const auto socket = viewer->socket.lock();
        if (viewer->token != 0 && viewer->token != token && socket != nullptr) {
            viewer->token = 0; // 0 prevents a second close
            socket->close("the token was changed");
        }
    }
}

void Viewers::handle_message(Viewer& viewer, std::string_view text) {
    const auto message = parse_viewer_message(text);
    if (!message) {
        return send_error(viewer, "message", {.message = message.error()});
    }
    viewer.needs_full_frame = viewer.needs_full_frame || message->wants_full_frame ||
                              message->watched_session || message->frame_rate;
    viewer.watched_session = message->watched_session.value_or(viewer.watched_session);
    viewer.frame_rate = message->frame_rate.value_or(viewer.frame_rate);
    viewer.wants_traffic = message->wants_traffic.value_or(viewer.wants_traffic);
    if (message->wants_log) {
        viewer.wants_log = *message->wants_log;
        viewer.log_filter = {};
        viewer.last_filtered_line = log_.last_number() - std::min(log_.last_number(), log_.size());
        viewer.unreported_lost_lines = 0;
        viewer.lines_lost_in_batches = lines_lost_in_batches_;
    }
    if (message->log_filter && !message->log_filter->empty()) {
        auto filter = data_->make_filter(*message->log_filter);
        if (!filter) {
            viewer.wants_log = false;
            send_error(viewer, "log", filter.error());
        } else {
            viewer.log_filter = *std::move(filter);
        }
    }
    update_interest();
}

void Viewers::send_error(Viewer& viewer, std::string_view about, const InputError& error) {
    send(viewer,
         make_shared_text(record::json_text(boost::json::object{{"k", "error"},
                                                                {"about", about},
                                                                {"message", error.message},
                                                                {"offset", error.offset}})));
}

bool Viewers::send(Viewer& viewer, std::shared_ptr<const std::string> text) {
    const auto socket = viewer.socket.lock();
    if (socket != nullptr && socket->send(std::move(text))) {
        return true;
    }
    ++dropped_messages_;
    return false;
}

void Viewers::request_snapshot(std::uint32_t session, const base::Network& peer, Respond respond) {
    const auto of_peer = std::ranges::count(snapshot_requests_, peer, &SnapshotRequest::peer);
    if (data_->page_feed() == nullptr ||
        !may_add_request(snapshot_requests_.size(), static_cast<std::size_t>(of_peer))) {
        return respond({.status = 503, .body = "nothing is inspected, or too many requests\n"});
    }
    if (data_->page_feed()->interest.wants_anything()) {
        fetch_batches(); // the request must not be answered with earlier data
    }
    snapshot_requests_.push_back({.session = session,
                                  .count_before = snapshot_count(session),
                                  .until = Clock::now() + kSnapshotTimeout,
                                  .peer = peer,
                                  .respond = std::move(respond)});
    update_interest();
}

void Viewers::request_records(LineFilter filter, std::chrono::milliseconds wait, std::size_t limit,
                              const base::Network& peer, Respond respond) {
    if (data_->page_feed() == nullptr ||
        !may_add_request(record_requests_.size(), record_requests_.count_requests_of(peer))) {
        return respond({.status = 503, .body = "nothing is inspected, or too many requests\n"});
    }
    record_requests_.add_request({.filter = std::move(filter),
                                  .limit = limit,
                                  .until = Clock::now() + wait,
                                  .peer = peer,
                                  .respond = std::move(respond)});
    update_interest();
}

/// Tells the workers which sessions and data the viewers watch. Creates a frame maker for each
/// watched session.
void Viewers::update_interest() {
    if (data_->page_feed() == nullptr) {
        return;
    }
    if (!data_->page_feed()->interest.wants_anything()) {
        // Old data for viewers who have disconnected is dropped.
        for (Mailbox& box : data_->page_feed()->mailboxes) {
            batch_.clear();
            std::ignore = box.take_batch(batch_);
        }
        batch_.clear();
    }
    std::map<std::uint32_t, std::vector<int>> frame_rates;
    ViewerTopic topics = record_requests_.size() != 0 ? ViewerTopic::log : ViewerTopic::none;
    for (const auto& viewer : viewers_) {
        topics = topics | (viewer->wants_log ? ViewerTopic::log : ViewerTopic::none) |
                 (viewer->wants_traffic ? ViewerTopic::traffic_totals : ViewerTopic::none);
        if (viewer->watched_session != ViewerMessage::kNoSession) {
            frame_rates[viewer->watched_session].push_back(viewer->frame_rate);
        }
    }
    for (const SnapshotRequest& waiting : snapshot_requests_) {
        frame_rates[waiting.session];
        topics = topics | (waiting.session == 0 ? ViewerTopic::world_line : ViewerTopic::none);
    }
    std::vector<std::uint32_t> sessions;
    std::erase_if(frame_makers_,
                  [&](const auto& maker) { return !frame_rates.contains(maker.first); });
    for (const auto& [session, wanted] : frame_rates) {
        sessions.push_back(session);
        frame_makers_.try_emplace(session, session, data_->objects())
            .first->second.set_frame_rates(wanted);
    }
    ViewerInterest& interest = data_->page_feed()->interest;
    interest.set_interest(sessions, topics);
    if (!interest.wants_topic(ViewerTopic::world_line)) {
        world_line_.clear();
    }
    if (!interest.wants_topic(ViewerTopic::log)) {
        log_.clear();
    }
}

void Viewers::fetch_batches() {
    data_->page_feed()->rearm_listener();
    ledgers_.resize(data_->page_feed()->mailboxes.size());
    for (std::size_t worker = 0; worker < data_->page_feed()->mailboxes.size(); ++worker) {
        fetch_batch(worker);
    }
}

void Viewers::fetch_batch(std::size_t worker) {
    batch_.clear();
    if (!data_->page_feed()->mailboxes[worker].take_batch(batch_)) {
        return;
    }
    frames_lost_in_batches_ += batch_.lost_snapshots;
    lines_lost_in_batches_ += batch_.lost_lines;
    for (const InspectedSnapshot& seen : batch_.snapshots) {
        if (const auto maker = frame_makers_.find(seen.session); maker != frame_makers_.end()) {
            maker->second.add_snapshot(seen, batch_.items_of(seen), [&](const PageFrame& frame) {
                send_frame(seen.session, frame);
            });
        }
    }
    if (batch_.world_server && *batch_.world_server != world_server_) {
        std::swap(world_server_, *batch_.world_server);
        state_sent_at_ = {}; // the next update sends the state
    }
    log_.add_lines(batch_.lines);
    if (!batch_.world_line.empty() &&
        data_->page_feed()->interest.wants_topic(ViewerTopic::world_line)) {
        std::swap(world_line_, batch_.world_line);
        ++world_line_count_;
    }
    if (!batch_.ledger.empty()) {
        std::swap(ledgers_[worker], batch_.ledger);
    }
}

void Viewers::send_frame(std::uint32_t source, const PageFrame& frame) {
    for (const auto& viewer : viewers_) {
        if (viewer->watched_session == source && viewer->frame_rate == frame.frame_rate) {
            const bool sent =
                send(*viewer,
                     viewer->needs_full_frame && !frame.has_only_bars ? frame.full() : frame.delta);
            viewer->lost_frames += sent ? 0 : 1;
            // After a lost frame, the next frame must contain all items, because changes are
            // missing.
            viewer->needs_full_frame = frame.has_only_bars ? viewer->needs_full_frame : !sent;
        }
    }
}

void Viewers::send_log() {
    const auto end = Clock::now() + kMaxFilterTime;
    const auto readers =
        std::ranges::count_if(viewers_, [](const auto& viewer) { return viewer->wants_log; });
    const auto share = filter_time_per_viewer(static_cast<std::size_t>(readers));
    const std::size_t first = first_log_viewer_;
    for (std::size_t i = 0; i < viewers_.size(); ++i) {
        const std::size_t at = (first + i) % viewers_.size();
        const auto begin = Clock::now();
        if (begin >= end) {
            first_log_viewer_ = at; // this viewer's log is filtered first in the next call
            return;
        }
        if (viewers_[at]->wants_log) {
            send_log(*viewers_[at], begin + share);
        }
    }
}

void Viewers::send_log(Viewer& viewer, Clock::time_point until) {
    viewer.unreported_lost_lines += log_.dropped_count_after(viewer.last_filtered_line) +
                                    lines_lost_in_batches_ - viewer.lines_lost_in_batches;
    viewer.lines_lost_in_batches = lines_lost_in_batches_;
    std::vector<std::string_view> lines =
        log_.find_lines(viewer.last_filtered_line, viewer.log_filter, until);
    const std::size_t skipped = keep_newest_lines(lines, lines.size(), kMaxLogBytes);
    viewer.unreported_lost_lines += skipped;
    if (lines.empty() && viewer.unreported_lost_lines == 0) {
        return;
    }
    const bool sent = send(
        viewer, make_shared_text(fmt::format(R"({{"k":"log","lost":{},"lines":[{}]}})",
                                             viewer.unreported_lost_lines, fmt::join(lines, ","))));
    viewer.unreported_lost_lines = sent ? 0 : viewer.unreported_lost_lines + lines.size();
}

void Viewers::send_state() {
    std::string text = state_json_();
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    const std::string server =
        world_server_.empty() ? "null" : record::json_text(boost::json::string{world_server_});
    std::shared_ptr<const std::string> traffic;
    for (const auto& viewer : viewers_) {
        const std::uint64_t lost =
            viewer->lost_frames + frames_lost_in_batches_ - viewer->frames_lost_before;
        send(*viewer, make_shared_text(fmt::format(
                          R"({{"k":"state","frames_lost":{},"world_server":{},"state":{}}})", lost,
                          server, text)));
        if (viewer->wants_traffic) {
            traffic = traffic == nullptr ? make_shared_text(traffic_json(ledgers_)) : traffic;
            send(*viewer, traffic);
        }
    }
}

std::uint64_t Viewers::snapshot_count(std::uint32_t session) const {
    if (session == 0) {
        return world_line_count_;
    }
    const auto maker = frame_makers_.find(session);
    return maker == frame_makers_.end() ? 0 : maker->second.snapshot_count();
}

std::string Viewers::latest_snapshot_line(std::uint32_t session) const {
    if (session == 0) {
        return world_line_;
    }
    const auto maker = frame_makers_.find(session);
    return maker != frame_makers_.end() && maker->second.latest_snapshot()
               ? data_->snapshot_line(*maker->second.latest_snapshot(),
                                      maker->second.latest_items())
               : std::string{};
}

void Viewers::answer_snapshot_requests(Clock::time_point now) {
    std::erase_if(snapshot_requests_, [&](const SnapshotRequest& waiting) {
        if (snapshot_count(waiting.session) > waiting.count_before) {
            waiting.respond(json_response(latest_snapshot_line(waiting.session)));
            return true;
        }
        if (now < waiting.until) {
            return false;
        }
        waiting.respond({.status = 404,
                         .body = waiting.session == 0 ? "no snapshot arrived to make a world of\n"
                                                      : "no snapshot of that session arrived\n"});
        return true;
    });
}

bool Viewers::update_viewers(Clock::time_point now) {
    const std::size_t before = viewers_.size();
    std::erase_if(viewers_, [](const auto& viewer) { return viewer->socket.expired(); });
    if (viewers_.size() != before) {
        update_interest();
    }
    if (viewers_.empty() && snapshot_requests_.empty() && record_requests_.size() == 0) {
        return false;
    }
    if (data_->page_feed() != nullptr) {
        fetch_batches();
        const std::size_t waited = snapshot_requests_.size() + record_requests_.size();
        answer_snapshot_requests(now);
        if (now - log_sent_at_ >= kLogInterval) {
            log_sent_at_ = now;
            send_log();
            record_requests_.filter_lines(log_);
        }
        record_requests_.answer_due_requests(log_, now);
        if (snapshot_requests_.size() + record_requests_.size() != waited) {
            update_interest();
        }
    }
    if (now - state_sent_at_ >= kStateInterval) {
        send_state();
        // Making the state of thousands of servers may take longer than kStateInterval. The
        // interval starts now, so that the thread also has time for its sockets.
        state_sent_at_ = Clock::now();
    }
    return true;
}

void Viewers::clear() {
    viewers_.clear();
    snapshot_requests_.clear();
    record_requests_.clear();
    frame_makers_.clear();
    log_.clear();
    if (data_->page_feed() != nullptr) {
        data_->page_feed()->interest.set_interest({}, ViewerTopic::none);
    }
}

} // namespace tw::web
