#include "proxy/world/view_collector.h"

#include <algorithm>

namespace tw::world {

using record::Timestamp;
using snapshot::Tick;
using Wide = std::int64_t; ///< for sums of ticks, which are untrusted and must not overflow

namespace {

constexpr Timestamp kTickTime = 20'000'000;
/// Times of tick 0, computed from views of one map run, differ by less than this (ns).
constexpr Timestamp kSlack = 3'000'000'000;
/// In most networks, these times differ by less than this (ns). No map run is shorter than this.
constexpr Timestamp kJitter = 200'000'000;
/// A tick this far behind the newest one belongs to another map run.
constexpr Tick kFarBehind = 250;
/// A session that enters a map run is ahead of the other sessions by at most this time (ns).
constexpr Timestamp kFarAhead = 1'000'000'000;
/// The largest tick step of a session at full rate.
constexpr Tick kFullStep = 2;
/// The smallest tick step of a session at a reduced rate. Servers reduce the rate until a session
/// acknowledges a snapshot, and after the session lost the base of a delta. Smaller steps above
/// kFullStep are due to lost snapshots.
constexpr Tick kSparseStep = 10;

Timestamp tick_zero_time(const MergerInput& input) {
    return input.time - input.tick * kTickTime;
}

bool is_near(Timestamp left, Timestamp right, Timestamp distance = kSlack) {
    return left - right < distance && right - left < distance;
}

} // namespace

void ViewCollector::add_session(std::uint32_t session) {
    sessions_[session].entering = true;
}

void ViewCollector::add_session(std::uint32_t session, MapId map) {
    add_session(session);
    sessions_[session].map = std::move(map);
}

bool ViewCollector::has_other_map(const MapId& map, snapshot::Dialect dialect) const {
    for (std::size_t i = 0; i < maps_.size(); ++i) {
        const bool same_files = i == static_cast<std::size_t>(dialect);
        if (maps_[i] && (maps_[i]->name != map.name || (same_files && maps_[i]->crc != map.crc))) {
            return true;
        }
    }
    return false;
}

bool ViewCollector::is_of_other_map_run(const Session& session, const MergerInput& input) const {
    return (session.map && has_other_map(*session.map, input.dialect)) ||
           (session.run == run_ && input.tick <= session.latest);
}

void ViewCollector::resume_session(std::uint32_t session) {
    add_session(session);
    sessions_[session].resumed = true;
}

void ViewCollector::remove_session(std::uint32_t session) {
    if (const auto gone = sessions_.find(session); gone != sessions_.end()) {
        for (auto& [tick, open] : open_) {
            open.lacks_view = open.lacks_view ||
                              (needs_view_of(gone->second, tick) && !open.has_view_of(session));
        }
        sessions_.erase(gone);
    }
    close_ready_ticks();
}

bool ViewCollector::is_of_previous_map_run(Timestamp tick_zero) const {
    return previous_tick_zero_ && is_near(tick_zero, *previous_tick_zero_, kJitter);
}

bool ViewCollector::had_recent_view(const Session& session, Timestamp now) const {
    const Wide step = std::clamp<Wide>(session.step == 0 ? kSparseStep : session.step, 1, kMaxLag);
    return session.run == run_ && !session.entering &&
           is_near(now, session.seen.time, step * kTickTime + kJitter);
}

bool ViewCollector::is_far_ahead_of_others(const Session& session, const MergerInput& input) const {
    if (input.tick <= *newest_) {
        return false; // only the first view of a newer tick is checked
    }
    int balance = session.run == run_ ? -1 : 0;
    for (const auto& [number, other] : sessions_) {
        if (number != input.session && had_recent_view(other, input.time)) {
            balance += other.seen.tick_zero - tick_zero_time(input) > kFarAhead ? 1 : -1;
        }
    }
    return balance > 0;
}

ViewCollector::MapRunOfView ViewCollector::assign_map_run(const Session& session,
                                                          const MergerInput& input) const {
    if (!newest_) {
        return MapRunOfView::other;
    }
    const bool may_enter = session.entering || session.strays >= kMaxStrayViews;
    const auto other = may_enter ? MapRunOfView::other : MapRunOfView::none;
    const Timestamp tick_zero = tick_zero_time(input);
    const bool on_time = is_near(tick_zero, tick_zero_, kJitter);
    const bool lingers = session.run != run_ && !on_time && is_of_previous_map_run(tick_zero);
    const bool fits = is_near(tick_zero, tick_zero_) && input.tick > Wide{*newest_} - kFarBehind;
    if (lingers || (fits && is_far_ahead_of_others(session, input))) {
        // The view is a late one of the previous map run, or fits the current one only by chance.
        return other;
    }
    if (!may_enter) {
        return fits ? MapRunOfView::current : MapRunOfView::none;
    }
    if (session.entering && is_of_other_map_run(session, input)) {
        if (!on_time) {
            return MapRunOfView::other;
        }
        // The current map run goes on. Either the server sent this view before it announced the
        // map, or the server has several maps at the same time.
        if (session.strays < kMaxStrayViews) {
            return session.run == run_ ? MapRunOfView::none : MapRunOfView::current;
        }
    }
    // A session that enters the current map run must be near its newest tick.
    return fits && input.tick > Wide{*newest_} - kMaxLag ? MapRunOfView::current
                                                         : MapRunOfView::other;
}

bool ViewCollector::ends_map_run(const Session& session, const MergerInput& input) const {
    if (!newest_) {
        return true;
    }
    const Timestamp tick_zero = tick_zero_time(input);
    // Compares how many sessions are in this view's map run and in the current one. Does so only
    // when a session enters, or has had kMaxStrayViews more stray views: a map change may be lost.
    const bool enters = session.entering && !is_of_previous_map_run(tick_zero);
    if (!enters && (session.strays == 0 || session.strays % kMaxStrayViews != 0)) {
        return false;
    }
    int balance = 1;
    for (const auto& [number, other] : sessions_) {
        if (number == input.session) {
            continue;
        }
        if (other.other) {
            const bool agrees = is_near(other.other->tick_zero, tick_zero) &&
                                is_near(other.other->time, input.time, kMaxSilence);
            balance += agrees ? 1 : 0;
        } else if (had_recent_view(other, input.time) ||
                   (!enters && other.run == run_ && !other.entering &&
                    other.fitted > session.strays_since)) {
            --balance;
        }
    }
    return balance > 0;
}

void ViewCollector::count_stray_view(Session& session) {
    ++view_counts_.stray;
    if (session.strays % kMaxStrayViews == 0) {
        session.strays_since = fitted_;
    }
    ++session.strays;
}

void ViewCollector::record_tick_step(Session& session, Tick tick) {
    const Tick before = std::exchange(session.latest, tick);
    if (before == snapshot::kNoBase) {
        return;
    }
    session.step = Wide{tick} - before;
    auto& full_rate = session.full_rate;
    if (full_rate && before > Wide{full_rate->last} + kMaxLag) {
        full_rate.reset(); // outdated
    }
    if (session.step <= kFullStep && !full_rate) {
        full_rate = {.first = before, .last = tick};
    } else if (session.step < kSparseStep && full_rate) {
        full_rate->last = tick;
    }
}

void ViewCollector::begin_map_run(Timestamp now) {
    close_all_ticks();
    last_event_ = now; // may be earlier than the previous value of last_event_
    if (newest_) {
        for (auto& [number, session] : sessions_) {
            session.resumed = false;
        }
    }
    previous_tick_zero_ = newest_ ? std::optional{tick_zero_} : std::nullopt;
    first_.reset();
    newest_.reset();
    newest_closed_.reset();
    maps_ = {};
    ++run_;
}

ViewCollector::StoredView::StoredView(const MergerInput& input,
                                      std::shared_ptr<const record::Roster> players)
    : roster{std::move(players)} {
    snapshot::SnapshotWriter{items, input.items.size(), input.items.data().size()}.copy(
        input.items);
    view =
        make_view(input.session, input.client_version, items.view(), input.dialect, roster.get());
}

std::size_t ViewCollector::StoredView::memory_bytes() const {
    constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::Entry);
    return sizeof(StoredView) + items.view().block_ints() * sizeof(std::int32_t) +
           (roster != nullptr ? kRosterBytes : 0);
}

