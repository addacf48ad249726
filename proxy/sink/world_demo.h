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

/// A world's items and players, for a demo.
struct DemoItems {
    snapshot::SnapshotView items{};
    const record::Roster* roster = nullptr;
    std::uint64_t left_out = 0; ///< items of players for whom there was no room
};

/// Ids in demos for a world's players. Clients draw those below a number only; whom a world knows
/// under a made-up id, which no server has (docs/world.md), is beyond it.
class DemoPlayers {
  public:
    /// `vanilla`: demos that vanilla plays, too.
    explicit DemoPlayers(bool vanilla) : vanilla_{vanilla} {}

    /// The world with ids that are drawn: who has none gets a free one, and keeps it while there. It
    /// lives until the next call, or as long as the world.
    [[nodiscard]] DemoItems place(const record::SnapshotRecord& world);

    /// The id in the demo of a client of the world placed last; nothing: it has none.
    [[nodiscard]] std::optional<std::uint16_t> id_of(std::int32_t client) const;

  private:
    static constexpr std::uint16_t kMostSlots = 64;

    /// Ids below `kept` are drawn as they are, others get one below `slots`.
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
    std::set<std::uint16_t> present_; ///< in the world at hand
    std::array<std::optional<std::uint16_t>, kMostSlots> slots_{};
    std::vector<Moved> moved_;
    snapshot::Snapshot items_;
    record::Roster roster_;
};

/// Writes worlds as demos of the kind that servers record: everybody is in them, and nobody's view.
/// One for each run of each server, and map, from when somebody was told of it on. A snapshot holds
/// at most kMaxItems items and kMaxSnapshotBytes bytes. Beyond that items are taken in this order,
/// and by key within it: descriptors, what is said of the game, what is said of players, characters,
/// flags, everything else, events. Players have ids that clients draw (DemoPlayers). Of a world of
/// 0.6 that clients of 0.7 are in, what only 0.7 has is left out. What is said to everybody stands
/// behind the tick of its world, once.
class WorldDemo final : public record::RecordSink, public record::WorldMessageSink {
  public:
    WorldDemo(DemoOptions options, FileQueue& files);

    void on_record(const record::Record& record) override;
    void on_world_message(const record::WorldMessage& message) override;

    void finish() { demos_.finish(); }

    [[nodiscard]] WorldDemoLosses losses() const;

  private:
    /// A server's.
    struct Game {
        std::uint32_t number = 0;    ///< that its demos have as session
        record::Timestamp heard = 0; ///< when its last world was
        std::optional<std::uint32_t> run{};
        snapshot::Dialect dialect = snapshot::Dialect::six; ///< of its worlds
        std::uint64_t ordinal = 0;                          ///< in the run
        bool named = false;                                 ///< somebody said which map it is
        DemoPlayers players{false};
    };

    /// More servers at one time have no demos. One that was silent for kIdle gives its place to
    /// another: as long as its players are in reach, it is never.
    static constexpr std::size_t kMaxServers = 64;
    static constexpr record::Timestamp kIdle = 10'000'000'000;

    /// Null: there is no room.
    [[nodiscard]] Game* game_of(const record::WorldRecord& world);
    /// Ends the demo of the server that was silent longest, if it was for kIdle.
    [[nodiscard]] bool evict_idle(const record::RecordHead& now);
    void take(const record::WorldRecord& world);
    void begin_run(Game& game, const record::WorldRecord& world);
    /// The items that a player of the demo's kind knows.
    [[nodiscard]] snapshot::SnapshotView playable(const record::SnapshotRecord& world);
    [[nodiscard]] snapshot::SnapshotView fit(const record::SnapshotRecord& world);

    bool vanilla_; ///< they are for vanilla, too
    DemoSink demos_;
    std::map<std::string, Game, std::less<>> games_; ///< by server
    std::uint32_t numbers_ = 0;
    snapshot::Snapshot playable_;
    snapshot::Snapshot fitting_;
    std::vector<std::size_t> order_; ///< of the items at hand: places in the world
    WorldDemoLosses losses_;         ///< without `demos`
    std::uint64_t mapless_ = 0;      ///< runs of which nobody said what map they are on, so far
};

} // namespace tw::sink
