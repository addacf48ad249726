#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
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

} // namespace tw::sink
