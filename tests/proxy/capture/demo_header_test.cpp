// Covers: proxy/capture/demo_reader.cpp
#include "proxy/capture/demo_reader.h"
#include "tests/support/demo_bytes.h"

#include <set>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw;
using capture::decode_demo_head;
using capture::DemoErrc;
using test::Bytes;

namespace {

const Bytes kMap{std::byte{1}, std::byte{2}, std::byte{3}};

Bytes demo(int version) {
    Bytes bytes = sink::DemoEncoder::encode_start(test::demo_header(version), kMap);
    bytes.push_back(std::byte{0x40});
    return bytes;
}

void set(Bytes& bytes, std::size_t at, std::initializer_list<int> values) {
    for (const int value : values) {
        bytes[at++] = static_cast<std::byte>(value);
    }
}

} // namespace

TEST_CASE("reading a header reverses writing it") {
    for (const int version : {3, 4, 5, 6}) {
        CAPTURE(version);
        const Bytes bytes = demo(version);
        const auto head = decode_demo_head(bytes);
        REQUIRE(head.has_value());
        CHECK(head->header.version == version);
        CHECK(head->header.net_version == sink::demo::kNetVersion);
        CHECK(head->header.map_name == "dm1");
        CHECK(head->header.map_crc == 0x01020304);
        CHECK(head->header.type == "client");
        CHECK(head->header.length == 3);
        CHECK(head->header.timestamp == "2026-11-21_16-15-30");
        CHECK(head->header.sha256.has_value() == (version == 6));
        CHECK(Bytes{head->map.begin(), head->map.end()} == kMap);
        CHECK(head->chunks.size() == 1);
        CHECK(head->chunks_at + 1 == bytes.size());
    }
}

TEST_CASE("a header cut at any byte is an error") {
    for (const int version : {3, 4, 5, 6}) {
        const Bytes whole = demo(version);
        for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
            CAPTURE(version);
            CAPTURE(size);
            const auto head = decode_demo_head(std::span{whole}.first(size));
            REQUIRE_FALSE(head.has_value());
            const DemoErrc expected = size < 7 ? DemoErrc::no_demo : DemoErrc::header_cut;
            CHECK((head.error().code == expected || head.error().code == DemoErrc::map_cut));
        }
    }
}

TEST_CASE("hostile headers are rejected, unusual ones are read as demo players read them") {
    struct Row {
        std::string_view name;
        std::size_t at;
        std::initializer_list<int> bytes;
        DemoErrc error;
    };

    const Row rows[] = {
        {"as it is", 0, {'T'}, DemoErrc::none},
        {"other magic", 0, {'X'}, DemoErrc::no_demo},
        {"version 2", 7, {2}, DemoErrc::version_unsupported},
        {"version 7", 7, {7}, DemoErrc::version_unsupported},
        {"of 0.7", 8, {'0', '.', '7'}, DemoErrc::none},
        {"negative map", 136, {0xff, 0xff, 0xff, 0xff}, DemoErrc::map_size_invalid},
        {"huge map", 136, {4, 0, 0, 1}, DemoErrc::map_size_invalid},
        {"map larger than the file", 136, {0, 0, 0, 9}, DemoErrc::map_cut},
        {"many markers", 176, {0, 0, 1, 0}, DemoErrc::none},
        {"negative markers", 176, {0xff, 0, 1, 0}, DemoErrc::none},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Bytes bytes = demo(6);
        set(bytes, row.at, row.bytes);
        const auto head = decode_demo_head(bytes);
        CHECK((head ? DemoErrc::none : head.error().code) == row.error);
        if (head) {
            CHECK(head->header.markers.size() <= 64);
        }
    }
}

TEST_CASE("in a demo of version 6 without the extension, the map follows the header") {
    Bytes bytes = sink::DemoEncoder::encode_start(test::demo_header(5), kMap);
    bytes.resize(bytes.size() + 100);
    set(bytes, 7, {6});
    const auto head = decode_demo_head(bytes);
    REQUIRE(head.has_value());
    CHECK(head->map_at == 436);
    CHECK_FALSE(head->header.sha256.has_value());
}

TEST_CASE("a text may fill its field") {
    Bytes bytes = demo(6);
    for (std::size_t i = 0; i < 64; ++i) {
        bytes[72 + i] = std::byte{'m'};
    }
    const auto head = decode_demo_head(bytes);
    REQUIRE(head.has_value());
    CHECK(head->header.map_name == std::string(64, 'm'));
}

TEST_CASE("a timestamp is a valid time or nullopt") {
    CHECK(capture::parse_demo_time("1970-01-01_00-00-01") == 1'000'000'000);
    CHECK(capture::parse_demo_time("2026-11-21_16-15-30") == 1'795'277'730'000'000'000);
    for (const std::string_view text :
         {"", "2026", "2026-13-01_00-00-00", "2026-02-30_00-00-00", "2026-11-21_24-00-00",
          "2026-11-21 16:15:", "-026-11-21_16-15-30", "1969-11-21_16-15-30"}) {
        CAPTURE(text);
        CHECK_FALSE(capture::parse_demo_time(text).has_value());
    }
}

TEST_CASE("every error of demos has a name and a sentence") {
    std::set<std::string_view> names;
    for (const capture::DemoErrorInfo& info : capture::demo_error_table()) {
        CHECK(names.insert(info.name).second);
        CHECK_FALSE(info.sentence.empty());
        CHECK(&capture::demo_error_info(info.code) == &info);
    }
}
