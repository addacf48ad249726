// Covers: proxy/bus/commit_log.cpp
#include "proxy/bus/commit_log.h"

#include <iterator>
#include <random>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("numbers that follow each other are one range, in whatever order they come") {
    NumberSet set;
    CHECK(set.empty());
    CHECK(set.last() == 0);
    CHECK(set.count(0, UINT64_MAX) == 0);
    for (const std::uint64_t number : {7U, 3U, 5U, 4U, 9U, 8U, 3U}) {
        set.insert(number);
    }
    CHECK(set.text() == "3-5,7-9");
    set.insert(6);
    CHECK(set.text() == "3-9");
    set.insert(0);
    set.insert(UINT64_MAX);
    set.insert(UINT64_MAX - 1);
    CHECK(set.text() == "0,3-9,18446744073709551614-18446744073709551615");
    CHECK(set.contains(0));
    CHECK(set.contains(9));
    CHECK_FALSE(set.contains(10));
    CHECK_FALSE(set.contains(1));
    set.forget_before(5);
    CHECK(set.text() == "5-9,18446744073709551614-18446744073709551615");
}

TEST_CASE("a set holds what was put in, and its text says it") {
    std::mt19937 chance{1}; // NOLINT(cert-msc51-cpp): the same each time
    NumberSet set;
    std::set<std::uint64_t> truth;
    for (int i = 0; i < 2000; ++i) {
        const std::uint64_t first = chance() % 3000;
        const std::uint64_t last = first + chance() % 4;
        set.insert(first, last);
        for (std::uint64_t number = first; number <= last; ++number) {
            truth.insert(number);
        }
    }
    for (std::uint64_t number = 0; number < 3010; ++number) {
        CAPTURE(number);
        REQUIRE(set.contains(number) == truth.contains(number));
    }
    CHECK(NumberSet::read(set.text()) == set);
    CHECK(set.last() == *truth.rbegin());
    for (int i = 0; i < 200; ++i) {
        const std::uint64_t first = chance() % 3000;
        const std::uint64_t last = first + chance() % 100;
        CAPTURE(first);
        CAPTURE(last);
        REQUIRE(set.count(first, last) == static_cast<std::uint64_t>(std::distance(
                                              truth.lower_bound(first), truth.upper_bound(last))));
    }
}

TEST_CASE("a text that is no set is none") {
    for (const std::string_view text :
         {"1-", "-1", "a", "1,,2", "2-1", "1 ", "99999999999999999999", "1-2-3"}) {
        CAPTURE(text);
        CHECK_FALSE(NumberSet::read(text));
    }
    CHECK(NumberSet::read("") == NumberSet{});
}
