#include "snapshot/parts.h"
#include "tests/fuzz/demand.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

/// A script of parts with six bytes each: change of tick (signed), num_parts, part (both signed),
/// size / 4, contradiction, and an unused byte. Every byte of a part contains the part's number, so an
/// assembled delta shows the origin of each byte.
namespace {

using namespace tw::snapshot;
using tw::fuzz::demand;

constexpr std::size_t kStepSize = 6;
constexpr std::size_t kMaxSteps = 2000;

void check_assembled(const AssembledDelta& delta, const Part& part) {
    demand(delta.tick == part.tick && delta.num_parts == part.num_parts);
    demand(delta.num_parts >= 1 && delta.num_parts <= kMaxParts);
    const auto num_parts = static_cast<std::size_t>(delta.num_parts);
    demand(delta.body.size() >= (num_parts - 1) * kMaxPartSize);
    demand(delta.body.size() <= num_parts * kMaxPartSize);
    for (std::size_t i = 0; i < delta.body.size(); ++i) {
        demand(delta.body[i] == static_cast<std::byte>(i / kMaxPartSize));
    }
}

int as_signed(std::uint8_t byte) {
    return static_cast<std::int8_t>(byte);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    PartAssembler assembler;
    std::array<std::byte, 4 * 256> content{};
    Tick tick = 0;
    for (std::size_t step = 0; step < size / kStepSize && step < kMaxSteps; ++step) {
        const std::uint8_t* const at = data + step * kStepSize;
        if (at[4] == 0xFF) {
            demand(assembler.reset().size() <= kMaxOpenTicks);
            continue;
        }
        // Moves the tick far now and then, with overflow as in values of the network.
        const std::uint32_t stride = (at[5] & 1U) != 0 ? 0x01234567U : 1U;
        tick = static_cast<Tick>(static_cast<std::uint32_t>(tick) +
                                 static_cast<std::uint32_t>(as_signed(at[0])) * stride);
        Part part{.tick = tick,
                  .delta_tick = (at[4] & 1U) != 0 ? tick : kNoBase,
                  .num_parts = as_signed(at[1]),
                  .part = as_signed(at[2]),
                  .crc = (at[4] & 2U) != 0 ? 1 : 0,
                  .data = {}};
        content.fill(static_cast<std::byte>(part.part));
        part.data = std::span{content}.first(std::size_t{at[3]} * 4);
        if (assembler.add(part) == PartStatus::complete) {
            check_assembled(assembler.assembled(), part);
        }
        demand(assembler.lost().size() <= kMaxOpenTicks);
    }
    return 0;
}
