#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::capture {

/// Why a demo cannot be read, or no further. A closed set; `demo_error_info` explains each.
enum class DemoErrc : std::uint8_t {
    none,
    no_demo,             ///< does not begin as demos do
    version_unsupported, ///< outside 3 to 6
    header_cut,          ///< ends inside its header
    map_size_invalid,    ///< a map larger than any, or a negative size
    map_cut,             ///< ends inside its map
    chunk_cut,           ///< ends inside a chunk
    tick_before_first,   ///< a step before there is a tick to step from
    tick_out_of_range,   ///< a tick that no player takes
    payload_undecodable, ///< a chunk whose compressed data ends before its end symbol
    payload_too_long,    ///< a chunk that decompresses to more than a player has room for
    payload_ints_cut,    ///< a chunk whose last integer is cut
};

struct DemoError {
    DemoErrc code = DemoErrc::none;
    std::size_t offset = 0; ///< bytes from the start of the file

    friend bool operator==(const DemoError&, const DemoError&) = default;
};

template <typename T>
using DemoResult = tl::expected<T, DemoError>;

struct DemoErrorInfo {
    DemoErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< follows the file's name
};

/// The table of all errors in the order of the enum.
[[nodiscard]] std::span<const DemoErrorInfo> demo_error_table();
[[nodiscard]] const DemoErrorInfo& demo_error_info(DemoErrc code);

/// Whether a demo that ends so was cut, as one is whose recorder was killed; else it is damaged.
[[nodiscard]] constexpr bool is_cut(DemoErrc code) {
    return code == DemoErrc::chunk_cut || code == DemoErrc::map_cut;
}

} // namespace tw::capture
