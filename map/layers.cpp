#include "map/layers.h"

#include "map/text.h"

#include <algorithm>
#include <array>
#include <new>

namespace tw::map {
namespace {

constexpr std::size_t kGroupInts = 7;
constexpr std::size_t kLayerHeadInts = 3;
constexpr std::size_t kTileLayerInts = 15;
constexpr std::size_t kDesignLayerInts = 7;
constexpr std::size_t kNameInts = 3;
constexpr std::int32_t kPackedVersion = 4;

using Ints = std::span<const std::int32_t>;

TileLayer decode_tiles(Ints ints) {
    TileLayer layer;
    layer.version = ints[3];
    layer.width = ints[4];
    layer.height = ints[5];
    layer.flags = ints[6];
    layer.color = {ints[7], ints[8], ints[9], ints[10]};
    layer.image = ints[13];
    layer.data = ints[14];
    std::size_t indices_at = kTileLayerInts;
    if (layer.version >= 3) {
        if (ints.size() >= kTileLayerInts + kNameInts) {
            layer.name = decode_int_text(ints.subspan(kTileLayerInts, kNameInts));
            layer.name_is_utf8 = is_utf8(*layer.name);
            if (!layer.name_is_utf8) {
                layer.name->clear();
            }
        }
        indices_at += kNameInts;
    }
    const std::array indices = {&layer.tele, &layer.speedup, &layer.front, &layer.switch_,
                                &layer.tune};
    for (std::size_t i = 0; i < indices.size() && indices_at + i < ints.size(); ++i) {
        *indices.at(i) = ints[indices_at + i];
    }
    return layer;
}

} // namespace

std::optional<Group> decode_group(Ints ints) {
    if (ints.size() < kGroupInts) {
        return std::nullopt;
    }
    Group group;
    group.version = ints[0];
    group.offset_x = ints[1];
    group.offset_y = ints[2];
    group.parallax_x = ints[3];
    group.parallax_y = ints[4];
    group.first_layer = ints[5];
    group.num_layers = ints[6];
    return group;
}

std::optional<MapLayer> decode_layer(Ints ints) {
    if (ints.size() < kLayerHeadInts) {
        return std::nullopt;
    }
    MapLayer layer{.type = ints[1], .num_item_ints = ints.size(), .content = {}};
    if (layer.type == kLayerTypeTiles && ints.size() >= kTileLayerInts) {
        layer.content = decode_tiles(ints);
    } else if ((layer.type == kLayerTypeQuads || layer.type == kLayerTypeSounds ||
                layer.type == kLayerTypeOldSounds) &&
               ints.size() >= kDesignLayerInts) {
        layer.content = DesignLayer{};
    }
    return layer;
}

std::optional<Layer> physics_layer_of(std::int32_t flags) {
    constexpr std::array<std::int32_t, kPhysicsLayers> kFlags{kLayerFlagGame,   kLayerFlagFront,
                                                              kLayerFlagTele,   kLayerFlagSpeedup,
                                                              kLayerFlagSwitch, kLayerFlagTune};
    const auto* const found = std::ranges::find(kFlags, flags & kPhysicsLayerFlags);
    return found == kFlags.end() ? std::nullopt
                                 : std::optional{static_cast<Layer>(found - kFlags.begin())};
}

std::optional<std::int32_t> tile_block(const TileLayer& layer, Layer kind) {
    const std::array<std::optional<std::int32_t>, kPhysicsLayers> blocks{
        layer.data, layer.front, layer.tele, layer.speedup, layer.switch_, layer.tune};
    return blocks.at(static_cast<std::size_t>(kind));
}

bool is_packed(const TileLayer& layer) {
    return layer.version >= kPackedVersion;
}

TileLayer downgrade_unknown_version(TileLayer layer) {
    if (layer.version > kPackedVersion) {
        layer.version = kPackedVersion - 1;
    }
    return layer;
}

std::size_t tile_bytes(Layer kind) {
    constexpr std::array<std::size_t, kPhysicsLayers> kSizes = {4, 4, 2, 6, 4, 2};
    return kSizes.at(static_cast<std::size_t>(kind));
}

namespace {

constexpr std::size_t kTileBytes = 4;

/// One entry of a packed layer. It stands for `length` equal tiles.
struct PackedEntry {
    std::byte index, flags, reserved;
    std::size_t length;
};

PackedEntry read_packed_entry(std::span<const std::byte> packed, std::size_t entry) {
    const std::size_t at = entry * kTileBytes;
    return {packed[at], packed[at + 1], packed[at + 3],
            std::to_integer<std::size_t>(packed[at + 2]) + 1};
}

/// Returns the number of tiles that the packed entries contain.
std::uint64_t packed_length(std::span<const std::byte> packed) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < packed.size() / kTileBytes; ++i) {
        length += read_packed_entry(packed, i).length;
    }
    return length;
}

