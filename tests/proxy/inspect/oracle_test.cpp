// Compares the decoded snapshots of random worlds, with reproducible random damage, with the sent
// snapshots and with a simple decoder.

#include "tests/support/snapshot_oracle.h"

#include <cstdint>
#include <random>

#include <doctest/doctest.h>

using namespace tw::test;

namespace {

/// Returns a chooser whose numbers depend only on the seed, on every machine.
Choose seeded_choice(std::uint32_t seed) {
    return [random = std::mt19937{seed}](std::size_t limit) mutable { return random() % limit; };
}

} // namespace

TEST_CASE("over a lossy connection, every sent snapshot is rebuilt or counted as missing") {
    OracleRun all;
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        const OracleRun play = play_worlds(seeded_choice(seed), 60);
        CAPTURE(play.difference.value_or("none"));
        REQUIRE_FALSE(play.difference);
        all.sent += play.sent;
        all.rebuilt += play.rebuilt;
        all.baseless += play.baseless;
        all.incomplete += play.incomplete;
        all.repeated += play.repeated;
    }
    MESSAGE(all.sent, " snapshots sent, ", all.rebuilt, " rebuilt, ", all.baseless,
            " without their base, ", all.incomplete, " incomplete, ", all.repeated, " repeated");
    CHECK(all.sent > 3000);
    CHECK(all.rebuilt > 2000);
    CHECK(all.baseless > 50);
    CHECK(all.incomplete > 50);
    CHECK(all.repeated > 100);
}

TEST_CASE("damaged Huffman data is decoded as by a plain decoder") {
    const OracleComparison comparison = compare_huffman(seeded_choice(1), 10'000);
    CAPTURE(comparison.difference.value_or("none"));
    CHECK_FALSE(comparison.difference);
    CHECK(comparison.accepted > 1000);
    CHECK(comparison.rejected > 1000);
}

TEST_CASE("damaged deltas are decoded as by a plain decoder") {
    const OracleComparison comparison = compare_deltas(seeded_choice(1), 3000);
    CAPTURE(comparison.difference.value_or("none"));
    CHECK_FALSE(comparison.difference);
    CHECK(comparison.accepted > 500);
    CHECK(comparison.rejected > 500);
}
