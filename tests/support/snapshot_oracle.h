#pragma once

#include "tests/support/random_world.h"

#include <cstddef>
#include <optional>
#include <string>

namespace tw::test {

/// What a play of random worlds came to.
struct OraclePlay {
    std::optional<std::string> difference{}; ///< between what must be and what is; nothing: none
    std::size_t sent = 0;                    ///< snapshots
    std::size_t rebuilt = 0;
    std::size_t baseless = 0;   ///< came whole, but what they build on did not
    std::size_t incomplete = 0; ///< some of their parts did not come
    std::size_t repeated = 0;   ///< parts and empty ones that came again
};

/// A server sends random worlds, by our encoder, in packets compressed or not, over a line that
/// loses, repeats and reorders datagrams; a session looks on. Every snapshot that comes whole on a
/// base that came must be the very world that was sent, and all others must be accounted for.
[[nodiscard]] OraclePlay play_worlds(const Choose& choose, std::size_t snapshots);

/// Damaged Huffman data and damaged deltas, by our decoders and by the plain ones of tests/bench:
/// both take the same, and make the same of it. The first difference; nothing: none.
struct OracleComparison {
    std::optional<std::string> difference{};
    std::size_t accepted = 0;
    std::size_t rejected = 0;
};

[[nodiscard]] OracleComparison compare_huffman(const Choose& choose, std::size_t rounds);
[[nodiscard]] OracleComparison compare_deltas(const Choose& choose, std::size_t rounds);

} // namespace tw::test
