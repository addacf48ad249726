#pragma once

#include "proxy/world/open_world.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

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

/// A session's position in its server's game.
struct Moment {
    std::uint32_t run = 0;
    snapshot::Tick tick = 0; ///< tick of its last snapshot
    snapshot::Dialect dialect = snapshot::Dialect::six;
};

/// The views of a tick that is complete or has waited long enough.
struct ClosedWorld {
    const OpenWorld* views = nullptr;
    std::uint32_t run = 1;
    bool complete = false; ///< it has the views of all sessions that were expected
};

/// A map's name and checksum as the server announces them.
struct MapId {
    std::string name;
    std::uint32_t crc = 0;
};

/// Counts of views that could not be used.
struct Lateness {
    std::uint64_t views = 0; ///< all views
    std::uint64_t late = 0;  ///< arrived after their world was written
    std::uint64_t stray = 0; ///< of another run of the server, or of none
};

/// The number of ticks that a world waits for views.
struct Patience {
    /// Snapshots may arrive 4 ticks out of order, and new sessions are not known before.
    snapshot::Tick least = 4;
    snapshot::Tick most = 50; ///< the limit if a session lags behind
};

/// Collects the views of each tick of one server and decides when a tick is complete. A tick closes
/// when the newest tick is Patience::least ahead and each session at full rate has reached it; at
/// the latest Patience::most ticks later, or after kSilence without any view. Ticks close in order,
/// whatever the order of arrival.
///
/// After a takeover from another process, it is unknown at first which ticks the sessions receive.
/// So worlds of the first second count as incomplete unless all sessions are in them. The other
/// process has written the worlds of the ticks that both received.
///
/// A run is one start of the server or map. Its ticks count from 0, so views of different runs must
/// not be mixed. A session enters the next run when it is told another map than the current run's,
/// or any map if its ticks then have another time base. It may also receive views that do not fit
/// for long, because the map change was lost or the current run was begun by a wrong view. In both
/// cases the majority decides: a run ends when more sessions are in the next run than in the
/// current one. So a map change that all are told takes effect with the first view, and views of a
/// single deviating session, real or forged, are strays.
///
/// Memory is not limited here: the caller checks bytes() and closes the oldest tick when it is too
/// much.
class Timeline {
  public:
    using Close = std::function<void(const ClosedWorld& world)>;

    static constexpr snapshot::Tick kLongest = 50;
    static constexpr record::Timestamp kSilence = 1'000'000'000;
    /// After this many consecutive views that do not fit, a session is treated as entering another
    /// run.
    static constexpr int kMaxStrays = 25;

    /// `memory`: shared with others; must outlive it. Runs are numbered from `run` + 1.
    Timeline(Close close, OpenWorlds& memory, std::uint32_t run = 0, Patience patience = {})
        : close_{std::move(close)}, memory_{&memory}, run_{run}, patience_{patience} {}

    void enter(std::uint32_t session);
    /// Adds a session that was told this map, or notes a map change.
    void enter(std::uint32_t session, MapId map);
    /// Adds a session that another process had before, so that its ticks are not known yet.
    void resume(std::uint32_t session);
    void leave(std::uint32_t session);
    /// Adds the view of a verified snapshot.
    void add(const Input& input);
    /// Notes that no view arrived until `now`.
    void advance(record::Timestamp now);
    /// Closes all ticks.
    void finish();

    [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }

    /// Whether the current run is known to have another map than this one, which clients of
    /// `dialect` are told. Servers use a separate file with the same name for 0.7.
    [[nodiscard]] bool is_another(const MapId& map, snapshot::Dialect dialect) const;

    /// Returns nullopt if the session has no view of the current run.
    [[nodiscard]] std::optional<Moment> moment_of(std::uint32_t session) const;

    [[nodiscard]] const Lateness& lateness() const { return lateness_; }

    /// Memory use of waiting views.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Closes the oldest tick with the views it has. Returns false if none is open.
    [[nodiscard]] bool close_oldest_early();

