#include "map/tile_data.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>

namespace tw::map {
namespace {

constexpr std::size_t kTileBytes = 4;

/// One packed entry in place.
struct Run {
    std::byte index, flags, reserved;
    std::size_t length;
};

Run read_run(std::span<const std::byte> packed, std::size_t entry) {
    const std::size_t at = entry * kTileBytes;
    return {packed[at], packed[at + 1], packed[at + 3],
            std::to_integer<std::size_t>(packed[at + 2]) + 1};
}

/// Tiles the entries stand for: known before anything is allocated for them.
std::uint64_t packed_length(std::span<const std::byte> packed) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < packed.size() / kTileBytes; ++i) {
        length += read_run(packed, i).length;
    }
    return length;
}

void note(Warnings* warnings, WarningId id, std::uint64_t where) {
    if (warnings != nullptr) {
        warnings->add(id, where);
    }
}

Block expand(std::span<const std::byte> packed, std::size_t tiles, Warnings* warnings,
             std::uint64_t where) {
    Block block{tiles * kTileBytes};
    const auto out = block.writable();
    const std::size_t entries = packed.size() / kTileBytes;
    std::size_t filled = 0;
    std::size_t entry = 0;
    for (; entry < entries && filled < tiles; ++entry) {
        const Run run = read_run(packed, entry);
        const std::size_t length = std::min(run.length, tiles - filled);
        for (std::size_t i = 0; i < length; ++i, ++filled) {
            const std::size_t at = filled * kTileBytes;
            out[at] = run.index;
            out[at + 1] = run.flags;
            out[at + 2] = std::byte{0};
            out[at + 3] = std::byte{0};
        }
        if (length < run.length) {
            note(warnings, WarningId::packed_run_cut, where);
        }
        if (run.reserved != std::byte{0}) {
            note(warnings, WarningId::packed_reserved_set, where);
        }
    }
    if (entry < entries) {
        note(warnings, WarningId::packed_entries_left, where);
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
        return expand(block->bytes(), count, warnings, where);
    } catch (const std::bad_alloc&) {
        return fail(MapErrc::out_of_memory);
    }
}

} // namespace tw::map
