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

/// What two kinds of reader make of a map: "accepts", or "rejects:" and the name of the first error
/// or warning that speaks against it.
struct Acceptance {
    std::string strict;  ///< DDNet master
    std::string lenient; ///< a reader that only resolves positions
};

/// Inflates the physics layers to find out.
[[nodiscard]] Acceptance judge(const Map& map);
/// The same where the physics are loaded already; `warnings` holds those of both.
[[nodiscard]] Acceptance judge(const Warnings& warnings, const Result<Physics>& physics);
/// Of a file that is not even a map: both reject it.
[[nodiscard]] Acceptance judge(const MapError& error);

/// The datafile around the items.
struct ContainerDescription {
    DatafileHeader header;
    SizeField size_field = SizeField::full;
    SizeField swaplen_field = SizeField::full;
    std::uint64_t trailing_bytes = 0;
    std::vector<ItemType> item_types;
    std::vector<std::size_t> unreadable_blocks; ///< they do not inflate to their size
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
    std::map<std::int32_t, std::size_t> channels; ///< how many envelopes have so many
    std::vector<std::size_t> points_ints;         ///< of each item of points
    std::int64_t points_needed = 0;               ///< one past the last that an envelope names
};

struct LayersDescription {
    std::size_t groups = 0;
    std::set<std::int32_t> group_versions;
    std::size_t layers = 0;
    std::map<std::int32_t, std::size_t> types;
    /// How many tile layers have that version and so many ints.
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> tilemap_forms;
    std::map<Layer, std::size_t> physics;
};

/// How often each tile id occurs in a layer; only those that do.
using Histogram = std::map<std::uint8_t, std::size_t>;

struct GameTiles {
    Histogram histogram;
    Sha256 ids{};          ///< over one byte a tile
    Sha256 flags{};        ///< over one byte a tile
    std::size_t skips = 0; ///< tiles whose skip or reserved byte is not zero
    std::size_t entities = 0;
};

struct GameLayerDescription {
    LayerPlace place;
    TileLayer layer;
    std::uint64_t data_bytes = 0;              ///< as the block declares
    std::optional<std::uint64_t> packed_tiles; ///< entries in the block of a packed layer
    Result<GameTiles> tiles;                   ///< or why its data cannot be used
};

struct DdnetTiles {
    Histogram histogram;
    Sha256 sha256{}; ///< over the records
};

struct DdnetLayerDescription {
    Layer kind = Layer::front;
    LayerPlace place;
    TileLayer layer;
    std::size_t item_ints = 0;
    std::int32_t own_data = -1;   ///< the block of its records; -1: none
    std::uint64_t data_bytes = 0; ///< as that block declares
    Result<DdnetTiles> tiles;     ///< or why its data cannot be used
};

/// What only a map has.
struct ContentDescription {
    std::optional<Info> info;
    ImagesDescription images;
    std::size_t sounds = 0;
    EnvelopesDescription envelopes;
    LayersDescription layers;
    std::optional<GameLayerDescription> game_layer;
    std::vector<DdnetLayerDescription> ddnet_layers; ///< in the order of Layer
};

/// A position that need not be whole. Framing: world units.
struct PointToDescribe {
    double x = 0, y = 0;
};

struct PointDescription {
    PointToDescribe point;
    Location at;
    std::optional<std::uint8_t> front; ///< absent if the map has no front layer
    TilePos effect_tile;               ///< where DDNet's tile effects look
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

/// Everything about a map. Of a file that is none, as far as it goes.
struct Description {
    Identity identity;
    std::optional<ContainerDescription> container; ///< absent if it cannot be read
    std::optional<ContentDescription> content;     ///< absent if the file is no map
    Acceptance acceptance;
    Warnings warnings;
    std::optional<PlacesDescription> places; ///< absent unless the game layer is usable
};

/// What a description answers beyond what is in the file.
struct DescribeOptions {
    std::span<const PointToDescribe> points;
    std::span<const WorldPos> boxes; ///< centres of tees
};

/// Describes a map: inflates each of its data blocks once at least.
[[nodiscard]] Description describe(const Map& map, const DescribeOptions& options = {});

/// Describes a file that is no map, with the error that says why.
[[nodiscard]] Description describe_rejected(std::vector<std::byte> bytes, const MapError& error);

} // namespace tw::map
