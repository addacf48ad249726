// Covers: proxy/bus/subjects.cpp
#include "proxy/bus/subjects.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("run ids are UUIDs of version 7, and no two are equal") {
    std::set<std::string> ids;
    for (int i = 0; i < 100; ++i) {
        const std::string id = make_run_id();
        CAPTURE(id);
        REQUIRE(id.size() == 36);
        CHECK(id.find_first_not_of("0123456789abcdef-") == std::string::npos);
        CHECK(id[8] == '-');
        CHECK(id[14] == '7');
        CHECK((id[19] == '8' || id[19] == '9' || id[19] == 'a' || id[19] == 'b'));
        CHECK(ids.insert(id).second);
    }
    CHECK(ids.begin()->substr(0, 6) == ids.rbegin()->substr(0, 6)); // made within the same hours
}
