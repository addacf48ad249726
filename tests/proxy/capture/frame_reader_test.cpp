#include "proxy/capture/frame_reader.h"
#include "proxy/wire/packet.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/time.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::capture;
using boost::asio::ip::make_address;

namespace {

using Bytes = std::vector<std::byte>;

using tw::test::kSecond;

Bytes numbered_bytes(std::size_t size) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    return bytes;
}

/// The place of a fragment in its datagram. `more`: it is not the last one.
struct FragmentPosition {
    std::size_t begin;
    std::size_t size;
    bool more = true;
};

Fragment make_fragment(const Bytes& whole, const FragmentPosition& cut, std::uint32_t id = 1,
                       std::int64_t time = 0) {
    return {.time = time,
            .source = make_address("10.0.0.1"),
            .destination = make_address("10.0.0.2"),
            .id = id,
            .offset = cut.begin,
            .more = cut.more,
            .bytes = std::span{whole}.subspan(cut.begin, cut.size)};
}

bool are_equal(std::span<const std::byte> left, std::span<const std::byte> right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

} // namespace

TEST_CASE("fragments are reassembled in any order, and repeated ones change nothing") {
    const Bytes whole = numbered_bytes(1405);
    std::vector<FragmentPosition> cuts{
        {0, 400}, {400, 400}, {800, 8}, {808, 400}, {1208, 197, false}};
    std::mt19937 random{1};
    for (int round = 0; round < 200; ++round) {
        std::shuffle(cuts.begin(), cuts.end(), random);
        FragmentReassembly fragments;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            CHECK_FALSE(fragments.add_fragment(make_fragment(whole, cuts[i])));
            CHECK_FALSE(fragments.add_fragment(make_fragment(whole, cuts[i / 2])));
        }
        const auto made = fragments.add_fragment(make_fragment(whole, cuts.back()));
        REQUIRE(made);
        CHECK(are_equal(made->bytes, whole));
        CHECK(made->num_fragments == cuts.size());
    }
}

TEST_CASE("contradictory fragments invalidate their datagram") {
    struct Row {
        std::string_view name;
        std::vector<FragmentPosition> cuts;
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
    const Bytes whole = numbered_bytes(1600);
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FragmentReassembly fragments;
        for (const FragmentPosition& cut : row.cuts) {
            CHECK_FALSE(fragments.add_fragment(make_fragment(whole, cut)));
        }
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 1600, false})));
        // Another datagram is not affected.
        CHECK(fragments.add_fragment(make_fragment(whole, {0, 1600, false}, 2)));
    }
}

TEST_CASE("a fragment past the largest possible datagram is dropped") {
    const Bytes bytes = numbered_bytes(65536);
    FragmentReassembly fragments;
    Fragment last = make_fragment(bytes, {0, 16, false});
    last.offset = 65528;
    CHECK_FALSE(fragments.add_fragment(last));
    last.id = 2;
    last.bytes = std::span{bytes}.first(7);
    CHECK_FALSE(fragments.add_fragment(last));
    const auto made = fragments.add_fragment(make_fragment(bytes, {0, 65528}, 2));
    REQUIRE(made);
    CHECK(made->bytes.size() == FragmentReassembly::kMaxBytes);
}

TEST_CASE("a datagram with too many fragments is dropped") {
    const Bytes whole = numbered_bytes(8 * 100);
    FragmentReassembly fragments;
    for (std::size_t i = 0; i < 100; ++i) {
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {i * 8, 8, i != 99})));
    }
}

TEST_CASE("an incomplete datagram expires, also after the clock was set back") {
    const Bytes whole = numbered_bytes(800);
    for (const std::int64_t later : {31 * kSecond, -31 * kSecond}) {
        CAPTURE(later);
        FragmentReassembly fragments;
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400}, 1, 100 * kSecond)));
        CHECK_FALSE(fragments.add_fragment(
            make_fragment(whole, {400, 400, false}, 1, 100 * kSecond + later)));
        CHECK(fragments.add_fragment(make_fragment(whole, {0, 400}, 1, 100 * kSecond + later)));
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
    const Bytes whole = numbered_bytes(800);
    Bytes other = whole;
    std::ranges::reverse(other);
    for (const Row& row : rows) {
        CAPTURE(row.name);
        FragmentReassembly fragments;
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400})));
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400})));
        CHECK(fragments.add_fragment(make_fragment(whole, {400, 400, false})));
        CHECK(fragments.num_repeated_fragments() == 1);
        const Bytes& bytes = row.other_bytes ? other : whole;
        CHECK_FALSE(
            fragments.add_fragment(make_fragment(bytes, {400, 400, false}, row.id, row.later)));
        const auto made = fragments.add_fragment(make_fragment(bytes, {0, 400}, row.id, row.later));
        CHECK(made.has_value() != row.again);
        CHECK(fragments.num_repeated_fragments() == (row.again ? 3 : 1));
        if (made) {
            CHECK(are_equal(made->bytes, bytes));
        }
    }
}

TEST_CASE("a complete datagram makes room for incomplete ones") {
    const Bytes whole = numbered_bytes(800);
    FragmentReassembly fragments;
    CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400}, 0, 0)));
    for (std::uint32_t id = 1; id < 2 * FragmentReassembly::kMaxDatagrams; ++id) {
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400}, id, id)));
        CHECK(fragments.add_fragment(make_fragment(whole, {400, 400, false}, id, id)));
    }
    CHECK(fragments.add_fragment(make_fragment(whole, {400, 400, false}, 0, 1000)));
}

