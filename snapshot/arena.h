#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

/// Memory for the histories of one thread: runs of pages, cut out of large regions. A run has a
/// power of two of pages and begins at a multiple of it, so that what one history gives back fits
/// the next one. The system has to hand out far fewer pages, because regions are backed by large
/// ones where it has them. A region of which nothing is in use goes back to the system, but for one.
class Arena {
  public:
    static constexpr std::size_t kPageBytes = 4096;
    /// A large page of x86-64, and of most ARM systems.
    static constexpr std::size_t kRegionBytes = std::size_t{2} << 20U;

    /// A run that is in use. The arena outlives it.
    class Run {
      public:
        Run() = default;

        Run(Run&& other) noexcept { swap(other); }

        Run& operator=(Run&& other) noexcept {
            Run moved{std::move(other)};
            swap(moved);
            return *this;
        }

        Run(const Run&) = delete;
        Run& operator=(const Run&) = delete;

        ~Run() {
            if (arena_ != nullptr) {
                arena_->give(*this);
            }
        }

        /// Uninitialised at first; empty when nothing was taken.
        [[nodiscard]] std::span<std::int32_t> ints() const { return ints_; }

        [[nodiscard]] std::size_t bytes() const { return ints_.size_bytes(); }

      private:
        friend class Arena;

        void swap(Run& other) noexcept {
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
    Arena(Arena&&) = delete;
    Arena& operator=(Arena&&) = delete;
    ~Arena();

    /// At least so many bytes, and at least a page. Throws std::bad_alloc, also for more than a region.
    [[nodiscard]] Run take(std::size_t bytes);

    /// What it has from the system.
    [[nodiscard]] std::size_t bytes() const { return num_regions_ * kRegionBytes; }

  private:
    static constexpr std::size_t kPages = kRegionBytes / kPageBytes;

    struct Region {
        std::int32_t* memory = nullptr;                ///< null: gone, its place may be another's
        std::array<std::uint64_t, kPages / 64> used{}; ///< a bit for each page
        std::size_t free = 0;
        std::size_t too_long = 0; ///< no run of so many pages is free, as was found last
    };

    [[nodiscard]] std::size_t add_region();
    void drop(Region& region);
    void give(const Run& run);

    std::vector<Region> regions_;
    std::size_t num_regions_ = 0; ///< that are there
    std::size_t num_empty_ = 0;   ///< of them, of which nothing is in use
    std::size_t given_ = 0;       ///< pages, since a region was added
};

} // namespace tw::snapshot
