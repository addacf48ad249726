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

/// Where a session is in its server's game.
struct Moment {
    std::uint32_t run = 0;
    snapshot::Tick tick = 0; ///< of its last snapshot
    snapshot::Dialect dialect = snapshot::Dialect::six;
};

/// What is said of a tick's views when there are no more.
struct ClosedWorld {
    const OpenWorld* views = nullptr;
    std::uint32_t run = 1;
    bool complete = false; ///< all sessions that were due are in it
};

/// What a server calls a map by.
struct MapId {
    std::string name;
    std::uint32_t crc = 0;
};

/// What came too late, or was of no run of the server.
struct Lateness {
    std::uint64_t views = 0; ///< all that came
    std::uint64_t late = 0;  ///< behind the world of their tick
    std::uint64_t stray = 0; ///< of another run of the server, or of none
};

/// How many ticks a world waits for views.
struct Patience {
    snapshot::Tick least =
        4; ///< they come that much out of order; and who joins is not known before
    snapshot::Tick most = 50; ///< where a session is behind
};

/// The ticks of one server: gathers the views of each, and decides when a tick has all it will get.
/// A tick closes when the newest is Patience::least ahead and each session at full rate has reached it;
/// at the latest Patience::most ticks later, or after kSilence without anything from the server. Ticks close
/// in order, whatever order views come in.
///
/// Where a process goes on with the sessions of another, it does not know at first what they are sent:
/// worlds of the first second are not complete without all of them. Of a tick that came to both, the other one
/// has written the world.
///
/// A run is one start of the server or map: its ticks count from 0, so that its views must not be
/// taken for those of another. A session enters the next run when it is told of its map: of another
/// map than that of the run at hand, or of any, if its ticks are then of another time. Or it is shown
/// for long what fits nowhere: its map change was lost, or it was another's view that began the run.
/// Either way the majority decides: the run at hand is over when more sessions are shown the next one
/// than are still shown this. So a map change that all are told of takes effect with the first view,
/// and what one session alone is shown, true or forged, is a stray.
///
/// How much waits is not bounded here: whoever has several of them asks for bytes(), and closes the
/// oldest tick where it is too much.
class Timeline {
  public:
    using Close = std::function<void(const ClosedWorld& world)>;

    static constexpr snapshot::Tick kLongest = 50;
    static constexpr record::Timestamp kSilence = 1'000'000'000;
    /// After so many snapshots in a row that fit nowhere, a session may be of another run, as one
    /// that enters.
    static constexpr int kMaxStrays = 25;

    /// `memory`: shared with others; has to outlive it. `run`: the one before its first.
    Timeline(Close close, OpenWorlds& memory, std::uint32_t run = 0, Patience patience = {})
        : close_{std::move(close)}, memory_{&memory}, run_{run}, patience_{patience} {}

    void enter(std::uint32_t session);
    /// The same of one that is told of this map.
    void enter(std::uint32_t session, MapId map);
    /// The same of one that another process had until now: which ticks it is sent is not known yet.
    void resume(std::uint32_t session);
    void leave(std::uint32_t session);
    /// A verified snapshot.
    void add(const Input& input);
    /// Time passes.
    void advance(record::Timestamp now);
    /// Closes all.
    void finish();

    [[nodiscard]] std::size_t sessions() const { return sessions_.size(); }

    /// Whether the run at hand is known to be of another map than the one that clients of `dialect` are
    /// told of. Servers have a file of its own for 0.7, of the same name.
    [[nodiscard]] bool is_another(const MapId& map, snapshot::Dialect dialect) const;

    /// Nothing while it is shown nothing of the run at hand.
    [[nodiscard]] std::optional<Moment> moment_of(std::uint32_t session) const;

    [[nodiscard]] const Lateness& lateness() const { return lateness_; }

    /// Of views that wait.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Closes the oldest tick with what it has. False: none is open.
    [[nodiscard]] bool close_oldest_early();

  private:
    /// The ticks in which a session is known to be sent all that the server has.
    struct Stretch {
        snapshot::Tick first = 0;
        snapshot::Tick last = 0;
    };

