#pragma once

#include <cstddef>
#include <cstdlib>

namespace tw::test {

/// So many times what a quick run tries: TW_ROUNDS of the environment, 1 without it.
[[nodiscard]] inline std::size_t rounds() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables here
    const char* const given = std::getenv("TW_ROUNDS");
    return given == nullptr ? 1 : std::strtoul(given, nullptr, 10);
}

} // namespace tw::test
