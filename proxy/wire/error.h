#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::wire {

/// All errors as X(name, a sentence that describes the error).
#define TW_WIRE_ERRORS(X)                                                                          \
    X(none, "Nothing is wrong.")                                                                   \
    X(too_short, "The datagram holds fewer bytes than its header needs.")                          \
    X(too_long, "The datagram is larger than 1400 bytes; every receiver drops it.")                \
    X(huffman_truncated, "The compressed payload ends before its end symbol.")                     \
    X(huffman_overflow, "The compressed payload decompresses to more than a packet can hold.")     \
    X(control_empty, "A control packet has no byte that says its kind.")                           \
    X(chunk_truncated, "The payload ends inside a chunk; the chunks before it count.")             \
    X(message_id_invalid,                                                                          \
      "A message id is negative, too large, or announces a UUID that is not there.")

/// Why a datagram could not be decoded; see `error_info`.
enum class WireErrc : std::uint8_t {
#define TW_ENUMERATOR(name, sentence) name,
    TW_WIRE_ERRORS(TW_ENUMERATOR)
#undef TW_ENUMERATOR
};

struct WireError {
    WireErrc code = WireErrc::none;
    /// Number of bytes from the start of the datagram to the error. Some functions count from
    /// another position and document it.
    std::size_t offset = 0;

    friend bool operator==(const WireError&, const WireError&) = default;
};

template <typename T>
using Result = tl::expected<T, WireError>;

struct ErrorInfo {
    WireErrc code;
    std::string_view name;
    std::string_view sentence;
};

inline constexpr std::array kErrorTable{
#define TW_ROW(name, sentence) ErrorInfo{WireErrc::name, #name, sentence},
    TW_WIRE_ERRORS(TW_ROW)
#undef TW_ROW
};

[[nodiscard]] constexpr const ErrorInfo& error_info(WireErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrorTable[index < kErrorTable.size() ? index : 0];
}

} // namespace tw::wire
