#include "proxy/bus/collector.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE(
    "a slow connection gets smaller requests, a fast one larger ones, and a long message arrives") {
    AdaptiveFetchSize size;
    CHECK(size.request_bytes() == AdaptiveFetchSize::kMaxBytes);
    size.adapt_size(100, false); // the stream had no more data
    CHECK(size.request_bytes() == AdaptiveFetchSize::kMaxBytes);
    size.adapt_size(AdaptiveFetchSize::kMaxBytes / 4, true);
    CHECK(size.request_bytes() == AdaptiveFetchSize::kMaxBytes / 2);
    for (int i = 0; i < 20; ++i) {
        size.adapt_size(1, true);
    }
    CHECK(size.request_bytes() == AdaptiveFetchSize::kMinBytes);
    size.limit_to_single_message();
    CHECK(size.request_bytes() == AdaptiveFetchSize::kSingleMessageBytes);
    CHECK(size.is_limited_to_single_message());
    size.adapt_size(AdaptiveFetchSize::kMaxBytes, true);
    CHECK_FALSE(size.is_limited_to_single_message());
    size.limit_to_single_message();
    size.adapt_size(AdaptiveFetchSize::kMaxBytes, false);
    CHECK(size.request_bytes() == AdaptiveFetchSize::kMaxBytes);
}

TEST_CASE("a batch's name contains its stream and consumer") {
    const auto origin = parse_batch_name(batch_name("twscope", "tonight", "4711-42"));
    REQUIRE(origin);
    CHECK(origin->stream == "twscope");
    CHECK(origin->consumer == "tonight");
    for (const char* const other :
         {"", "id", "a.b", "a..id", ".b.id", "a b.c.id", "a.>.id", "*.b.id"}) {
        CAPTURE(other);
        CHECK_FALSE(parse_batch_name(other));
    }
}

TEST_CASE("a position contains the stream's creation time, the last record, and its batch") {
    const StreamPosition position{
        .created = 1'795'277'730'000'000'001, .last = 42, .batch = "s.c.id"};
    CHECK(position_text(position) == "1795277730000000001 42 s.c.id");
    CHECK(parse_position(position_text(position)) == position);
}

TEST_CASE("an invalid position, or one of an earlier version, is rejected") {
    for (const std::string_view text :
         {"", " ", "1", "1 2", "1 2 ", "x 2 id", "1 x id", "1 -2 id", "1  2 id", " 1 2 id",
          "99999999999999999999 2 id", "1 99999999999999999999 id",
          "s.c.id 1795277730000000001 1-9", "01a6-b 1795277730000000001 3-5,9"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_position(text));
    }
}
