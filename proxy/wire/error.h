#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::wire {

/// Why a datagram could not be decoded; see `error_info`.
enum class WireErrc : std::uint8_t {
    none,
    too_short,          ///< fewer bytes than the header needs
    too_long,           ///< more than kMaxDatagramSize bytes; all receivers drop the datagram
    huffman_truncated,  ///< compressed data ends before the end symbol
    huffman_overflow,   ///< the decompressed payload is longer than kMaxPayloadSize bytes
    control_empty,      ///< control packet without a kind
    chunk_truncated,    ///< the payload ends inside a chunk; the chunks before it are valid
    message_id_invalid, ///< the message id is negative or above 65535
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

/// All errors, in the order of WireErrc.
inline constexpr std::array kErrorTable{
    ErrorInfo{WireErrc::none, "none", "Nothing is wrong."},
    ErrorInfo{WireErrc::too_short, "too_short",
              "The datagram holds fewer bytes than its header needs."},
    ErrorInfo{WireErrc::too_long, "too_long",
              "The datagram is larger than 1400 bytes; every receiver drops it."},
    ErrorInfo{WireErrc::huffman_truncated, "huffman_truncated",
              "The compressed payload ends before its end symbol."},
    ErrorInfo{WireErrc::huffman_overflow, "huffman_overflow",
              "The compressed payload decompresses to more than a packet can hold."},
    ErrorInfo{WireErrc::control_empty, "control_empty",
              "A control packet has no byte that says its kind."},
    ErrorInfo{WireErrc::chunk_truncated, "chunk_truncated",
              "The payload ends inside a chunk; the chunks before it count."},
    ErrorInfo{WireErrc::message_id_invalid, "message_id_invalid",
              "A message id is negative, too large, or announces a UUID that is not there."},
};

[[nodiscard]] constexpr std::span<const ErrorInfo> error_table() {
    return kErrorTable;
}

[[nodiscard]] constexpr const ErrorInfo& error_info(WireErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrorTable[index < kErrorTable.size() ? index : 0];
}

} // namespace tw::wire