    /// A view, by when it came and when tick 0 was.
    struct Sighting {
        record::Timestamp time = 0;
        record::Timestamp offset = 0;
    };

    struct Session {
        bool entering = true;            ///< its next snapshot may be of another run
        bool begun = false;              ///< had a snapshot with anything in it
        bool resumed = false;            ///< in the run at hand: another process had it before
        std::uint32_t run = 0;           ///< that its last one was of
        int strays = 0;                  ///< in a row
        std::uint64_t strays_since = 0;  ///< fitted_ before the last kMaxStrays of them, or fewer
        std::uint64_t fitted = 0;        ///< fitted_ with its last view of the run
        Sighting seen{};                 ///< that view
        std::optional<Sighting> other{}; ///< its last view, while it may be of another run
        snapshot::Tick latest = snapshot::kNoBase;
        std::int64_t step = 0; ///< ticks from the one before it
        snapshot::Dialect dialect = snapshot::Dialect::six;
        std::optional<Stretch> full_rate{};
        std::shared_ptr<const record::Roster> roster{}; ///< who plays; only of 0.7
        std::optional<MapId> map{};                     ///< that it was told of last
    };

    enum class Belongs : std::uint8_t { here, nowhere, elsewhere };

    [[nodiscard]] Belongs place(const Session& session, const Input& input) const;
    /// What an entering session is shown is not of the run at hand, whatever its tick may be.
    [[nodiscard]] bool tells_of_another(const Session& session, const Input& input) const;
    /// Whether this is when tick 0 of the run before was.
    [[nodiscard]] bool is_of_former(record::Timestamp offset) const;
    /// Whether it is shown ticks far ahead of those that most others are shown now.
    [[nodiscard]] bool is_ahead(const Session& session, const Input& input) const;
    /// Whether it was shown the run at hand just now.
    [[nodiscard]] bool is_shown(const Session& session, record::Timestamp now) const;
    /// Whether a view that is not of the run at hand ends it.
    [[nodiscard]] bool ends_run(const Session& session, const Input& input) const;
    void stray(Session& session);
    /// It was shown a later tick than before.
    static void step_to(Session& session, snapshot::Tick tick);
    void begin_run(record::Timestamp now);
    [[nodiscard]] bool is_due(const Session& session, snapshot::Tick tick) const;
    /// Whether a world that closes lacks a view without the session's.
    [[nodiscard]] bool belongs_in(const Session& session, snapshot::Tick tick) const;
    /// Whether another process may have its view.
    [[nodiscard]] bool may_have_been_in(const Session& session, snapshot::Tick tick) const;
    /// Whether the process before this one wrote a world of that tick.
    [[nodiscard]] bool was_told_before(snapshot::Tick tick) const;
    [[nodiscard]] bool may_close(snapshot::Tick tick);
    void close_oldest();
    void close_ready();
    [[nodiscard]] OpenWorld& open(snapshot::Tick tick, record::Timestamp time);

    /// A tick that waits for views.
    struct Open {
        std::unique_ptr<OpenWorld> world;
        bool lacks = false; ///< the view of a session that left
    };

    Close close_;
    std::map<std::uint32_t, Session> sessions_;
    std::map<snapshot::Tick, Open> open_;
    std::uint32_t awaited_ = 0; ///< a session that the oldest of them waited for last
    OpenWorlds* memory_;
    std::size_t bytes_ = 0; ///< of the open ones
    std::uint32_t run_;
    Patience patience_;
    std::array<std::optional<MapId>, snapshot::kDialects> maps_; ///< of the run at hand
    std::uint64_t fitted_ = 0;            ///< views of all sessions that were of the run at hand
    std::optional<snapshot::Tick> first_; ///< that was shown of the run at hand
    std::optional<snapshot::Tick> newest_;
    std::optional<snapshot::Tick> emitted_;
    record::Timestamp offset_ = 0;                     ///< when tick 0 was, by the newest view
    std::optional<record::Timestamp> former_offset_{}; ///< of the run before
    record::Timestamp heard_ = 0;
    Lateness lateness_;
};

} // namespace tw::world
