#include "proxy/run/address_proof.h"
#include "proxy/wire/encode.h"

#include <doctest/doctest.h>

using namespace tw;

TEST_CASE("the relay's sessions rise as wire::judge says") {
    const wire::Token token{1, 2, 3, 4};
    relay::ProofMemory memory;
    const auto says = [&](relay::Direction direction, const wire::ControlSpec& control) {
        return run::prove_address(memory, direction, wire::encode_control(control));
    };
    using relay::Direction;
    using relay::Standing;
    CHECK(run::prove_address(memory, Direction::c2s, {}) == Standing::stray);
    CHECK(says(Direction::c2s, {.kind = wire::ControlKind::connect,
                                .token = wire::kTokenUnknown}) == Standing::unproven);
    CHECK(says(Direction::s2c, {.kind = wire::ControlKind::connectaccept, .token = token}) ==
          Standing::unproven);
    CHECK(says(Direction::c2s, {.kind = wire::ControlKind::accept, .token = token}) ==
          Standing::proven);
}
