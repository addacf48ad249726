#pragma once

#include "map/error.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tw::map {

/// The length of a tile's side in world units (pixels). Source: DDNet CCollision.
inline constexpr int kTileSize = 32;

/// Limits for reading one file. Each size that a file declares is checked against them before
/// memory is allocated.
///
/// Units:   bytes, tiles.
struct Limits {
    /// Maximum file size. The largest known real map is 1.7 MB, but larger ones may exist. A DDNet
    /// client accepts maps up to 1 GiB.
    std::uint64_t max_file_bytes = std::uint64_t{64} << 20U;
    /// Maximum inflated size of a data block. The largest block of a real map, a decoration layer,
    /// has 127557192 bytes.
    std::uint64_t max_block_bytes = std::uint64_t{256} << 20U;
    /// Maximum number of tiles of a layer. Of real maps, the largest game layer is 1305 x 1320, the
    /// largest decoration layer 9611 x 3318.
    std::uint64_t max_tiles = std::uint64_t{1} << 26U;
};

/// Maximum number of item types in a datafile; an item type has 16 bits. Source: DDNet master.
inline constexpr std::int64_t kMaxItemTypes = 65536;

// A zlib stream of n bytes inflates to at most kMaxInflateRatio * n + kInflateSlack bytes. A larger
// declared size is an error.
inline constexpr std::uint64_t kMaxInflateRatio = 1032;
inline constexpr std::uint64_t kInflateSlack = 64;

/// Maximum number of tiles in one packed entry of a version 4 tilemap: a tile and 255 repetitions.
inline constexpr std::uint64_t kMaxTilesPerPackedEntry = 256;

/// Reads a little-endian integer on machines of any byte order. Precondition: `bytes` contains all
/// bytes of the integer at `at`.
[[nodiscard]] inline std::int32_t read_i32(std::span<const std::byte> bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[at + i]); };
    return static_cast<std::int32_t>(byte(0) | byte(1) << 8U | byte(2) << 16U | byte(3) << 24U);
}

[[nodiscard]] inline std::int16_t read_i16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::int16_t>(std::to_integer<unsigned>(bytes[at]) |
                                     std::to_integer<unsigned>(bytes[at + 1]) << 8U);
}

/// The inflated content of a data block. Owns its bytes, which are aligned for every record type.
class Block {
  public:
    Block() = default;

    // NOLINTBEGIN(modernize-avoid-c-arrays): a vector would set the memory to zero
    /// Allocates `size` uninitialised bytes. Pages that are never written take no memory, so a
    /// malformed file with a large declared size and little content takes little memory.
    explicit Block(std::size_t size)
        : bytes_{std::make_unique_for_overwrite<std::byte[]>(size)}, size_{size} {}

    [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

    [[nodiscard]] std::span<std::byte> writable_bytes() { return {bytes_.get(), size_}; }

    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    // NOLINTEND(modernize-avoid-c-arrays)
    std::size_t size_ = 0;
};

/// The fields of a datafile's header.
struct DatafileHeader {
    /// True if the magic is ATAD instead of DATA. The ints are little-endian in both cases.
    bool reversed_magic = false;
    std::int32_t version = 0; ///< 3 or 4
    std::int32_t size = 0;
    std::int32_t swaplen = 0;
    std::int32_t num_item_types = 0;
    std::int32_t num_items = 0;
    std::int32_t num_data = 0;
    std::int32_t item_size = 0; ///< bytes
    std::int32_t data_size = 0; ///< bytes
};

/// An item type, and the indices of its items: `num` items from index `start` on.
struct ItemType {
    std::uint16_t type = 0;
    std::uint32_t start = 0;
    std::uint32_t num = 0;
};

/// A view of an item, valid until the datafile is destroyed.
struct ItemView {
    std::uint16_t type = 0;
    std::uint16_t id = 0;
    std::span<const std::int32_t> ints;
};

/// The position and declared sizes of a block.
struct BlockInfo {
    std::uint64_t offset = 0; ///< bytes from the start of the file
    std::uint64_t stored = 0; ///< number of bytes that the block takes in the file
    std::uint64_t size = 0;   ///< number of bytes after inflating; in version 3 equal to `stored`
};

/// Whether a size field of the header is correct. `shortened`: the field does not count the table
/// of inflated sizes, as in old files. See FORMAT.md, section 1.
enum class SizeFieldCheck : std::uint8_t { correct, shortened, wrong };

/// A parsed datafile. All items are checked and decoded when the file is parsed. A data block is
/// inflated when block() is called.
///
/// Layout:  see FORMAT.md, section 1.
/// Errors:  reported for files that cannot be read. A readable file that DDNet master rejects has a
///          warning.
/// Source:  DDNet CDataFileReader; libtw2 doc/datafile.md.
class Datafile {
  public:
    [[nodiscard]] static Result<Datafile> parse(std::vector<std::byte> file,
                                                const Limits& limits = {});

