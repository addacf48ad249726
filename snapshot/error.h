#pragma once

#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::snapshot {

/// All errors: X(name, one sentence in plain words, DDNet's code).
///
/// The codes are those of DDNet's CSnapshotDelta::UnpackDelta, which DDNet's client logs as "delta
/// unpack failed. error=..."; 0: no code. If an error has two codes in DDNet, the second one can be
/// in DecodeError::ddnet_code.
#define TW_DECODE_ERRORS(X)                                                                        \
    X(none, "Nothing is wrong.", 0)                                                                \
    X(truncated, "The data ends inside a value.", 0)                                               \
    X(string_unterminated, "A string has no NUL before the end of the message.", 0)                \
    X(length_out_of_range, "A length is negative or claims more bytes than are left.", 0)          \
    X(too_many_ints, "The delta holds more ints than clients have room for.", 0)                   \
    X(negative_count, "The delta announces a negative number of deleted items.", -201)             \
    X(deleted_out_of_range, "The delta announces more deleted items than it holds.", -101)         \
    X(update_truncated, "The delta ends before the updates that it announces.", -102)              \
    X(type_out_of_range, "The type of an updated item is negative or above 32767.", -202)          \
    X(id_out_of_range, "The id of an updated item is negative or above 65535.", -203)              \
    X(size_out_of_range, "The size of an updated item is negative or more than the delta holds.",  \
      -205)                                                                                        \
    X(size_change, "An update's size is not that of the item that it changes.", -206)              \
    X(too_many_items, "The snapshot would hold more than 1024 items.", -302)                       \
    X(too_many_bytes, "The snapshot would be larger than 65536 bytes.", -302)

/// Why bytes from a client or server could not be decoded; see `error_info`.
enum class DecodeErrc : std::uint8_t {
#define TW_ENUMERATOR(name, ...) name,
    TW_DECODE_ERRORS(TW_ENUMERATOR)
#undef TW_ENUMERATOR
};

/// The first error in the decoded bytes, and its position.
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

struct ErrorInfo {
    DecodeErrc code;
    std::string_view name;     ///< stable identifier, snake_case
    std::string_view sentence; ///< one sentence in plain words
    int ddnet_code;            ///< the code that DDNet's client logs for this error; 0: no code
};

inline constexpr std::array kErrorTable{
#define TW_ROW(name, sentence, ddnet_code) ErrorInfo{DecodeErrc::name, #name, sentence, ddnet_code},
    TW_DECODE_ERRORS(TW_ROW)
#undef TW_ROW
};

[[nodiscard]] constexpr const ErrorInfo& error_info(DecodeErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrorTable[index < kErrorTable.size() ? index : 0];
}

} // namespace tw::snapshot
