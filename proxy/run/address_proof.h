#pragma once

#include "proxy/relay/admission.h"
#include "proxy/relay/answers.h"

namespace tw::run {

/// What tells the relay, which knows nothing of the game, how far a client has come with the server:
/// wire::judge.
[[nodiscard]] relay::Verdict prove_address(relay::ProofMemory& memory, relay::Direction direction,
                                           std::span<const std::byte> datagram);

/// What lets the relay repeat a server's information: proxy/wire/info_answer.h.
[[nodiscard]] relay::Repeating repeating_info();

} // namespace tw::run
