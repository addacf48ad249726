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

using tw::test::ask;
using tw::test::body_of;
using tw::test::get;
using tw::test::status_of;
using tw::web::AdminServer;
using tw::web::Health;

namespace {

const std::string kToken = "correct-horse-battery-staple";
const std::string kAuthorization = "Authorization: Bearer " + kToken + "\r\n";

/// The page of a run whose health and impairment a test can set.
struct Page : tw::test::SamplePage {
    Page() { admin.start(); }

    std::atomic<bool> well{true};
    std::atomic<bool> turns{true};
    std::atomic<bool> silent{false};                  ///< /readyz gets no answer yet
    std::vector<std::function<void(Health)>> waiting; ///< used by the server's thread only
    std::string impairment = "none";                  ///< used by the server's thread only
    std::vector<std::uint32_t> written;               ///< sessions that the flight recorder wrote
    AdminServer admin{{.token = kToken}, tw::test::listen_on_any_port(), *this};

    tw::web::RunState state() const override {
        auto state = tw::test::sample_state();
        state.impairment = impairment;
        state.recording.has_flight = true;
        return state;
    }

    Health check_liveness() const override {
        return {.ok = turns, .text = turns ? "ok" : "it hangs"};
    }

    void check_readiness(std::function<void(Health)> done) override {
        if (silent) {
            waiting.push_back(std::move(done));
            return;
        }
        done(Health{.ok = well, .text = well ? "ok" : "the server is gone"});
    }

    tl::expected<void, std::string> set_impairment(const std::string& text) override {
        if (text == "nonsense") {
            return tl::unexpected{std::string{"'nonsense' is none"}};
        }
        impairment = text;
        return {};
    }

    bool write_flight_data(std::uint32_t session) override {
        written.push_back(session);
        return session < 77;
    }

    std::optional<std::string> explain_finding(std::uint32_t session,
                                               std::int64_t tick) const override {
        return session == 1 && tick == 12 ? std::optional<std::string>{"once upon a tick\n"}
                                          : std::nullopt;
    }

    [[nodiscard]] std::uint16_t port() const { return admin.server().port(); }

