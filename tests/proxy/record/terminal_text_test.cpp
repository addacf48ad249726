#include "proxy/record/terminal_text.h"

#include <string_view>

#include <doctest/doctest.h>

namespace tw::record {

TEST_CASE("text for a terminal holds nothing a terminal obeys") {
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
        {"isolates", "\xe2\x81\xa6", "\\u2066"},
        // NOLINTEND(misc-misleading-bidirectional)
        {"line separator", "\xe2\x80\xa8", "\\u2028"},
        {"a dash is none", "\xe2\x80\x94", "\xe2\x80\x94"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        CHECK(terminal_text(row.text) == row.shown);
    }
}

} // namespace tw::record
