#include "proxy/bus/collector.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("the name of a batch leads to its log, whoever reads it") {
    const std::string name = batch_name("twscope", "tonight", "4711-42");
    const auto log = log_of(name);
    REQUIRE(log);
    CHECK(log->stream == "twscope");
    CHECK(log->consumer == "tonight");
    CHECK(log->sought == name);
    for (const char* const other :
         {"", "id", "a.b", "a..id", ".b.id", "a b.c.id", "a.>.id", "*.b.id"}) {
        CAPTURE(other);
        CHECK_FALSE(log_of(other));
    }
}
