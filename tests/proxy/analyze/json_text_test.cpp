#include "proxy/analyze/json_text.h"

#include <limits>
#include <string_view>

#include <boost/json.hpp>
#include <doctest/doctest.h>

namespace tw::analyze {

TEST_CASE("a value is one line with a space after each comma and colon") {
    struct Row {
        boost::json::value value;
        std::string_view text;
    };

    const Row rows[] = {
        {nullptr, "null"},
        {true, "true"},
        {-5, "-5"},
        {std::numeric_limits<std::int64_t>::min(), "-9223372036854775808"},
        {std::numeric_limits<std::uint64_t>::max(), "18446744073709551615"},
        {3.5, "3.5"},
        {-100.0, "-100"},
        {1e300, "1e+300"},
        {std::numeric_limits<double>::infinity(), "null"},
        {boost::json::array{}, "[]"},
        {boost::json::object{}, "{}"},
        {{1, "b", nullptr}, R"([1, "b", null])"},
        {boost::json::object{{"a", 1}, {"b", {1, 2, 3}}}, R"({"a": 1, "b": [1, 2, 3]})"},
        {"a\"\\\n\x7f\xc3\xa9", "\"a\\\"\\\\\\u000a\\u007f\xc3\xa9\""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CHECK(json_text(row.value) == row.text);
    }
}

TEST_CASE("a byte that is not UTF-8 becomes the replacement character") {
    CHECK(utf8_text("caf\xc3\xa9") == "caf\xc3\xa9");
    CHECK(utf8_text("caf\xe9!") == "caf\xef\xbf\xbd!");
    CHECK(utf8_text("\xc0\x80") == "\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(utf8_text("").empty());
}

TEST_CASE("flag_of() is true only for the value true") {
    const boost::json::object object{{"a", true}, {"b", false}, {"c", 1}};
    CHECK(flag_of(object, "a"));
    for (const char* key : {"b", "c", "d"}) {
        CHECK_FALSE(flag_of(object, key));
    }
}

} // namespace tw::analyze
