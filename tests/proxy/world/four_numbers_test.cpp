// Numbers compared four and sixteen at a time, beside one at a time.
#include "proxy/world/view.h"

#include <array>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

template <typename Differs>
std::uint32_t bits(std::size_t count, const Differs& differs) {
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
        found |= (differs(i) ? 1U : 0U) << i;
    }
    return found;
}

} // namespace

TEST_CASE("each of the numbers compared at once has its bit") {
    std::mt19937 random{22}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    for (int round = 0; round < 1000; ++round) {
        std::array<std::int32_t, 16> left{};
        std::array<std::int32_t, 16> right{};
        for (std::size_t i = 0; i < left.size(); ++i) {
            left[i] = static_cast<std::int32_t>(random());
            right[i] = random() % 3 == 0 ? left[i] ^ (1 << random() % 31) : left[i];
        }
        const auto same = [&](std::size_t i) { return left[i] == right[i]; };
        CHECK(world::same_of_four(left.data(), right.data()) == bits(4, same));
        CHECK(world::same_of_sixteen(left.data(), right.data()) == bits(16, same));
    }
}

TEST_CASE("numbers that are as far apart as asked have their bits, below zero, too") {
    const std::array<std::uint32_t, 4> left{5, 0, 7, 0xFFFFFFFF};
    const std::array<std::uint32_t, 4> right{2, 3, 4, 2};
    CHECK(world::apart_of_four(left.data(), right.data(), 3) == 0b0101);
    CHECK(world::apart_of_four(left.data(), right.data(), 0U - 3) == 0b1010);
}

TEST_CASE("ints that differ have their bits, up to the 32nd") {
    for (std::size_t size = 0; size < 40; ++size) {
        CAPTURE(size);
        const std::vector<std::int32_t> left(size, 4);
        CHECK(world::differing_ints(left, left) == 0);
        for (std::size_t at = 0; at < size; ++at) {
            std::vector<std::int32_t> right = left;
            right[at] = -4;
            const std::uint32_t bit = at < 32 ? std::uint32_t{1} << at : 0;
            CHECK(world::differing_ints(left, right) == bit);
        }
    }
}

} // namespace tw::test
