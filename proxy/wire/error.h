#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tl/expected.hpp>

namespace tw::wire {

/// Why a datagram could not be read as what it claims to be. A closed set that `error_info` explains.
enum class WireErrc : std::uint8_t {
    none,
    too_short,          ///< fewer bytes than the header needs
    too_long,           ///< more than kMaxDatagramSize bytes; every receiver drops it
    huffman_truncated,  ///< compressed data that ends before its end symbol
    huffman_overflow,   ///< decompresses to more than kMaxPayloadSize bytes
    control_empty,      ///< a control packet without a kind
    chunk_truncated,    ///< the payload ends inside a chunk; those before it count
    message_id_invalid, ///< a negative message id or one past 65535
};

struct WireError {
    WireErrc code = WireErrc::none;
    std::size_t offset =
        0; ///< bytes from the start of the datagram, or of the payload where it says so

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
