#include "snapshot/arena.h"

#include <algorithm>
#include <bit>
#include <new>
#include <optional>
#include <tuple>

#include <sys/mman.h>

namespace tw::snapshot {

namespace {

constexpr std::size_t kBits = 64;
constexpr std::size_t kPageInts = Arena::kPageBytes / sizeof(std::int32_t);

/// The words of a region's bit set that contain the bits of some consecutive pages.
struct PageBits {
    std::size_t first_word;
    std::size_t num_words;
    std::uint64_t mask; ///< the bits of these pages in a word; the same for each of the words

    PageBits(std::size_t first, std::size_t count)
        : first_word{first / kBits}, num_words{std::max<std::size_t>(count / kBits, 1)},
          mask{count >= kBits ? ~std::uint64_t{0}
                              : ((std::uint64_t{1} << count) - 1) << first % kBits} {}
};

std::optional<std::size_t> find_free_pages(std::span<const std::uint64_t> used, std::size_t count) {
    for (std::size_t first = 0; first < used.size() * kBits; first += count) {
        const PageBits bits{first, count};
        const auto words = used.subspan(bits.first_word, bits.num_words);
        if (std::ranges::all_of(words, [&](auto word) { return (word & bits.mask) == 0; })) {
            return first;
        }
    }
    return std::nullopt;
}

/// Inverts the used-bits of `count` pages from page `first` on.
void flip_used_bits(std::span<std::uint64_t> used, std::size_t first, std::size_t count) {
    const PageBits bits{first, count};
    for (std::uint64_t& word : used.subspan(bits.first_word, bits.num_words)) {
        word ^= bits.mask;
    }
}

/// Maps memory for a region. The memory is aligned to its size, because otherwise the system cannot
/// use a large page.
std::int32_t* map_region(bool large) {
    constexpr std::size_t kBytes = Arena::kRegionBytes;
    constexpr std::size_t kRoom = 2 * kBytes - Arena::kPageBytes;
    void* const room =
        ::mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    auto* const begin = static_cast<std::byte*>(room);
    const std::size_t before = (0 - reinterpret_cast<std::uintptr_t>(begin)) % kBytes;
    std::byte* const region = begin + before;
    // Unmapping zero bytes does nothing. A branch that avoids the call would depend on where the
    // system puts memory, so profile-guided builds would not be reproducible.
    std::ignore = ::munmap(begin, before);
    std::ignore = ::munmap(region + kBytes, kRoom - before - kBytes);
    // This is only a hint. If no large page is available, the system uses small ones.
    std::ignore = ::madvise(region, kBytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return reinterpret_cast<std::int32_t*>(region);
}

} // namespace

Arena::~Arena() {
    for (Region& region : regions_) {
        if (region.memory != nullptr) {
            return_region(region);
        }
    }
}

// Adds a region. The first region has small pages, which take no memory until they are written,
// because one or two sessions do not need megabytes. A region that is added after many pages were
// freed has small pages, too, because it is probably needed only briefly. Other regions have large
// pages.
std::size_t Arena::add_region() {
    const auto gone = std::ranges::find(regions_, nullptr, &Region::memory);
    Region& region = gone == regions_.end() ? regions_.emplace_back() : *gone;
    region.memory = map_region(num_regions_ != 0 && num_pages_freed_ < kPagesPerRegion);
    region.num_free = kPagesPerRegion;
    region.failed_search = kPagesPerRegion + 1;
    num_pages_freed_ = 0;
    ++num_regions_;
    ++num_empty_;
    return static_cast<std::size_t>(&region - regions_.data());
}

void Arena::return_region(Region& region) {
    std::ignore = ::munmap(region.memory, kRegionBytes);
    region.memory = nullptr;
    region.num_free = 0;
    --num_regions_;
}

// Uses the first region with enough free pages. This keeps later regions empty, so that they can be
// returned to the system.
Arena::AllocatedPages Arena::allocate(std::size_t bytes) {
    const std::size_t pages = std::bit_ceil(bytes / kPageBytes + (bytes % kPageBytes != 0 ? 1 : 0));
    if (pages > kPagesPerRegion) {
        throw std::bad_alloc{};
    }
    std::optional<std::size_t> begin;
    std::size_t at = 0;
    for (; at < regions_.size() && !begin; ++at) {
        Region& region = regions_[at];
        if (region.num_free < pages || region.failed_search <= pages) {
            continue;
        }
        begin = find_free_pages(region.used, pages);
        if (!begin) {
            region.failed_search = pages;
        }
    }
    const std::size_t index = begin ? at - 1 : add_region();
    Region& region = regions_[index];
    const std::size_t first = begin.value_or(0);
    num_empty_ -= region.num_free == kPagesPerRegion ? 1 : 0;
    flip_used_bits(region.used, first, pages);
    region.num_free -= pages;
    AllocatedPages run;
    run.memory_ = {region.memory + first * kPageInts, {this, index, pages * kPageInts}};
    return run;
}

void Arena::free_pages(std::size_t region_index, std::span<const std::int32_t> memory) {
    Region& region = regions_[region_index];
    const auto first = static_cast<std::size_t>(memory.data() - region.memory) / kPageInts;
    const std::size_t pages = memory.size() / kPageInts;
    flip_used_bits(region.used, first, pages);
    num_pages_freed_ += pages;
    region.num_free += pages;
    region.failed_search = kPagesPerRegion + 1;
    if (region.num_free == kPagesPerRegion && ++num_empty_ > 1) {
        --num_empty_;
        return_region(region);
    }
}

} // namespace tw::snapshot
