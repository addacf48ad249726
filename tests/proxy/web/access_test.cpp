#include "proxy/web/access.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::web;

namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

unsigned status(const Request& request, AccessLevel level, const AccessOptions& options) {
    const auto refusal = refuse_access(request, level, options);
    return refusal ? refusal->status : 200;
}

} // namespace

TEST_CASE("a request has the token only if it sends the whole token") {
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
        CHECK(has_token(row.authorization, kToken) == row.shows);
        CHECK_FALSE(has_token(row.authorization, ""));
    }
}

TEST_CASE("the connection's origin and the token decide what a request may do") {
    struct Row {
        std::string_view name;
        AccessLevel level;
        ConnectionOrigin way;
        bool open_reading;
        unsigned without;
        unsigned with;
    };

    const Row rows[] = {
        {"health from anywhere", AccessLevel::health, ConnectionOrigin::network, false, 200, 200},
        {"the page itself from anywhere", AccessLevel::page, ConnectionOrigin::network, false, 200,
         200},
        {"reading on loopback", AccessLevel::read, ConnectionOrigin::loopback, false, 200, 200},
        {"reading from elsewhere", AccessLevel::read, ConnectionOrigin::network, false, 401, 200},
        {"reading from elsewhere, opened", AccessLevel::read, ConnectionOrigin::network, true, 200,
         200},
        {"reading by the owner's socket", AccessLevel::read, ConnectionOrigin::owner, false, 200,
         200},
        {"changing on loopback", AccessLevel::change, ConnectionOrigin::loopback, false, 401, 200},
        {"changing from elsewhere", AccessLevel::change, ConnectionOrigin::network, false, 401,
         200},
        {"changing where reading is open", AccessLevel::change, ConnectionOrigin::network, true,
         401, 200},
        {"changing by the owner's socket", AccessLevel::change, ConnectionOrigin::owner, false, 200,
         200},
    };
    const std::string shown = "Bearer " + kToken;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const AccessOptions options{.token = kToken, .open_reading = row.open_reading};
        CHECK(status({.connection_origin = row.way}, row.level, options) == row.without);
        CHECK(status({.authorization = shown, .connection_origin = row.way}, row.level, options) ==
              row.with);
        CHECK(status({.authorization = "Bearer nonsense", .connection_origin = row.way}, row.level,
                     options) == row.without);
    }
}

TEST_CASE("the refusal of a request without the token says how to get the token") {
    const auto refusal =
        refuse_access({.connection_origin = ConnectionOrigin::network}, AccessLevel::change,
                      {.token = kToken, .token_hint = "ask the owner"});
    REQUIRE(refusal);
    CHECK(refusal->challenge == "Bearer realm=\"twscope\"");
    CHECK(refusal->body ==
          "this requires the token, as 'Authorization: Bearer TOKEN'; ask the owner\n");
}

TEST_CASE("a reserved connection gets only health answered, even with the token") {
    const AccessOptions options{.token = kToken};
    const std::string shown = "Bearer " + kToken;
    for (const AccessLevel level : {AccessLevel::page, AccessLevel::read, AccessLevel::change}) {
        CHECK(status({.authorization = shown,
                      .connection_origin = ConnectionOrigin::owner,
                      .is_reserved = true},
                     level, options) == 503);
    }
    CHECK(status({.connection_origin = ConnectionOrigin::network, .is_reserved = true},
                 AccessLevel::health, options) == 200);
}