  private:
    /// The ticks in which a session is known to receive every snapshot.
    struct Stretch {
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// A view's arrival time, and the time of tick 0 according to it.
    struct Sighting {
        record::Timestamp time = 0;
        record::Timestamp offset = 0;
    };

    struct Session {
        bool entering = true;  ///< its next snapshot may be of another run
        bool begun = false;    ///< it had a non-empty snapshot
        bool resumed = false;  ///< another process had it before; for the current run
        std::uint32_t run = 0; ///< run of its last snapshot
        int strays = 0;        ///< consecutive stray views
        /// fitted_ before its last strays, at most kMaxStrays of them
        std::uint64_t strays_since = 0;
        std::uint64_t fitted = 0;        ///< fitted_ at its last view of the run
        Sighting seen{};                 ///< its last view of the run
        std::optional<Sighting> other{}; ///< its last view that may be of another run
        snapshot::Tick latest = snapshot::kNoBase;
        std::int64_t step = 0; ///< ticks between its last two views
        snapshot::Dialect dialect = snapshot::Dialect::six;
        std::optional<Stretch> full_rate{};
        std::shared_ptr<const record::Roster> roster{}; ///< the players; only for 0.7
        std::optional<MapId> map{};                     ///< the map it was told last
    };

    enum class Belongs : std::uint8_t { here, nowhere, elsewhere };

    [[nodiscard]] Belongs place(const Session& session, const Input& input) const;
    /// Whether an entering session's view is of another run, whatever its tick.
    [[nodiscard]] bool tells_of_another(const Session& session, const Input& input) const;
    /// Whether tick 0 of the previous run was at this time.
    [[nodiscard]] bool is_of_former(record::Timestamp offset) const;
    /// Whether the session's ticks are far ahead of those of most others.
    [[nodiscard]] bool is_ahead(const Session& session, const Input& input) const;
    /// Whether the session had a view of the current run recently.
    [[nodiscard]] bool is_shown(const Session& session, record::Timestamp now) const;
    /// Whether a view of another run ends the current run.
    [[nodiscard]] bool ends_run(const Session& session, const Input& input) const;
    void stray(Session& session);
    /// Notes that the session had a later tick than before.
    static void step_to(Session& session, snapshot::Tick tick);
    void begin_run(record::Timestamp now);
    [[nodiscard]] bool is_due(const Session& session, snapshot::Tick tick) const;
    /// Whether a closing world is incomplete without this session's view.
    [[nodiscard]] bool belongs_in(const Session& session, snapshot::Tick tick) const;
    /// Whether the previous process may have received the session's view.
    [[nodiscard]] bool may_have_been_in(const Session& session, snapshot::Tick tick) const;
    /// Whether the previous process wrote the world of this tick.
    [[nodiscard]] bool was_told_before(snapshot::Tick tick) const;
    [[nodiscard]] bool may_close(snapshot::Tick tick);
    void close_oldest();
    void close_ready();
    [[nodiscard]] OpenWorld& open(snapshot::Tick tick, record::Timestamp time);

    /// A tick that waits for views.
    struct Open {
        std::unique_ptr<OpenWorld> world;
        bool lacks = false; ///< the view of a session that has ended is missing
    };

    Close close_;
    std::map<std::uint32_t, Session> sessions_;
    std::map<snapshot::Tick, Open> open_;
    std::uint32_t awaited_ = 0; ///< the session that the oldest tick waited for last
    OpenWorlds* memory_;
    std::size_t bytes_ = 0; ///< of the open ticks
    std::uint32_t run_;
    Patience patience_;
    std::array<std::optional<MapId>, snapshot::kDialects> maps_; ///< of the current run
    std::uint64_t fitted_ = 0;            ///< views of all sessions that fitted the current run
    std::optional<snapshot::Tick> first_; ///< the first tick of the current run
    std::optional<snapshot::Tick> newest_;
    std::optional<snapshot::Tick> emitted_;
    record::Timestamp offset_ = 0;                     ///< time of tick 0, by the newest view
    std::optional<record::Timestamp> former_offset_{}; ///< time of tick 0 of the previous run
    record::Timestamp heard_ = 0;
    Lateness lateness_;
};

} // namespace tw::world
