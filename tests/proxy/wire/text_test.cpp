
#include "proxy/wire/text.h"
#include "snapshot/cursor.h"
#include "tests/proxy/wire/fields_text.h"
#include "tests/support/text.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::wire::test {

TEST_CASE("strings are cleaned as the reference reader does") {
    for (const auto& row : vectors("strings")) {
        const auto flags = static_cast<std::uint8_t>(row.at("sanitize").as_int64());
        const auto wire = hex_at(row, "bytes");
        CAPTURE(to_hex(wire));
        CAPTURE(flags);
        snapshot::Cursor in{wire};
        const auto text = in.string();
        const bool accepted = !in.failed() && is_utf8(tw::test::as_bytes(text));
        CHECK(accepted == !row.at("result").is_null());
        if (accepted) {
            CHECK(to_hex(tw::test::as_bytes(sanitize_string(tw::test::as_bytes(text), flags))) ==
                  std::string_view{row.at("result").as_string()});
        }
    }
}

TEST_CASE("sanitised strings are always UTF-8") {
    struct Row {
        std::string_view name, bytes, shown;
    };

    const Row rows[] = {
        {"ASCII", "nameless tee", "nameless tee"},
        {"two to four bytes", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "ä€😀"},
        {"lone continuation", "a\x80z", "a\xEF\xBF\xBDz"},
        {"cut at the end", "a\xE2\x82", "a\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"overlong three", "\xE0\x80\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"largest", "\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
        {"past the largest", "\xF4\x90\x80\x80",
         "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"never bytes", "\xF8\xFE\xFF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto shown = sanitize_string(tw::test::as_bytes(row.bytes), 0);
        CHECK(shown == row.shown);
        CHECK(is_utf8(tw::test::as_bytes(shown)));
        CHECK(is_utf8(tw::test::as_bytes(row.bytes)) == (row.bytes == row.shown));
    }
}

TEST_CASE("flags decide over control characters and leading blanks") {
    struct Row {
        std::string_view name;
        std::uint8_t flags;
        std::string_view bytes, shown;
    };

    const Row rows[] = {
        {"as it is", 0, "\x1B[31m\tred\n", "\x1B[31m\tred\n"},
        {"line breaks stay", 1, "\x1B[31m\tred\r\n", " [31m\tred\r\n"},
        {"one line", 2, "\x1B[31m\tred\r\n", " [31m red  "},
        {"both: the stricter", 3, "\n", " "},
        {"control characters lead", 6, "\x01\t x ", "x "},
        {"nothing but blanks", 6, " \xE2\x80\x8B ", ""},
        {"invalid is no blank", 6, " \xFF x", "\xEF\xBF\xBD x"},
        {"DEL stays", 2, "\x7F", "\x7F"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        CHECK(sanitize_string(tw::test::as_bytes(row.bytes), row.flags) == row.shown);
    }
}

TEST_CASE("append_sanitized keeps the existing text") {
    std::string out = "name: ";
    append_sanitized(tw::test::as_bytes("  tee"), kSkipBlanks, out);
    CHECK(out == "name: tee");
}

} // namespace tw::wire::test
