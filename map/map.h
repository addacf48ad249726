#pragma once

#include "map/datafile.h"
#include "map/error.h"
#include "map/game_layer.h"
#include "map/layers.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace tw::map {

/// Types of the items of a map.
inline constexpr std::uint16_t kItemVersion = 0;
inline constexpr std::uint16_t kItemInfo = 1;
inline constexpr std::uint16_t kItemImage = 2;
inline constexpr std::uint16_t kItemEnvelope = 3;
inline constexpr std::uint16_t kItemGroup = 4;
inline constexpr std::uint16_t kItemLayer = 5;
inline constexpr std::uint16_t kItemEnvelopePoints = 6;
inline constexpr std::uint16_t kItemSound = 7;
inline constexpr std::uint16_t kItemUuidIndex = 0xffff;

/// Where a layer stands: indices among the groups and the layers of the map.
struct LayerPlace {
    std::size_t group = 0;
    std::size_t layer = 0;

    friend bool operator==(const LayerPlace&, const LayerPlace&) = default;
};

/// A map: a datafile whose items are known to be those of a map. Groups and layers are decoded when
/// asked for, data blocks are inflated when asked for.
///
/// Errors:  those of the datafile; no_version_item, unknown_map_version.
/// Source:  DDNet CMap, CLayers; libtw2 doc/map.md.
class Map {
  public:
    [[nodiscard]] static Result<Map> parse(std::vector<std::byte> file, const Limits& limits = {});
    [[nodiscard]] static Result<Map> open(const std::filesystem::path& path,
                                          const Limits& limits = {});

    [[nodiscard]] const Datafile& datafile() const { return file_; }

    /// What is odd about the container and the items; data blocks have not been looked at.
    [[nodiscard]] const Warnings& warnings() const { return warnings_; }

    [[nodiscard]] std::size_t group_count() const { return count(kItemGroup); }

    [[nodiscard]] std::size_t layer_count() const { return count(kItemLayer); }

    /// Nothing if there is no such group or its item is too short.
    [[nodiscard]] std::optional<Group> group(std::size_t index) const;
    [[nodiscard]] std::optional<MapLayer> layer(std::size_t index) const;
    /// The group of each layer: the last that names it; nothing for a layer no group has.
    [[nodiscard]] std::vector<std::optional<std::uint32_t>> groups_of_layers() const;

    /// The layer of a kind that counts: the last one in the order of groups.
    [[nodiscard]] std::optional<LayerPlace> physics_layer(Layer kind) const {
        return physics_[static_cast<std::size_t>(kind)];
    }

    /// Inflates the game layer and those of DDNet's layers that are there and usable.
    ///
    /// Errors:  no_game_layer, layer_bad_dimensions, tile_data_missing, tile_data_short and those
    ///          of Datafile::block, all of the game layer; another unusable layer is absent.
    /// Reports: warnings of the data, in `warnings` if given.
    [[nodiscard]] Result<Physics> physics(Warnings* warnings = nullptr) const;

  private:
    explicit Map(Datafile file);
    [[nodiscard]] std::size_t count(std::uint16_t type) const;
    [[nodiscard]] MapErrc check_version();
    void find_physics_layers();
    /// The game layer of a map that has none but one which claims to be another kind as well.
    [[nodiscard]] std::optional<LayerPlace>
    find_mixed_game_layer(std::span<const std::optional<std::uint32_t>> groups) const;

    Datafile file_;
    Warnings warnings_;
    std::array<std::optional<LayerPlace>, kPhysicsLayers> physics_{};
};

class Map;

/// Layers of a group: [first, end) among the layers of the map; those it names that do not exist
/// are left out.
struct LayerRange {
    std::size_t first = 0;
    std::size_t end = 0;
};

[[nodiscard]] LayerRange layers_of(const Map& map, std::size_t group);

/// True if groups and layers look as they do since 2008. For files whose version item is not there
/// or says something else than 1.
[[nodiscard]] bool items_look_sane(const Map& map);

/// Reports what DDNet master would reject in the groups and their layers, and other warnings.
/// Layers in no group are not looked at.
///
/// Source:  the checks of DDNet CMap as of 2026.
void check_items(const Map& map, Warnings& warnings);

} // namespace tw::map
