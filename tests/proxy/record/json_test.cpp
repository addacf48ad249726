// Covers: proxy/record/json_library.cpp

#include "proxy/record/json.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace json = boost::json;
using tw::record::json_text;

TEST_CASE("keys stay in order, numbers have three decimals and no exponent") {
    const json::object object{{"b", 1},
                              {"a", json::array{true, nullptr, -2, "text"}},
                              {"mean", 1234.5},
                              {"none", std::numeric_limits<double>::infinity()},
                              {"large", std::uint64_t{1} << 63U},
                              {"empty", json::object{}}};
    CHECK(json_text(object) == R"({"b":1,"a":[true,null,-2,"text"],"mean":1234.500,"none":0,)"
                               R"("large":9223372036854775808,"empty":{}})");
}

TEST_CASE("texts and keys of any bytes become valid JSON") {
    const json::object object{{"k\xff", "a\"\\\n\x01\xc3\xa9\xfe"}};
    const std::string text = json_text(object);
    CHECK(json::parse(text) == json::object{{"k\ufffd", "a\"\\\n\x01\u00e9\ufffd"}});
}

TEST_CASE(
    "a spread without numbers has only its count, and limits follow the spreads they are of") {
    tw::record::SessionStats stats;
    stats.items.add(3);
    stats.items.add(4);
    json::object object;
    tw::record::add_spreads<tw::record::SnapshotSpreads>(object, stats);
    CHECK(json_text(object) ==
          R"({"items":{"count":2,"min":3,"mean":3.500,"max":4},"items_limit":1024,)"
          R"("size_bytes":{"count":0},"size_bytes_limit":65536,)"
          R"("delta_distance":{"count":0},"interval_us":{"count":0},"freeze_us":{"count":0}})");
}

TEST_CASE("findings that did not occur are absent") {
    tw::record::FindingCounts counts{};
    counts[static_cast<std::size_t>(tw::record::FindingId::inspect_gap)] = 2;
    CHECK(json_text(tw::record::findings_json(counts)) == R"({"inspect.gap":2})");
}
