// Covers: proxy/sink/flight_recorder.cpp
#include "proxy/sink/flight_recorder.h"

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using tw::sink::FlightRing;

namespace {

struct Kept {
    std::uint32_t session;
    std::int64_t time;
    std::vector<std::byte> bytes;

    friend bool operator==(const Kept&, const Kept&) = default;
};

std::deque<Kept> content(const FlightRing& ring) {
    std::deque<Kept> all;
    for (auto block = ring.at(ring.begin()); block; block = ring.at(block->next)) {
        all.push_back({block->session, block->time, {block->bytes.begin(), block->bytes.end()}});
    }
    return all;
}

} // namespace

TEST_CASE("a flight ring holds the latest blocks, whole and in order, whatever their sizes") {
    std::mt19937 random{7}; // NOLINT(cert-msc51-cpp): the same each time
    for (const std::size_t capacity : {16U, 64U, 4096U, 10'000U}) {
        CAPTURE(capacity);
        FlightRing ring{capacity};
        std::deque<Kept> pushed;
        std::uint64_t refused = 0;
        for (std::int64_t time = 1; time <= 3000; ++time) {
            const std::size_t size =
                random() % (random() % 7 == 0 ? capacity + 20 : capacity / 3 + 2);
            Kept kept{static_cast<std::uint32_t>(random() % 9), time,
                      std::vector<std::byte>(size, static_cast<std::byte>(time))};
            if (ring.push(kept.session, kept.time, kept.bytes)) {
                pushed.push_back(std::move(kept));
            } else {
                ++refused;
                CHECK(size + 16 > capacity / 16 * 16 - 15);
            }
            const auto held = content(ring);
            REQUIRE(held.size() == ring.size());
            REQUIRE(held.size() + ring.dropped() == pushed.size());
            REQUIRE(std::equal(held.rbegin(), held.rend(), pushed.rbegin()));
        }
        CHECK(refused > 0);
        ring.forget_before(2990);
        for (const Kept& kept : content(ring)) {
            CHECK(kept.time >= 2990);
        }
        ring.forget_before(5000);
        CHECK(ring.size() == 0);
        CHECK_FALSE(ring.at(0));
    }
}
