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

/// World units (pixels) along one side of a tile. Source: CCollision of the reference.
inline constexpr int kTileSize = 32;

/// What a reader is willing to spend on one file. Every size a file declares is held against these
/// before memory is taken.
///
/// Framing:   bytes, tiles.
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

/// Little-endian integers out of bytes, whatever the machine. Preconditions: the bytes are there.
[[nodiscard]] inline std::int32_t read_i32(std::span<const std::byte> bytes, std::size_t at) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[at + i]); };
    return static_cast<std::int32_t>(byte(0) | byte(1) << 8U | byte(2) << 16U | byte(3) << 24U);
}

[[nodiscard]] inline std::int16_t read_i16(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::int16_t>(std::to_integer<unsigned>(bytes[at]) |
                                     std::to_integer<unsigned>(bytes[at + 1]) << 8U);
}

/// One inflated data block. Owns its bytes; they start at an address aligned for any record.
class Block {
  public:
    Block() = default;

    // NOLINTBEGIN(modernize-avoid-c-arrays): the owner of memory that is not set to zero first
    /// Room for `size` bytes, not set yet: pages that a lying file never fills are never touched.
    explicit Block(std::size_t size)
        : bytes_{std::make_unique_for_overwrite<std::byte[]>(size)}, size_{size} {}

    [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

    [[nodiscard]] std::span<std::byte> writable() { return {bytes_.get(), size_}; }

    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    // NOLINTEND(modernize-avoid-c-arrays)
    std::size_t size_ = 0;
};

/// The header of a datafile as it stands in the file.
struct DatafileHeader {
    bool reversed_magic = false; ///< ATAD instead of DATA; the ints are little-endian all the same
    std::int32_t version = 0;    ///< 3 or 4
    std::int32_t size = 0;
    std::int32_t swaplen = 0;
    std::int32_t num_item_types = 0;
    std::int32_t num_items = 0;
    std::int32_t num_data = 0;
    std::int32_t item_size = 0; ///< bytes
    std::int32_t data_size = 0; ///< bytes
};

struct ItemType {
    std::uint16_t type = 0;
    std::uint32_t start = 0;
    std::uint32_t num = 0;
};

/// An item in place. Lives as long as its datafile.
struct ItemView {
    std::uint16_t type = 0;
    std::uint16_t id = 0;
    std::span<const std::int32_t> ints;
};

/// Where a block stands and how large it says it is.
struct BlockInfo {
    std::uint64_t offset = 0; ///< bytes from the start of the file
    std::uint64_t stored = 0; ///< bytes in the file
    std::uint64_t size = 0;   ///< bytes when inflated; in version 3 the same as `stored`
};

/// How a header's size field relates to the file's real size.
enum class SizeField : std::uint8_t { full, shortened, wrong };

/// A parsed datafile: items are checked and decoded, data blocks are inflated when asked for.
///
/// Layout:  see FORMAT.md, section 1.
/// Errors:  everything that makes the container unreadable. What DDNet master rejects but can be
///          read becomes a warning.
/// Source:  DDNet CDataFileReader; libtw2 doc/datafile.md.
class Datafile {
  public:
    [[nodiscard]] static Result<Datafile> parse(std::vector<std::byte> file,
                                                const Limits& limits = {});
    [[nodiscard]] static Result<Datafile> open(const std::filesystem::path& path,
                                               const Limits& limits = {});

    [[nodiscard]] const DatafileHeader& header() const { return header_; }

    [[nodiscard]] const Limits& limits() const { return limits_; }

    [[nodiscard]] const Warnings& warnings() const { return warnings_; }

    /// The file as it was read.
    [[nodiscard]] std::span<const std::byte> bytes() const { return file_; }

    /// Bytes after the last block.
    [[nodiscard]] std::uint64_t trailing_bytes() const { return trailing_; }

    [[nodiscard]] SizeField size_field() const;
    [[nodiscard]] SizeField swaplen_field() const;

