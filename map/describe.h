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

/// Whether two programs accept a map: "accepts", or "rejects:" and the name of the first error or
/// warning because of which it is rejected.
struct Acceptance {
    std::string strict;  ///< result for DDNet master
    std::string lenient; ///< result for a program that only reads the tiles at positions
};

/// Judges a map. Inflates the physics layers.
[[nodiscard]] Acceptance judge(const Map& map);
/// Judges a map whose physics layers are loaded already; `warnings` has those of both.
[[nodiscard]] Acceptance judge(const Warnings& warnings, const Result<Physics>& physics);
/// The judgement of a file that is no map because of `error`: both programs reject it.
[[nodiscard]] Acceptance judge(const MapError& error);

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
    std::vector<std::size_t> points_ints;         ///< ints of each envelope-points item
    std::int64_t points_needed = 0; ///< index after the last point used by an envelope
};

struct LayersDescription {
    std::size_t groups = 0;
    std::set<std::int32_t> group_versions;
    std::size_t layers = 0;
    std::map<std::int32_t, std::size_t> types;
    /// Number of tile layers by version and item size in ints.
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> tilemap_forms;
    std::map<Layer, std::size_t> physics;
};

/// Number of tiles by tile id; ids that do not occur are absent.
using Histogram = std::map<std::uint8_t, std::size_t>;

struct GameTiles {
    Histogram histogram;
    Sha256 ids{};          ///< hash of the tiles' id bytes
    Sha256 flags{};        ///< hash of the tiles' flag bytes
    std::size_t skips = 0; ///< tiles with a non-zero skip or reserved byte
    std::size_t entities = 0;
};

struct GameLayerDescription {
    LayerPlace place;
    TileLayer layer;
    std::uint64_t data_bytes = 0;              ///< declared size of the block
    std::optional<std::uint64_t> packed_tiles; ///< entries in the block; packed layers only
    Result<GameTiles> tiles; ///< the tiles, or the error because of which they cannot be used
};

struct DdnetTiles {
    Histogram histogram;
    Sha256 sha256{}; ///< over the tile records
};

struct DdnetLayerDescription {
    Layer kind = Layer::front;
    LayerPlace place;
    TileLayer layer;
    std::size_t item_ints = 0;
    std::int32_t own_data = -1;   ///< index of the block with its records; -1: none
    std::uint64_t data_bytes = 0; ///< declared size of that block
    Result<DdnetTiles> tiles;     ///< the tiles, or the error because of which they cannot be used
};

/// Describes the map inside the container.
struct ContentDescription {
    std::optional<Info> info;
    ImagesDescription images;
    std::size_t sounds = 0;
    EnvelopesDescription envelopes;
    LayersDescription layers;
    std::optional<GameLayerDescription> game_layer;
    std::vector<DdnetLayerDescription> ddnet_layers; ///< in the order of Layer
};

/// A position, possibly fractional. Framing: world units.
struct PointToDescribe {
    double x = 0, y = 0;
};

struct PointDescription {
    PointToDescribe point;
    Location at;
    std::optional<std::uint8_t> front; ///< absent if the map has no front layer
    TilePos effect_tile;               ///< the tile that DDNet's tile effects use
};

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

/// The complete description of a map, or the available part for a file that is none.
struct Description {
    Identity identity;
    std::optional<ContainerDescription> container; ///< absent if it cannot be read
    std::optional<ContentDescription> content;     ///< absent if the file is no map
    Acceptance acceptance;
    Warnings warnings;
    std::optional<PlacesDescription> places; ///< absent unless the game layer is usable
};

/// Additional questions that a description answers.
struct DescribeOptions {
    std::span<const PointToDescribe> points;
    std::span<const WorldPos> boxes; ///< centres of tees
};

/// Describes a map. Inflates each data block at least once.
[[nodiscard]] Description describe(const Map& map, const DescribeOptions& options = {});

/// Describes a file that is no map; `error` is the reason.
[[nodiscard]] Description describe_rejected(std::vector<std::byte> bytes, const MapError& error);

} // namespace tw::map
