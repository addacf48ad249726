#pragma once

#include <cstdint>

namespace tw::test {

/// How often the program, all its threads together, has called operator new.
std::uint64_t allocation_count() noexcept;

} // namespace tw::test
