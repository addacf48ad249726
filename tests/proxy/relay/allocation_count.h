#pragma once

#include <cstdint>

namespace tw::relay::test {

/// How often the program, all its threads together, has called operator new.
std::uint64_t allocation_count() noexcept;

} // namespace tw::relay::test
