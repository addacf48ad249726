#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// An allocator that leaves new elements uninitialised, which saves time if they are overwritten
/// anyway.
template <typename T>
struct RawAllocator : std::allocator<T> {
    // NOLINTBEGIN(readability-identifier-naming): containers require these names
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

/// A vector of numbers whose `resize` leaves new elements uninitialised.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

/// Allocates memory for the snapshot histories of one thread. A history allocates consecutive pages
/// of a large region. The number of pages is a power of two, and the pages are aligned to their
/// total size, so freed pages can be reused. Regions use the system's large pages if available, to
/// avoid page faults. All unused regions except one are returned to the system.
class Arena {
  public:
    static constexpr std::size_t kPageBytes = 4096;
    /// The size of a region, which is a large page on x86-64 and most ARM systems.
    static constexpr std::size_t kRegionBytes = std::size_t{2} << 20U;

    /// Consecutive pages of an arena, which must outlive this object. The destructor frees the
    /// pages.
    class AllocatedPages {
      public:
        /// Returns the memory of the pages, initially uninitialised; empty if there are no pages.
        [[nodiscard]] std::span<std::int32_t> ints() const {
            return {memory_.get(), memory_ ? memory_.get_deleter().size : 0};
        }

        [[nodiscard]] std::size_t bytes() const { return ints().size_bytes(); }

      private:
        friend class Arena;

        struct PageDeleter {
            Arena* arena;
            std::size_t region;
            std::size_t size; ///< number of ints

            void operator()(std::int32_t* memory) const {
                arena->free_pages(region, {memory, size});
            }
        };

        // NOLINTNEXTLINE(modernize-avoid-c-arrays): pages of an arena
        std::unique_ptr<std::int32_t[], PageDeleter> memory_;
    };

    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// Returns pages with at least `bytes` bytes. Throws std::bad_alloc if the system has no memory
    /// or if `bytes` is more than kRegionBytes.
    [[nodiscard]] AllocatedPages allocate(std::size_t bytes);

    /// Returns the total size of all regions that have memory.
    [[nodiscard]] std::size_t bytes() const { return num_regions_ * kRegionBytes; }

  private:
    static constexpr std::size_t kPagesPerRegion = kRegionBytes / kPageBytes;

    struct Region {
        std::int32_t* memory = nullptr; ///< null after the memory was returned to the system
        std::array<std::uint64_t, kPagesPerRegion / 64> used{}; ///< one bit per page
        std::size_t num_free = 0;                               ///< number of free pages
        /// A search for this many consecutive free pages failed. Searches for as many or more pages
        /// skip the region.
        std::size_t failed_search = 0;
    };

    [[nodiscard]] std::size_t add_region();
    void return_region(Region& region);
    void free_pages(std::size_t region_index, std::span<const std::int32_t> memory);

    std::vector<Region> regions_;
    std::size_t num_regions_ = 0;     ///< number of regions with memory
    std::size_t num_empty_ = 0;       ///< number of regions whose pages are all free
    std::size_t num_pages_freed_ = 0; ///< number of pages freed since the newest region was added
};

} // namespace tw::snapshot
