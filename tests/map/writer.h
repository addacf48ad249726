#pragma once

#include "map/datafile.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace tw::map::test {

/// Puts a datafile together: items in the order of their types, blocks in the order they come.
///
/// Layout:  FORMAT.md, section 1. Version 4 compresses its blocks, version 3 stores them.
/// Source:  DDNet CDataFileWriter.
class DatafileWriter {
  public:
    explicit DatafileWriter(int version = 4) : version_{version} {}

    void add_item(std::uint16_t type, std::uint16_t id, std::span<const std::int32_t> ints);
    /// Returns the index to refer to the block by.
    std::int32_t add_block(std::span<const std::byte> bytes);
    /// A block that is already compressed, with the size it claims: right or wrong.
    std::int32_t add_stored_block(std::span<const std::byte> stored, std::uint32_t size);
    [[nodiscard]] std::vector<std::byte> finish() const;

  private:
    struct Item {
        std::uint16_t type, id;
        std::vector<std::int32_t> ints;
    };

    struct StoredBlock {
        std::vector<std::byte> bytes;
        std::uint32_t size;
    };

    int version_;
    std::vector<Item> items_;
    std::vector<StoredBlock> blocks_;
};

/// The same items and data, compressed anew; a block that does not inflate is taken as it is.
[[nodiscard]] std::vector<std::byte> rewrite(const Datafile& file);

/// False: it cannot be written.
[[nodiscard]] bool write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

} // namespace tw::map::test
