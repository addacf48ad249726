#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::inspect {

/// What a receiver makes of the header's bit 0x08.
enum class TokenBit : std::uint8_t {
    token,   ///< 0.6.5: its token follows the header
    ignored, ///< the packet is read as if it were not there
    refused,
};

/// What programs refuse in packets that others take. Only what matters to an observer is here.
struct ReceiverRules {
    std::string_view program;
    bool refuses_compressed_control = false;
    /// Who does not refuse them reads the chunks, the first from the byte that is the kind.
    bool refuses_control_with_chunks = false;
    TokenBit token_bit = TokenBit::refused;
    /// Takes a control packet under 0.7's header for one of the 0.6 connection it comes on: its
    /// token is looked for where 0.6 has it.
    bool reads_seven_header = false;
};

/// What is known of who receives.
struct Receiver {
    bool header_token = false; ///< the connection has 0.6.5's token
    bool vanilla = false;      ///< not DDNet
    /// Of DDNet (major * 1000 + minor * 10 + patch): what a client announced, what a server shows.
    std::optional<std::int32_t> version{};
    bool server = false;
};

/// Who is not known is taken for today's DDNet: it refuses most, and what it refuses no honest peer
/// sends. That holds for a server until its version is seen, so while the first client joins.
[[nodiscard]] const ReceiverRules& receiver_rules(const Receiver& receiver);

} // namespace tw::inspect
