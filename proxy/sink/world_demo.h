#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/sink/demo_sink.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tw::sink {

/// The items and players of a world, with the ids that they have in a demo.
struct DemoItems {
    snapshot::SnapshotView items{};
    const record::Roster* roster = nullptr;
    /// Number of items left out because no id was free for their player.
    std::uint64_t left_out = 0;
};

/// Assigns the ids that the players of a world have in a demo. Clients draw only players with ids below a
/// limit. A world may use made-up ids above the limit, which no server has (docs/world.md).
class DemoPlayers {
  public:
    /// `vanilla`: vanilla Teeworlds must be able to play the demo, too.
    explicit DemoPlayers(bool vanilla) : vanilla_{vanilla} {}

    /// Returns the world with ids that clients draw. A player with a too high id gets a free one, and
    /// keeps it while present. The result is valid until the next call, but not longer than `world`.
    [[nodiscard]] DemoItems place(const record::SnapshotRecord& world);

    /// Returns the demo id of a client in the last placed world; nullopt if the client has none.
    [[nodiscard]] std::optional<std::uint16_t> id_of(std::int32_t client) const;

  private:
    static constexpr std::uint16_t kMostSlots = 64;

    /// Ids below `kept` stay as they are. Players with other ids get an id below `slots`.
    struct Limits {
        std::uint16_t kept = 0;
        std::uint16_t slots = 0;
    };

    [[nodiscard]] Limits limits_of(const record::SnapshotRecord& world) const;
    void gather(const record::SnapshotRecord& world);
    void seat(std::uint16_t client);
    [[nodiscard]] std::uint64_t renumber(const record::SnapshotRecord& world);

    struct Moved {
        snapshot::ItemKey key{};
        std::vector<std::int32_t> data;
    };

    bool vanilla_;
    Limits limits_{};
    std::set<std::uint16_t> present_; ///< the clients in the current world
    std::array<std::optional<std::uint16_t>, kMostSlots> slots_{};
    std::vector<Moved> moved_;
    snapshot::Snapshot items_;
    record::Roster roster_;
};

/// Writes merged snapshots (worlds) as demos like those that servers record: with all players, and without
/// a player's view. Each run of each server and map gets one demo, which starts once the map is known. A
/// snapshot holds at most kMaxItems items and kMaxSnapshotBytes bytes. If there are more, items are chosen in
/// this order: descriptors, game items, player items, characters, flags, everything else, events; and by key
/// among equals. Players have ids that clients draw (DemoPlayers). Items that only 0.7 has are left out of a
/// 0.6 world. Each message to all players is written once, after the tick of its world.
class WorldDemo final : public record::RecordSink, public record::WorldMessageSink {
  public:
    WorldDemo(DemoOptions options, FileQueue& files);

    void on_record(const record::Record& record) override;
    void on_world_message(const record::WorldMessage& message) override;

    void finish() { demos_.finish(); }

    [[nodiscard]] WorldDemoLosses losses() const;

  private:
    /// The demo state of a server.
    struct Game {
        std::uint32_t number = 0; ///< number that stands for a session number in the server's demos
        record::Timestamp heard = 0; ///< time of the server's last world
        std::optional<std::uint32_t> run{};
        snapshot::Dialect dialect = snapshot::Dialect::six; ///< dialect of the server's worlds
        std::uint64_t ordinal = 0; ///< number of the next world within the run
        bool named = false;        ///< the map of the current run is known
        DemoPlayers players{false};
    };

    /// The most servers with demos at the same time. If there are more, a server that was silent for
    /// kIdle nanoseconds is replaced; a server with connected players is never silent for so long.
    static constexpr std::size_t kMaxServers = 64;
    static constexpr record::Timestamp kIdle = 10'000'000'000;

    /// Returns the demo state of the world's server; null if there is no room.
    [[nodiscard]] Game* game_of(const record::WorldRecord& world);
    /// Ends the demo of the server that was silent longest. Returns false if none was silent for kIdle.
    [[nodiscard]] bool evict_idle(const record::RecordHead& now);
    void take(const record::WorldRecord& world);
    void begin_run(Game& game, const record::WorldRecord& world);
    /// Returns the items that a demo player of this dialect knows.
    [[nodiscard]] snapshot::SnapshotView playable(const record::SnapshotRecord& world);
    [[nodiscard]] snapshot::SnapshotView fit(const record::SnapshotRecord& world);

    bool vanilla_; ///< vanilla Teeworlds must be able to play the demos, too
    DemoSink demos_;
    std::map<std::string, Game, std::less<>> games_; ///< by server address
    std::uint32_t numbers_ = 0;
    snapshot::Snapshot playable_;
    snapshot::Snapshot fitting_;
    /// Indices of the world's items in the order in which they are added.
    std::vector<std::size_t> order_;
    WorldDemoLosses losses_;    ///< all counts except those in `demos`
    std::uint64_t mapless_ = 0; ///< number of runs whose map is unknown so far
};

} // namespace tw::sink
