// Covers: proxy/web/access.cpp
#include "proxy/web/access.h"

#include <cstdint>

#include <doctest/doctest.h>

using tw::web::query_number;
using tw::web::query_text;
using tw::web::query_value;

TEST_CASE("a query value is found only by its whole name") {
    CHECK(query_value("a=1&b=2", "b") == "2");
    CHECK(query_value("ab=1&b=2", "b") == "2");
    CHECK(query_value("b=&b=2", "b") == "");
    CHECK_FALSE(query_value("bb=1", "b"));
    CHECK_FALSE(query_value("b", "b"));
    CHECK_FALSE(query_value("", "b"));
    CHECK_FALSE(query_value("&&&=", "b"));
}

TEST_CASE("escapes in query texts are decoded, and invalid ones refused") {
    CHECK(query_text("f=a%20b+c%3D%3d", "f") == "a b c==");
    CHECK(query_text("f=%e2%88%97", "f") == "\xe2\x88\x97");
    for (const auto* const damaged :
         {"f=%", "f=%2", "f=%2&x", "f=%zz", "f=a%2g", "f=%-1", "f=% 1"}) {
        CAPTURE(damaged);
        CHECK_FALSE(query_text(damaged, "f"));
    }
}

TEST_CASE("a query number must be a number as a whole and fit its type") {
    CHECK(query_number<std::uint32_t>("s=4294967295", "s") == 4294967295U);
    CHECK(query_number<double>("s=0.5", "s") == 0.5);
    for (const auto* const none : {"s=4294967296", "s=-1", "s=1x", "s=", "s= 1", "t=1"}) {
        CAPTURE(none);
        CHECK_FALSE(query_number<std::uint32_t>(none, "s"));
    }
}
