#include "proxy/run/address_proof.h"

#include "proxy/wire/proof.h"

#include <cstring>
#include <type_traits>

namespace tw::run {

namespace {

static_assert(std::is_trivially_copyable_v<wire::ProofState>);
static_assert(sizeof(wire::ProofState) <= sizeof(relay::ProofMemory));

relay::Standing standing_of(wire::Trust trust) {
    switch (trust) {
    case wire::Trust::connless:
        return relay::Standing::connless;
    case wire::Trust::stray:
        return relay::Standing::stray;
    case wire::Trust::unproven:
        return relay::Standing::unproven;
    case wire::Trust::weak:
        return relay::Standing::weak;
    case wire::Trust::proven:
        return relay::Standing::proven;
    }
    return relay::Standing::stray;
}

} // namespace

relay::Standing prove_address(relay::ProofMemory& memory, relay::Direction direction,
                              std::span<const std::byte> datagram) {
    wire::ProofState state;
    std::memcpy(&state, memory.bytes.data(), sizeof state);
    const wire::Trust trust = wire::judge(
        state, direction == relay::Direction::c2s ? wire::Direction::c2s : wire::Direction::s2c,
        datagram);
    std::memcpy(memory.bytes.data(), &state, sizeof state);
    return standing_of(trust);
}

} // namespace tw::run
