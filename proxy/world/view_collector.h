#pragma once

#include "proxy/record/stats.h"
#include "proxy/world/view.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tw::world {

/// The map run (see ViewCollector) and the tick of a session's latest snapshot.
struct TickInMapRun {
    std::uint32_t map_run = 0;
    snapshot::Tick tick = 0;
    snapshot::Dialect dialect = snapshot::Dialect::six;
};

/// The views of a closed tick, which does not wait for further views: either all have arrived, or
/// the waiting time is over.
struct ClosedTick {
    snapshot::Tick tick = 0;
    record::Timestamp time = 0; ///< arrival time of the view that arrived first
    std::vector<View> views{};  ///< sorted by has_more_information()
    std::uint32_t map_run = 1;
    bool is_complete = false; ///< each session that receives every tick has a view
};

/// A map's name and checksum as the server announces them.
struct MapId {
    std::string name;
    std::uint32_t crc = 0;
};

/// How long a tick waits for views. The wait ends when the newest tick is this many ticks newer.
struct MergeDelay {
    /// The shortest wait. Snapshots may arrive 4 ticks out of order, and the first view of a new
    /// session may be late.
    snapshot::Tick min_ticks = 4;
    snapshot::Tick max_ticks = 50; ///< the longest wait, for a session that lags behind
};

/// Collects the views (sessions' snapshots) of each tick of one server and decides when a tick is
/// complete. A tick is closed when the newest tick is MergeDelay::min_ticks ticks ahead and each
/// session that receives all ticks has reached the tick. At the latest, a tick is closed when the
/// newest tick is MergeDelay::max_ticks ticks ahead, or when no view arrived for kMaxSilence. Ticks
/// are closed in ascending order, in whatever order views arrive.
///
/// After a takeover from another process, it is unknown at first which ticks the sessions receive.
/// Therefore, a tick of the first second counts as incomplete unless all sessions have a view of
/// it. Ticks that both processes received were written by the previous process.
///
/// A map run is the time from a start of the server or a map change to the next one. Ticks count
/// from 0 in each map run, so views of different map runs must not be mixed. A session enters the
/// next map run if
///
/// - the server announces another map to the session than the current map run's;
/// - the server announces the same map again, and the time of tick 0 then differs;
/// - many consecutive views of the session do not fit the current map run, because a map change was
///   lost or the map run began with a wrong view.
///
/// A map run ends when more sessions are in the next one than in the current one. So a map change
/// that is announced to all sessions takes effect with the first view, and the views of a single
/// deviating session, real or forged, are only counted as stray.
///
/// This class does not limit its memory: the caller checks memory_bytes() and closes the oldest
/// tick if necessary.
class ViewCollector {
  public:
    /// Receives a closed tick. The views' items are valid only during the call.
    using TickCloseHandler = std::function<void(ClosedTick world)>;

    /// No tick waits for a session whose newest view is older than this (ticks).
    static constexpr snapshot::Tick kMaxLag = 50;
    /// If no view arrives for this time (ns), all ticks are closed.
    static constexpr record::Timestamp kMaxSilence = 1'000'000'000;
    /// After this many consecutive views that do not fit the current map run (stray views), a
    /// session is treated as entering another map run.
    static constexpr int kMaxStrayViews = 25;

    /// The first map run gets the number `run` + 1. `delay`: how long ticks wait for views.
    explicit ViewCollector(TickCloseHandler close, std::uint32_t run = 0, MergeDelay delay = {})
        : close_handler_{std::move(close)}, map_run_{run}, delay_{delay} {}

    void add_session(std::uint32_t session);
    /// Sets the map that the server announced to the session. Adds the session if it is new.
    void add_session(std::uint32_t session, MapId map);
    /// Adds a session that another process inspected before. The ticks that it receives are not yet
    /// known.
    void add_resumed_session(std::uint32_t session);
    void remove_session(std::uint32_t session);
    void add_view(const MergerInput& input);
    /// Closes all ticks if no view has arrived for kMaxSilence.
    void advance_time(record::Timestamp now);
    void close_all_ticks();

    [[nodiscard]] std::size_t session_count() const { return sessions_.size(); }

    /// Returns whether the current map run certainly has another map than `map`, which the server
    /// announced to a client of this dialect. Checksums of different dialects are not compared,
    /// because servers announce another file with the same name to 0.7 clients.
    [[nodiscard]] bool has_other_map(const MapId& map, snapshot::Dialect dialect) const;

    /// Returns the current map run and the tick of the session's latest view; nullopt if the
    /// session has no view of this map run.
    [[nodiscard]] std::optional<TickInMapRun> tick_in_map_run_of(std::uint32_t session) const;

    /// Returns the numbers of collected, late and stray views. The other counts in the result are
    /// 0.
    [[nodiscard]] const record::WorldStats& view_counts() const { return view_counts_; }

    /// Returns the memory use of the ticks that wait for views, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

    /// Closes the oldest open tick with the views that arrived. Returns false if no tick is open.
    [[nodiscard]] bool close_oldest_tick_early();

  private:
    /// A range of ticks in which a session certainly receives every snapshot.
    struct TickRange {
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// The arrival time of a view, and the time of tick 0 computed from it.
    struct ViewTime {
        record::Timestamp time = 0;
        record::Timestamp tick_zero = 0;
    };

