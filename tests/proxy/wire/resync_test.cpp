#include "proxy/wire/packet.h"
#include "proxy/wire/resync.h"
#include "snapshot/cursor.h"

#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::wire;

using Bytes = std::vector<std::byte>;
using Ints = std::vector<std::int32_t>;

constexpr Token kResyncToken{0xad, 0x70, 0x60, 0x4e};
constexpr std::int32_t kInput = 16;
constexpr std::int32_t kSnap = 5;
constexpr std::int32_t kSnapEmpty = 6;
constexpr std::int32_t kSnapSingle = 7;

/// Returns a system message of ints.
Bytes int_message(std::int32_t id, const Ints& ints) {
    Bytes bytes;
    tw::snapshot::encode_varint(id << 1 | 1, bytes);
    for (const std::int32_t value : ints) {
        tw::snapshot::encode_varint(value, bytes);
    }
    return bytes;
}

Bytes input_message(std::int32_t acked, std::int32_t intended, std::int32_t size = 40) {
    Ints ints{acked, intended, size};
    for (std::int32_t i = 0; i < size / 4; ++i) {
        ints.push_back(-100'000 * i);
    }
    return int_message(kInput, ints);
}

struct SentMessage {
    Bytes payload;
    bool vital = false;
};

Bytes pack_messages(const std::vector<SentMessage>& pieces, PacketSpec spec = {}) {
    Bytes chunks;
    std::uint16_t sequence = 1000;
    for (const SentMessage& each : pieces) {
        append_chunk(chunks, each.vital, each.vital ? ++sequence : std::uint16_t{0}, false,
                     each.payload, Dialect::six);
    }
    spec.num_chunks = static_cast<std::uint8_t>(pieces.size());
    spec.chunks = chunks;
    return encode_packet(spec);
}

Bytes rewrite_for_resync(const Bytes& datagram, std::int32_t known = kNoSnapshot) {
    std::array<std::byte, kMaxDatagramSize> out{};
    const std::size_t size = rewrite_acknowledgement(datagram, known, out);
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

TEST_CASE("only the acknowledgement of the last input is rewritten") {
    const Bytes say = int_message(22, {1, 2, 3});
    for (const std::int32_t tick : {1, 63, 64, 8191, 8192, 4711, 1 << 20, 2'147'483'000}) {
        CAPTURE(tick);
        const std::vector<std::pair<std::vector<SentMessage>, std::vector<SentMessage>>> rows{
            {{{input_message(tick, tick + 5)}}, {{input_message(-1, tick + 5)}}},
            {{{input_message(tick, tick - 1)}}, {{input_message(-1, tick - 1)}}},
            {{{say, true}, {input_message(tick, tick)}, {say}},
             {{say, true}, {input_message(-1, tick)}, {say}}},
            {{{input_message(tick, tick + 5)}, {input_message(tick, tick + 6)}, {say, true}},
             {{input_message(tick, tick + 5)}, {input_message(-1, tick + 6)}, {say, true}}},
            {{{input_message(tick, tick + 5, 512)}}, {{input_message(-1, tick + 5, 512)}}}};
        for (const auto& [from, to] : rows) {
            for (const auto compression :
                 {Compression::never, Compression::if_shorter, Compression::always}) {
                PacketSpec spec{.ack = 1023, .resend = true, .compression = compression};
                PacketSpec plain{.ack = 1023, .resend = true};
                CHECK((rewrite_for_resync(pack_messages(from, spec)) == pack_messages(to, plain)));
                spec.token = plain.token = kResyncToken;
                CHECK((rewrite_for_resync(pack_messages(from, spec)) == pack_messages(to, plain)));
                spec.header_token = plain.header_token = kResyncToken;
                CHECK((rewrite_for_resync(pack_messages(from, spec)) == pack_messages(to, plain)));
            }
        }
    }
}

TEST_CASE("an input is rewritten only if it acknowledges an earlier snapshot") {
    const Bytes say = int_message(22, {1, 2, 3});
    constexpr std::int32_t kKnown = 8200;
    for (const std::int32_t tick : {1, 63, 64, 8191, 8199}) {
        CAPTURE(tick);
        CHECK((rewrite_for_resync(
                   pack_messages({{say, true}, {input_message(tick, tick + 5)}, {say}}), kKnown) ==
               pack_messages({{say, true}, {input_message(kKnown, tick + 5)}, {say}})));
    }
    for (const std::int32_t tick : {kKnown, kKnown + 1, 2'147'483'000}) {
        CAPTURE(tick);
        CHECK(rewrite_for_resync(pack_messages({{input_message(tick, tick + 5)}}), kKnown).empty());
    }
    // Only the last of two inputs counts. A client without a snapshot gets a full one anyway.
    CHECK(rewrite_for_resync(
              pack_messages({{input_message(8190, 8205)}, {input_message(kKnown, 8206)}}), kKnown)
              .empty());
    CHECK(rewrite_for_resync(pack_messages({{input_message(-1, 8205)}}), kKnown).empty());
}

TEST_CASE("packets are rewritten only if valid and if their last input acknowledges a snapshot") {
    Bytes trailing = input_message(100, 105);
    trailing.push_back(std::byte{0});
    Bytes cut = input_message(100, 105);
    cut.pop_back();
    Bytes noise = pack_messages({{input_message(100, 105)}});
    noise.push_back(std::byte{1});

    struct Row {
        std::string_view name;
        Bytes datagram;
    };

    const Row rows[] = {
        {"nothing", {}},
        {"no chunks", pack_messages({})},
        {"another message", pack_messages({{int_message(22, {100, 105, 40})}})},
        {"no snapshot is acknowledged", pack_messages({{input_message(-1, 105)}})},
        {"as at the start", pack_messages({{input_message(0, 105)}})},
        {"a vital input", pack_messages({{input_message(100, 105), true}})},
        {"for a tick far behind", pack_messages({{input_message(700, 100)}})},
        {"for none",
         pack_messages({{input_message(100, std::numeric_limits<std::int32_t>::min())}})},
        {"for a tick far ahead", pack_messages({{input_message(100, 700)}})},
        {"too few ints", pack_messages({{input_message(100, 105, 36)}})},
        {"too many ints", pack_messages({{input_message(100, 105, 516)}})},
        {"no size", pack_messages({{int_message(kInput, {100, 105})}})},
        {"a chunk of nothing", pack_messages({{Bytes{}}})},
        {"a message nobody knows", pack_messages({{int_message(3000, {100, 105, 40})}})},
        {"a size that is no ints",
         pack_messages({{int_message(kInput, {100, 105, 41, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})}})},
        {"more behind it", pack_messages({{trailing}})},
        {"cut", pack_messages({{cut}})},
        {"a later one that may be taken", pack_messages({{input_message(100, 105)}, {cut}})},
        {"something behind the chunks", noise},
        {"control", encode_control({.kind = ControlKind::keepalive})},
        {"connless", encode_connless(input_message(100, 105))},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(rewrite_for_resync(row.datagram).empty());
    }
    // The packet may be truncated at any byte.
    const Bytes whole = pack_messages({{input_message(100, 105)}});
    REQUIRE_FALSE(rewrite_for_resync(whole).empty());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK(rewrite_for_resync({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)})
                  .empty());
    }
    // The output is too small.
    std::array<std::byte, 20> little{};
    CHECK(rewrite_acknowledgement(whole, kNoSnapshot, little) == 0);
}

TEST_CASE("full snapshots are found in each kind of message") {
    struct Row {
        std::string_view name;
        Bytes payload;
        bool whole; ///< the packet contains a part of a full snapshot of tick 100
    };

    const Row rows[] = {
        {"empty", int_message(kSnapEmpty, {100, 101}), true},
        {"empty, on a base", int_message(kSnapEmpty, {100, 2}), false},
        {"single", int_message(kSnapSingle, {100, 101, 7, 0}), true},
        {"single, on a base", int_message(kSnapSingle, {100, 2, 7, 0}), false},
        {"a part", int_message(kSnap, {100, 101, 2, 1, 7, 0}), true},
        {"a part, on a base", int_message(kSnap, {100, 2, 2, 1, 7, 0}), false},
        {"cut", int_message(kSnap, {100, 101, 2}), false},
        {"nothing", {}, false},
        {"a message nobody knows", int_message(3000, {100, 101}), false},
        {"no snapshot", int_message(9, {100, 101}), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        for (const auto compression : {Compression::never, Compression::always}) {
            CHECK(find_full_snapshot_tick(
                      pack_messages({{int_message(9, {1, 2})}, {row.payload}},
                                    {.token = kResyncToken, .compression = compression})) ==
                  (row.whole ? std::optional{100} : std::nullopt));
        }
    }
    CHECK_FALSE(find_full_snapshot_tick({}));
    CHECK_FALSE(find_full_snapshot_tick(encode_control({.kind = ControlKind::keepalive})));
}

} // namespace
