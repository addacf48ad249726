#include "proxy/web/viewers.h"

#include "proxy/record/json.h"
#include "proxy/web/page_json.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::web {

namespace {

constexpr std::chrono::milliseconds kStateEvery{500};
constexpr std::chrono::milliseconds kLogEvery{100};
/// How long a request waits for a snapshot; servers send several a second.
constexpr std::chrono::milliseconds kSnapshotTimeout{1500};
/// The maximum number of bytes of log lines in one message; further lines are reported as lost.
constexpr std::size_t kMaxLogBytes = std::size_t{256} << 10U;

// Each viewer and each request may watch another session.
static_assert(ViewerInterest::kMaxSessions >= Viewers::kMaxViewers + Viewers::kMaxWaiting);

std::shared_ptr<const std::string> make_shared_text(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}

/// Returns true if a peer that has `of_peer` of `all` waiting requests may add another request.
bool may_wait(std::size_t all, std::size_t of_peer) {
    return all < Viewers::kMaxWaiting && of_peer < Viewers::kMaxWaitingOfPeer;
}

} // namespace

bool Viewers::has_room_for(const base::Network& peer) const {
    const auto of_peer = std::ranges::count_if(
        viewers_, [&peer](const auto& viewer) { return viewer->peer == peer; });
    return viewers_.size() < kMaxViewers && static_cast<std::size_t>(of_peer) < kMaxOfPeer;
}

