#pragma once

#include <cstdint>

namespace tw::test {

/// Returns how often the threads of the program have called operator new.
std::uint64_t allocation_count() noexcept;

/// Returns the number of allocated bytes.
std::uint64_t live_bytes() noexcept;
/// Returns the maximum of live_bytes() since reset_peak_bytes().
std::uint64_t peak_bytes() noexcept;
void reset_peak_bytes() noexcept;

/// Lets `more` allocations succeed and makes the next one fail, in any thread. Negative: none
/// fails.
void fail_allocation_after(std::int64_t more) noexcept;

/// Whether this build counts allocations. Builds with sanitizers do not, as those replace the
/// allocator.
bool counts_allocations() noexcept;

} // namespace tw::test
