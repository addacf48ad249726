#include "proxy/record/terminal_text.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::record {

TEST_CASE("text for a terminal contains no terminal controls") {
    struct Row {
        std::string_view name;
        std::string_view text;
        std::string_view shown;
    };

    const Row rows[] = {
        {"nothing", "", ""},
        {"plain", "nameless tee", "nameless tee"},
        {"quotes stay", "say \"hi\"", "say \"hi\""},
        {"a backslash is doubled", "\\u001b", "\\\\u001b"},
        {"a backslash before a quote", "\\\"", "\\\\\""},
        {"escape", "\x1b[31m", "\\u001b[31m"},
        {"line ends", "a\r\nb", "a\\u000d\\u000ab"},
        {"delete", "a\x7f", "a\\u007f"},
        {"control sequence introducer of eight bits",
         "\xc2\x9b"
         "31m",
         "\\u009b31m"},
        {"no-break space stays", "\xc2\xa0", "\xc2\xa0"},
        {"letters beyond ASCII stay", "z\xc3\xb6g \xe2\x82\xac", "z\xc3\xb6g \xe2\x82\xac"},
        // NOLINTBEGIN(misc-misleading-bidirectional): they are what is tested
        {"right to left",
         "\xe2\x80\xae"
         "abc",
         "\\u202eabc"},
        {"isolates", "\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069"},
        {"marks", "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\u061c\\u200e\\u200f"},
        // NOLINTEND(misc-misleading-bidirectional)
        {"line separator", "\xe2\x80\xa8", "\\u2028"},
        {"a dash is none", "\xe2\x80\x94", "\xe2\x80\x94"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        CHECK(escape_for_terminal(row.text) == row.shown);
    }
}

TEST_CASE("text of several lines keeps its line feeds and escapes") {
    CHECK(escape_lines_for_terminal("a\tb\n") == "a\tb\n");
    CHECK(escape_lines_for_terminal("\\u001b \x1b[1m\r\x08") == "\\u001b \\u001b[1m\\u000d\\u0008");
    CHECK(escape_lines_for_terminal(escape_for_terminal("\\\x1b")) ==
          escape_for_terminal("\\\x1b"));
}

TEST_CASE("JSON of other programs is made safe for a terminal and keeps its values") {
    struct Row {
        std::string_view name;
        std::string_view json;
        std::string_view shown;
    };

    // NOLINTBEGIN(misc-misleading-bidirectional): they are what is tested
    const Row rows[] = {
        {"plain", R"({"a":"b \\ \" \u001b"})", R"({"a":"b \\ \" \u001b"})"},
        {"eight bits", "{\"a\":\"\xc2\x9b\"}", R"({"a":"\u009b"})"},
        {"delete", "{\"a\":\"\x7f\"}", R"({"a":"\u007f"})"},
        {"right to left", "{\"a\":\"\xe2\x80\xae\"}", R"({"a":"\u202e"})"},
        {"a key", "{\"\xd8\x9c\":1}", R"({"\u061c":1})"},
        {"a lone byte", "{\"a\":\"\x9b\"}", R"({"a":"\ufffd"})"},
        {"letters", "{\"a\":\"\xc3\xb6\xf0\x9f\x98\x80\"}", "{\"a\":\"\xc3\xb6\xf0\x9f\x98\x80\"}"},
    };
    // NOLINTEND(misc-misleading-bidirectional)
    for (const auto& row : rows) {
        CAPTURE(row.name);
        // The spaces move the positions at which the text is split into pieces.
        for (std::size_t spaces = 0; spaces < 300; spaces += row.json == rows[0].json ? 300U : 1U) {
            const std::string before(spaces, ' ');
            std::string shown;
            append_terminal_json(before + std::string{row.json}, shown);
            CHECK(shown == before + std::string{row.shown});
        }
    }
}

TEST_CASE("the terminal controls are those of Unicode and ISO 6429") {
    const auto is_bidi_control = [](std::uint32_t c) {
        return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
               (c >= 0x2066 && c <= 0x2069);
    };
    for (std::uint32_t c = 0; c < 0x110000; ++c) {
        const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        const bool line = c == 0x2028 || c == 0x2029;
        REQUIRE(is_terminal_control(c) == (control || line || is_bidi_control(c)));
    }
}

TEST_CASE("a size is shown in a suitable unit") {
    CHECK(record::size_text(512) == "0.5 KiB");
    CHECK(record::size_text(3 << 20) == "3.0 MiB");
    CHECK(record::size_text(std::uint64_t{5000} << 40U) == "5000.0 TiB");
}

TEST_CASE("choose_plural() chooses the form for the count") {
    struct Row {
        std::string_view text;
        std::string_view one;
        std::string_view many;
    };

    const Row rows[] = {
        {"file[s]", "1 file", "2 files"},
        {"entr[y|ies]", "1 entry", "2 entries"},
        {"line[s] that [is|are] not [a record|records]", "1 line that is not a record",
         "2 lines that are not records"},
        {"fish", "1 fish", "2 fish"},
        {"", "1 ", "2 "},
        {"open [", "1 open ",
         "2 open "}, // an unclosed bracket: nothing is read past the end of the text
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CHECK(count_with_noun(1, row.text) == row.one);
        CHECK(count_with_noun(2, row.text) == row.many);
        CHECK(count_with_noun(0, row.text) == '0' + std::string{row.many.substr(1)});
    }
}

} // namespace tw::record
