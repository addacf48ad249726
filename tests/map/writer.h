#pragma once

#include "map/datafile.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace tw::map::test {

/// Builds a datafile: items in the order of their types, blocks in the order of adding.
///
/// Layout:  FORMAT.md, section 1. Version 4 compresses its blocks, version 3 stores them.
/// Source:  DDNet CDataFileWriter.
class DatafileWriter {
  public:
    explicit DatafileWriter(int version = 4) : version_{version} {}

    void add_item(std::uint16_t type, std::uint16_t id, std::span<const std::int32_t> ints);
    /// Adds a block. Returns its index.
    std::int32_t add_block(std::span<const std::byte> bytes);
    /// Adds a block that is already compressed. `size`: the declared size, which may be wrong.
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

/// Encodes a text in the form that decode_int_text() decodes. Cuts a text of more than
/// 4 * ints.size() - 1 bytes.
void encode_int_text(std::string_view text, std::span<std::int32_t> ints);

/// Returns a file with the same items and blocks, compressed again. A block that does not inflate is
/// copied unchanged.
[[nodiscard]] std::vector<std::byte> rewrite_datafile(const Datafile& file);

/// Writes a file. Returns false on failure.
[[nodiscard]] bool write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

} // namespace tw::map::test