TEST_CASE(
    "in a flood of first fragments, memory is bounded and the newest datagrams are reassembled") {
    const Bytes whole = numbered_bytes(800);
    FragmentReassembly fragments;
    for (std::uint32_t id = 0; id < 1000; ++id) {
        CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {0, 400}, id, id)));
    }
    for (std::uint32_t id = 1000 - FragmentReassembly::kMaxDatagrams; id < 1000; ++id) {
        CAPTURE(id);
        CHECK(fragments.add_fragment(make_fragment(whole, {400, 400, false}, id, 1000)));
    }
    CHECK_FALSE(fragments.add_fragment(make_fragment(whole, {400, 400, false}, 1, 1000)));
}

using namespace tw;

namespace {

constexpr wire::Token kToken{0xad, 0x70, 0x60, 0x4e};
constexpr wire::Token kOther{9, 9, 9, 9};

enum class PacketForm : std::uint8_t { plain, token, seven };

/// Returns a packet with one chunk of this size.
Bytes chunk_packet(std::size_t size, PacketForm form = PacketForm::token, bool compressed = false,
                   wire::Token token = kToken, std::uint16_t ack = 5) {
    const auto dialect = form == PacketForm::seven ? wire::Dialect::seven : wire::Dialect::six;
    Bytes message(size);
    for (std::size_t i = 0; i < size; ++i) {
        message[i] = static_cast<std::byte>(i % 3);
    }
    Bytes chunks;
    wire::append_chunk(chunks, true, 7, false, message, dialect);
    return wire::encode_packet(
        {.ack = ack,
         .num_chunks = 1,
         .chunks = chunks,
         .token = form == PacketForm::token ? std::optional{token} : std::nullopt,
         .header_token = form == PacketForm::seven ? std::optional{token} : std::nullopt,
         .compression = compressed ? wire::Compression::always : wire::Compression::never,
         .dialect = dialect});
}

Bytes join_bytes(const std::vector<Bytes>& parts) {
    Bytes all;
    for (const Bytes& part : parts) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::size_t coalesced_size(const Bytes& payload) {
    wire::PacketScratch scratch;
    return capture::find_coalesced_datagram_size(payload, scratch).value_or(0);
}

} // namespace

TEST_CASE("merged datagrams are recognised by their content, and nothing else is taken for them") {
    struct Row {
        std::string_view name;
        std::vector<Bytes> parts;
        bool merged;
    };

    const Bytes one = chunk_packet(30);
    Bytes odd = one;
    odd.insert(odd.end(), {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}});
    const Row rows[] = {
        {"two of one size", {one, one}, true},
        {"the last one is shorter", {one, one, chunk_packet(20)}, true},
        {"too many bytes for one datagram", {chunk_packet(900), chunk_packet(700)}, true},
        {"without tokens",
         {chunk_packet(30, PacketForm::plain), chunk_packet(30, PacketForm::plain)},
         true},
        {"compressed",
         {chunk_packet(60, PacketForm::token, true), chunk_packet(60, PacketForm::token, true)},
         true},
        {"compressed, then not",
         {chunk_packet(99, PacketForm::token, true), chunk_packet(9)},
         true},
        {"of 0.7",
         {chunk_packet(30, PacketForm::seven), chunk_packet(30, PacketForm::seven),
          chunk_packet(9, PacketForm::seven)},
         true},
        {"of 0.7, compressed",
         {chunk_packet(60, PacketForm::seven, true), chunk_packet(60, PacketForm::seven, true)},
         true},
        {"the acknowledgement goes on",
         {one, chunk_packet(30, PacketForm::token, false, kToken, 8)},
         true},
        {"the acknowledgement goes far, in small steps",
         {one, chunk_packet(30, PacketForm::token, false, kToken, 30),
          chunk_packet(30, PacketForm::token, false, kToken, 60)},
         true},
        {"one alone", {one}, false},
        {"one alone, compressed", {chunk_packet(60, PacketForm::token, true)}, false},
        {"the last one is longer", {one, chunk_packet(31)}, false},
        {"one in the middle is shorter", {one, chunk_packet(20), one}, false},
        {"another token", {one, chunk_packet(30, PacketForm::token, false, kOther)}, false},
        {"an acknowledgement far off",
         {one, chunk_packet(30, PacketForm::token, false, kToken, 500)},
         false},
        {"the third acknowledgement far off",
         {one, one, chunk_packet(30, PacketForm::token, false, kToken, 500)},
         false},
        {"the second is cut", {one, Bytes{one.begin(), one.end() - 1}}, false},
        {"bytes behind the second", {one, odd}, false},
        {"a token more", {one, Bytes{one.end() - 4, one.end()}}, false},
        {"more than a frame holds",
         std::vector<Bytes>(capture::kMaxCoalescedDatagrams + 1, chunk_packet(1)), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(coalesced_size(join_bytes(row.parts)) == (row.merged ? row.parts.front().size() : 0));
    }
}

TEST_CASE("no single datagram of a capture is split, and two merged ones are split correctly") {
    for (const std::string_view name :
         {"seven-map-change", "token-map-change", "token-high-bandwidth", "tokenless-map-change"}) {
        CAPTURE(name);
        std::map<std::pair<std::uint64_t, wire::Direction>, Bytes> before;
        std::size_t pairs = 0;
        std::size_t found = 0;
        for (const test::TrafficDatagram& datagram :
             test::read_traffic("../golden/" + std::string{name} + ".pcap")) {
            CHECK(coalesced_size(datagram.bytes) == 0);
            Bytes& last = before[{datagram.session, datagram.direction}];
            if (!last.empty() && last.size() >= datagram.bytes.size()) {
                const std::size_t size = coalesced_size(join_bytes({last, datagram.bytes}));
                CHECK((size == 0 || size == last.size()));
                ++pairs;
                found += size != 0 ? 1 : 0;
            }
            last = datagram.bytes;
        }
        CHECK(found * 100 >= pairs * 90); // control packets show no boundary
    }
}
