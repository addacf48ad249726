#include "proxy/web/admin.h"
#include "proxy/web/http_server.h"
#include "tests/proxy/web/http_client.h"
#include "tests/proxy/web/sample_state.h"

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using tw::test::kPageToken;
using tw::test::response_body;
using tw::test::response_status;
using tw::test::send_get_request;
using tw::test::send_http_request;
using tw::web::AdminServer;
using tw::web::Health;

namespace {

const std::string kAuthorization = "Authorization: Bearer " + kPageToken + "\r\n";

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kHtml = "text/html; charset=utf-8";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kOk = "HTTP/1.1 200 OK";
constexpr std::string_view kBadRequest = "HTTP/1.1 400 Bad Request";
constexpr std::string_view kUnauthorized = "HTTP/1.1 401 Unauthorized";
constexpr std::string_view kNotFound = "HTTP/1.1 404 Not Found";
constexpr std::string_view kUnavailable = "HTTP/1.1 503 Service Unavailable";

/// The page of a run whose health and impairment a test can set.
struct AdminPage : tw::test::SamplePageData {
    AdminPage() { admin.start(); }

    std::atomic<bool> is_ready{true};
    std::atomic<bool> is_alive{true};
    std::atomic<bool> is_readiness_delayed{false};           ///< /readyz gets no answer yet
    std::vector<std::function<void(Health)>> delayed_checks; ///< used by the server's thread only
    std::string impairment = "none";                         ///< used by the server's thread only
    std::vector<std::uint32_t> written_sessions; ///< sessions that the flight recorder wrote
    AdminServer admin{{.token = kPageToken}, tw::test::listen_on_any_port(), *this};

    tw::web::RunState state() const override {
        auto state = tw::test::sample_run_state();
        state.impairment = impairment;
        state.recording.has_flight_recorder = true;
        return state;
    }

    Health check_liveness() const override {
        return {.ok = is_alive, .text = is_alive ? "ok" : "it hangs"};
    }

    void check_readiness(std::function<void(Health)> done) override {
        if (is_readiness_delayed) {
            delayed_checks.push_back(std::move(done));
            return;
        }
        done(Health{.ok = is_ready, .text = is_ready ? "ok" : "the server is gone"});
    }

    tl::expected<void, std::string> set_impairment(const std::string& text) override {
        if (text == "nonsense") {
            return tl::unexpected{std::string{"'nonsense' is none"}};
        }
        impairment = text;
        return {};
    }

    bool write_flight_recording(std::uint32_t session) override {
        written_sessions.push_back(session);
        return session < 77;
    }

    std::optional<std::string> explain_finding(std::uint32_t session,
                                               std::int64_t tick) const override {
        return session == 1 && tick == 12 ? std::optional<std::string>{"once upon a tick\n"}
                                          : std::nullopt;
    }

    [[nodiscard]] std::uint16_t port() const { return admin.server().port(); }

    [[nodiscard]] std::string put_impairment(const std::string& text,
                                             const std::string& type = "text/plain",
                                             const std::string& more = kAuthorization,
                                             const std::string& query = "") const {
        return send_http_request(port(),
                                 "PUT /api/impairment" + query +
                                     " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + type +
                                     "\r\nContent-Length: " + std::to_string(text.size()) + "\r\n" +
                                     more + "\r\n" + text);
    }
};

} // namespace