void Viewers::add_viewer(const std::shared_ptr<WebSocket>& socket, const base::Network& peer,
                         std::uint32_t token) {
    const auto viewer = std::make_shared<Viewer>();
    viewer->socket = socket;
    viewer->peer = peer;
    viewer->token = token;
    viewer->lost_way = frames_lost_on_the_way_;
    viewers_.push_back(viewer);
    socket->on_text = [this, known = std::weak_ptr{viewer}](std::string_view text) {
        if (const auto still = known.lock()) {
            handle_message(*still, text);
        }
    };
    stated_ = {}; // the next update sends the state
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
    const auto requests = parse_viewer_requests(text);
    if (!requests) {
        return send_error(viewer, "message", {.message = requests.error()});
    }
    viewer.whole = viewer.whole || requests->again || requests->watch || requests->pace;
    viewer.watch = requests->watch.value_or(viewer.watch);
    viewer.pace = requests->pace.value_or(viewer.pace);
    viewer.bytes = requests->bytes.value_or(viewer.bytes);
    if (requests->log_on) {
        viewer.log = *requests->log_on;
        viewer.filter = {};
        viewer.log_seen = log_.last_number() - std::min(log_.last_number(), log_.size());
        viewer.log_lost = 0;
        viewer.lines_way = lines_lost_on_the_way_;
    }
    if (requests->log && !requests->log->empty()) {
        auto filter = data_->make_filter(*requests->log);
        if (!filter) {
            viewer.log = false;
            send_error(viewer, "log", filter.error());
        } else {
            viewer.filter = *std::move(filter);
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
    ++lost_;
    return false;
}

void Viewers::request_snapshot(std::uint32_t session, const base::Network& peer, Respond respond) {
    const auto of_peer = std::ranges::count(snapshots_, peer, &WaitingForSnapshot::peer);
    if (data_->page_feed() == nullptr ||
        !may_wait(snapshots_.size(), static_cast<std::size_t>(of_peer))) {
        return respond({.status = 503, .body = "nothing is inspected, or too many requests\n"});
    }
    if (data_->page_feed()->interest.wants_anything()) {
        fetch_batches(); // the request must not be answered with earlier data
    }
    snapshots_.push_back({.session = session,
                          .known = snapshot_count(session),
                          .until = Clock::now() + kSnapshotTimeout,
                          .peer = peer,
                          .respond = std::move(respond)});
    update_interest();
}

void Viewers::request_records(LineFilter filter, std::chrono::milliseconds wait, std::size_t limit,
                              const base::Network& peer, Respond respond) {
    if (data_->page_feed() == nullptr ||
        !may_wait(records_.size(), records_.count_requests_of(peer))) {
        return respond({.status = 503, .body = "nothing is inspected, or too many requests\n"});
    }
    records_.add_request({.filter = std::move(filter),
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
        drop_stale_data();
    }
    std::map<std::uint32_t, std::vector<int>> paces;
    ViewerTopic topics = records_.size() != 0 ? ViewerTopic::log : ViewerTopic::none;
    for (const auto& viewer : viewers_) {
        topics = topics | (viewer->log ? ViewerTopic::log : ViewerTopic::none) |
                 (viewer->bytes ? ViewerTopic::traffic_totals : ViewerTopic::none);
        if (viewer->watch != ViewerRequests::kNothing) {
            paces[viewer->watch].push_back(viewer->pace);
        }
    }
    for (const WaitingForSnapshot& waiting : snapshots_) {
        paces[waiting.session];
        topics = topics | (waiting.session == 0 ? ViewerTopic::world_line : ViewerTopic::none);
    }
    std::vector<std::uint32_t> sessions;
    std::erase_if(scenes_, [&](const auto& scene) { return !paces.contains(scene.first); });
    for (const auto& [session, wanted] : paces) {
        sessions.push_back(session);
        scenes_.try_emplace(session, session, data_->objects()).first->second.set_paces(wanted);
    }
    ViewerInterest& interest = data_->page_feed()->interest;
    interest.set_watched(sessions, topics);
    if (!interest.wants(ViewerTopic::world_line)) {
        world_line_.clear();
    }
    if (!interest.wants(ViewerTopic::log)) {
        log_.clear();
    }
}

/// Drops data that was collected for viewers who have left.
void Viewers::drop_stale_data() {
    for (Mailbox& box : data_->page_feed()->mailboxes) {
        batch_.clear();
        std::ignore = box.take_batch(batch_);
    }
    batch_.clear();
}

void Viewers::fetch_batches() {
    data_->page_feed()->acknowledge();
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
    frames_lost_on_the_way_ += batch_.lost_snapshots;
    lines_lost_on_the_way_ += batch_.lost_lines;
    for (const InspectedSnapshot& seen : batch_.snapshots) {
        if (const auto scene = scenes_.find(seen.session); scene != scenes_.end()) {
            scene->second.add_snapshot(seen, batch_.items_of(seen), [&](const Frame& frame) {
                send_frame(seen.session, frame);
            });
        }
    }
    if (batch_.world_server && *batch_.world_server != world_server_) {
        std::swap(world_server_, *batch_.world_server);
        stated_ = {}; // the next update sends the state
    }
    log_.add_lines(batch_.lines);
    if (!batch_.world_line.empty() && data_->page_feed()->interest.wants(ViewerTopic::world_line)) {
        std::swap(world_line_, batch_.world_line);
        ++world_lines_;
    }
    if (!batch_.ledger.empty()) {
        std::swap(ledgers_[worker], batch_.ledger);
    }
}

void Viewers::send_frame(std::uint32_t source, const Frame& frame) {
    for (const auto& viewer : viewers_) {
        if (viewer->watch == source && viewer->pace == frame.pace) {
            const bool sent =
                send(*viewer, viewer->whole && !frame.bars_only ? frame.full() : frame.delta);
            viewer->lost += sent ? 0 : 1;
            // After a lost frame, the next frame must contain all items, because changes are
            // missing.
            viewer->whole = frame.bars_only ? viewer->whole : !sent;
        }
    }
}

void Viewers::send_log() {
    const auto end = Clock::now() + kFilterTime;
    const auto readers =
        std::ranges::count_if(viewers_, [](const auto& viewer) { return viewer->log; });
    const auto share = filter_time_share(static_cast<std::size_t>(readers));
    const std::size_t first = log_turn_;
    for (std::size_t i = 0; i < viewers_.size(); ++i) {
        const std::size_t at = (first + i) % viewers_.size();
        const auto begin = Clock::now();
        if (begin >= end) {
            log_turn_ = at; // this viewer's log is filtered first in the next call
            return;
        }
        if (viewers_[at]->log) {
            send_log(*viewers_[at], begin + share);
        }
    }
}

void Viewers::send_log(Viewer& viewer, Clock::time_point until) {
    viewer.log_lost +=
        log_.dropped_count_after(viewer.log_seen) + lines_lost_on_the_way_ - viewer.lines_way;
    viewer.lines_way = lines_lost_on_the_way_;
    std::vector<std::string_view> lines = log_.find_lines(viewer.log_seen, viewer.filter, until);
    const std::size_t skipped = keep_newest_lines(lines, lines.size(), kMaxLogBytes);
    viewer.log_lost += skipped;
    if (lines.empty() && viewer.log_lost == 0) {
        return;
    }
    const bool sent =
        send(viewer, make_shared_text(fmt::format(R"({{"k":"log","lost":{},"lines":[{}]}})",
                                                  viewer.log_lost, fmt::join(lines, ","))));
    viewer.log_lost = sent ? 0 : viewer.log_lost + lines.size();
}

void Viewers::send_state() {
    std::string text = state_json_();
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    const std::string server =
        world_server_.empty() ? "null" : record::json_text(boost::json::string{world_server_});
    for (const auto& viewer : viewers_) {
        const std::uint64_t lost = viewer->lost + frames_lost_on_the_way_ - viewer->lost_way;
        send(*viewer, make_shared_text(fmt::format(
                          R"({{"k":"state","frames_lost":{},"world_server":{},"state":{}}})", lost,
                          server, text)));
    }
}

void Viewers::send_traffic_totals() {
    const bool wanted =
        std::ranges::any_of(viewers_, [](const auto& viewer) { return viewer->bytes; });
    if (!wanted) {
        return;
    }
    const auto text = make_shared_text(traffic_json(ledgers_));
    for (const auto& viewer : viewers_) {
        if (viewer->bytes) {
            send(*viewer, text);
        }
    }
}

std::uint64_t Viewers::snapshot_count(std::uint32_t session) const {
    if (session == 0) {
        return world_lines_;
    }
    const auto scene = scenes_.find(session);
    return scene == scenes_.end() ? 0 : scene->second.snapshot_count();
}

std::string Viewers::latest_snapshot_line(std::uint32_t session) const {
    if (session == 0) {
        return world_line_;
    }
    const auto scene = scenes_.find(session);
    return scene != scenes_.end() && scene->second.latest_snapshot()
               ? data_->snapshot_line(*scene->second.latest_snapshot(), scene->second.items())
               : std::string{};
}

void Viewers::answer_snapshot_requests(Clock::time_point now) {
    std::erase_if(snapshots_, [&](const WaitingForSnapshot& waiting) {
        if (snapshot_count(waiting.session) > waiting.known) {
            waiting.respond({.content_type = "application/json",
                             .body = latest_snapshot_line(waiting.session)});
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

bool Viewers::fetch_and_send(Clock::time_point now) {
    const std::size_t before = viewers_.size();
    std::erase_if(viewers_, [](const auto& viewer) { return viewer->socket.expired(); });
    if (viewers_.size() != before) {
        update_interest();
    }
    if (viewers_.empty() && snapshots_.empty() && records_.size() == 0) {
        return false;
    }
    if (data_->page_feed() != nullptr) {
        fetch_batches();
        const std::size_t waited = snapshots_.size() + records_.size();
        answer_snapshot_requests(now);
        if (now - logged_ >= kLogEvery) {
            logged_ = now;
            send_log();
            records_.filter_lines(log_);
        }
        records_.answer_due_requests(log_, now);
        if (snapshots_.size() + records_.size() != waited) {
            update_interest();
        }
    }
    if (now - stated_ >= kStateEvery) {
        stated_ = now;
        send_state();
        send_traffic_totals();
    }
    return true;
}

void Viewers::clear() {
    viewers_.clear();
    snapshots_.clear();
    records_.clear();
    scenes_.clear();
    log_.clear();
    if (data_->page_feed() != nullptr) {
        data_->page_feed()->interest.set_watched({}, ViewerTopic::none);
    }
}

} // namespace tw::web
