#pragma once

#include "map/error.h"
#include "map/limits.h"
#include "map/warning.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tw::map {

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

} // namespace tw::map