TEST_CASE("every path answers with its status and content type") {
    struct Row {
        std::string path;
        std::string_view status;
        std::string_view type;
        std::string_view holds;
    };

    const Row rows[] = {
        {"/", kOk, kHtml, "<title>twscope</title>"},
        {"/?x", kOk, kHtml, "<title>twscope</title>"},
        {"/healthz", kOk, kText, "ok"},
        {"/readyz", kOk, kText, "ok"},
        {"/metrics", kOk, "text/plain; version=0.0.4; charset=utf-8",
         "# TYPE twscope_sessions gauge"},
        {"/api/state", kOk, kJson, R"("server":"127.0.0.1:8304")"},
        {"/api/impairment", kOk, kText, "none"},
        {"/api/explain?session=1&tick=12", kOk, kText, "once upon a tick"},
        {"/api/explain?x&tick=12&&session=1", kOk, kText, "once upon a tick"},
        {"/api/explain?session=2&tick=12", kNotFound, kText,
         "only the latest findings about snapshots"},
        {"/api/explain", kBadRequest, kText, "name a finding"},
        {"/api/explain?session=1", kBadRequest, kText, "name a finding"},
        {"/api/explain?session=1&tick=", kBadRequest, kText, "name a finding"},
        {"/api/explain?session=-1&tick=12", kBadRequest, kText, "name a finding"},
        {"/api/explain?session=99999999999&tick=12", kBadRequest, kText, "name a finding"},
        {"/api/explain?sessions=1&tick=12x", kBadRequest, kText, "name a finding"},
        {"/api/sessions?server=", kOk, kJson, R"("seen_by_inspection":1,)"},
        {"/api/sessions?server=ctf", kOk, kJson, R"("seen_by_inspection":0,"sessions":[])"},
        {"/api/sessions?server=%zz", kBadRequest, kText, "percent-encode server"},
        {"/favicon.ico", kNotFound, kText, "not found"},
        {"/../etc/passwd", kNotFound, kText, "not found"},
        {"/metrics/", kNotFound, kText, "not found"},
    };
    const AdminPage page;
    for (const Row& row : rows) {
        CAPTURE(row.path);
        const std::string answer = send_get_request(page.port(), row.path);
        CHECK(response_status(answer) == row.status);
        CHECK(answer.find("Content-Type: " + std::string{row.type} + "\r\n") != std::string::npos);
        CHECK(response_body(answer).find(row.holds) != std::string::npos);
    }
}

TEST_CASE_FIXTURE(
    AdminPage, "a server that does not answer makes /readyz fail, a process that hangs /healthz") {
    is_ready = false;
    const std::string answer = send_get_request(port(), "/readyz");
    CHECK(response_status(answer) == kUnavailable);
    CHECK(response_body(answer) == "the server is gone\n");
    CHECK(response_body(send_get_request(port(), "/healthz")) == "ok\n");
    is_alive = false;
    CHECK(response_status(send_get_request(port(), "/healthz")) == kUnavailable);
    CHECK(response_body(send_get_request(port(), "/healthz")) == "it hangs\n");
}

TEST_CASE_FIXTURE(AdminPage,
                  "on a reserved connection, /readyz answers at once with the last known result") {
    is_readiness_delayed = true;
    const std::string request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::list<tw::test::HttpClient> clients;
    for (std::size_t i = 0; i < tw::web::ConnectionLimiter::kMaxUnreservedPerPeer; ++i) {
        CHECK(clients.emplace_back(port()).send(request));
    }
    for (std::size_t i = 0; i < 2 * tw::web::ConnectionLimiter::kMaxReservedPerPeer; ++i) {
        const std::string answer = send_get_request(port(), "/readyz");
        CHECK(response_status(answer) == kUnavailable);
        CHECK(response_body(answer) == "too many requests; try again\n");
        CHECK(response_body(send_get_request(port(), "/healthz")) == "ok\n");
    }
    is_readiness_delayed = false;
    CHECK(response_body(send_get_request(port(), "/readyz")) == "too many requests; try again\n");
    CHECK(response_body(send_get_request(port(), "/readyz")) == "ok\n");
    admin.stop();
    delayed_checks.clear();
}

