#pragma once

#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::snapshot {

/// Why bytes from a peer could not be decoded. A closed set; `error_info` explains each.
enum class DecodeErrc : std::uint8_t {
    none,
    truncated,            ///< the data ends inside a value
    string_unterminated,  ///< no NUL before the end of the message
    length_out_of_range,  ///< a raw field claims a negative length or more than is left
    too_many_ints,        ///< a delta body holds more than kMaxDeltaInts ints
    negative_count,       ///< a negative number of deleted items
    deleted_out_of_range, ///< more deleted keys than the body holds
    update_truncated,     ///< the body ends before the announced updates do
    type_out_of_range,    ///< an item type outside 0..kMaxItemType
    id_out_of_range,      ///< an item id outside 0..kMaxItemId
    size_out_of_range,    ///< an item size that is negative or more than the body holds
    size_change,          ///< an update whose size differs from the item it changes
    too_many_items,       ///< more than kMaxItems items
    too_many_bytes,       ///< more than kMaxSnapshotBytes bytes
};

/// What went wrong first, and where.
struct DecodeError {
    DecodeErrc code = DecodeErrc::none;
    std::size_t offset = 0;       ///< bytes from the start of the decoded span; in a delta: ints
    std::optional<ItemKey> key{}; ///< the item it happened at, where its key had been read
    /// What DDNet's unpacker returns in this very case; 0: what the table of errors says.
    int ddnet_code = 0;

    friend bool operator==(const DecodeError&, const DecodeError&) = default;
};

template <typename T>
using Result = tl::expected<T, DecodeError>;

/// How an error is described to people.
struct ErrorInfo {
    DecodeErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
    int ddnet_code; ///< what DDNet's unpacker returns and its client prints, 0: it prints nothing
};

/// The table of all errors in the order of the enum.
[[nodiscard]] std::span<const ErrorInfo> error_table();
[[nodiscard]] const ErrorInfo& error_info(DecodeErrc code);

} // namespace tw::snapshot
