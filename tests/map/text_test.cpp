#include "map/text.h"

#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

using namespace std::string_view_literals;

TEST_CASE("overlong forms and surrogates are not UTF-8") {
    struct Row {
        std::string_view name;
        std::string_view text;
        bool good;
    };

    const Row rows[] = {
        {"nothing", "", true},
        {"letters of one to four bytes", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", true},
        {"the last code point", "\xf4\x8f\xbf\xbf", true},
        {"beyond the last", "\xf4\x90\x80\x80", false},
        {"a lead byte that is none", "\xf5\x80\x80\x80", false},
        {"a tail without its lead", "\x80", false},
        {"cut after its lead", "\xe2\x82", false},
        {"a lead in the place of a tail", "\xe2\x82\xc3", false},
        {"a slash in two bytes", "\xc0\xaf", false},
        {"a slash in three", "\xe0\x80\xaf", false},
        {"a surrogate", "\xed\xa0\x80", false},
        {"the last surrogate", "\xed\xbf\xbf", false},
        {"right behind the surrogates", "\xee\x80\x80", true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(is_utf8(row.text) == row.good);
    }
}

TEST_CASE("a block is text when it ends with its only NUL and is UTF-8") {
    const auto text_of = [](std::string_view block) {
        return decode_block_text(std::as_bytes(std::span{block}));
    };
    CHECK(text_of("name\0"sv) == "name");
    CHECK(text_of("\0"sv) == "");
    CHECK_FALSE(text_of(""sv));
    CHECK_FALSE(text_of("name"sv));
    CHECK_FALSE(text_of("na\0me\0"sv));
    CHECK_FALSE(text_of("\xff\0"sv));
}

TEST_CASE("a text is truncated between characters") {
    const std::string euros = "\xe2\x82\xac\xe2\x82\xac";
    CHECK(truncate_utf8(euros, 6) == euros);
    CHECK(truncate_utf8(euros, 5) == euros.substr(0, 3));
    CHECK(truncate_utf8(euros, 3) == euros.substr(0, 3));
    CHECK(truncate_utf8(euros, 2).empty());
    CHECK(truncate_utf8("\x80\x80", 1)
              .empty()); // in invalid UTF-8, the end must not move before the start
}

} // namespace
} // namespace tw::map
