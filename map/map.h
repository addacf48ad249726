#pragma once

#include "map/datafile.h"
#include "map/error.h"
#include "map/game_layer.h"
#include "map/layers.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tw::map {

// The types of a map's items.
inline constexpr std::uint16_t kItemTypeVersion = 0;
inline constexpr std::uint16_t kItemTypeInfo = 1;
inline constexpr std::uint16_t kItemTypeImage = 2;
inline constexpr std::uint16_t kItemTypeEnvelope = 3;
inline constexpr std::uint16_t kItemTypeGroup = 4;
inline constexpr std::uint16_t kItemTypeLayer = 5;
inline constexpr std::uint16_t kItemTypeEnvelopePoints = 6;
inline constexpr std::uint16_t kItemTypeSound = 7;
inline constexpr std::uint16_t kItemTypeUuidIndex = 0xffff;

/// Identifies a layer by its index among all layers of the map, and by the index of its group.
struct LayerPlace {
    std::size_t group = 0;
    std::size_t layer = 0;

    friend bool operator==(const LayerPlace&, const LayerPlace&) = default;
};

/// A map: a datafile with a map's items. Each function decodes the groups and layers and inflates
/// the data blocks that it needs. The results are not cached.
///
/// Errors:  those of the datafile; no_version_item, unknown_map_version.
/// Source:  DDNet CMap, CLayers; libtw2 doc/map.md.
class Map {
  public:
    [[nodiscard]] static Result<Map> parse(std::vector<std::byte> file, const Limits& limits = {});
    [[nodiscard]] static Result<Map> open(const std::filesystem::path& path,
                                          const Limits& limits = {});

    [[nodiscard]] const Datafile& datafile() const { return file_; }

    /// Returns warnings about the container and the items, but not about the content of data
    /// blocks.
    [[nodiscard]] const Warnings& warnings() const { return warnings_; }

    [[nodiscard]] std::size_t count_items(std::uint16_t type) const;

    [[nodiscard]] std::size_t group_count() const { return count_items(kItemTypeGroup); }

    [[nodiscard]] std::size_t layer_count() const { return count_items(kItemTypeLayer); }

    /// Returns the group with the given index; nullopt if it does not exist or its item is too
    /// short.
    [[nodiscard]] std::optional<Group> group(std::size_t index) const;
    [[nodiscard]] std::optional<MapLayer> layer(std::size_t index) const;
    /// Returns for each layer the index of the last group that includes it; nullopt if no group
    /// does.
    [[nodiscard]] std::vector<std::optional<std::uint32_t>> groups_of_layers() const;

    /// Returns the physics layer of the given kind that the game uses: the last one in the order of
    /// groups; nullopt if the map has no such layer.
    [[nodiscard]] std::optional<LayerPlace> physics_layer(Layer kind) const {
        return physics_[static_cast<std::size_t>(kind)];
    }

    /// Inflates the game layer and all usable DDNet layers.
    ///
    /// Errors:  no_game_layer, layer_bad_dimensions, tile_data_missing, tile_data_short and those
    ///          of Datafile::block, for the game layer only. Other layers that are unusable are
    ///          left out.
    /// Reports: warnings about the data blocks, in `warnings` if it is not null.
    [[nodiscard]] Result<PhysicsLayers> physics(Warnings* warnings = nullptr) const;

  private:
    explicit Map(Datafile file);
    [[nodiscard]] MapErrc check_version();
    void find_physics_layers();

    Datafile file_;
    Warnings warnings_;
    std::array<std::optional<LayerPlace>, kPhysicsLayers> physics_{};
};

/// Whether programs accept a map. Each text is "accepts", or "rejects:" and the name of the first
/// error or warning for which the program rejects the map.
struct MapAcceptance {
    std::string strict;  ///< whether DDNet master accepts the map
    std::string lenient; ///< whether a program that needs only the physics layers accepts the map
};

/// Determines whether programs accept a map. `warnings`: the warnings about the map and about its
/// physics layers.
[[nodiscard]] MapAcceptance acceptance_of(const Warnings& warnings,
                                          const Result<PhysicsLayers>& physics);
/// Returns the result for a file that is not a map: all programs reject it because of `error`.
[[nodiscard]] MapAcceptance acceptance_of(const MapError& error);

/// The layers of a group, as a range [first, end) of indices among all layers of the map.
struct LayerRange {
    std::size_t first = 0;
    std::size_t end = 0;
};

[[nodiscard]] LayerRange layers_of(const Map& map, std::size_t group);

/// Whether the map has groups and layers, and all of them have known versions and types. Used for
/// files whose version item is missing or not 1.
[[nodiscard]] bool items_look_sane(const Map& map);

/// Adds warnings about unusual groups and layers, including those for which DDNet master rejects a
/// map. Does not check layers without a group.
///
/// Source:  the checks of DDNet CMap as of 2026.
void check_items(const Map& map, Warnings& warnings);

} // namespace tw::map
