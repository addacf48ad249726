// Covers: proxy/capture/frame_reader.cpp
#include "proxy/capture/frame_reader.h"

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::capture;
using boost::asio::ip::make_address;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t kSecond = 1'000'000'000;

Bytes numbered(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    return bytes;
}

/// Returns the fragment of a datagram at this offset.
struct Cut {
    std::size_t begin;
    std::size_t size;
    bool more = true;
};

Fragment piece(const Bytes& whole, const Cut& cut, std::uint32_t id = 1, std::int64_t time = 0) {
    return {.time = time,
            .source = make_address("10.0.0.1"),
            .destination = make_address("10.0.0.2"),
            .id = id,
            .offset = cut.begin,
            .more = cut.more,
            .bytes = std::span{whole}.subspan(cut.begin, cut.size)};
}

bool equal(std::span<const std::byte> left, std::span<const std::byte> right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

} // namespace

TEST_CASE("fragments are reassembled in any order, and repeated ones change nothing") {
    const Bytes whole = numbered(1405);
    std::vector<Cut> cuts{{0, 400}, {400, 400}, {800, 8}, {808, 400}, {1208, 197, false}};
    std::mt19937 random{1};
    for (int round = 0; round < 200; ++round) {
        std::shuffle(cuts.begin(), cuts.end(), random);
        FragmentReassembly fragments;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            CHECK_FALSE(fragments.add_fragment(piece(whole, cuts[i])));
            CHECK_FALSE(fragments.add_fragment(piece(whole, cuts[i / 2])));
        }
        const auto made = fragments.add_fragment(piece(whole, cuts.back()));
        REQUIRE(made);
        CHECK(equal(made->bytes, whole));
        CHECK(made->pieces == cuts.size());
    }
}

TEST_CASE("contradictory fragments invalidate their datagram") {
    struct Row {
        std::string_view name;
        std::vector<Cut> cuts;
    };

    const Row rows[] = {
        {"overlapping by a byte", {{0, 400}, {392, 408}, {800, 100, false}}},
        {"one inside the other", {{0, 800}, {80, 80}, {800, 100, false}}},
        {"an odd size before the end", {{0, 401}, {401, 99, false}}},
        {"behind the end", {{400, 104, false}, {800, 8}, {0, 400}}},
        {"two ends", {{400, 400, false}, {800, 8, false}, {0, 400}}},
        {"an end before what is there", {{800, 400}, {0, 400, false}, {400, 400}}},
        {"an empty one", {{0, 0}, {0, 400, false}}},
    };
    const Bytes whole = numbered(1600);
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FragmentReassembly fragments;
        for (const Cut& cut : row.cuts) {
            CHECK_FALSE(fragments.add_fragment(piece(whole, cut)));
        }
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 1600, false})));
        // Another datagram is not affected.
        CHECK(fragments.add_fragment(piece(whole, {0, 1600, false}, 2)));
    }
}

TEST_CASE("a fragment past the largest possible datagram is dropped") {
    const Bytes bytes = numbered(65536);
    FragmentReassembly fragments;
    Fragment last = piece(bytes, {0, 16, false});
    last.offset = 65528;
    CHECK_FALSE(fragments.add_fragment(last));
    last.id = 2;
    last.bytes = std::span{bytes}.first(7);
    CHECK_FALSE(fragments.add_fragment(last));
    const auto made = fragments.add_fragment(piece(bytes, {0, 65528}, 2));
    REQUIRE(made);
    CHECK(made->bytes.size() == FragmentReassembly::kMaxBytes);
}

TEST_CASE("a datagram with too many fragments is dropped") {
    const Bytes whole = numbered(8 * 100);
    FragmentReassembly fragments;
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK_FALSE(fragments.add_fragment(piece(whole, {i * 8, 8, i != 99})));
    }
}

TEST_CASE("an incomplete datagram expires, also after the clock was set back") {
    const Bytes whole = numbered(800);
    for (const std::int64_t later : {31 * kSecond, -31 * kSecond}) {
        CAPTURE(later);
        FragmentReassembly fragments;
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400}, 1, 100 * kSecond)));
        CHECK_FALSE(
            fragments.add_fragment(piece(whole, {400, 400, false}, 1, 100 * kSecond + later)));
        CHECK(fragments.add_fragment(piece(whole, {0, 400}, 1, 100 * kSecond + later)));
    }
}

TEST_CASE("repeated fragments of a complete datagram are recognised") {
    struct Row {
        std::string_view name;
        std::int64_t later; ///< time after the complete datagram
        std::uint32_t id;
        bool other_bytes;
        bool again;
    };

    const Row rows[] = {
        {"at once", 0, 1, false, true},
        {"in time", 30 * kSecond, 1, false, true},
        {"too late", 31 * kSecond, 1, false, false},
        {"of another datagram", 0, 2, false, false},
        {"of another datagram with that id", 0, 1, true, false},
    };
    const Bytes whole = numbered(800);
    Bytes other = whole;
    std::ranges::reverse(other);
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FragmentReassembly fragments;
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400})));
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400})));
        CHECK(fragments.add_fragment(piece(whole, {400, 400, false})));
        CHECK(fragments.repeat_count() == 1);
        const Bytes& bytes = row.other_bytes ? other : whole;
        CHECK_FALSE(fragments.add_fragment(piece(bytes, {400, 400, false}, row.id, row.later)));
        const auto made = fragments.add_fragment(piece(bytes, {0, 400}, row.id, row.later));
        CHECK(made.has_value() != row.again);
        CHECK(fragments.repeat_count() == (row.again ? 3 : 1));
        if (made) {
            CHECK(equal(made->bytes, bytes));
        }
    }
}

TEST_CASE("a complete datagram makes room for incomplete ones") {
    const Bytes whole = numbered(800);
    FragmentReassembly fragments;
    CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400}, 0, 0)));
    for (std::uint32_t id = 1; id < 2 * FragmentReassembly::kMaxDatagrams; ++id) {
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400}, id, id)));
        CHECK(fragments.add_fragment(piece(whole, {400, 400, false}, id, id)));
    }
    CHECK(fragments.add_fragment(piece(whole, {400, 400, false}, 0, 1000)));
}

TEST_CASE(
    "in a flood of first fragments, memory is bounded and the newest datagrams are reassembled") {
    const Bytes whole = numbered(800);
    FragmentReassembly fragments;
    for (std::uint32_t id = 0; id < 1000; ++id) {
        CHECK_FALSE(fragments.add_fragment(piece(whole, {0, 400}, id, id)));
    }
    for (std::uint32_t id = 1000 - FragmentReassembly::kMaxDatagrams; id < 1000; ++id) {
        CAPTURE(id);
        CHECK(fragments.add_fragment(piece(whole, {400, 400, false}, id, 1000)));
    }
    CHECK_FALSE(fragments.add_fragment(piece(whole, {400, 400, false}, 1, 1000)));
}
