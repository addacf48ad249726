#pragma once

#include "tests/support/random_world.h"

#include <cstddef>
#include <optional>
#include <string>

namespace tw::test {

/// The result of play_worlds().
struct OracleRun {
    std::optional<std::string>
        difference{};     ///< the first difference from the expected result; nullopt: none
    std::size_t sent = 0; ///< number of sent snapshots
    std::size_t rebuilt = 0;
    std::size_t baseless = 0;   ///< number of complete snapshots whose base is missing
    std::size_t incomplete = 0; ///< number of snapshots with lost parts
    std::size_t repeated = 0;   ///< number of repeated parts and empty snapshots
};

/// Sends random worlds by our encoder, in packets compressed or not, over a network that loses,
/// repeats and reorders datagrams, and inspects them. Each complete snapshot whose base has arrived
/// must equal the world that was sent; all others must be counted.
[[nodiscard]] OracleRun play_worlds(const Choose& choose, std::size_t snapshots);

/// Compares our decoders with the plain ones of tests/bench on damaged Huffman data and deltas:
/// both must accept the same input and return the same result.
struct OracleComparison {
    std::optional<std::string> difference{};
    std::size_t accepted = 0;
    std::size_t rejected = 0;
};

[[nodiscard]] OracleComparison compare_huffman(const Choose& choose, std::size_t rounds);
[[nodiscard]] OracleComparison compare_deltas(const Choose& choose, std::size_t rounds);

} // namespace tw::test
