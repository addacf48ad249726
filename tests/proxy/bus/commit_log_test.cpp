#include "proxy/bus/commit_log.h"

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a commit names its batch and the places of its records") {
    NumberSet places;
    places.insert(3, 5);
    places.insert(9);
    CHECK(commit_text("batch", places) == "batch 3-5,9");
    CHECK(commit_text("fence", {}) == "fence ");
}