    [[nodiscard]] const DatafileHeader& header() const { return header_; }

    [[nodiscard]] const Limits& limits() const { return limits_; }

    [[nodiscard]] const Warnings& warnings() const { return warnings_; }

    [[nodiscard]] std::span<const std::byte> bytes() const { return file_; }

    /// Returns the number of bytes after the last block.
    [[nodiscard]] std::uint64_t trailing_bytes() const { return trailing_bytes_; }

    [[nodiscard]] SizeFieldCheck check_size_field() const;
    [[nodiscard]] SizeFieldCheck check_swaplen_field() const;

    /// Returns the item types that the file lists, in the order of the file.
    [[nodiscard]] std::span<const ItemType> item_types() const { return types_; }

    [[nodiscard]] std::size_t item_count() const { return item_starts_.size(); }

    /// Returns the item with the given index among all items. Precondition: index < item_count().
    [[nodiscard]] ItemView item(std::size_t index) const;
    [[nodiscard]] std::optional<ItemType> find_type(std::uint16_t type) const;
    /// Returns the item with the given index among the items of its type; nullopt if it does not
    /// exist. Items refer to each other by this index.
    [[nodiscard]] std::optional<ItemView> find_item(std::uint16_t type, std::int64_t index) const;
    /// Returns the first item with the given type and id; nullopt if no item has them.
    [[nodiscard]] std::optional<ItemView> find_item_by_id(std::uint16_t type,
                                                          std::uint16_t id) const;

    [[nodiscard]] std::size_t block_count() const {
        return static_cast<std::size_t>(header_.num_data);
    }

    /// Returns the position and sizes of a block. To save memory for files with many empty blocks,
    /// each call reads them from the file's tables. Precondition: index < block_count().
    [[nodiscard]] BlockInfo block_info(std::size_t index) const;

    /// Returns the bytes of a block as stored in the file. Precondition: index < block_count().
    [[nodiscard]] std::span<const std::byte> stored_block(std::size_t index) const;

    /// Inflates one block. Fails with block_empty if the block's declared size is 0 and it has no
    /// content, as in some real maps.
    ///
    /// Errors:  block_index_out_of_range, block_empty, block_size_not_possible, block_too_large,
    ///          block_corrupt, block_wrong_size, out_of_memory.
    [[nodiscard]] Result<Block> block(std::int64_t index) const;

  private:
    friend class DatafileParser;
    Datafile() = default;
    [[nodiscard]] SizeFieldCheck check_size(std::int32_t value, std::uint64_t full) const;

    std::vector<std::byte> file_;
    Limits limits_;
    DatafileHeader header_;
    std::uint64_t trailing_bytes_ = 0;
    std::vector<ItemType> types_;
    std::vector<std::int32_t> ints_;         ///< all ints of the file's item section
    std::vector<std::uint32_t> item_starts_; ///< for each item, the index of its first int in ints_
    // These members are offsets in the file. The two tables contain each block's offset and size.
    std::uint64_t block_offsets_at_ = 0;
    std::uint64_t block_sizes_at_ = 0;
    std::uint64_t blocks_at_ = 0;
    Warnings warnings_;
};

/// Reads a whole file. A file of more than `max_bytes` bytes is an error.
///
/// Errors:  file_unreadable, file_too_large.
[[nodiscard]] Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                                       std::uint64_t max_bytes);

} // namespace tw::map
