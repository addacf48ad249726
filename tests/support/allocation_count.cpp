#include "tests/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

// GCC reports sanitizers by macros, Clang by features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TW_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TW_SANITIZED
#endif
#endif

// These operators have their own file: if inlined, GCC would warn of mismatched new and free.

namespace {

std::atomic<std::uint64_t> count{0};
std::atomic<std::uint64_t> live{0};
std::atomic<std::uint64_t> peak{0};
std::atomic<std::int64_t> until_failure{-1};

} // namespace

std::uint64_t tw::test::allocation_count() noexcept {
    return count.load();
}

std::uint64_t tw::test::live_bytes() noexcept {
    return live.load();
}

std::uint64_t tw::test::peak_bytes() noexcept {
    return peak.load();
}

void tw::test::reset_peak_bytes() noexcept {
    peak.store(live.load());
}

void tw::test::fail_allocation_after(std::int64_t more) noexcept {
    until_failure.store(more);
}

bool tw::test::counts_allocations() noexcept {
#ifdef TW_SANITIZED
    return false;
#else
    return true;
#endif
}

// Sanitizers replace the allocator, so with them the count stays 0.
#ifndef TW_SANITIZED

namespace {

void* allocate(std::size_t size) {
    count.fetch_add(1, std::memory_order_relaxed);
    if (until_failure.load(std::memory_order_relaxed) >= 0 && until_failure.fetch_sub(1) == 0) {
        throw std::bad_alloc{};
    }
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    const std::uint64_t bytes = ::malloc_usable_size(memory);
    const std::uint64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t most = peak.load(std::memory_order_relaxed);
    while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
    return memory;
}

void release(void* memory) {
    if (memory != nullptr) {
        live.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
        std::free(memory);
    }
}

} // namespace

void* operator new(std::size_t size) {
    return allocate(size);
}

void* operator new[](std::size_t size) {
    return allocate(size);
}

void operator delete(void* memory) noexcept {
    release(memory);
}

void operator delete[](void* memory) noexcept {
    release(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
    release(memory);
}

void operator delete[](void* memory, std::size_t /*size*/) noexcept {
    release(memory);
}

#endif