    /// The listed item types in file order.
    [[nodiscard]] std::span<const ItemType> item_types() const { return types_; }

    [[nodiscard]] std::size_t item_count() const { return item_starts_.size(); }

    /// Precondition: index < item_count().
    [[nodiscard]] ItemView item(std::size_t index) const;
    [[nodiscard]] std::optional<ItemType> find_type(std::uint16_t type) const;
    /// The item of a type with an index within the type; the way items refer to each other.
    [[nodiscard]] std::optional<ItemView> find_item(std::uint16_t type, std::int64_t index) const;
    /// The first item of a type with an id.
    [[nodiscard]] std::optional<ItemView> find_id(std::uint16_t type, std::uint16_t id) const;

    [[nodiscard]] std::size_t block_count() const {
        return static_cast<std::size_t>(header_.num_data);
    }

    /// Read from the file's tables each time: a file of empty blocks shall not cost more memory
    /// than it has. Precondition: index < block_count().
    [[nodiscard]] BlockInfo block_info(std::size_t index) const;

    /// The bytes of a block as they stand in the file. Precondition: index < block_count().
    [[nodiscard]] std::span<const std::byte> stored_block(std::size_t index) const;

    /// Inflates one block. One that declares nothing and holds nothing is empty, which is odd but
    /// real; one that declares nothing and holds something has the wrong size.
    ///
    /// Errors:  block_index_out_of_range, block_empty, block_size_not_possible, block_too_large,
    ///          block_corrupt, block_wrong_size, out_of_memory.
    [[nodiscard]] Result<Block> block(std::int64_t index) const;

  private:
    friend class DatafileParser;
    Datafile() = default;
    [[nodiscard]] SizeField compare_size(std::int32_t value, std::uint64_t full) const;

    std::vector<std::byte> file_;
    Limits limits_;
    DatafileHeader header_;
    std::uint64_t trailing_ = 0;
    std::vector<ItemType> types_;
    std::vector<std::int32_t> ints_;         ///< the whole item section
    std::vector<std::uint32_t> item_starts_; ///< index in ints_ of each item's two head ints
    std::uint64_t block_offsets_at_ = 0;     ///< bytes from the start of the file
    std::uint64_t block_sizes_at_ = 0;
    std::uint64_t blocks_at_ = 0;
    Warnings warnings_;
};

/// Reads a whole file, at most `max_bytes`.
///
/// Errors:  file_unreadable, file_too_large.
[[nodiscard]] Result<std::vector<std::byte>> read_file(const std::filesystem::path& path,
                                                       std::uint64_t max_bytes);

/// Checks a datafile from front to back. Every step relies on the ones before it and stops at the
/// first thing that makes the file unreadable.
class DatafileParser {
  public:
    DatafileParser(std::vector<std::byte> file, const Limits& limits);
    [[nodiscard]] Result<Datafile> run();

  private:
    [[nodiscard]] bool fail(MapErrc code, std::uint64_t offset,
                            std::uint32_t block = MapError::kNowhere,
                            std::uint32_t item = MapError::kNowhere);
    [[nodiscard]] std::int32_t field(std::uint64_t offset) const;
    [[nodiscard]] bool read_header();
    [[nodiscard]] bool lay_out();
    [[nodiscard]] bool read_types();
    [[nodiscard]] bool read_items();
    [[nodiscard]] bool read_item(std::size_t index, std::uint64_t& expected);
    [[nodiscard]] bool check_item_types();
    [[nodiscard]] bool read_blocks();
    void note_sizes();

    Datafile out_;
    MapError error_;
    std::uint64_t types_at_ = 0;
    std::uint64_t item_offsets_at_ = 0;
    std::uint64_t data_offsets_at_ = 0;
    std::uint64_t data_sizes_at_ = 0;
    std::uint64_t items_at_ = 0;
    std::uint64_t data_at_ = 0;
};

} // namespace tw::map