    [[nodiscard]] std::string put(const std::string& text, const std::string& type = "text/plain",
                                  const std::string& more = kAuthorization,
                                  const std::string& query = "") const {
        return ask(port(), "PUT /api/impairment" + query +
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
        {"/", "HTTP/1.1 200 OK", "text/html; charset=utf-8", "<title>twscope</title>"},
        {"/?x", "HTTP/1.1 200 OK", "text/html; charset=utf-8", "<title>twscope</title>"},
        {"/healthz", "HTTP/1.1 200 OK", "text/plain; charset=utf-8", "ok"},
        {"/readyz", "HTTP/1.1 200 OK", "text/plain; charset=utf-8", "ok"},
        {"/metrics", "HTTP/1.1 200 OK", "text/plain; version=0.0.4; charset=utf-8",
         "# TYPE twscope_sessions gauge"},
        {"/api/state", "HTTP/1.1 200 OK", "application/json", R"("server":"127.0.0.1:8304")"},
        {"/api/impairment", "HTTP/1.1 200 OK", "text/plain; charset=utf-8", "none"},
        {"/api/explain?session=1&tick=12", "HTTP/1.1 200 OK", "text/plain; charset=utf-8",
         "once upon a tick"},
        {"/api/explain?x&tick=12&&session=1", "HTTP/1.1 200 OK", "text/plain; charset=utf-8",
         "once upon a tick"},
        {"/api/explain?session=2&tick=12", "HTTP/1.1 404 Not Found", "text/plain; charset=utf-8",
         "no story is kept"},
        {"/api/explain", "HTTP/1.1 400 Bad Request", "text/plain; charset=utf-8", "name a finding"},
        {"/api/explain?session=1", "HTTP/1.1 400 Bad Request", "text/plain; charset=utf-8",
         "name a finding"},
        {"/api/explain?session=1&tick=", "HTTP/1.1 400 Bad Request", "text/plain; charset=utf-8",
         "name a finding"},
        {"/api/explain?session=-1&tick=12", "HTTP/1.1 400 Bad Request", "text/plain; charset=utf-8",
         "name a finding"},
        {"/api/explain?session=99999999999&tick=12", "HTTP/1.1 400 Bad Request",
         "text/plain; charset=utf-8", "name a finding"},
        {"/api/explain?sessions=1&tick=12x", "HTTP/1.1 400 Bad Request",
         "text/plain; charset=utf-8", "name a finding"},
        {"/api/sessions?server=", "HTTP/1.1 200 OK", "application/json",
         R"("seen_by_inspection":1,)"},
        {"/api/sessions?server=ctf", "HTTP/1.1 200 OK", "application/json",
         R"("seen_by_inspection":0,"sessions":[])"},
        {"/api/sessions?server=%zz", "HTTP/1.1 400 Bad Request", "text/plain; charset=utf-8",
         "percent-encode server"},
        {"/favicon.ico", "HTTP/1.1 404 Not Found", "text/plain; charset=utf-8", "not found"},
        {"/../etc/passwd", "HTTP/1.1 404 Not Found", "text/plain; charset=utf-8", "not found"},
        {"/metrics/", "HTTP/1.1 404 Not Found", "text/plain; charset=utf-8", "not found"},
    };
    const Page page;
    for (const Row& row : rows) {
        CAPTURE(row.path);
        const std::string answer = get(page.port(), row.path);
        CHECK(status_of(answer) == row.status);
        CHECK(answer.find("Content-Type: " + std::string{row.type} + "\r\n") != std::string::npos);
        CHECK(body_of(answer).find(row.holds) != std::string::npos);
    }
}

TEST_CASE_FIXTURE(
    Page, "a server that does not answer makes /readyz fail, a process that hangs /healthz") {
    well = false;
    const std::string answer = get(port(), "/readyz");
    CHECK(status_of(answer) == "HTTP/1.1 503 Service Unavailable");
    CHECK(body_of(answer) == "the server is gone\n");
    CHECK(body_of(get(port(), "/healthz")) == "ok\n");
    turns = false;
    CHECK(status_of(get(port(), "/healthz")) == "HTTP/1.1 503 Service Unavailable");
    CHECK(body_of(get(port(), "/healthz")) == "it hangs\n");
}

TEST_CASE_FIXTURE(Page,
                  "on a reserved connection, /readyz answers at once with the last known result") {
    silent = true;
    const std::string request = "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::list<tw::test::HttpClient> clients;
    for (std::size_t i = 0; i < tw::web::ConnectionLimiter::kOfPeer; ++i) {
        CHECK(clients.emplace_back(port()).send(request));
    }
    for (std::size_t i = 0; i < 2 * tw::web::ConnectionLimiter::kReservedOfPeer; ++i) {
        const std::string answer = get(port(), "/readyz");
        CHECK(status_of(answer) == "HTTP/1.1 503 Service Unavailable");
        CHECK(body_of(answer) == "too many requests; try again\n");
        CHECK(body_of(get(port(), "/healthz")) == "ok\n");
    }
    silent = false;
    CHECK(body_of(get(port(), "/readyz")) == "too many requests; try again\n");
    CHECK(body_of(get(port(), "/readyz")) == "ok\n");
    admin.stop();
    waiting.clear();
}

TEST_CASE("only a request with the token in its header changes the impairment") {
    struct Row {
        std::string_view name;
        std::string headers;
        std::string query;
        std::string_view status;
    };

    constexpr std::string_view kDone = "HTTP/1.1 200 OK";
    constexpr std::string_view kRefused = "HTTP/1.1 401 Unauthorized";
    const Row rows[] = {
        {"in its place", kAuthorization, "", kDone},
        {"missing", "", "", kRefused},
        {"wrong", "Authorization: Bearer wrong-horse-battery-staple\r\n", "", kRefused},
        {"in the query", "", "?token=" + kToken, kRefused},
        {"in a cookie", "Cookie: token=" + kToken + "\r\n", "", kRefused},
        {"in another header", "X-Token: " + kToken + "\r\n", "", kRefused},
        {"as a password", "Authorization: Basic " + kToken + "\r\n", "", kRefused},
        {"twice", kAuthorization + kAuthorization, "", kRefused},
        {"behind a wrong one", "Authorization: Bearer nonsense\r\n" + kAuthorization, "", kRefused},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Page page;
        CHECK(status_of(page.put("loss=1%", "text/plain", row.headers, row.query)) == row.status);
        CHECK(body_of(get(page.port(), "/api/impairment")) ==
              (row.status == kDone ? "loss=1%\n" : "none\n"));
    }
    Page page;
    page.admin.set_token("another-one-from-now-on");
    CHECK(status_of(page.put("loss=1%")) == kRefused);
    CHECK(page.put("loss=1%", "text/plain", "").find("WWW-Authenticate: Bearer realm=") !=
          std::string::npos);
}

TEST_CASE_FIXTURE(Page, "PUT sets the impairment, and an invalid text changes nothing") {
    CHECK(body_of(put("s2c:loss=2%\n")) == "s2c:loss=2%\n");
    CHECK(body_of(get(port(), "/api/impairment")) == "s2c:loss=2%\n");
    const std::string refused = put("nonsense");
    CHECK(status_of(refused) == "HTTP/1.1 400 Bad Request");
    CHECK(body_of(refused) == "'nonsense' is none\n");
    CHECK(status_of(put("")) == "HTTP/1.1 400 Bad Request");
    CHECK(status_of(put("none", "application/x-www-form-urlencoded")) ==
          "HTTP/1.1 415 Unsupported Media Type");
    CHECK(body_of(get(port(), "/api/impairment")) == "s2c:loss=2%\n");
}

TEST_CASE_FIXTURE(Page,
                  "an unsupported method is refused, and the response names the allowed ones") {
    for (const std::string method : {"POST", "DELETE", "OPTIONS", "TRACE"}) {
        CAPTURE(method);
        const std::string answer =
            ask(port(), method + " /api/impairment HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK(status_of(answer) == "HTTP/1.1 405 Method Not Allowed");
        CHECK(answer.find("Allow: GET, PUT\r\n") != std::string::npos);
        CHECK(answer.find("Access-Control") == std::string::npos);
    }
}

TEST_CASE_FIXTURE(Page, "a request for an unknown host name is refused") {
    CHECK(status_of(get(port(), "/api/state", "Host: evil.example\r\n")) ==
          "HTTP/1.1 421 Misdirected Request");
    CHECK(status_of(get(port(), "/api/state", "")) == "HTTP/1.1 400 Bad Request");
}

TEST_CASE_FIXTURE(
    Page, "a health check is answered for any Host header and for none, other paths are not") {
    for (const std::string path : {"/healthz", "/readyz"}) {
        CAPTURE(path);
        const std::string wanted =
            status_of(ask(port(), "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        for (const std::string more :
             {" HTTP/1.0\r\n\r\n", " HTTP/1.1\r\nHost: game.example.org\r\n\r\n",
              " HTTP/1.1\r\nHost: haproxy\r\nConnection: close\r\n\r\n"}) {
            CAPTURE(more);
            CHECK(status_of(ask(port(), "GET " + path + more)) == wanted);
            CHECK(status_of(ask(port(), "HEAD " + path + more)) == wanted);
        }
        CHECK(status_of(ask(port(), "POST " + path + " HTTP/1.0\r\n\r\n")) ==
              "HTTP/1.1 400 Bad Request");
    }
    CHECK(status_of(ask(port(), "GET /metrics HTTP/1.0\r\n\r\n")) == "HTTP/1.1 400 Bad Request");
}

TEST_CASE_FIXTURE(Page, "with the token, the flight recorder writes one session or all") {
    const auto post = [this](const std::string& query, const std::string& more) {
        return ask(port(), "POST /api/flight" + query +
                               " HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                               "text/plain\r\nContent-Length: 0\r\n" +
                               more + "\r\n");
    };
    CHECK(post("", kAuthorization).find(" 200 ") != std::string::npos);
    CHECK(post("?session=3", kAuthorization).find(" 200 ") != std::string::npos);
    CHECK(post("?session=x", kAuthorization).find(" 400 ") != std::string::npos);
    CHECK(post("", "").find(" 401 ") != std::string::npos);
    CHECK(ask(port(), "GET /api/flight HTTP/1.1\r\nHost: localhost\r\n\r\n").find(" 405 ") !=
          std::string::npos);
    CHECK(post("?session=77", kAuthorization).find(" 404 ") != std::string::npos);
    CHECK(written == std::vector<std::uint32_t>{0, 3, 77});
}
