#pragma once

#include <cstdint>

namespace tw::test {

/// How often the program, all its threads together, has called operator new.
std::uint64_t allocation_count() noexcept;

/// Bytes that operator new has handed out and that were not given back yet.
std::uint64_t live_bytes() noexcept;
/// The most there were since `forget_peak`.
std::uint64_t peak_bytes() noexcept;
void forget_peak() noexcept;

/// Makes the one after so many more fail, whoever's it is; negative: none fails.
void fail_allocation_after(std::int64_t more) noexcept;

/// Whether this build counts: those with sanitizers bring an allocator of their own.
bool counts_allocations() noexcept;

} // namespace tw::test
