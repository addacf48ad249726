#pragma once

#include "snapshot/item.h"
#include "snapshot/object_set.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::record {

/// A numbered record of one of DDNet's layers at a tile.
struct NumberedTile {
    std::string_view type{}; ///< tile name, empty if unknown
    std::uint8_t index = 0;
    std::uint8_t number = 0;
};

struct SwitchPlace {
    NumberedTile tile{};
    std::uint8_t delay = 0;
};

struct SpeedupPlace {
    std::uint8_t force = 0;
    std::uint8_t max_speed = 0;
    std::int16_t angle = 0; ///< degrees
};

struct FrontPlace {
    std::string_view type{};
    std::uint8_t index = 0;
};

/// Where a position lands on the map. Layers that are absent or air there are not set.
struct WorldPlace {
    int x = 0; ///< world units, 32 a tile
    int y = 0;
    int tile_x = 0;
    int tile_y = 0;
    std::uint8_t index = 0;  ///< of the game tile
    std::string_view game{}; ///< its name, empty if unknown
    std::optional<FrontPlace> front{};
    std::optional<NumberedTile> tele{};
    std::optional<SpeedupPlace> speedup{};
    std::optional<SwitchPlace> switch_tile{};
    std::optional<NumberedTile> tune{};
};

/// What stands at a character's position that no character can be in.
enum class Misplaced : std::uint8_t { no, inside_solid, outside_map };

/// A map in use by a session, seen as the place where snapshot positions land.
class World {
  public:
    explicit World(std::shared_ptr<const map::Physics> physics) : physics_{std::move(physics)} {}

    /// Place of an item with this description; nothing for what has no position.
    [[nodiscard]] std::optional<WorldPlace> place(const snapshot::ObjectSpec& object,
                                                  std::span<const std::int32_t> data) const;
    /// Whether a character's centre is somewhere it cannot be.
    [[nodiscard]] Misplaced misplaced(int x, int y) const;
    /// The place of a misplaced character: inside a wall the tile is the wall that it touches,
    /// which its centre need not be on.
    [[nodiscard]] WorldPlace misplaced_at(int x, int y) const;

  private:
    std::shared_ptr<const map::Physics> physics_;
};

/// Position of an item in world units without a map.
struct WorldPosition {
    double x = 0;
    double y = 0;
};

[[nodiscard]] std::optional<WorldPosition> world_position(const snapshot::ObjectSpec& object,
                                                          std::span<const std::int32_t> data);

/// Which UUID stands behind which type number, learned from the descriptor items of a connection's
/// snapshots; numbers stay the same as long as the server lives.
class TypeNames {
  public:
    struct Entry {
        std::uint16_t type = 0;
        snapshot::Uuid uuid{};
        const snapshot::ObjectSpec* object = nullptr; ///< null: a UUID nobody told us about
    };

    explicit TypeNames(const snapshot::ObjectSet& objects = snapshot::ObjectSet::standard())
        : objects_{&objects} {}

    /// Servers have at most 64; more than this stay unnamed.
    static constexpr std::size_t kMaxTypes = 512;

    /// Reads the descriptor items of a snapshot. `learned`: one whose were read already; most say
    /// the same again.
    void learn(const snapshot::SnapshotView& items, const snapshot::SnapshotView& learned = {});

    /// Another connection.
    void begin(snapshot::Dialect dialect) {
        dialect_ = dialect;
        mixed_ = false;
        entries_.clear();
    }

    /// What both dialects tell stands side by side from now on: numbers that this one does not have
    /// are the other's.
    void mix() { mixed_ = true; }

    /// Whose numbered types these are.
    [[nodiscard]] snapshot::Dialect dialect() const { return dialect_; }

    /// What is known of a type number; null if nothing is.
    [[nodiscard]] const Entry* find(std::uint16_t type) const;
    [[nodiscard]] const snapshot::ObjectSpec* object(std::uint16_t type) const;

    [[nodiscard]] const snapshot::ObjectSet& objects() const { return *objects_; }

  private:
    const snapshot::ObjectSet* objects_;
    snapshot::Dialect dialect_ = snapshot::Dialect::six;
    bool mixed_ = false;
    std::vector<Entry> entries_; ///< sorted by type
};

} // namespace tw::record