TEST_CASE("only a request with the token in its header changes the impairment") {
    struct Row {
        std::string_view name;
        std::string headers;
        std::string query;
        std::string_view status;
    };

    const Row rows[] = {
        {"in its place", kAuthorization, "", kOk},
        {"missing", "", "", kUnauthorized},
        {"wrong", "Authorization: Bearer wrong-horse-battery-staple\r\n", "", kUnauthorized},
        {"in the query", "", "?token=" + kPageToken, kUnauthorized},
        {"in a cookie", "Cookie: token=" + kPageToken + "\r\n", "", kUnauthorized},
        {"in another header", "X-Token: " + kPageToken + "\r\n", "", kUnauthorized},
        {"as a password", "Authorization: Basic " + kPageToken + "\r\n", "", kUnauthorized},
        {"twice", kAuthorization + kAuthorization, "", kUnauthorized},
        {"behind a wrong one", "Authorization: Bearer nonsense\r\n" + kAuthorization, "",
         kUnauthorized},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        AdminPage page;
        CHECK(response_status(page.put_impairment("loss=1%", "text/plain", row.headers,
                                                  row.query)) == row.status);
        CHECK(response_body(send_get_request(page.port(), "/api/impairment")) ==
              (row.status == kOk ? "loss=1%\n" : "none\n"));
    }
    AdminPage page;
    page.admin.set_token("another-one-from-now-on");
    CHECK(response_status(page.put_impairment("loss=1%")) == kUnauthorized);
    CHECK(
        page.put_impairment("loss=1%", "text/plain", "").find("WWW-Authenticate: Bearer realm=") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(AdminPage, "PUT sets the impairment, and an invalid text changes nothing") {
    CHECK(response_body(put_impairment("s2c:loss=2%\n")) == "s2c:loss=2%\n");
    CHECK(response_body(send_get_request(port(), "/api/impairment")) == "s2c:loss=2%\n");
    const std::string refused = put_impairment("nonsense");
    CHECK(response_status(refused) == kBadRequest);
    CHECK(response_body(refused) == "'nonsense' is none\n");
    CHECK(response_status(put_impairment("")) == kBadRequest);
    CHECK(response_status(put_impairment("none", "application/x-www-form-urlencoded")) ==
          "HTTP/1.1 415 Unsupported Media Type");
    CHECK(response_body(send_get_request(port(), "/api/impairment")) == "s2c:loss=2%\n");
}

TEST_CASE_FIXTURE(AdminPage,
                  "an unsupported method is refused, and the response names the allowed ones") {
    for (const std::string method : {"POST", "DELETE", "OPTIONS", "TRACE"}) {
        CAPTURE(method);
        const std::string answer = send_http_request(
            port(), method + " /api/impairment HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK(response_status(answer) == "HTTP/1.1 405 Method Not Allowed");
        CHECK(answer.find("Allow: GET, PUT\r\n") != std::string::npos);
        CHECK(answer.find("Access-Control") == std::string::npos);
    }
}

TEST_CASE_FIXTURE(AdminPage, "a request for an unknown host name is refused") {
    CHECK(response_status(send_get_request(port(), "/api/state", "Host: evil.example\r\n")) ==
          "HTTP/1.1 421 Misdirected Request");
    CHECK(response_status(send_get_request(port(), "/api/state", "")) == kBadRequest);
}

TEST_CASE_FIXTURE(
    AdminPage, "a health check is answered for any Host header and for none, other paths are not") {
    for (const std::string path : {"/healthz", "/readyz"}) {
        CAPTURE(path);
        const std::string wanted = response_status(
            send_http_request(port(), "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        for (const std::string more :
             {" HTTP/1.0\r\n\r\n", " HTTP/1.1\r\nHost: game.example.org\r\n\r\n",
              " HTTP/1.1\r\nHost: haproxy\r\nConnection: close\r\n\r\n"}) {
            CAPTURE(more);
            for (const std::string method : {"GET ", "HEAD ", "OPTIONS "}) { // HAProxy's default
                CAPTURE(method);
                CHECK(response_status(send_http_request(port(), method + path + more)) == wanted);
            }
        }
        CHECK(response_status(send_http_request(port(), "POST " + path + " HTTP/1.0\r\n\r\n")) ==
              kBadRequest);
    }
    for (const std::string method : {"GET", "OPTIONS"}) {
        CHECK(response_status(send_http_request(port(), method + " /metrics HTTP/1.0\r\n\r\n")) ==
              kBadRequest);
    }
}

TEST_CASE_FIXTURE(AdminPage, "with the token, the flight recorder writes one session or all") {
    struct Row {
        std::string line; ///< the request's first words
        std::string headers;
        std::string_view status;
    };

    const Row rows[] = {{"POST /api/flight", kAuthorization, " 200 "},
                        {"POST /api/flight?session=3", kAuthorization, " 200 "},
                        {"POST /api/flight?session=x", kAuthorization, " 400 "},
                        {"POST /api/flight", "", " 401 "},
                        {"GET /api/flight", "", " 405 "},
                        {"POST /api/flight?session=77", kAuthorization, " 404 "}};
    for (const Row& row : rows) {
        CAPTURE(row.line);
        const std::string answer = send_http_request(
            port(), row.line + " HTTP/1.1\r\nHost: localhost\r\n" + row.headers + "\r\n");
        CHECK(response_status(answer).find(row.status) != std::string::npos);
    }
    CHECK(written_sessions == std::vector<std::uint32_t>{0, 3, 77});
}
