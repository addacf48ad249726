// Covers: proxy/web/access.cpp
#include "proxy/web/access.h"

#include <cstdint>

#include <doctest/doctest.h>

using tw::web::number_in;
using tw::web::text_in;
using tw::web::value_in;

TEST_CASE("values are found by their whole name") {
    CHECK(value_in("a=1&b=2", "b") == "2");
    CHECK(value_in("ab=1&b=2", "b") == "2");
    CHECK(value_in("b=&b=2", "b") == "");
    CHECK_FALSE(value_in("bb=1", "b"));
    CHECK_FALSE(value_in("b", "b"));
    CHECK_FALSE(value_in("", "b"));
    CHECK_FALSE(value_in("&&&=", "b"));
}

TEST_CASE("escapes in texts are read, and damaged ones refused") {
    CHECK(text_in("f=a%20b+c%3D%3d", "f") == "a b c==");
    CHECK(text_in("f=%e2%88%97", "f") == "\xe2\x88\x97");
    for (const auto* const damaged :
         {"f=%", "f=%2", "f=%2&x", "f=%zz", "f=a%2g", "f=%-1", "f=% 1"}) {
        CAPTURE(damaged);
        CHECK_FALSE(text_in(damaged, "f"));
    }
}

TEST_CASE("numbers are whole texts, within their type") {
    CHECK(number_in<std::uint32_t>("s=4294967295", "s") == 4294967295U);
    CHECK(number_in<double>("s=0.5", "s") == 0.5);
    for (const auto* const none : {"s=4294967296", "s=-1", "s=1x", "s=", "s= 1", "t=1"}) {
        CAPTURE(none);
        CHECK_FALSE(number_in<std::uint32_t>(none, "s"));
    }
}