bool ViewCollector::OpenTick::has_view_of(std::uint32_t session) const {
    return std::ranges::any_of(
        views, [session](const StoredView& each) { return each.view.session == session; });
}

void ViewCollector::add_view(const MergerInput& input) {
    last_event_ = std::max(last_event_, input.time);
    Session& session = sessions_[input.session];
    if (!session.has_begun && input.items.empty()) {
        return; // the empty snapshot of the handshake
    }
    session.has_begun = true;
    ++view_counts_.views;
    const ViewTime sighting{.time = input.time, .tick_zero = tick_zero_time(input)};
    if (const MapRunOfView belongs = assign_map_run(session, input);
        belongs != MapRunOfView::current) {
        session.other = belongs == MapRunOfView::other ? std::optional{sighting} : std::nullopt;
        if (belongs == MapRunOfView::none || !ends_map_run(session, input)) {
            count_stray_view(session);
            return;
        }
        begin_map_run(input.time);
    }
    if (session.run != run_) {
        session = {.entering = false,
                   .has_begun = true,
                   .resumed = session.resumed,
                   .run = run_,
                   .map = session.map};
    }
    if (auto& map = maps_[static_cast<std::size_t>(input.dialect)]; !map) {
        map = session.map;
    }
    session.entering = false;
    session.strays = 0;
    session.other.reset();
    session.dialect = input.dialect;
    session.fitted = ++fitted_;
    session.seen.time = input.time;
    if (input.tick > session.latest) {
        record_tick_step(session, input.tick);
        session.seen = sighting;
    }
    first_ = first_.value_or(input.tick);
    if (!newest_ || input.tick > *newest_) {
        newest_ = input.tick;
        tick_zero_ = sighting.tick_zero;
    }
    if (newest_closed_ && input.tick <= *newest_closed_) {
        ++view_counts_.late;
        return;
    }
    if (input.roster == nullptr) {
        session.roster.reset();
    } else if (session.roster == nullptr || *session.roster != *input.roster) {
        session.roster = std::make_shared<const record::Roster>(*input.roster);
    }
    OpenTick& open = open_.try_emplace(input.tick, OpenTick{.time = input.time}).first->second;
    if (!open.has_view_of(input.session)) { // a repeated snapshot is ignored
        open.time = std::min(open.time, input.time);
        bytes_ += open.views.emplace_back(input, session.roster).memory_bytes();
    }
    close_ready_ticks();
}

