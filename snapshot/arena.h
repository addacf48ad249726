#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tw::snapshot {

/// An allocator that leaves new elements uninitialised. So a buffer that is overwritten anyway can grow
/// at no cost.
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

/// A vector whose `resize` leaves new elements uninitialised; for buffers of plain numbers.
template <typename T>
using RawVector = std::vector<T, RawAllocator<T>>;

/// Memory for the snapshot histories of one thread. A history takes runs: consecutive pages of a large
/// region. The number of a run's pages is a power of two, and the run is aligned to its size, so that
/// freed runs can be reused. Regions use the system's large pages if available, so that there are
/// fewer page faults. Unused regions are returned to the system, except one.
class Arena {
  public:
    static constexpr std::size_t kPageBytes = 4096;
    /// Size of a large page on x86-64 and most ARM systems.
    static constexpr std::size_t kRegionBytes = std::size_t{2} << 20U;

    /// A run in use. Its destructor frees it. The arena must outlive the run.
    class PageRun {
      public:
        PageRun() = default;

        PageRun(PageRun&& other) noexcept { swap(other); }

        PageRun& operator=(PageRun&& other) noexcept {
            PageRun moved{std::move(other)};
            swap(moved);
            return *this;
        }

        PageRun(const PageRun&) = delete;
        PageRun& operator=(const PageRun&) = delete;

        ~PageRun() {
            if (arena_ != nullptr) {
                arena_->free_run(*this);
            }
        }

        /// The memory of the run, initially uninitialised; empty for a default-constructed run.
        [[nodiscard]] std::span<std::int32_t> ints() const { return ints_; }

        [[nodiscard]] std::size_t bytes() const { return ints_.size_bytes(); }

      private:
        friend class Arena;

        void swap(PageRun& other) noexcept {
            std::swap(arena_, other.arena_);
            std::swap(region_, other.region_);
            std::swap(ints_, other.ints_);
        }

        Arena* arena_ = nullptr;
        std::size_t region_ = 0;
        std::span<std::int32_t> ints_;
    };

    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// Returns a run of at least `bytes` bytes. Throws std::bad_alloc, also if `bytes` is more than
    /// kRegionBytes.
    [[nodiscard]] PageRun allocate(std::size_t bytes);

    /// The number of bytes taken from the system.
    [[nodiscard]] std::size_t bytes() const { return num_regions_ * kRegionBytes; }

  private:
    static constexpr std::size_t kPages = kRegionBytes / kPageBytes;

    struct Region {
        std::int32_t* memory = nullptr; ///< null: returned to the system; the entry can be reused
        std::array<std::uint64_t, kPages / 64> used{}; ///< one bit per page
        std::size_t free = 0;
        /// The last search found no free run of this many pages.
        std::size_t too_long = 0;
    };

    [[nodiscard]] std::size_t add_region();
    void return_region(Region& region);
    void free_run(const PageRun& run);

    std::vector<Region> regions_;
    std::size_t num_regions_ = 0; ///< regions with memory
    std::size_t num_empty_ = 0;   ///< regions without a run in use
    std::size_t given_ = 0;       ///< pages handed out since the last region was added
};

} // namespace tw::snapshot
