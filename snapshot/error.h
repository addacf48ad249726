#pragma once

#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::snapshot {

/// Why bytes from a client or server could not be decoded; see `error_info`.
enum class DecodeErrc : std::uint8_t {
    none,
    truncated,            ///< the data ends inside a value
    string_unterminated,  ///< the message ends before the NUL of a string
    length_out_of_range,  ///< the length of a raw field is negative or exceeds the data
    too_many_ints,        ///< a delta body has more than kMaxDeltaInts ints
    negative_count,       ///< the number of deleted items is negative
    deleted_out_of_range, ///< the number of deleted items exceeds the number of ints in the body
    update_truncated,     ///< the body ends before the announced number of updates
    type_out_of_range,    ///< an item type is outside of 0 to kMaxItemType
    id_out_of_range,      ///< an item id is outside of 0 to kMaxItemId
    size_out_of_range,    ///< an item size is negative or exceeds the body
    size_change,          ///< an update has another size than the item in the base
    too_many_items,       ///< the snapshot would have more than kMaxItems items
    too_many_bytes,       ///< the snapshot would have more than kMaxSnapshotBytes bytes
};

/// The first error and its position.
struct DecodeError {
    DecodeErrc code = DecodeErrc::none;
    std::size_t offset =
        0; ///< bytes from the start of the decoded span; in a delta, index of an int
    std::optional<ItemKey> key{}; ///< the affected item, if its key was read
    /// DDNet's code for this error if it differs from ErrorInfo::ddnet_code; otherwise 0.
    int ddnet_code = 0;

    friend bool operator==(const DecodeError&, const DecodeError&) = default;
};

template <typename T>
using Result = tl::expected<T, DecodeError>;

/// The description of an error.
struct ErrorInfo {
    DecodeErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
    int ddnet_code;            ///< the code that DDNet's client logs for this error; 0: no code
};

/// All errors, in the order of DecodeErrc.
///
/// The numbers are the codes of DDNet's CSnapshotDelta::UnpackDelta, which DDNet's client logs as
/// "delta unpack failed. error=...". If an error has two codes in DDNet, the second one can be in
/// DecodeError::ddnet_code.
inline constexpr std::array kErrorTable{
    ErrorInfo{DecodeErrc::none, "none", "Nothing is wrong.", 0},
    ErrorInfo{DecodeErrc::truncated, "truncated", "The data ends inside a value.", 0},
    ErrorInfo{DecodeErrc::string_unterminated, "string_unterminated",
              "A string has no NUL before the end of the message.", 0},
    ErrorInfo{DecodeErrc::length_out_of_range, "length_out_of_range",
              "A length is negative or claims more bytes than are left.", 0},
    ErrorInfo{DecodeErrc::too_many_ints, "too_many_ints",
              "The delta holds more ints than clients have room for.", 0},
    ErrorInfo{DecodeErrc::negative_count, "negative_count",
              "The delta announces a negative number of deleted items.", -201},
    ErrorInfo{DecodeErrc::deleted_out_of_range, "deleted_out_of_range",
              "The delta announces more deleted items than it holds.", -101},
    ErrorInfo{DecodeErrc::update_truncated, "update_truncated",
              "The delta ends before the updates that it announces.", -102},
    ErrorInfo{DecodeErrc::type_out_of_range, "type_out_of_range",
              "The type of an updated item is negative or above 32767.", -202},
    ErrorInfo{DecodeErrc::id_out_of_range, "id_out_of_range",
              "The id of an updated item is negative or above 65535.", -203},
    ErrorInfo{DecodeErrc::size_out_of_range, "size_out_of_range",
              "The size of an updated item is negative or more than the delta holds.", -205},
    ErrorInfo{DecodeErrc::size_change, "size_change",
              "An update's size is not that of the item that it changes.", -206},
    ErrorInfo{DecodeErrc::too_many_items, "too_many_items",
              "The snapshot would hold more than 1024 items.", -302},
    ErrorInfo{DecodeErrc::too_many_bytes, "too_many_bytes",
              "The snapshot would be larger than 65536 bytes.", -302},
};

[[nodiscard]] constexpr std::span<const ErrorInfo> error_table() {
    return kErrorTable;
}

[[nodiscard]] constexpr const ErrorInfo& error_info(DecodeErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrorTable[index < kErrorTable.size() ? index : 0];
}

} // namespace tw::snapshot
