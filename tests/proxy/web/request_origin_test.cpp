// Covers: proxy/web/access.cpp
#include "proxy/web/access.h"

#include <optional>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using tw::web::ConnectionOrigin;
using tw::web::OriginOptions;
using tw::web::refuse_foreign_origin;
using tw::web::Request;

namespace {

unsigned status(const Request& request, const OriginOptions& options) {
    const auto refusal = refuse_foreign_origin(request, options);
    return refusal ? refusal->status : 200;
}

} // namespace

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
        CHECK(status(request, {.hosts = {"stats.example.org"}}) == row.on_loopback);
        request.connection_origin = ConnectionOrigin::network;
        CHECK(status(request, {.hosts = {"stats.example.org"}}) == row.on_network);
        request.connection_origin = ConnectionOrigin::owner;
        CHECK(status(request, {.hosts = {"stats.example.org"}}) == 200);
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
        CHECK(status(request, {}) == row.status);
    }
}
