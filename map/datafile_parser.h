#pragma once

#include "map/datafile.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::map {

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
