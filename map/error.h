#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::map {

/// Why a map cannot be used. A closed set; `error_info` explains each.
enum class MapErrc : std::uint8_t {
    none,
    file_unreadable,
    file_too_large,
    file_too_short,
    bad_magic,
    bad_version,
    negative_header_field,
    too_many_item_types,
    items_unaligned,
    file_truncated,
    item_type_out_of_range,
    item_type_duplicate,
    item_type_bad_range,
    item_bad_offset,
    item_bad_size,
    item_type_mismatch,
    block_bad_offset,
    block_negative_size,
    no_version_item,
    unknown_map_version,
    no_game_layer,
    layer_bad_dimensions,
    tile_data_missing,
    tile_data_short,
    block_index_out_of_range,
    block_empty,
    block_size_not_possible,
    block_too_large,
    block_corrupt,
    block_wrong_size,
    wrong_record_size,
    unknown_tile_record,
    picture_too_large,
    out_of_memory,
};

/// What went wrong first, and where.
///
/// Units:   offset in bytes from the start of the file; block and item are indices in the datafile.
struct MapError {
    static constexpr std::uint32_t kNowhere = 0xffffffffU;

    MapErrc code = MapErrc::none;
    std::uint64_t offset = 0;
    std::uint32_t block = kNowhere; ///< data block concerned, or kNowhere
    std::uint32_t item = kNowhere;  ///< item concerned, or kNowhere

    friend bool operator==(const MapError&, const MapError&) = default;
};

template <typename T>
using Result = tl::expected<T, MapError>;

/// How an error is described to people.
struct ErrorInfo {
    MapErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
};

/// The table of all errors in the order of the enum.
[[nodiscard]] std::span<const ErrorInfo> error_table();
[[nodiscard]] const ErrorInfo& error_info(MapErrc code);

} // namespace tw::map
