#include "snapshot/cursor.h"

#include <limits>

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

struct Failure {
    const char* name;
    const char* bytes;
    void (*read)(Cursor&);
    DecodeErrc code;
    std::size_t offset;
};

} // namespace

TEST_CASE("a cursor names the first failure and then reads nothing") {
    const Failure rows[] = {
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
