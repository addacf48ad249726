#pragma once

#include <cstddef>
#include <cstdlib>
#include <random>
#include <vector>

namespace tw::test {

/// Returns the factor for the number of attempts of random tests: the variable TW_ROUNDS, or 1.
[[nodiscard]] inline std::size_t rounds() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables
    const char* const given = std::getenv("TW_ROUNDS");
    return given == nullptr ? 1 : std::strtoul(given, nullptr, 10);
}

/// Returns a random number below `limit`.
[[nodiscard]] std::size_t random_below(std::mt19937& random, std::size_t limit);
[[nodiscard]] std::byte any_byte(std::mt19937& random);

/// Damages a datagram in a random way: flips a bit, truncates, inserts or removes a byte,
/// overwrites a byte or everything from a byte on. An empty datagram is not changed.
void damage(std::vector<std::byte>& bytes, std::mt19937& random);

} // namespace tw::test
