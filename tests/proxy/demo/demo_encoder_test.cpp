#include "proxy/demo/demo_encoder.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/hex.h"

#include <doctest/doctest.h>

using namespace tw;
using demo::DemoEncoder;
using test::Bytes;
using test::bytes_of;
using test::Items;
using test::to_hex;

namespace {

const Items kFirst{{{4, 7}, {528, 400, 0, 0}}, {{6, 0}, {0, 0, 0, 0, 20, 0, 0, 0}}};
const Items kSecond{{{4, 8}, {560, 400, 0, 0}}, {{6, 0}, {0, 0, 0, 0, 20, 0, 0, 0}}};

bool encode_items(DemoEncoder& encoder, snapshot::Tick tick, const Items& items, Bytes& out) {
    return encoder.append_snapshot(tick, test::to_snapshot(items).view(), out);
}

/// Returns the bytes that a snapshot adds to a demo, as hex.
std::string encode_items(DemoEncoder& encoder, snapshot::Tick tick, const Items& items) {
    Bytes out;
    return encode_items(encoder, tick, items, out) ? to_hex(out) : "refused";
}

bool is_keyframe(const std::string& chunk) {
    return chunk.starts_with("c0");
}

} // namespace

TEST_CASE("chunks are encoded as in the reference") {
    DemoEncoder encoder{4, tw::snapshot::Dialect::six};
    // The reference has the items in another order, but the delta is equivalent.
    CHECK(encode_items(encoder, 500, kFirst).starts_with("c0000001f4"));
    CHECK(encode_items(encoder, 502, kSecond) == "826c885d0d587b049698b4597103");
    Bytes out;
    CHECK(encoder.append_message(bytes_of({0x06, 0x00, 0x40, 0x68, 0x69, 0x00}), out));
    CHECK(to_hex(out) == "485200d0e8588e8a1b");
}

TEST_CASE("a tick is relative if possible, and absolute before a keyframe") {
    struct Row {
        int version;
        snapshot::Tick step;
        std::string_view begin;
    };

    const Row rows[] = {{4, 1, "81"},  {4, 63, "bf"},          {4, 64, "800000"},
                        {6, 1, "a1"},  {6, 31, "bf"},          {6, 32, "800000"},
                        {4, 250, "8"}, {4, 251, "c0000000fc"}, {6, 251, "c0000000fc"}};
    for (const Row& row : rows) {
        CAPTURE(row.version);
        CAPTURE(row.step);
        DemoEncoder encoder{row.version, tw::snapshot::Dialect::six};
        CHECK(encode_items(encoder, 1, kFirst).starts_with("c000000001"));
        CHECK(encode_items(encoder, 1 + row.step, kSecond).starts_with(row.begin));
    }
}

TEST_CASE("invalid ticks and ticks that are not later are rejected and change nothing") {
    DemoEncoder encoder{6, tw::snapshot::Dialect::six};
    CHECK(encode_items(encoder, -1, kFirst) == "refused");
    CHECK(encode_items(encoder, 0x6fffffff, kFirst) == "refused");
    CHECK(encode_items(encoder, 10, kFirst) != "refused");
    CHECK(encode_items(encoder, 10, kSecond) == "refused");
    CHECK(encode_items(encoder, 9, kSecond) == "refused");
    CHECK(encoder.last_tick() == 10);
}

TEST_CASE("an unchanged snapshot is only a tick, and a final one gets an empty delta") {
    DemoEncoder encoder{6, tw::snapshot::Dialect::six};
    CHECK(encode_items(encoder, 10, kFirst) != "refused");
    CHECK(encode_items(encoder, 12, kFirst) == "a2");
    Bytes end;
    encoder.append_final_chunk(end);
    CHECK_FALSE(end.empty());
    end.clear();
    encoder.append_final_chunk(end);
    CHECK(end.empty());
}

TEST_CASE("a final tick with a message gets no empty delta") {
    DemoEncoder encoder{6, tw::snapshot::Dialect::six};
    CHECK(encode_items(encoder, 10, kFirst) != "refused");
    CHECK(encode_items(encoder, 12, kFirst) == "a2");
    Bytes out;
    CHECK(encoder.append_message(bytes_of({6}), out));
    Bytes end;
    encoder.append_final_chunk(end);
    CHECK(end.empty());
}

TEST_CASE("a change that deltas cannot express becomes a keyframe") {
    struct Row {
        std::string_view name;
        Items from;
        Items to;
        bool keyframe;
    };

    const Row rows[] = {
        {"agreed size", {}, {{{4, 1}, {1, 2, 3, 4}}}, false},
        {"another size than agreed", {}, {{{4, 1}, {1, 2, 3}}}, true},
        {"size written", {{{40, 1}, {1}}}, {{{40, 1}, {2}}}, false},
        {"size changes", {{{40, 1}, {1}}}, {{{40, 1}, {1, 2}}}, true},
        {"item comes back", {{{40, 1}, {1}}}, {{{40, 2}, {1, 2}}}, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        DemoEncoder encoder{6, tw::snapshot::Dialect::six};
        CHECK(encode_items(encoder, 10, row.from) != "refused");
        CHECK(is_keyframe(encode_items(encoder, 12, row.to)) == row.keyframe);
    }
}

TEST_CASE("a snapshot that is too large is rejected and changes nothing") {
    DemoEncoder encoder{6, tw::snapshot::Dialect::six};
    CHECK(encode_items(encoder, 10, kFirst) != "refused");
    // Each int takes five bytes.
    const Items large{{{40, 1}, std::vector<std::int32_t>(14'000, INT32_MAX)}};
    CHECK(encode_items(encoder, 12, large) == "refused");
    Items many;
    for (std::uint16_t id = 0; id <= snapshot::kMaxItems; ++id) {
        many[{40, id}] = {};
    }
    CHECK(encode_items(encoder, 12, many) == "refused");
    many.erase(many.begin());
    many[{40, 1}] =
        std::vector<std::int32_t>(14'335); // compressed small, but too large for demo players
    CHECK(encode_items(encoder, 12, many) == "refused");
    CHECK(encode_items(encoder, 12, kFirst) == "a2");
    Bytes out;
    CHECK_FALSE(encoder.append_message(Bytes(65'536, std::byte{0x7f}), out));
    CHECK(out.empty());
}

TEST_CASE("markers are at least a second apart and at most 64") {
    DemoEncoder encoder{6, tw::snapshot::Dialect::six};
    encoder.add_marker(); // ignored, because there is no tick yet
    snapshot::Tick tick = 100;
    for (int i = 0; i < 80; ++i) {
        CHECK(encode_items(encoder, tick, kFirst) != "refused");
        encoder.add_marker();
        CHECK(encode_items(encoder, tick + 49, kFirst) != "refused");
        encoder.add_marker();
        tick += 50;
    }
    const auto patches = encoder.header_patches();
    REQUIRE(patches.size() == 2);
    CHECK(patches[0].at == 152);
    CHECK(to_hex(patches[0].bytes) == "0000004f"); // the length is 79 seconds
    CHECK(patches[1].at == 176);
    CHECK(patches[1].bytes.size() == 4 + 256);
    CHECK(to_hex(patches[1].bytes).starts_with("000000400000006400000096"));
}

TEST_CASE("header texts always end with a NUL") {
    demo::DemoHeader header = test::demo_header();
    header.map_name = std::string(100, 'm');
    const Bytes bytes = DemoEncoder::encode_start(header, {});
    CHECK(bytes.size() == 484);
    CHECK(bytes[72 + 62] == std::byte{'m'});
    CHECK(bytes[72 + 63] == std::byte{0});
}
