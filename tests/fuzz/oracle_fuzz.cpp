#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"
#include "tests/support/snapshot_oracle.h"

#include <cstddef>
#include <cstdint>

/// The input chooses worlds, network faults and damage. Snapshots received completely must equal the sent
/// ones, everything else must be reported, and an independent decoder must agree. The first byte chooses
/// the script.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw::test;
    tw::fuzz::Input in{data, size};
    const std::size_t what = in.below(4);
    const Choose choose = [&in](std::size_t limit) { return in.below(limit); };
    constexpr std::size_t kBytesOfOne = 64;
    const std::size_t rounds = 1 + size / kBytesOfOne;
    switch (what) {
    case 0:
        tw::fuzz::demand(!compare_huffman(choose, rounds).difference);
        break;
    case 1:
        tw::fuzz::demand(!compare_deltas(choose, rounds).difference);
        break;
    default:
        tw::fuzz::demand(!play_worlds(choose, rounds).difference);
        break;
    }
    return 0;
}