void add_warning(Warnings* warnings, WarningId id, std::uint64_t where) {
    if (warnings != nullptr) {
        warnings->add(id, where);
    }
}

Block unpack_tiles(std::span<const std::byte> packed, std::size_t tiles, Warnings* warnings,
                   std::uint64_t where) {
    Block block{tiles * kTileBytes};
    const auto out = block.writable_bytes();
    const std::size_t entries = packed.size() / kTileBytes;
    std::size_t filled = 0;
    std::size_t entry = 0;
    for (; entry < entries && filled < tiles; ++entry) {
        const PackedEntry run = read_packed_entry(packed, entry);
        const std::size_t length = std::min(run.length, tiles - filled);
        for (std::size_t i = 0; i < length; ++i, ++filled) {
            const std::size_t at = filled * kTileBytes;
            out[at] = run.index;
            out[at + 1] = run.flags;
            out[at + 2] = std::byte{0};
            out[at + 3] = std::byte{0};
        }
        if (length < run.length) {
            add_warning(warnings, WarningId::packed_run_cut, where);
        }
        if (run.reserved != std::byte{0}) {
            add_warning(warnings, WarningId::packed_reserved_set, where);
        }
    }
    if (entry < entries) {
        add_warning(warnings, WarningId::packed_entries_left, where);
    }
    return block;
}

bool has_skip_bytes(std::span<const std::byte> tiles, std::size_t count) {
    for (std::size_t i = 0; i < count * kTileBytes; i += kTileBytes) {
        if ((tiles[i + 2] | tiles[i + 3]) != std::byte{0}) {
            return true;
        }
    }
    return false;
}

} // namespace

Result<std::uint64_t> count_tiles(const TileLayer& layer, const Limits& limits) {
    const auto tiles = static_cast<std::int64_t>(layer.width) * layer.height;
    if (layer.width < 1 || layer.height < 1 ||
        static_cast<std::uint64_t>(tiles) > limits.max_tiles) {
        return tl::unexpected{MapError{.code = MapErrc::layer_bad_dimensions}};
    }
    return static_cast<std::uint64_t>(tiles);
}

Result<Block> load_tiles(const Datafile& file, const TileLayer& layer, std::int32_t block_index,
                         std::size_t bytes_per_tile, Warnings* warnings, std::uint64_t where) {
    const auto tiles = count_tiles(layer, file.limits());
    if (!tiles) {
        return tl::unexpected{tiles.error()};
    }
    const auto fail = [block_index](MapErrc code) {
        return tl::unexpected{
            MapError{.code = code, .block = static_cast<std::uint32_t>(block_index)}};
    };
    if (block_index < 0 || static_cast<std::size_t>(block_index) >= file.block_count()) {
        return fail(MapErrc::tile_data_missing);
    }
    const std::uint64_t size = file.block_info(static_cast<std::size_t>(block_index)).size;
    const bool packed = is_packed(layer);
    const std::uint64_t possible =
        packed ? size / kTileBytes * kMaxTilesPerPackedEntry : size / bytes_per_tile;
    if (possible < *tiles) {
        return fail(MapErrc::tile_data_short);
    }
    auto block = file.block(block_index);
    if (!block) {
        return block;
    }
    const auto count = static_cast<std::size_t>(*tiles);
    if (!packed) {
        if (warnings != nullptr && bytes_per_tile == kTileBytes &&
            has_skip_bytes(block->bytes(), count)) {
            warnings->add(WarningId::skip_bytes_set, where);
        }
        return block;
    }
    if (packed_length(block->bytes()) < *tiles) {
        return fail(MapErrc::tile_data_short);
    }
    try {
        return unpack_tiles(block->bytes(), count, warnings, where);
    } catch (const std::bad_alloc&) {
        return fail(MapErrc::out_of_memory);
    }
}

} // namespace tw::map
