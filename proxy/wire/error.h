#pragma once

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
    /// In bytes, from the start of the datagram; some functions document another start.
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

[[nodiscard]] std::span<const ErrorInfo> error_table();
[[nodiscard]] const ErrorInfo& error_info(WireErrc code);

} // namespace tw::wire
