#include "proxy/inspect/receiver_rules.h"

#include <array>

namespace tw::inspect {

namespace {

// Protocol sheet, section 1.2, "What receivers refuse, beyond size", and DDNet's history of
// src/engine/shared/network.cpp, network_conn.cpp and network_server.cpp. DDNet 16.4 was asked
// itself, by tests/e2e/evasion.mjs.

/// UnpackPacket of 0.6.5: token behind the header. It decompresses control packets, and gives
/// whatever CNetConnection::Feed takes to CNetRecvUnpacker.
constexpr ReceiverRules kVanillaWithToken{.program = "vanilla 0.6.5", .token_bit = TokenBit::token};
/// UnpackPacket of 0.6.4 has four flags and twelve bits of acknowledgement: with one of the bits
/// 0x08 and 0x04 it is beyond all that was sent. 0.6.5 wants no token of who joined without.
constexpr ReceiverRules kVanilla{.program = "vanilla 0.6"};

struct DdnetRules {
    std::int32_t since;
    ReceiverRules client;
    ReceiverRules server;
};

constexpr DdnetRules kDdnet[] = {
    // Four flags, as vanilla; control packets are never compressed since 10.3. Versions before 11
    // were numbered by another scheme.
    {11000,
     {.program = "DDNet 11 to 13", .refuses_compressed_control = true},
     {.program = "DDNet 11 to 13", .refuses_compressed_control = true}},
    // Six flags, of which UnpackPacket knows 0x04 as 0.7's and skips 0x08. A client has no use for
    // 0.7's header before 18.6, and was not asked.
    {14000,
     {.program = "DDNet 14.0 to 19.3",
      .refuses_compressed_control = true,
      .token_bit = TokenBit::ignored},
     {.program = "DDNet 14.0 to 19.3",
      .refuses_compressed_control = true,
      .token_bit = TokenBit::ignored,
      .reads_seven_header = true}},
    // CNetBase::IsValidConnectionOrientedPacket.
    {19040,
     {.program = "DDNet since 19.4",
      .refuses_compressed_control = true,
      .refuses_control_with_chunks = true},
     {.program = "DDNet since 19.4",
      .refuses_compressed_control = true,
      .refuses_control_with_chunks = true,
      .reads_seven_header = true}},
};

constexpr const DdnetRules& kToday = kDdnet[std::size(kDdnet) - 1];

const DdnetRules& ddnet_rules(std::optional<std::int32_t> version) {
    const DdnetRules* rules = nullptr;
    for (const DdnetRules& each : kDdnet) {
        if (version && *version >= each.since) {
            rules = &each;
        }
    }
    return rules == nullptr ? kToday : *rules;
}

} // namespace

const ReceiverRules& receiver_rules(const Receiver& receiver) {
    if (receiver.header_token) {
        return kVanillaWithToken;
    }
    if (receiver.vanilla) {
        return kVanilla;
    }
    const DdnetRules& rules = ddnet_rules(receiver.version);
    return receiver.server ? rules.server : rules.client;
}

} // namespace tw::inspect