    struct Session {
        /// The session's next snapshot may belong to another map run.
        bool is_entering_map_run = true;
        bool has_begun = false;  ///< the session received a non-empty snapshot
        bool is_resumed = false; ///< another process inspected the session earlier in this map run
        std::uint32_t map_run = 0; ///< map run of the session's last snapshot
        int num_stray_views = 0;   ///< number of consecutive stray views (see kMaxStrayViews)
        /// Value of num_fitting_views_ at the session's first stray view, and again after every
        /// kMaxStrayViews stray views. A session with a greater `fitting_views_at_last_fit` had a
        /// view of the current map run since then.
        std::uint64_t fitting_views_at_stray = 0;
        /// Value of num_fitting_views_ at the session's last fitting view.
        std::uint64_t fitting_views_at_last_fit = 0;
        ViewTime newest_view_time{};               ///< the session's newest view of its map run
        std::optional<ViewTime> stray_view_time{}; ///< the last stray view, if of another map run
        snapshot::Tick latest_tick = snapshot::kNoBase;
        std::int64_t tick_step = 0; ///< ticks between the last two views
        snapshot::Dialect dialect = snapshot::Dialect::six;
        std::optional<TickRange> full_rate_ticks{};
        std::optional<MapId> map{}; ///< the map that the server announced to the session last
    };

    /// The map run to which a view belongs: the current one, none (the view is ignored), or another
    /// one.
    enum class MapRunOfView : std::uint8_t { current, none, other };

    [[nodiscard]] MapRunOfView find_map_run_of_view(const Session& session,
                                                    const MergerInput& input) const;
    /// Returns whether the session has another map than the current map run, or the tick is not
    /// newer than the session's latest one. Precondition: the session is about to enter a map run.
    [[nodiscard]] bool is_of_other_map_run(const Session& session, const MergerInput& input) const;
    [[nodiscard]] bool is_of_previous_map_run(record::Timestamp tick_zero) const;
    [[nodiscard]] bool is_far_ahead_of_others(const Session& session,
                                              const MergerInput& input) const;
    [[nodiscard]] bool had_recent_view(const Session& session, record::Timestamp now) const;
    [[nodiscard]] bool ends_map_run(const Session& session, const MergerInput& input) const;
    void count_stray_view(Session& session);
    /// Updates Session::tick_step and Session::full_rate_ticks. `tick` is newer than the latest
    /// tick.
    static void update_tick_step(Session& session, snapshot::Tick tick);
    void begin_map_run(record::Timestamp now);
    [[nodiscard]] bool may_still_receive_view(const Session& session, snapshot::Tick tick) const;
    /// Returns whether the tick is incomplete without a view of this session.
    [[nodiscard]] bool needs_view_of(const Session& session, snapshot::Tick tick) const;
    /// Returns whether the previous process may have written the session's view of this tick.
    [[nodiscard]] bool previous_process_may_have_written(const Session& session,
                                                         snapshot::Tick tick) const;
    [[nodiscard]] bool was_written_by_previous_process(snapshot::Tick tick) const;
    [[nodiscard]] bool may_close_tick(snapshot::Tick tick);
    void close_oldest_tick();
    void close_ready_ticks();

    /// A view and the objects to which it refers.
    struct StoredView {
        explicit StoredView(const MergerInput& input);

        /// Returns an upper bound of the memory use in bytes. A roster that several views share is
        /// counted for each view.
        [[nodiscard]] std::size_t memory_bytes() const;

        std::shared_ptr<const snapshot::Snapshot> items;
        std::shared_ptr<const record::Roster> roster;
        View view;
    };

    /// A tick that waits for views.
    struct OpenTick {
        [[nodiscard]] bool has_view_of(std::uint32_t session) const;

        record::Timestamp first_arrival_time = 0; ///< arrival time of the view that arrived first
        std::vector<StoredView> views{};
        bool lacks_view = false; ///< a session ended before its expected view arrived
    };

    TickCloseHandler close_handler_;
    std::map<std::uint32_t, Session> sessions_;
    std::map<snapshot::Tick, OpenTick> open_ticks_;
    /// The session that held up the oldest tick at the last check.
    std::uint32_t awaited_session_ = 0;
    std::size_t memory_bytes_ = 0; ///< memory use of the open ticks
    std::uint32_t map_run_;
    MergeDelay delay_;
    /// The map of the current map run, for each dialect.
    std::array<std::optional<MapId>, snapshot::kDialects> maps_of_run_;
    /// Number of views of all sessions so far, without stray views.
    std::uint64_t num_fitting_views_ = 0;
    std::optional<snapshot::Tick> first_tick_; ///< the first tick of the current map run
    std::optional<snapshot::Tick> newest_tick_;
    std::optional<snapshot::Tick> newest_closed_tick_;
    record::Timestamp tick_zero_ = 0; ///< time of tick 0, computed from the newest view
    std::optional<record::Timestamp> previous_tick_zero_{}; ///< the previous map run's tick_zero_
    record::Timestamp last_view_time_ = 0;
    record::WorldStats view_counts_;
};

} // namespace tw::world
