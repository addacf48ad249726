#include "tests/proxy/record/records_page.h"
#include "tests/support/program.h"

#include <string>

#include <doctest/doctest.h>

using tw::test::page_complaints;
using tw::test::page_tables;
using tw::test::read_text;

TEST_CASE("RECORDS.md has the keys of every record and what the schemas say about them") {
    const std::string page = read_text(TW_RECORDS_PAGE);
    REQUIRE(!page.empty());
    for (const std::string& complaint : page_complaints(page)) {
        FAIL_CHECK(complaint);
    }
}

TEST_CASE("a key that the page lacks, and one that no schema has, are complained about") {
    const std::string page = read_text(TW_RECORDS_PAGE);
    for (const auto& table : page_tables()) {
        CAPTURE(table.heading);
        REQUIRE(!table.lines.empty());
        const std::string& line = table.lines.front();
        const std::size_t at = page.find(line, page.find('\n' + table.heading));
        REQUIRE(at != std::string::npos);
        std::string less = page;
        less.erase(at, line.size() + 1);
        CHECK(page_complaints(less).size() == 1);
        std::string more = page;
        more.insert(at, "| `another` | Nobody writes it. |\n");
        CHECK(page_complaints(more).size() == 1);
    }
}
