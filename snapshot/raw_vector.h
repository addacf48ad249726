#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// Leaves new elements uninitialised: growing a buffer that is about to be written costs nothing.
template <typename T>
struct RawAllocator : std::allocator<T> {
    // NOLINTBEGIN(readability-identifier-naming): the names that containers look for
    template <typename U>
    struct rebind {
        using other = RawAllocator<U>;
    };

    // NOLINTEND(readability-identifier-naming)

    template <typename U>
    void construct(U* where) noexcept {
        ::new (static_cast<void*>(where)) U;
    }

    template <typename U, typename... Args>
    void construct(U* where, Args&&... args) {
        ::new (static_cast<void*>(where)) U(std::forward<Args>(args)...);
    }
};

/// A vector whose `resize` leaves new elements uninitialised; for buffers of plain numbers.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

} // namespace tw::snapshot
