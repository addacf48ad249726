#include "tests/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

// A file of its own: were these inlined where they are used, GCC would take them for mismatched
// pairs of new and free.

namespace {

std::atomic<std::uint64_t> count{0};

void* allocate(std::size_t size) {
    count.fetch_add(1, std::memory_order_relaxed);
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    return memory;
}

} // namespace

std::uint64_t tw::test::allocation_count() noexcept {
    return count.load();
}

// Sanitizers bring an allocator of their own; under them the count stays 0 and other builds judge.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t size) {
    return allocate(size);
}

void* operator new[](std::size_t size) {
    return allocate(size);
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}

void operator delete[](void* memory) noexcept {
    std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
    std::free(memory);
}

void operator delete[](void* memory, std::size_t /*size*/) noexcept {
    std::free(memory);
}

#endif
