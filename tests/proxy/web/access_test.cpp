#include "proxy/web/access.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::web;

namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

unsigned status(const Request& request, Right right, const AccessOptions& options) {
    const auto refusal = refuse_access(request, right, options);
    return refusal ? refusal->status : 200;
}

} // namespace

TEST_CASE("only the token, and all of it, is the token") {
    struct Row {
        std::string_view name;
        std::string authorization;
        bool shows;
    };

    const Row rows[] = {
        {"as it should be", "Bearer " + kToken, true},
        {"a scheme in other letters", "bEARER " + kToken, true},
        {"more than one blank", "Bearer   " + kToken, true},
        {"nothing", "", false},
        {"no scheme", kToken, false},
        {"no token", "Bearer", false},
        {"no token behind a blank", "Bearer ", false},
        {"another scheme", "Basic " + kToken, false},
        {"a scheme that begins like it", "Bear " + kToken, false},
        {"a scheme that goes on", "Bearers " + kToken, false},
        {"cut off", "Bearer " + kToken.substr(1), false},
        {"cut off at the end", "Bearer " + kToken.substr(0, kToken.size() - 1), false},
        {"and more", "Bearer " + kToken + "0", false},
        {"twice", "Bearer " + kToken + ", Bearer " + kToken, false},
        {"in other letters", "Bearer 0123456789ABCDEF0123456789ABCDEF", false},
        {"a blank behind it", "Bearer " + kToken + " ", false},
        {"quoted", "Bearer \"" + kToken + "\"", false},
        {"a NUL in it", "Bearer " + kToken + std::string(1, '\0'), false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(shows_token(row.authorization, kToken) == row.shows);
        CHECK_FALSE(shows_token(row.authorization, ""));
    }
}

TEST_CASE("what may be done depends on how one came, and on the token") {
    struct Row {
        std::string_view name;
        Right right;
        Way way;
        bool open_reading;
        unsigned without;
        unsigned with;
    };

    const Row rows[] = {
        {"health from anywhere", Right::health, Way::network, false, 200, 200},
        {"the page itself from anywhere", Right::page, Way::network, false, 200, 200},
        {"reading on loopback", Right::read, Way::loopback, false, 200, 200},
        {"reading from elsewhere", Right::read, Way::network, false, 401, 200},
        {"reading from elsewhere, opened", Right::read, Way::network, true, 200, 200},
        {"reading by the owner's socket", Right::read, Way::owner, false, 200, 200},
        {"changing on loopback", Right::change, Way::loopback, false, 401, 200},
        {"changing from elsewhere", Right::change, Way::network, false, 401, 200},
        {"changing where reading is open", Right::change, Way::network, true, 401, 200},
        {"changing by the owner's socket", Right::change, Way::owner, false, 200, 200},
    };
    const std::string shown = "Bearer " + kToken;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const AccessOptions options{.token = kToken, .open_reading = row.open_reading};
        CHECK(status({.way = row.way}, row.right, options) == row.without);
        CHECK(status({.authorization = shown, .way = row.way}, row.right, options) == row.with);
        CHECK(status({.authorization = "Bearer nonsense", .way = row.way}, row.right, options) ==
              row.without);
    }
}

TEST_CASE("who has no token is told how to come by it") {
    const auto refusal = refuse_access({.way = Way::network}, Right::change,
                                       {.token = kToken, .how = "ask the owner"});
    REQUIRE(refusal);
    CHECK(refusal->challenge == "Bearer realm=\"twscope\"");
    CHECK(refusal->body ==
          "this requires the token, as 'Authorization: Bearer TOKEN'; ask the owner\n");
}

TEST_CASE("in a spare seat only health is answered, whoever asks") {
    const AccessOptions options{.token = kToken};
    const std::string shown = "Bearer " + kToken;
    for (const Right right : {Right::page, Right::read, Right::change}) {
        CHECK(status({.authorization = shown, .way = Way::owner, .spare = true}, right, options) ==
              503);
    }
    CHECK(status({.way = Way::network, .spare = true}, Right::health, options) == 200);
}
