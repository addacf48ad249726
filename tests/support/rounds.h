#pragma once

#include <cstddef>
#include <cstdlib>

namespace tw::test {

/// Returns the factor for the number of attempts of random tests: the variable TW_ROUNDS, or 1.
[[nodiscard]] inline std::size_t rounds() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables
    const char* const given = std::getenv("TW_ROUNDS");
    return given == nullptr ? 1 : std::strtoul(given, nullptr, 10);
}

} // namespace tw::test
