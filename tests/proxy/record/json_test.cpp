#include "proxy/record/json.h"

#include <limits>
#include <random>
#include <string>
#include <string_view>

#include <boost/json.hpp>
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

TEST_CASE("any bytes in texts and keys become valid JSON") {
    const json::object object{{"k\xff", "a\"\\\n\x01\xc3\xa9\xfe"}};
    const std::string text = json_text(object);
    CHECK(json::parse(text) == json::object{{"k\ufffd", "a\"\\\n\x01\u00e9\ufffd"}});
}

TEST_CASE("a distribution without numbers has only its count, and limits follow the distributions "
          "they are of") {
    tw::record::SessionStats stats;
    stats.items.add(3);
    stats.items.add(4);
    json::object object;
    tw::record::add_distributions<tw::record::SnapshotDistributions>(object, stats);
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

using namespace tw::record;

TEST_CASE("only a complete, well-formed JSON object is accepted") {
    struct Row {
        const char* name;
        std::string text;
        bool object;
    };

    const auto nested = [](std::size_t depth) {
        return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + '}';
    };
    const Row rows[] = {
        {"empty", "{}", true},
        {"values of all kinds", R"({"a":[1,-2.5e3,true,false,null,"x",{"b":[]}]})", true},
        {"spaces", R"({ "a" : [ 1 , 2 ] } )", true},
        {"escapes", R"({"a":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"})", true},
        {"an integer beyond 64 bits", R"({"a":-123456789012345678901234567890})", true},
        {"a number beyond all types", R"({"a":[1e999,-0.1e+4000,12E-99999]})", true},
        {"one that is malformed as well", R"({"a":1e999,"b":01})", false},
        {"surrogates without a partner", R"({"a":"\ud800x\uDC00","b":"\ue999\\ud8"})", true},
        {"one that is malformed as well", R"({"a":"\ud800","b":"\ud8"})", false},
        {"UTF-8", "{\"a\":\"\u00e4\u20ac\U0001F600\"}", true},
        {"a tab between tokens", "{\t}", false},
        {"nothing", "", false},
        {"a list", "[1]", false},
        {"spaces first", " {}", false},
        {"something behind it", "{}x", false},
        {"another one behind it", "{}{}", false},
        {"a comma too many", R"({"a":1,})", false},
        {"a comma too few", R"({"a":1 "b":2})", false},
        {"no key", "{1:2}", false},
        {"brackets that do not belong together", R"({"a":{"b":1]})", false},
        {"a leading zero", R"({"a":01})", false},
        {"half a number", R"({"a":1.})", false},
        {"half a word", R"({"a":tru})", false},
        {"an escape that is none", R"({"a":"\x"})", false},
        {"half an escaped point", R"({"a":"\u00e"})", false},
        {"a comment", "{}/**/", false},
        {"a control byte in a string", "{\"a\":\"\x1f\"}", false},
        {"zeros", std::string{"{\"a\":\0\0}", 8}, false},
        {"a broken sequence of UTF-8", "{\"a\":\"\xC3\x28\"}", false},
        {"half a sequence of UTF-8", "{\"a\":\"\xE2\x82\"}", false},
        {"a longer form than needed", "{\"a\":\"\xC0\xAF\"}", false},
        {"a surrogate", "{\"a\":\"\xED\xA0\x80\"}", false},
        {"beyond Unicode", "{\"a\":\"\xF4\x90\x80\x80\"}", false},
        {"as deep as allowed", nested(31), true},
        {"too deep", nested(32), false},
        {"much too deep", std::string(100'000, '['), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(is_json_object(row.text) == row.object);
    }
    const std::string whole = rows[1].text + rows[3].text;
    for (std::size_t size = 0; size < rows[1].text.size(); ++size) {
        CHECK_FALSE(is_json_object(whole.substr(0, size)));
    }
}

TEST_CASE("is_json_object() agrees with Boost.JSON") {
    const std::string line =
        R"({"v":1,"t":"2026-11-21T16:15:00.000000Z","type":"snapshot","session":12,"ok":true,)"
        R"("crc_wanted":null,"items":[{"type":"character","id":3,"fields":{"x":-1.5e3,"y":0},)"
        "\"player\":\"\u00e4\u20ac\U0001F600\\\"\\u00e4\\n\"},{\"at\":{\"tile\":[7,-8]}}],"
        "\"removed\":[]}";
    constexpr std::string_view kBytes = "{}[]\",:\\ 019-+.eEtfnu/\xC3\xA9\xF0";
    std::mt19937 random{15}; // NOLINT(cert-msc51-cpp): the same ones every time
    int objects = 0;
    for (int round = 0; round < 50'000; ++round) {
        std::string text = line;
        for (unsigned changes = 1 + random() % 2; changes > 0; --changes) {
            const std::size_t at = random() % text.size();
            const char byte = kBytes[random() % kBytes.size()];
            switch (random() % 3) {
            case 0:
                text[at] = byte;
                break;
            case 1:
                text.insert(at, 1, byte);
                break;
            default:
                text.erase(at, 1 + random() % 3);
            }
        }
        boost::json::error_code error;
        const auto value = boost::json::parse(text, error);
        const bool object = !error && value.is_object() && text.starts_with('{');
        objects += object ? 1 : 0;
        CAPTURE(text);
        REQUIRE(is_json_object(text) == object);
    }
    CHECK(objects > 5'000);
    CHECK(objects < 45'000);
}

TEST_CASE("control bytes are found at any position") {
    for (const std::size_t size : {1U, 15U, 256U, 257U, 1'000U}) {
        for (std::size_t at = 0; at < size; ++at) {
            std::string text(size, '\x7f');
            CHECK_FALSE(has_control_bytes(text));
            text[at] = at % 2 == 0 ? '\0' : '\x1f';
            CHECK(has_control_bytes(text));
        }
    }
    CHECK_FALSE(has_control_bytes(""));
    CHECK_FALSE(has_control_bytes(" \xff\x80"));
}

TEST_CASE("a line is marked as repeated once, however often it is repeated") {
    const std::string line = R"({"type":"session"})";
    const std::string marked = R"({"type":"session","again":true})";
    CHECK_FALSE(is_repeated_record(line));
    CHECK(is_repeated_record(marked));
    CHECK(as_repeated_record(line) == marked);
    CHECK(as_repeated_record(marked) == marked);
}

TEST_CASE("values of another type count as missing") {
    const json::object object{{"yes", true}, {"no", false}, {"one", 1},
                              {"text", "a"}, {"list", {1}}, {"object", {{"a", 1}}}};
    for (const char* key : {"yes", "no", "one", "text", "list", "object", "nothing"}) {
        CAPTURE(key);
        const std::string_view name{key};
        CHECK(tw::record::flag_of(object, key) == (name == "yes"));
        CHECK(tw::record::number_of(object, key).has_value() == (name == "one"));
        CHECK(tw::record::text_of(object, key) == (name == "text" ? "a" : ""));
        CHECK((tw::record::list_of(object, key) != nullptr) == (name == "list"));
        CHECK((tw::record::object_of(object, key) != nullptr) == (name == "object"));
    }
    CHECK(tw::record::object_of(nullptr, "object") == nullptr);
}