std::optional<TickInMapRun> ViewCollector::tick_in_map_run_of(std::uint32_t session) const {
    const auto known = sessions_.find(session);
    if (known == sessions_.end() || known->second.entering || known->second.run != run_ ||
        known->second.latest == snapshot::kNoBase) {
        return std::nullopt;
    }
    return TickInMapRun{
        .run = run_, .tick = known->second.latest, .dialect = known->second.dialect};
}

bool ViewCollector::is_view_due(const Session& session, Tick tick) const {
    return session.run == run_ && !session.entering && session.step <= kFullStep &&
           session.latest >= Wide{*newest_} - kMaxLag && session.latest < tick;
}

bool ViewCollector::may_view_be_written(const Session& session, Tick tick) const {
    if (!session.resumed || !first_ || tick >= Wide{*first_} + kMaxLag) {
        return false;
    }
    return session.full_rate ? tick < session.full_rate->first
                             : session.run != run_ || session.step < kSparseStep;
}

bool ViewCollector::was_written_by_previous_process(Tick tick) const {
    // Only the first ticks after a takeover can have reached both processes.
    return tick < Wide{*first_} + delay_.least &&
           std::ranges::any_of(sessions_, [&](const auto& each) {
               return each.second.full_rate && may_view_be_written(each.second, tick);
           });
}

bool ViewCollector::needs_view_of(const Session& session, Tick tick) const {
    if (may_view_be_written(session, tick)) {
        return true;
    }
    const auto& full_rate = session.full_rate;
    return session.run == run_ && full_rate && full_rate->first <= tick &&
           tick <= Wide{full_rate->last} + kMaxLag && session.latest >= Wide{tick} - kFullStep;
}

bool ViewCollector::may_close_tick(Tick tick) {
    if (*newest_ >= Wide{tick} + delay_.most) {
        return true;
    }
    if (*newest_ < Wide{tick} + delay_.least) {
        return false;
    }
    // After a takeover, the first ticks wait until each session's snapshot rate is known. It shows
    // whether the previous process wrote these ticks.
    const bool first = tick < Wide{*first_} + delay_.least;
    const auto holds_up = [&](const auto& each) {
        const Session& session = each.second;
        return is_view_due(session, tick) ||
               (first && session.resumed && session.run == run_ && session.step == 0);
    };
    // This function is called for every view. Usually the session that the last call found still
    // holds up the tick, so it is checked first.
    const auto last = sessions_.find(awaited_session_);
    if (last != sessions_.end() && holds_up(*last)) {
        return false;
    }
    const auto found = std::ranges::find_if(sessions_, holds_up);
    if (found != sessions_.end()) {
        awaited_session_ = found->first;
    }
    return found == sessions_.end();
}

void ViewCollector::close_oldest_tick() {
    const auto node = open_.extract(open_.begin());
    const Tick tick = node.key();
    const OpenTick& open = node.mapped();
    newest_closed_ = tick;
    ClosedTick world{.tick = tick, .time = open.time, .run = run_, .complete = !open.lacks_view};
    for (const StoredView& each : open.views) {
        bytes_ -= each.memory_bytes();
        world.views.push_back(each.view);
    }
    for (const auto& [number, session] : sessions_) {
        world.complete =
            world.complete && (!needs_view_of(session, tick) || open.has_view_of(number));
    }
    if (was_written_by_previous_process(tick)) {
        view_counts_.late += world.views.size();
        return;
    }
    std::ranges::sort(world.views, has_more_information);
    close_(std::move(world));
}

bool ViewCollector::close_oldest_tick_early() {
    if (open_.empty()) {
        return false;
    }
    close_oldest_tick();
    return true;
}

void ViewCollector::close_ready_ticks() {
    while (!open_.empty() && may_close_tick(open_.begin()->first)) {
        close_oldest_tick();
    }
}

void ViewCollector::advance_time(Timestamp now) {
    if (now - last_event_ >= kMaxSilence) {
        close_all_ticks();
    }
}

void ViewCollector::close_all_ticks() {
    while (!open_.empty()) {
        close_oldest_tick();
    }
}

} // namespace tw::world
