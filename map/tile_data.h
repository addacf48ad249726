#pragma once

#include "map/datafile.h"
#include "map/layers.h"

#include <cstdint>

namespace tw::map {

/// Checks a tile layer's dimensions against the limits.
///
/// Errors:  layer_bad_dimensions.
[[nodiscard]] Result<std::uint64_t> count_tiles(const TileLayer& layer, const Limits& limits);

/// The records of a tile layer: width * height of them at least, packed ones expanded.
///
/// Layout:  FORMAT.md, section 4. Trailing bytes of the block stay.
/// Errors:  layer_bad_dimensions, tile_data_missing, tile_data_short, those of Datafile::block.
///          Nothing is allocated before the file is known to be able to back it.
/// Reports: packed_entries_left, packed_run_cut, skip_bytes_set (only if `warnings` is given, as
///          looking for the last takes a pass over the data), with `where`.
[[nodiscard]] Result<Block> load_tiles(const Datafile& file, const TileLayer& layer,
                                       std::int32_t block_index, std::size_t bytes_per_tile,
                                       Warnings* warnings = nullptr, std::uint64_t where = 0);

} // namespace tw::map
