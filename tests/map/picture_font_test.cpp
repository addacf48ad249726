// Covers: map/picture.cpp
#include "map/picture.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

std::string drawn(char c) {
    std::string text;
    for (int y = 0; y < kGlyphHeight; ++y) {
        for (int x = 0; x < kGlyphWidth; ++x) {
            text += glyph_dot(glyph(c), x, y) ? '#' : '.';
        }
        text += '\n';
    }
    return text;
}

} // namespace

TEST_CASE("dots stand where the octal digits say") {
    CHECK(drawn('l') == "#..\n#..\n#..\n#..\n###\n");
    CHECK(drawn('7') == "###\n..#\n..#\n..#\n..#\n");
    CHECK(drawn('-') == "...\n...\n###\n...\n...\n");
}

TEST_CASE("every letter and digit has a shape, and small letters are capitals") {
    std::set<std::uint16_t> letters;
    for (char c = 'a'; c <= 'z'; ++c) {
        CAPTURE(c);
        CHECK(glyph(c) == glyph(static_cast<char>(c - 'a' + 'A')));
        letters.insert(glyph(c));
    }
    CHECK(letters.size() == 26);
    std::set<std::uint16_t> digits;
    for (char c = '0'; c <= '9'; ++c) {
        digits.insert(glyph(c));
    }
    CHECK(digits.size() == 10);
    CHECK(letters.count(0) + digits.count(0) == 0);
}

TEST_CASE("every printable sign has a shape of its own among signs") {
    std::set<std::uint16_t> shapes;
    std::size_t signs = 0;
    for (char c = '!'; c <= '~'; ++c) {
        CAPTURE(c);
        CHECK(glyph(c) != 0);
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
            shapes.insert(glyph(c));
            ++signs;
        }
    }
    CHECK(shapes.size() == signs);
}

TEST_CASE("what the font does not have is a space") {
    for (const char c : std::string_view{" \t\x7f\xff"}) {
        CHECK(glyph(c) == 0);
    }
}

} // namespace tw::map
