#pragma once

#include "map/game_layer.h"
#include "map/identity.h"
#include "map/items.h"
#include "map/map.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::map {

/// Whether programs accept a map. Each text is "accepts", or "rejects:" and the name of the first
/// error or warning for which the program rejects the map.
struct MapAcceptance {
    std::string strict;  ///< whether DDNet master accepts the map
    std::string lenient; ///< whether a program that needs only the physics layers accepts the map
};

/// Determines whether programs accept a map. Inflates the physics layers.
[[nodiscard]] MapAcceptance judge(const Map& map);
/// Like judge(map), for a map whose physics layers were loaded before. `warnings`: the warnings
/// about the map and about its physics layers.
[[nodiscard]] MapAcceptance judge(const Warnings& warnings, const Result<PhysicsLayers>& physics);
/// Returns the result for a file that is not a map: all programs reject it because of `error`.
[[nodiscard]] MapAcceptance judge(const MapError& error);

/// Describes the datafile container.
struct ContainerDescription {
    DatafileHeader header;
    SizeField size_field = SizeField::full;
    SizeField swaplen_field = SizeField::full;
    std::uint64_t trailing_bytes = 0;
    std::vector<ItemType> item_types;
    /// Indices of the blocks that do not inflate to their declared size.
    std::vector<std::size_t> unreadable_blocks;
    std::vector<UuidType> uuid_types;
};

struct ImagesDescription {
    std::size_t total = 0;
    std::size_t external = 0;
    std::set<std::int32_t> versions;
};

struct EnvelopesDescription {
    std::size_t total = 0;
    std::set<std::int32_t> versions;
    std::set<std::size_t> item_ints;
    std::map<std::int32_t, std::size_t> channels; ///< number of envelopes by channel count
    std::vector<std::size_t> points_ints;         ///< number of ints in each envelope-points item
    std::int64_t points_needed = 0;               ///< number of points that the envelopes refer to
};

struct LayersDescription {
    std::size_t groups = 0;
    std::set<std::int32_t> group_versions;
    std::size_t layers = 0;
    std::map<std::int32_t, std::size_t> types; ///< number of layers by type
    /// Number of tile layers by version and item size in ints.
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> tilemap_forms;
    std::map<Layer, std::size_t> physics; ///< number of physics layers by kind
};

/// The number of tiles by tile id. Ids that do not occur are absent.
using Histogram = std::map<std::uint8_t, std::size_t>;

struct GameTiles {
    Histogram histogram;
    Sha256 ids{};          ///< hash of the id bytes of all tiles
    Sha256 flags{};        ///< hash of the flag bytes of all tiles
    std::size_t skips = 0; ///< number of tiles with a non-zero skip or reserved byte
    std::size_t entities = 0;
};

struct GameLayerDescription {
    LayerPlace place;
    TileLayer layer;
    std::uint64_t data_bytes = 0; ///< declared size of the block
    std::optional<std::uint64_t>
        packed_tiles;        ///< packed layers only: number of entries in the block
    Result<GameTiles> tiles; ///< the tiles, or why they cannot be used
};

struct DdnetTiles {
    Histogram histogram;
    Sha256 sha256{}; ///< hash of all tile records
};

struct DdnetLayerDescription {
    Layer kind = Layer::front;
    LayerPlace place;
    TileLayer layer;
    std::size_t item_ints = 0;
    std::int32_t own_data = -1;   ///< index of the block with the layer's records; -1: no block
    std::uint64_t data_bytes = 0; ///< declared size of the block with the layer's records
    Result<DdnetTiles> tiles;     ///< the tiles, or why they cannot be used
};

/// Describes the map inside the container.
struct ContentDescription {
    std::optional<Info> info;
    ImagesDescription images;
    std::size_t sounds = 0;
    EnvelopesDescription envelopes;
    LayersDescription layers;
    std::optional<GameLayerDescription> game_layer;
    std::vector<DdnetLayerDescription> ddnet_layers; ///< in the order of the enumerators of Layer
};

/// A position, which may be fractional. Units: world units.
struct PointToDescribe {
    double x = 0, y = 0;
};

struct PointDescription {
    PointToDescribe point;
    Location at;
    std::optional<std::uint8_t>
        front;           ///< tile id in the front layer; nullopt without a front layer
    TilePos effect_tile; ///< the tile whose effects DDNet applies at the position
};

/// Describes a tee at a position, by its box of 28 x 28 units.
struct BoxDescription {
    WorldPos centre;
    bool in_solid = false;
    bool on_ground = false;
    bool touches_game_death = false;
    bool touches_front_death = false;
};

struct PlacesDescription {
    std::vector<PointDescription> points;
    std::vector<BoxDescription> boxes;
};

/// The description of a map, or of the readable parts of a file that is not a map.
struct Description {
    Identity identity;
    std::optional<ContainerDescription> container; ///< nullopt if the container cannot be read
    std::optional<ContentDescription> content;     ///< nullopt if the file is not a map
    MapAcceptance acceptance;
    Warnings warnings;
    std::optional<PlacesDescription> places; ///< nullopt if the game layer is not usable
};

/// Positions that describe() describes in addition to the map.
struct DescribeOptions {
    std::span<const PointToDescribe> points;
    std::span<const WorldPos> boxes; ///< the centres of tees
};

/// Describes a map. The function is slow, because it inflates all data blocks.
[[nodiscard]] Description describe(const Map& map, const DescribeOptions& options = {});

/// Describes a file that is not a map. `error`: why the file is not a map.
[[nodiscard]] Description describe_rejected(std::vector<std::byte> bytes, const MapError& error);

} // namespace tw::map
