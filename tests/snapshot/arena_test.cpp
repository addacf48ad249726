#include "snapshot/arena.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::snapshot;

namespace {

void fill_pages(const Arena::AllocatedPages& run, int value) {
    std::memset(run.ints().data(), value, run.bytes());
}

bool are_pages_filled(const Arena::AllocatedPages& run, int value) {
    const auto bytes = std::as_bytes(run.ints());
    return std::ranges::all_of(bytes,
                               [&](std::byte byte) { return std::to_integer<int>(byte) == value; });
}

} // namespace

TEST_CASE("an arena never allocates pages that are in use") {
    struct Kept {
        Arena::AllocatedPages run;
        int value = 0;
    };

    std::mt19937 random{3};
    Arena arena;
    std::vector<Kept> kept;
    for (int step = 0; step < 3000; ++step) {
        if (kept.empty() || random() % 5 < 3) {
            const std::size_t bytes = random() % (random() % 8 == 0 ? 600'000 : 30'000);
            Kept& each = kept.emplace_back(Kept{arena.allocate(bytes), step % 251});
            REQUIRE(each.run.bytes() >= bytes);
            REQUIRE(each.run.bytes() % Arena::kPageBytes == 0);
            REQUIRE(std::has_single_bit(each.run.bytes()));
            REQUIRE(reinterpret_cast<std::uintptr_t>(each.run.ints().data()) % each.run.bytes() ==
                    0);
            fill_pages(each.run, each.value);
        } else {
            Kept& gone = kept[random() % kept.size()];
            REQUIRE(are_pages_filled(gone.run, gone.value));
            gone = std::move(kept.back());
            kept.pop_back();
        }
    }
    for (const Kept& each : kept) {
        REQUIRE(are_pages_filled(each.run, each.value));
    }
}

TEST_CASE("an arena returns all unused regions but one to the system") {
    Arena arena;
    CHECK(arena.bytes() == 0);
    std::vector<Arena::AllocatedPages> runs;
    for (int i = 0; i < 5; ++i) {
        runs.push_back(arena.allocate(Arena::kRegionBytes));
        fill_pages(runs.back(), i);
    }
    CHECK(arena.bytes() == 5 * Arena::kRegionBytes);
    CHECK(are_pages_filled(runs[2], 2));
    runs.erase(runs.begin() + 1, runs.begin() + 3);
    CHECK(arena.bytes() == 4 * Arena::kRegionBytes);
    CHECK(are_pages_filled(runs[1], 3));
    runs.clear();
    CHECK(arena.bytes() == Arena::kRegionBytes);
    runs.push_back(arena.allocate(1));
    CHECK(arena.bytes() == Arena::kRegionBytes);
}

TEST_CASE("an arena fills its first regions before later ones") {
    Arena arena;
    constexpr std::size_t kHalf = Arena::kRegionBytes / 2;
    constexpr int kRuns = 16;
    std::vector<Arena::AllocatedPages> runs;
    runs.reserve(kRuns);
    for (int i = 0; i < kRuns; ++i) {
        runs.push_back(arena.allocate(kHalf));
    }
    CHECK(arena.bytes() == 8 * Arena::kRegionBytes);
    // Frees every other run, then replaces each remaining run by a new one, as histories do.
    for (std::size_t i = 0; i < 8; ++i) {
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (auto& run : runs) {
        Arena::AllocatedPages next = arena.allocate(kHalf);
        run = std::move(next);
    }
    CHECK(arena.bytes() <= 6 * Arena::kRegionBytes);
}

TEST_CASE("an arena refuses to allocate more than a region") {
    Arena arena;
    for (const std::size_t bytes : {Arena::kRegionBytes + 1, ~std::size_t{0}}) {
        CHECK_THROWS_AS(static_cast<void>(arena.allocate(bytes)), std::bad_alloc);
    }
    CHECK(arena.bytes() == 0);
    const Arena::AllocatedPages none;
    CHECK(none.ints().empty());
}
