#include "snapshot/cursor.h"

#include <array>
#include <limits>
#include <random>

#include "vectors.h"
#include <doctest/doctest.h>

using namespace tw::snapshot;
using namespace tw::snapshot::test;

TEST_CASE("a cursor reads values one after the other") {
    const auto bytes = from_hex("8001"
                                "41"
                                "ff"
                                "6869"
                                "00"
                                "00"
                                "0102"
                                "0304");
    Cursor in{bytes};
    CHECK(in.var_int() == 64);
    CHECK(in.var_int() == -2);
    CHECK(in.u8() == 255);
    CHECK(in.string() == "hi");
    CHECK(in.string().empty());
    CHECK(in.raw(2).size() == 2);
    CHECK(in.offset() == 10);
    CHECK(in.remaining() == 2);
    CHECK(in.rest().size() == 2);
    CHECK(in.remaining() == 0);
    CHECK_FALSE(in.failed());
}

namespace {

struct FailedRead {
    const char* name;
    const char* bytes;
    void (*read)(Cursor&);
    DecodeErrc code;
    std::size_t offset;
};

} // namespace

TEST_CASE("a cursor names the first failure and then reads nothing") {
    const FailedRead rows[] = {
        {"int at the end", "01",
         [](Cursor& in) {
             (void)in.var_int();
             (void)in.var_int();
         },
         DecodeErrc::truncated, 1},
        {"int cut short", "0180",
         [](Cursor& in) {
             (void)in.var_int();
             (void)in.var_int();
         },
         DecodeErrc::truncated, 1},
        {"byte at the end", "", [](Cursor& in) { (void)in.u8(); }, DecodeErrc::truncated, 0},
        {"string without NUL", "016162",
         [](Cursor& in) {
             (void)in.u8();
             (void)in.string();
         },
         DecodeErrc::string_unterminated, 1},
        {"string at the end", "", [](Cursor& in) { (void)in.string(); },
         DecodeErrc::string_unterminated, 0},
        {"negative length", "0102", [](Cursor& in) { (void)in.raw(-1); },
         DecodeErrc::length_out_of_range, 0},
        {"length too large", "0102", [](Cursor& in) { (void)in.raw(3); },
         DecodeErrc::length_out_of_range, 0},
        {"huge length", "0102",
         [](Cursor& in) { (void)in.raw(std::numeric_limits<std::int64_t>::max()); },
         DecodeErrc::length_out_of_range, 0},
        {"failure of the caller", "0102",
         [](Cursor& in) {
             (void)in.u8();
             in.fail(DecodeErrc::id_out_of_range);
             (void)in.raw(9);
         },
         DecodeErrc::id_out_of_range, 1},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto bytes = from_hex(row.bytes);
        Cursor in{bytes};
        row.read(in);
        CHECK(in.error().code == row.code);
        CHECK(in.error().offset == row.offset);
        CHECK(in.remaining() == 0);
        CHECK(in.var_int() == 0);
        CHECK(in.u8() == 0);
        CHECK(in.string().empty());
        CHECK(in.raw(0).empty());
        CHECK(in.rest().empty());
        CHECK(in.error().code == row.code);
    }
}

TEST_CASE("varints encode to the shortest form and decode back") {
    for (const auto& row : vectors("varint")) {
        const auto value = row.at("value").to_number<std::int32_t>();
        const auto bytes = from_hex(row.at("bytes").as_string());
        CAPTURE(value);
        std::vector<std::byte> encoded;
        encode_varint(value, encoded);
        CHECK(to_hex(encoded) == to_hex(bytes));
        CHECK(varint_size(value) == bytes.size());
        std::int32_t decoded = 0;
        CHECK(decode_varint(bytes.data(), bytes.size(), decoded) == bytes.size());
        CHECK(decoded == value);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CHECK(decode_varint(bytes.data(), size, decoded) == 0);
        }
    }
}

TEST_CASE("varint_size is the size of the encoding") {
    for (unsigned bit = 0; bit < 32; ++bit) {
        for (const std::uint32_t near : {~0U, 0U, 1U}) {
            for (const std::uint32_t sign : {0U, ~0U}) {
                const auto value = static_cast<std::int32_t>(((1U << bit) + near) ^ sign);
                std::vector<std::byte> encoded;
                encode_varint(value, encoded);
                CHECK(varint_size(value) == encoded.size());
            }
        }
    }
}

TEST_CASE("varints that no writer makes decode as in current clients") {
    for (const auto& row : vectors("varint_noncanonical")) {
        const auto bytes = from_hex(row.at("bytes").as_string());
        CAPTURE(to_hex(bytes));
        std::int32_t value = 0;
        const std::size_t used = decode_varint(bytes.data(), bytes.size(), value);
        // With enough bytes behind it, the fast path reads the same value.
        auto padded = bytes;
        padded.resize(padded.size() + 100);
        std::array<std::int32_t, 256> many{};
        static_cast<void>(decode_varints(padded, many));
        if (row.at("result").is_null()) {
            CHECK(used == 0);
            continue;
        }
        CHECK(used == row.at("result").at("consumed").to_number<std::size_t>());
        CHECK(value == row.at("result").at("value").to_number<std::int32_t>());
        CHECK(many[0] == value);
    }
}

TEST_CASE("decode_varints gives the same values as decode_varint") {
    std::mt19937 random{1};
    for (int round = 0; round < 2000; ++round) {
        // Random bytes. The share of bytes that continue a value varies.
        std::vector<std::byte> bytes(random() % 400);
        const std::size_t continued = random() % 50;
        for (auto& byte : bytes) {
            const auto low = static_cast<unsigned>(random() & 0x7FU);
            byte = static_cast<std::byte>(random() % 50 < continued ? low | 0x80U : low);
        }
        std::vector<std::int32_t> expected;
        std::size_t at = 0;
        const std::size_t room = round % 8 == 0 ? random() % 80 : bytes.size() + kVarintsSlack;
        while (expected.size() < room) {
            std::int32_t value = 0;
            const std::size_t used = decode_varint(bytes.data() + at, bytes.size() - at, value);
            if (used == 0) {
                break;
            }
            expected.push_back(value);
            at += used;
        }
        std::vector<std::int32_t> out(room);
        const auto decoded = decode_varints(bytes, out);
        CHECK(decoded.bytes == at);
        REQUIRE(decoded.count == expected.size());
        out.resize(decoded.count);
        CHECK(out == expected);
    }
}
