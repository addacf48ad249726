#include "proxy/wire/client_trust.h"
#include "tests/fuzz/demand.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

/// A sequence of datagrams. Two bytes before each one give its direction and length. The verdict on a
/// client must never decrease, and a client without any datagram from the server must stay unverified.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw::wire;
    using tw::fuzz::demand;
    constexpr std::size_t kPrefix = 2;
    ClientTrustState state;
    bool answered = false;
    std::span left{data, size};
    while (left.size() >= kPrefix) {
        const auto direction = (left[0] & 1U) == 0 ? Direction::c2s : Direction::s2c;
        const std::size_t wanted = (left[0] >> 1U) * std::size_t{256} + left[1];
        left = left.subspan(kPrefix);
        const auto datagram = left.first(std::min(wanted, left.size()));
        left = left.subspan(datagram.size());
        const Trust before = state.trust;
        const DatagramJudgement judgement =
            judge_datagram(state, direction, std::as_bytes(datagram));
        const Trust after = judgement.trust;
        answered = answered || direction == Direction::s2c;
        demand(after == state.trust && after >= before);
        demand(answered || after <= Trust::unverified);
        demand(after != Trust::verified || before == after || direction == Direction::c2s);
        demand(!judgement.shows_player ||
               (direction == Direction::s2c && after >= Trust::unverified_player));
        demand(!judgement.is_answered || direction == Direction::c2s);
        demand(state.num_ticks < 2 * state.ticks.size());
    }
    return 0;
}
