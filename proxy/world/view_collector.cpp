#include "proxy/world/view_collector.h"

#include <algorithm>

namespace tw::world {

using record::kTickDuration;
using record::Timestamp;
using snapshot::Tick;
using Wide = std::int64_t; ///< for sums of ticks, which are untrusted and must not overflow

namespace {

/// The time of tick 0, computed from the views of one map run, varies by less than this (ns).
constexpr Timestamp kMaxTickZeroDeviation = 3'000'000'000;
/// In most networks, the time of tick 0 varies by less than this (ns). Every map run is longer.
constexpr Timestamp kUsualTickZeroDeviation = 200'000'000;
/// A tick that is this many ticks older than the newest one belongs to another map run.
constexpr Tick kMaxTicksBehind = 250;
/// A session that enters a map run is ahead of the other sessions by at most this time (ns).
constexpr Timestamp kMaxTimeAhead = 1'000'000'000;
/// The largest tick step of a session at full rate.
constexpr Tick kMaxFullRateStep = 2;
/// The smallest tick step of a session at a reduced rate. Servers reduce the rate until a session
/// acknowledges a snapshot, and after the session lost the base of a delta. Steps between
/// kMaxFullRateStep and this value are due to lost snapshots.
constexpr Tick kMinReducedRateStep = 10;

Timestamp tick_zero_time(const MergerInput& input) {
    return input.time - input.tick * kTickDuration;
}

bool are_times_near(Timestamp left, Timestamp right, Timestamp distance = kMaxTickZeroDeviation) {
    return left - right < distance && right - left < distance;
}

} // namespace

void ViewCollector::add_session(std::uint32_t session) {
    sessions_[session].is_entering_map_run = true;
}

void ViewCollector::add_session(std::uint32_t session, MapId map) {
    add_session(session);
    sessions_[session].map = std::move(map);
}

bool ViewCollector::has_other_map(const MapId& map, snapshot::Dialect dialect) const {
    for (std::size_t i = 0; i < maps_of_run_.size(); ++i) {
        const bool same_files = i == static_cast<std::size_t>(dialect);
        if (maps_of_run_[i] && (maps_of_run_[i]->name != map.name ||
                                (same_files && maps_of_run_[i]->crc != map.crc))) {
            return true;
        }
    }
    return false;
}

bool ViewCollector::is_of_other_map_run(const Session& session, const MergerInput& input) const {
    return (session.map && has_other_map(*session.map, input.dialect)) ||
           (session.map_run == map_run_ && input.tick <= session.latest_tick);
}

void ViewCollector::add_resumed_session(std::uint32_t session) {
    add_session(session);
    sessions_[session].is_resumed = true;
}

void ViewCollector::remove_session(std::uint32_t session) {
    if (const auto gone = sessions_.find(session); gone != sessions_.end()) {
        for (auto& [tick, open] : open_ticks_) {
            open.lacks_view = open.lacks_view ||
                              (needs_view_of(gone->second, tick) && !open.has_view_of(session));
        }
        sessions_.erase(gone);
    }
    close_ready_ticks();
}

bool ViewCollector::is_of_previous_map_run(Timestamp tick_zero) const {
    return previous_tick_zero_ &&
           are_times_near(tick_zero, *previous_tick_zero_, kUsualTickZeroDeviation);
}

bool ViewCollector::had_recent_view(const Session& session, Timestamp now) const {
    const Wide step = std::clamp<Wide>(
        session.tick_step == 0 ? kMinReducedRateStep : session.tick_step, 1, kMaxLag);
    return session.map_run == map_run_ && !session.is_entering_map_run &&
           are_times_near(now, session.newest_view_time.time,
                          step * kTickDuration + kUsualTickZeroDeviation);
}

bool ViewCollector::is_far_ahead_of_others(const Session& session, const MergerInput& input) const {
    if (input.tick <= *newest_tick_) {
        return false; // only the first view of a newer tick is checked
    }
    int balance = session.map_run == map_run_ ? -1 : 0;
    for (const auto& [number, other] : sessions_) {
        if (number != input.session && had_recent_view(other, input.time)) {
            balance +=
                other.newest_view_time.tick_zero - tick_zero_time(input) > kMaxTimeAhead ? 1 : -1;
        }
    }
    return balance > 0;
}

ViewCollector::MapRunOfView ViewCollector::find_map_run_of_view(const Session& session,
                                                                const MergerInput& input) const {
    if (!newest_tick_) {
        return MapRunOfView::other;
    }
    const bool may_enter = session.is_entering_map_run || session.num_stray_views >= kMaxStrayViews;
    const auto other = may_enter ? MapRunOfView::other : MapRunOfView::none;
    const Timestamp tick_zero = tick_zero_time(input);
    const bool on_time = are_times_near(tick_zero, tick_zero_, kUsualTickZeroDeviation);
    const bool lingers =
        session.map_run != map_run_ && !on_time && is_of_previous_map_run(tick_zero);
    const bool fits =
        are_times_near(tick_zero, tick_zero_) && input.tick > Wide{*newest_tick_} - kMaxTicksBehind;
    if (lingers || (fits && is_far_ahead_of_others(session, input))) {
        // The view is a late one of the previous map run, or fits the current map run only by
        // chance.
        return other;
    }
    if (!may_enter) {
        return fits ? MapRunOfView::current : MapRunOfView::none;
    }
    if (session.is_entering_map_run && is_of_other_map_run(session, input)) {
        if (!on_time) {
            return MapRunOfView::other;
        }
        // The current map run goes on. Either the server sent this view before it announced the
        // map, or the server has several maps at the same time.
        if (session.num_stray_views < kMaxStrayViews) {
            return session.map_run == map_run_ ? MapRunOfView::none : MapRunOfView::current;
        }
    }
    // A session that enters the current map run must be near its newest tick.
    return fits && input.tick > Wide{*newest_tick_} - kMaxLag ? MapRunOfView::current
                                                              : MapRunOfView::other;
}

bool ViewCollector::ends_map_run(const Session& session, const MergerInput& input) const {
    if (!newest_tick_) {
        return true;
    }
    const Timestamp tick_zero = tick_zero_time(input);
    // The map run that has more sessions becomes the current one. The sessions are counted when a
    // session enters a run. They are also counted after every kMaxStrayViews stray views of a
    // session, because the message of a map change may be lost.
    const bool enters = session.is_entering_map_run && !is_of_previous_map_run(tick_zero);
    if (!enters &&
        (session.num_stray_views == 0 || session.num_stray_views % kMaxStrayViews != 0)) {
        return false;
    }
    int balance = 1;
    for (const auto& [number, other] : sessions_) {
        if (number == input.session) {
            continue;
        }
        if (other.stray_view_time) {
            const bool agrees =
                are_times_near(other.stray_view_time->tick_zero, tick_zero) &&
                are_times_near(other.stray_view_time->time, input.time, kMaxSilence);
            balance += agrees ? 1 : 0;
        } else if (had_recent_view(other, input.time) ||
                   (!enters && other.map_run == map_run_ && !other.is_entering_map_run &&
                    other.fitting_views_at_last_fit > session.fitting_views_at_stray)) {
            --balance;
        }
    }
    return balance > 0;
}

void ViewCollector::count_stray_view(Session& session) {
    ++view_counts_.stray;
    if (session.num_stray_views % kMaxStrayViews == 0) {
        session.fitting_views_at_stray = num_fitting_views_;
    }
    ++session.num_stray_views;
}

void ViewCollector::update_tick_step(Session& session, Tick tick) {
    const Tick before = std::exchange(session.latest_tick, tick);
    if (before == snapshot::kNoBase) {
        return;
    }
    session.tick_step = Wide{tick} - before;
    auto& full_rate = session.full_rate_ticks;
    if (full_rate && before > Wide{full_rate->last} + kMaxLag) {
        full_rate.reset(); // outdated
    }
    if (session.tick_step <= kMaxFullRateStep && !full_rate) {
        full_rate = {.first = before, .last = tick};
    } else if (session.tick_step < kMinReducedRateStep && full_rate) {
        full_rate->last = tick;
    }
}

void ViewCollector::begin_map_run(Timestamp now) {
    close_all_ticks();
    last_view_time_ = now; // may be earlier than the previous value of last_view_time_
    if (newest_tick_) {
        for (auto& [number, session] : sessions_) {
            session.is_resumed = false;
        }
    }
    previous_tick_zero_ = newest_tick_ ? std::optional{tick_zero_} : std::nullopt;
    first_tick_.reset();
    newest_tick_.reset();
    newest_closed_tick_.reset();
    maps_of_run_ = {};
    ++map_run_;
}

ViewCollector::StoredView::StoredView(const MergerInput& input)
    : items{input.items}, roster{input.roster}, view{make_view(input.session, input.client_version,
                                                               items->view(), input.dialect,
                                                               roster.get())} {}

std::size_t ViewCollector::StoredView::memory_bytes() const {
    constexpr std::size_t kRosterBytes =
        sizeof(record::Roster) + record::Roster::kMaxClients * sizeof(record::Roster::KnownPlayer);
    return sizeof(StoredView) + items->view().block_ints() * sizeof(std::int32_t) +
           (roster != nullptr ? kRosterBytes : 0);
}

bool ViewCollector::OpenTick::has_view_of(std::uint32_t session) const {
    return std::ranges::any_of(
        views, [session](const StoredView& each) { return each.view.session == session; });
}

void ViewCollector::add_view(const MergerInput& input) {
    last_view_time_ = std::max(last_view_time_, input.time);
    Session& session = sessions_[input.session];
    if (!session.has_begun && input.items->view().empty()) {
        return; // the empty snapshot of the handshake
    }
    session.has_begun = true;
    ++view_counts_.views;
    const ViewTime sighting{.time = input.time, .tick_zero = tick_zero_time(input)};
    if (const MapRunOfView belongs = find_map_run_of_view(session, input);
        belongs != MapRunOfView::current) {
        session.stray_view_time =
            belongs == MapRunOfView::other ? std::optional{sighting} : std::nullopt;
        if (belongs == MapRunOfView::none || !ends_map_run(session, input)) {
            count_stray_view(session);
            return;
        }
        begin_map_run(input.time);
    }
    if (session.map_run != map_run_) {
        session = {.is_entering_map_run = false,
                   .has_begun = true,
                   .is_resumed = session.is_resumed,
                   .map_run = map_run_,
                   .map = session.map};
    }
    if (auto& map = maps_of_run_[static_cast<std::size_t>(input.dialect)]; !map) {
        map = session.map;
    }
    session.is_entering_map_run = false;
    session.num_stray_views = 0;
    session.stray_view_time.reset();
    session.dialect = input.dialect;
    session.fitting_views_at_last_fit = ++num_fitting_views_;
    session.newest_view_time.time = input.time;
    if (input.tick > session.latest_tick) {
        update_tick_step(session, input.tick);
        session.newest_view_time = sighting;
    }
    first_tick_ = first_tick_.value_or(input.tick);
    if (!newest_tick_ || input.tick > *newest_tick_) {
        newest_tick_ = input.tick;
        tick_zero_ = sighting.tick_zero;
    }
    if (newest_closed_tick_ && input.tick <= *newest_closed_tick_) {
        ++view_counts_.late;
        return;
    }
    OpenTick& open = open_ticks_.try_emplace(input.tick, OpenTick{.first_arrival_time = input.time})
                         .first->second;
    if (!open.has_view_of(input.session)) { // a repeated snapshot is ignored
        open.first_arrival_time = std::min(open.first_arrival_time, input.time);
        memory_bytes_ += open.views.emplace_back(input).memory_bytes();
    }
    close_ready_ticks();
}

std::optional<TickInMapRun> ViewCollector::tick_in_map_run_of(std::uint32_t session) const {
    const auto known = sessions_.find(session);
    if (known == sessions_.end() || known->second.is_entering_map_run ||
        known->second.map_run != map_run_ || known->second.latest_tick == snapshot::kNoBase) {
        return std::nullopt;
    }
    return TickInMapRun{
        .map_run = map_run_, .tick = known->second.latest_tick, .dialect = known->second.dialect};
}

bool ViewCollector::may_still_receive_view(const Session& session, Tick tick) const {
    return session.map_run == map_run_ && !session.is_entering_map_run &&
           session.tick_step <= kMaxFullRateStep &&
           session.latest_tick >= Wide{*newest_tick_} - kMaxLag && session.latest_tick < tick;
}

bool ViewCollector::previous_process_may_have_written(const Session& session, Tick tick) const {
    if (!session.is_resumed || !first_tick_ || tick >= Wide{*first_tick_} + kMaxLag) {
        return false;
    }
    return session.full_rate_ticks
               ? tick < session.full_rate_ticks->first
               : session.map_run != map_run_ || session.tick_step < kMinReducedRateStep;
}

bool ViewCollector::was_written_by_previous_process(Tick tick) const {
    // Only the first ticks after a takeover can have reached both processes.
    return tick < Wide{*first_tick_} + delay_.min_ticks &&
           std::ranges::any_of(sessions_, [&](const auto& each) {
               return each.second.full_rate_ticks &&
                      previous_process_may_have_written(each.second, tick);
           });
}

bool ViewCollector::needs_view_of(const Session& session, Tick tick) const {
    if (previous_process_may_have_written(session, tick)) {
        return true;
    }
    const auto& full_rate = session.full_rate_ticks;
    return session.map_run == map_run_ && full_rate && full_rate->first <= tick &&
           tick <= Wide{full_rate->last} + kMaxLag &&
           session.latest_tick >= Wide{tick} - kMaxFullRateStep;
}

bool ViewCollector::may_close_tick(Tick tick) {
    if (*newest_tick_ >= Wide{tick} + delay_.max_ticks) {
        return true;
    }
    if (*newest_tick_ < Wide{tick} + delay_.min_ticks) {
        return false;
    }
    // After a takeover, the first ticks wait until each session's snapshot rate is known. The rate
    // shows whether the previous process wrote these ticks.
    const bool first = tick < Wide{*first_tick_} + delay_.min_ticks;
    const auto holds_up = [&](const auto& each) {
        const Session& session = each.second;
        return may_still_receive_view(session, tick) ||
               (first && session.is_resumed && session.map_run == map_run_ &&
                session.tick_step == 0);
    };
    // This function is called for every view. The session that held up the tick at the last call is
    // checked first, because it usually still does.
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
    const auto node = open_ticks_.extract(open_ticks_.begin());
    const Tick tick = node.key();
    const OpenTick& open = node.mapped();
    newest_closed_tick_ = tick;
    ClosedTick world{.tick = tick,
                     .time = open.first_arrival_time,
                     .map_run = map_run_,
                     .is_complete = !open.lacks_view};
    for (const StoredView& each : open.views) {
        memory_bytes_ -= each.memory_bytes();
        world.views.push_back(each.view);
    }
    for (const auto& [number, session] : sessions_) {
        world.is_complete =
            world.is_complete && (!needs_view_of(session, tick) || open.has_view_of(number));
    }
    if (was_written_by_previous_process(tick)) {
        view_counts_.late += world.views.size();
        return;
    }
    std::ranges::sort(world.views, has_more_information);
    close_handler_(std::move(world));
}

bool ViewCollector::close_oldest_tick_early() {
    if (open_ticks_.empty()) {
        return false;
    }
    close_oldest_tick();
    return true;
}

void ViewCollector::close_ready_ticks() {
    while (!open_ticks_.empty() && may_close_tick(open_ticks_.begin()->first)) {
        close_oldest_tick();
    }
}

void ViewCollector::advance_time(Timestamp now) {
    if (now - last_view_time_ >= kMaxSilence) {
        close_all_ticks();
    }
}

void ViewCollector::close_all_ticks() {
    while (!open_ticks_.empty()) {
        close_oldest_tick();
    }
}

} // namespace tw::world
