#include "proxy/wire/error.h"

#include <array>

namespace tw::wire {

namespace {

constexpr std::array kErrors{
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

} // namespace

std::span<const ErrorInfo> error_table() {
    return kErrors;
}

const ErrorInfo& error_info(WireErrc code) {
    const auto index = static_cast<std::size_t>(code);
    return kErrors[index < kErrors.size() ? index : 0];
}

} // namespace tw::wire
