#pragma once

#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::snapshot {

/// Why bytes from a peer could not be decoded; see `error_info`.
enum class DecodeErrc : std::uint8_t {
    none,
    truncated,            ///< the data ends inside a value
    string_unterminated,  ///< the message ends before the NUL of a string
    length_out_of_range,  ///< the length of a raw field is negative or exceeds the data
    too_many_ints,        ///< a delta body has more than kMaxDeltaInts ints
    negative_count,       ///< the number of deleted items is negative
    deleted_out_of_range, ///< the number of deleted items is greater than that of the body's ints
    update_truncated,     ///< the body ends before the announced number of updates
    type_out_of_range,    ///< an item type is outside of 0 to kMaxItemType
    id_out_of_range,      ///< an item id is outside of 0 to kMaxItemId
    size_out_of_range,    ///< an item size is negative or exceeds the body
    size_change,          ///< an update's size differs from that of the base's item
    too_many_items,       ///< the snapshot would have more than kMaxItems items
    too_many_bytes,       ///< the snapshot would have more than kMaxSnapshotBytes bytes
};

/// The first error and its position.
struct DecodeError {
    DecodeErrc code = DecodeErrc::none;
    std::size_t offset = 0; ///< in bytes from the start of the decoded span; in a delta, in ints
    std::optional<ItemKey> key{}; ///< the affected item, if its key was read
    /// DDNet's code for this error, if it differs from the code in the error table; else 0.
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
    int ddnet_code;            ///< the code that DDNet's client prints for this error; 0: none
};

/// All errors, in the order of DecodeErrc.
[[nodiscard]] std::span<const ErrorInfo> error_table();
[[nodiscard]] const ErrorInfo& error_info(DecodeErrc code);

} // namespace tw::snapshot
