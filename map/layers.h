#pragma once

#include "map/datafile.h"
#include "map/tiles.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace tw::map {

// The flag bits of a tile layer, which determine its kind.
inline constexpr std::int32_t kLayerFlagGame = 1;
inline constexpr std::int32_t kLayerFlagTele = 2;
inline constexpr std::int32_t kLayerFlagSpeedup = 4;
inline constexpr std::int32_t kLayerFlagFront = 8;
inline constexpr std::int32_t kLayerFlagSwitch = 16;
inline constexpr std::int32_t kLayerFlagTune = 32;
inline constexpr std::int32_t kPhysicsLayerFlags = 63;

// The types of layers.
inline constexpr std::int32_t kLayerTypeTiles = 2;
inline constexpr std::int32_t kLayerTypeQuads = 3;
inline constexpr std::int32_t kLayerTypeOldSounds = 9;
inline constexpr std::int32_t kLayerTypeSounds = 10;

struct Color {
    std::int32_t r = 0, g = 0, b = 0, a = 0;
};

/// A group of layers that move together.
///
/// Units:   offsets in pixels, parallax in percent.
struct Group {
    std::int32_t version = 0;
    std::int32_t offset_x = 0, offset_y = 0;
    std::int32_t parallax_x = 0, parallax_y = 0;
    std::int32_t first_layer = 0; ///< index among all layers of the map
    std::int32_t num_layers = 0;
};

/// A plain tile layer or a physics layer. References to images, envelopes and data blocks are
/// indices, as in the file; -1 means that the layer does not have the referenced object.
struct TileLayer {
    std::int32_t version = 0; ///< version of the tilemap: 2, 3 or 4 (packed)
    std::int32_t width = 0, height = 0;
    std::int32_t flags = 0;
    Color color;
    std::int32_t image = -1;
    std::int32_t data = -1;
    std::optional<std::string> name; ///< nullopt before version 3; empty if the name is not UTF-8
    bool name_is_utf8 = true;
    /// Indices of the data blocks of DDNet's layers; nullopt if the item is too short to contain
    /// them.
    std::optional<std::int32_t> tele, speedup, front, switch_, tune;
};

/// A layer of quads or sounds. Only its type is read.
struct DesignLayer {};

/// A layer whose type is unknown or whose item is too short for its type. It is not decoded.
struct UnknownLayer {};

/// A layer of any type.
struct MapLayer {
    std::int32_t type = 0;
    std::size_t num_item_ints = 0;
    std::variant<UnknownLayer, TileLayer, DesignLayer> content;
};

/// Decodes a group item. Returns nullopt if it has fewer than 7 ints, the size in version 1.
///
/// Layout:  FORMAT.md, section 3.
[[nodiscard]] std::optional<Group> decode_group(std::span<const std::int32_t> ints);

/// Decodes a layer item. Returns nullopt if the item is too short for the ints that all layers
/// have. Returns an UnknownLayer if the item is too short for its type.
///
/// Layout:  FORMAT.md, section 4. The length of the item determines which fields exist. The version
///          only determines the position of the name.
[[nodiscard]] std::optional<MapLayer> decode_layer(std::span<const std::int32_t> ints);

/// Returns the kind of physics layer for the flags of a tile layer; nullopt if the flags do not
/// name exactly one kind.
[[nodiscard]] std::optional<Layer> physics_layer_of(std::int32_t flags);

/// Returns the index of the data block with the tiles of a physics layer of this kind; nullopt if
/// the layer's item is too short to contain the index. Precondition: the layer is of this kind.
[[nodiscard]] std::optional<std::int32_t> tile_block(const TileLayer& layer, Layer kind);

/// Whether the tiles in the layer's `data` block are packed, as in version 4. DDNet releases treat
/// later versions as version 4.
[[nodiscard]] bool is_packed(const TileLayer& layer);

/// Returns the layer with version 3 (unpacked) if its version is unknown (above 4). DDNet releases
/// do not unpack the tiles of DDNet's layers in unknown versions.
[[nodiscard]] TileLayer downgrade_unknown_version(TileLayer layer);

/// Returns the size in bytes of one tile record in a physics layer.
[[nodiscard]] std::size_t tile_bytes(Layer kind);

/// Returns the number of tiles of a layer. Dimensions above the limits are an error.
///
/// Errors:  layer_bad_dimensions.
[[nodiscard]] Result<std::uint64_t> count_tiles(const TileLayer& layer, const Limits& limits);

/// Loads and unpacks the records of a tile layer. Returns at least width * height records.
///
/// Layout:  FORMAT.md, section 4. The result includes the block's trailing bytes.
/// Errors:  layer_bad_dimensions, tile_data_missing, tile_data_short, those of Datafile::block.
///          Memory is allocated only if the file is large enough to fill it.
/// Reports: packed_entries_left, packed_run_cut, packed_reserved_set and skip_bytes_set, in
///          `warnings` with the position `where`. If `warnings` is null, nothing is reported.
[[nodiscard]] Result<Block> load_tiles(const Datafile& file, const TileLayer& layer,
                                       std::int32_t block_index, std::size_t bytes_per_tile,
                                       Warnings* warnings = nullptr, std::uint64_t where = 0);

} // namespace tw::map
