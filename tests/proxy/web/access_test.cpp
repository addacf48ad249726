// Covers: proxy/web/access.cpp
#include "proxy/web/access.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::web;

namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

unsigned refusal_status(const std::optional<Response>& refusal) {
    return refusal ? refusal->status : 200;
}

unsigned access_status(const Request& request, AccessLevel level, const AccessOptions& options) {
    return refusal_status(refuse_access(request, level, options));
}

unsigned origin_status(const Request& request, const AccessOptions& options) {
    return refusal_status(refuse_foreign_origin(request, options));
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
        CHECK(authorization_has_token(row.authorization, kToken) == row.shows);
        CHECK_FALSE(authorization_has_token(row.authorization, ""));
    }
}

TEST_CASE("the token may be sent as a subprotocol, in hex") {
    CHECK(token_in_protocols("twscope.live.1, bearer.6b657a") == "kez");
    CHECK(token_in_protocols("bearer.6B657A, other") == "kez");
    for (const auto* const none :
         {"", "twscope.live.1", "bearer.", "bearer.zz", "bearer.6G", "bearer.6b6", "bearer.+1"}) {
        CAPTURE(none);
        CHECK(token_in_protocols(none).empty());
    }
}

TEST_CASE("the connection's origin and the token decide what a request may do") {
    struct Row {
        std::string_view name;
        AccessLevel level;
        ConnectionOrigin way;
        bool network_may_read;
        unsigned without; ///< the status without the token; with it, all requests are allowed
    };

    using enum AccessLevel;
    constexpr auto kNetwork = ConnectionOrigin::network;
    constexpr auto kLoopback = ConnectionOrigin::loopback;
    constexpr auto kOwner = ConnectionOrigin::owner;
    const Row rows[] = {
        {"health from anywhere", health, kNetwork, false, 200},
        {"the page itself from anywhere", page, kNetwork, false, 200},
        {"reading on loopback", read, kLoopback, false, 200},
        {"reading from elsewhere", read, kNetwork, false, 401},
        {"reading from elsewhere, opened", read, kNetwork, true, 200},
        {"reading by the owner's socket", read, kOwner, false, 200},
        {"changing on loopback", change, kLoopback, false, 401},
        {"changing from elsewhere", change, kNetwork, false, 401},
        {"changing where reading is open", change, kNetwork, true, 401},
        {"changing by the owner's socket", change, kOwner, false, 200},
    };
    const std::string shown = "Bearer " + kToken;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const AccessOptions options{.token = kToken, .network_may_read = row.network_may_read};
        CHECK(access_status({.connection_origin = row.way}, row.level, options) == row.without);
        CHECK(access_status({.authorization = shown, .connection_origin = row.way}, row.level,
                            options) == 200);
        CHECK(access_status({.authorization = "Bearer nonsense", .connection_origin = row.way},
                            row.level, options) == row.without);
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
        CHECK(access_status({.authorization = shown,
                             .connection_origin = ConnectionOrigin::owner,
                             .is_reserved = true},
                            level, options) == 503);
    }
    CHECK(access_status({.connection_origin = ConnectionOrigin::network, .is_reserved = true},
                        AccessLevel::health, options) == 200);
}

TEST_CASE("a query value is found only by its whole name") {
    CHECK(query_value("a=1&b=2", "b") == "2");
    CHECK(query_value("ab=1&b=2", "b") == "2");
    CHECK(query_value("b=&b=2", "b") == "");
    for (const auto* const none : {"bb=1", "b", "", "&&&="}) {
        CAPTURE(none);
        CHECK_FALSE(query_value(none, "b"));
    }
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

TEST_CASE("only host names that no foreign page can have are accepted") {
    struct Row {
        std::string_view host;
        unsigned on_loopback;
        unsigned on_network;
    };

    const Row rows[] = {
        {"127.0.0.1:9303", 200, 200},
        {"127.0.0.1", 200, 200},
        {"localhost:8080", 200, 200},
        {"LocalHost", 200, 200},
        {"[::1]:9303", 200, 200},
        {"[::1]", 200, 200},
        {"192.168.1.7:9303", 200, 200},
        {"stats.example.org", 200, 200},
        {"Stats.Example.Org:443", 200, 200},
        {"twscope:9303", 421, 200},
        {"evil.example", 421, 421},
        {"evil.example:9303", 421, 421},
        {"127.0.0.1.evil.example", 421, 421},
        {"localhost.evil.example", 421, 421},
        {"127.0.0.1:9303@evil.example", 421, 421},
        {"[::1", 421, 421},
        {"[::1]evil", 421, 421},
        {":9303", 421, 421},
        {"localhost:", 200, 200},
        {"localhost:x", 421, 421},
        {"", 400, 400},
    };
    for (const Row& row : rows) {
        CAPTURE(row.host);
        Request request{.method = "GET",
                        .path = "/",
                        .host = row.host,
                        .connection_origin = ConnectionOrigin::loopback};
        CHECK(origin_status(request, {.hosts = {"stats.example.org"}}) == row.on_loopback);
        request.connection_origin = ConnectionOrigin::network;
        CHECK(origin_status(request, {.hosts = {"stats.example.org"}}) == row.on_network);
        request.connection_origin = ConnectionOrigin::owner;
        CHECK(origin_status(request, {.hosts = {"stats.example.org"}}) == 200);
    }
}

TEST_CASE("a request that changes something must come from our page or from no page") {
    struct Row {
        std::string_view name;
        std::string_view origin;
        std::string_view fetch_site;
        std::string_view type;
        unsigned status;
    };

    const Row rows[] = {
        {"curl", "", "", "text/plain", 200},
        {"our page", "http://127.0.0.1:9303", "same-origin", "text/plain;charset=UTF-8", 200},
        {"JSON", "", "", "Application/JSON", 200},
        {"typed into the address bar", "", "none", "text/plain", 200},
        {"another page", "http://evil.example", "cross-site", "text/plain", 403},
        {"another page, old browser", "http://evil.example", "", "text/plain", 403},
        {"another port here", "http://127.0.0.1:8000", "same-site", "text/plain", 403},
        {"a page with a hidden origin", "null", "", "text/plain", 403},
        {"our origin in another's", "http://evil.example/http://127.0.0.1:9303", "", "text/plain",
         403},
        {"a form", "", "", "application/x-www-form-urlencoded", 415},
        {"a form with files", "", "", "multipart/form-data; boundary=x", 415},
        {"no type", "", "", "", 415},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Request request{.method = "PUT",
                              .path = "/api/impairment",
                              .host = "127.0.0.1:9303",
                              .origin = row.origin,
                              .fetch_site = row.fetch_site,
                              .content_type = row.type,
                              .body = "none"};
        CHECK(origin_status(request, {}) == row.status);
    }
}
