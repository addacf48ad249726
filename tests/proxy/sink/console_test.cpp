#include "proxy/sink/console.h"

#include <doctest/doctest.h>

namespace tw::sink {

TEST_CASE("a notice is shown once, before the findings, and is none of them") {
    Console console{false};
    console.add_finding("error snapshot.crc_mismatch", record::Severity::error);
    console.add_notice("the server does not answer", record::Severity::warning);
    const auto lines = console.lines(0, 1);
    REQUIRE(lines.size() == 3);
    CHECK(lines[0] == "the server does not answer");
    CHECK(lines[1] == "error snapshot.crc_mismatch");
    CHECK(lines[2].find("1 findings") != std::string::npos);
    CHECK(console.lines(0, 1).size() == 1);
}

} // namespace tw::sink
