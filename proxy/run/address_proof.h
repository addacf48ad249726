#pragma once

#include "proxy/relay/admission.h"

namespace tw::run {

/// What proves to the relay, which knows nothing of the game, that a client receives at its
/// address: wire::judge.
[[nodiscard]] relay::Standing prove_address(relay::ProofMemory& memory, relay::Direction direction,
                                            std::span<const std::byte> datagram);

} // namespace tw::run
