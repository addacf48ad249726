#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace tw::snapshot {

/// A block of ints that grows by realloc, which for large blocks moves pages instead of copying
/// what stands on them. New ints are uninitialised.
class IntBlock {
  public:
    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] std::int32_t* data() { return ints_.get(); }

    [[nodiscard]] std::span<std::int32_t> ints() { return {ints_.get(), size_}; }

    [[nodiscard]] std::span<const std::int32_t> ints() const { return {ints_.get(), size_}; }

    /// Keeps the ints that were there. Throws std::bad_alloc.
    void grow(std::size_t size) {
        void* const grown = std::realloc(ints_.get(), size * sizeof(std::int32_t));
        if (grown == nullptr) {
            throw std::bad_alloc{};
        }
        static_cast<void>(ints_.release()); // realloc took it
        ints_.reset(static_cast<std::int32_t*>(grown));
        size_ = size;
    }

  private:
    struct Free {
        void operator()(std::int32_t* ints) const { std::free(ints); }
    };

    // NOLINTNEXTLINE(modernize-avoid-c-arrays): owned as one block
    std::unique_ptr<std::int32_t[], Free> ints_;
    std::size_t size_ = 0;
};

} // namespace tw::snapshot
