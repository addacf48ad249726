#include "proxy/bus/collector.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a slow line is asked for less, a fast one for more again, and a long message comes") {
    FetchSize size;
    CHECK(size.bytes() == FetchSize::kMost);
    size.on_fetched(100, false); // there was no more
    CHECK(size.bytes() == FetchSize::kMost);
    size.on_fetched(FetchSize::kMost / 4, true);
    CHECK(size.bytes() == FetchSize::kMost / 2);
    for (int i = 0; i < 20; ++i) {
        size.on_fetched(1, true);
    }
    CHECK(size.bytes() == FetchSize::kLeast);
    size.request_single_message();
    CHECK(size.bytes() == FetchSize::kMessage);
    CHECK(size.messages(1000) == 1);
    size.on_fetched(FetchSize::kMost, true);
    CHECK(size.messages(1000) == 1000);
    size.request_single_message();
    size.on_fetched(FetchSize::kMost, false);
    CHECK(size.bytes() == FetchSize::kMost);
}

TEST_CASE("the name of a batch leads to the position that tells whether it counts") {
    const auto origin = origin_of(batch_name("twscope", "tonight", "4711-42"));
    REQUIRE(origin);
    CHECK(origin->stream == "twscope");
    CHECK(origin->consumer == "tonight");
    for (const char* const other :
         {"", "id", "a.b", "a..id", ".b.id", "a b.c.id", "a.>.id", "*.b.id"}) {
        CAPTURE(other);
        CHECK_FALSE(origin_of(other));
    }
}
