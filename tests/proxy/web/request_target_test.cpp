// Covers: proxy/web/http_server.cpp
#include "proxy/web/http_server.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::web::read_request_target;

TEST_CASE("a request target has the same path and query with and without a host") {
    struct Row {
        std::string_view text;
        std::string_view path;
        std::string_view query;
        std::string_view host; ///< empty if the target has no host
    };

    const Row rows[] = {
        {"/", "/", "", ""},
        {"/api/state", "/api/state", "", ""},
        {"/api/log?a=1&b=/?", "/api/log", "a=1&b=/?", ""},
        {"/x?", "/x", "", ""},
        {"*", "*", "", ""},
        {"http://localhost/healthz", "/healthz", "", "localhost"},
        {"HTTP://[::1]:9303/x?y=http://z/", "/x", "y=http://z/", "[::1]:9303"},
        {"http://localhost", "/", "", "localhost"},
        {"http://localhost?y", "/", "y", "localhost"},
        {"http:/x", "http:/x", "", ""},
        {"/http://localhost/", "/http://localhost/", "", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const auto target = read_request_target(row.text);
        CHECK(target.path == row.path);
        CHECK(target.query == row.query);
        CHECK(target.host.value_or("") == row.host);
        CHECK(target.host.has_value() == !row.host.empty());
    }
    CHECK(read_request_target("http:///x").host == "");
}
