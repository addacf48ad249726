#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::map {

/// World units (pixels) along one side of a tile. Source: CCollision of the reference.
inline constexpr int kTileSize = 32;

/// What a reader is willing to spend on one file. Every size a file declares is held against these
/// before memory is taken.
///
/// Units:   bytes, tiles.
struct Limits {
    /// Largest file that is read at all. The largest real map met has 1.7 MB, larger ones exist; a
    /// DDNet client refuses announced maps of more than 1 GiB.
    std::uint64_t max_file_bytes = std::uint64_t{64} << 20U;
    /// Largest inflated data block. The largest real one has 127557192 bytes (a decoration layer).
    std::uint64_t max_block_bytes = std::uint64_t{256} << 20U;
    /// Most tiles of one layer. The largest real game layer is 1305 x 1320, the largest decoration
    /// layer 9611 x 3318.
    std::uint64_t max_tiles = std::uint64_t{1} << 26U;
};

/// Types a datafile may list. Source: DDNet master; an item type is 16 bits wide anyway.
inline constexpr std::int64_t kMaxItemTypes = 65536;

/// zlib cannot expand a byte to more than this many; the slack covers the stream's frame.
inline constexpr std::uint64_t kMaxInflateRatio = 1032;
inline constexpr std::uint64_t kInflateSlack = 64;

/// Tiles one packed entry of a version 4 tilemap can stand for: itself and a skip of 255.
inline constexpr std::uint64_t kMaxTilesPerPackedEntry = 256;

} // namespace tw::map
