// Covers: proxy/web/http_server.cpp
#include "proxy/web/http_server.h"
#include "tests/proxy/web/http_client.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using tw::test::HttpClient;
using tw::test::listen_on_any_port;
using tw::test::response_body;
using tw::test::response_status;
using tw::test::send_http_request;
using tw::web::ConnectionLimiter;
using tw::web::HttpServer;
using tw::web::kMaxBodyBytes;
using tw::web::kMaxHeaderBytes;
using tw::web::Request;
using tw::web::Respond;

namespace {

void respond_with_echo(const Request& request, const Respond& respond) {
    respond({.body = std::string{request.method} + ' ' + std::string{request.path} + ' ' +
                     std::string{request.host} + ' ' + std::string{request.body} +
                     (request.is_reserved ? " spare" : "")});
}

struct EchoHttpServer {
    explicit EchoHttpServer(std::chrono::milliseconds timeout = 5000ms)
        : server{listen_on_any_port(),
                 {.answer_request = respond_with_echo},
                 {.usual = timeout, .reserved = timeout}} {
        server.start();
    }

    HttpServer server;

    [[nodiscard]] std::uint16_t port() const { return server.port(); }
};

const std::string kValidRequest =
    "PUT /x?y=1 HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc";

} // namespace

TEST_CASE_FIXTURE(EchoHttpServer, "the handler answers a request, then the connection closes") {
    const std::string answer = send_http_request(port(), kValidRequest);
    CHECK(response_status(answer) == "HTTP/1.1 200 OK");
    CHECK(response_body(answer) == "PUT /x here abc");
    CHECK(answer.find("Connection: close") != std::string::npos);
    CHECK(answer.find("X-Content-Type-Options: nosniff") != std::string::npos);
    CHECK(answer.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
}

TEST_CASE_FIXTURE(EchoHttpServer, "HEAD is answered with the body's length, without the body") {
    const std::string answer = send_http_request(port(), "HEAD / HTTP/1.1\r\nHost: here\r\n\r\n");
    CHECK(response_body(answer).empty());
    CHECK(answer.find("Content-Length: 12\r\n") != std::string::npos);
}

TEST_CASE_FIXTURE(EchoHttpServer,
                  "a request cut at any byte never gets status 200, and the server keeps working") {
    for (std::size_t size = 0; size < kValidRequest.size(); ++size) {
        CAPTURE(size);
        HttpClient client{port()};
        client.send(kValidRequest.substr(0, size));
        client.end_sending();
        CHECK(client.read_all().find(" 200 ") == std::string::npos);
    }
    CHECK(response_body(send_http_request(port(), kValidRequest)) == "PUT /x here abc");
}

TEST_CASE("an invalid or too long request is refused with its status") {
    struct Row {
        std::string_view name;
        std::string request;
        std::string_view status;
    };

    const std::string start = "GET / HTTP/1.1\r\nHost: here\r\n";
    const Row rows[] = {
        {"noise", std::string(300, '\x81') + "\r\n\r\n", "HTTP/1.1 400 Bad Request"},
        {"no version", "GET /\r\n\r\n", "HTTP/1.1 400 Bad Request"},
        {"a NUL in a header", start + std::string{"X: a\0b\r\n\r\n", 10},
         "HTTP/1.1 400 Bad Request"},
        {"a header too long", start + "X: " + std::string(kMaxHeaderBytes, 'a') + "\r\n\r\n",
         "HTTP/1.1 431 Request Header Fields Too Large"},
        {"an endless request line", "GET /" + std::string(2 * kMaxHeaderBytes, 'a'),
         "HTTP/1.1 431 Request Header Fields Too Large"},
        {"an endless chunk header",
         start + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(2 * kMaxHeaderBytes, 'a'),
         "HTTP/1.1 431 Request Header Fields Too Large"},
        {"a body announced too long",
         start + "Content-Length: " + std::to_string(kMaxBodyBytes + 1) + "\r\n\r\n",
         "HTTP/1.1 413 Payload Too Large"},
        {"an absurd length", start + "Content-Length: 99999999999999999999\r\n\r\n",
         "HTTP/1.1 400 Bad Request"},
        {"a negative length", start + "Content-Length: -1\r\n\r\n", "HTTP/1.1 400 Bad Request"},
        {"two lengths", start + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
         "HTTP/1.1 400 Bad Request"},
        {"a chunked body too long",
         start + "Transfer-Encoding: chunked\r\n\r\n2000\r\n" + std::string(0x2000, 'a') +
             "\r\n0\r\n\r\n",
         "HTTP/1.1 413 Payload Too Large"},
    };
    const EchoHttpServer echo_server;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(response_status(send_http_request(echo_server.port(), row.request)) == row.status);
    }
    CHECK(response_body(send_http_request(echo_server.port(), kValidRequest)) == "PUT /x here abc");
}

TEST_CASE("a client that expects 100 Continue gets it, then the response") {
    constexpr std::string_view kContinueResponse = "HTTP/1.1 100 Continue\r\n\r\n";
    const std::string body(2000, 'b');
    const EchoHttpServer echo_server;
    const auto make_request_head = [](std::string_view version, std::string_view expected,
                                      std::size_t length) {
        return "PUT /x HTTP/" + std::string{version} +
               "\r\nHost: here\r\nExpect: " + std::string{expected} +
               "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
    };
    HttpClient waiting{echo_server.port()};
    waiting.send(make_request_head("1.1", "100-Continue", body.size()));
    CHECK(waiting.read(kContinueResponse.size()) == kContinueResponse);
    waiting.send(body);
    const std::string answer = waiting.read_all();
    CHECK(response_status(answer) == "HTTP/1.1 200 OK");
    CHECK(response_body(answer) == "PUT /x here " + body);

    struct Row {
        std::string_view name;
        std::string request;
        std::string_view status;
    };

    const Row rows[] = {
        {"sends at once", make_request_head("1.1", "100-continue", 3) + "abc", "HTTP/1.1 200 OK"},
        {"an older one", make_request_head("1.0", "100-continue", 3), ""},
        {"expects something else", make_request_head("1.1", "cake", 3), ""},
        {"nothing to send", make_request_head("1.1", "100-continue", 0), "HTTP/1.1 200 OK"},
        {"too long", make_request_head("1.1", "100-continue", kMaxBodyBytes + 1),
         "HTTP/1.1 413 Payload Too Large"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        HttpClient client{echo_server.port()};
        client.send(row.request);
        client.end_sending();
        const std::string said = client.read_all();
        CHECK(response_status(said.starts_with(kContinueResponse)
                                  ? said.substr(kContinueResponse.size())
                                  : said) == row.status);
    }
    const EchoHttpServer hasty{100ms};
    HttpClient silent{hasty.port()};
    silent.send(make_request_head("1.1", "100-continue", 3));
    CHECK(silent.read_all() == kContinueResponse);
}

TEST_CASE_FIXTURE(EchoHttpServer,
                  "a request with two Host headers counts as a request without one") {
    const std::string answer =
        send_http_request(port(), "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    CHECK(response_body(answer) == "GET /  ");
}

TEST_CASE_FIXTURE(
    EchoHttpServer,
    "for a target with a host, the path is answered, and the host replaces the Host header") {
    const auto response_body_to = [&](const std::string& request) {
        return response_body(send_http_request(port(), request + "\r\n\r\n"));
    };
    CHECK(response_body_to("GET http://there:1/x?y=1 HTTP/1.1\r\nHost: here") == "GET /x there:1 ");
    CHECK(response_body_to("GET HTTP://there HTTP/1.1\r\nHost: here") == "GET / there ");
    CHECK(response_body_to("GET http://there/x HTTP/1.1") == "GET /x  ");
}

TEST_CASE("a client that sends nothing is disconnected after the timeout") {
    const EchoHttpServer echo_server{100ms};
    HttpClient silent{echo_server.port()};
    HttpClient slow{echo_server.port()};
    slow.send("GET / HT");
    CHECK(silent.read_all().empty());
    CHECK(slow.read_all().empty());
    CHECK(response_body(send_http_request(echo_server.port(), kValidRequest)) == "PUT /x here abc");
}

TEST_CASE("a client that sends byte by byte gets no more time") {
    const EchoHttpServer echo_server{300ms};
    HttpClient dripping{echo_server.port()};
    const auto begin = std::chrono::steady_clock::now();
    while (dripping.send("x") && std::chrono::steady_clock::now() - begin < 20s) {
        std::this_thread::sleep_for(10ms);
    }
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
}

TEST_CASE("a client that does not read its response is disconnected after the timeout") {
    constexpr std::size_t kMoreThanSocketsHold = std::size_t{64} << 20U;
    std::atomic<int> answered{0};
    HttpServer server{listen_on_any_port(),
                      {.answer_request =
                           [&](const Request&, const Respond& respond) {
                               respond({.body = std::string(kMoreThanSocketsHold, 'x')});
                               ++answered;
                           }},
                      {.usual = 300ms}};
    server.start();
    HttpClient client{server.port()};
    client.send(kValidRequest);
    const auto begin = std::chrono::steady_clock::now();
    while (answered == 0) {
        std::this_thread::yield();
    }
    // Reads a little now and then; this must not extend the timeout.
    std::size_t taken = 0;
    for (std::size_t size = 1; size != 0 && taken < kMoreThanSocketsHold; taken += size) {
        size = client.read_some();
        std::this_thread::sleep_for(5ms);
    }
    CHECK(taken < kMoreThanSocketsHold);
    CHECK(std::chrono::steady_clock::now() - begin < 20s);
}

TEST_CASE_FIXTURE(
    EchoHttpServer,
    "a peer that holds all its connections leaves room for others, and for health checks") {
    std::list<HttpClient> held;
    for (std::size_t i = 0; i < ConnectionLimiter::kMaxUnreservedPerPeer; ++i) {
        held.emplace_back(port());
    }
    CHECK(response_body(send_http_request(port(), kValidRequest)) == "PUT /x here abc spare");
    // Silent clients fill the reserved connections, too; a new client evicts one of them.
    for (std::size_t i = 0; i < 2 * ConnectionLimiter::kMaxReservedPerPeer; ++i) {
        held.emplace_back(port());
    }
    CHECK(response_body(send_http_request(port(), kValidRequest)) == "PUT /x here abc spare");
    CHECK(server.num_rejected_connections() >= ConnectionLimiter::kMaxReservedPerPeer);
    HttpClient other{port(), boost::asio::ip::make_address_v4("127.0.0.2")};
    other.send(kValidRequest);
    CHECK(response_body(other.read_all()) == "PUT /x here abc");
    for (std::size_t i = 0; i < ConnectionLimiter::kMaxUnreservedPerPeer; ++i) {
        HttpClient& client = held.front();
        client.send(kValidRequest);
        CHECK(response_body(client.read_all()) == "PUT /x here abc");
        held.pop_front();
    }
    // The server closes its side of a connection a moment after the client.
    std::string answer;
    for (const auto end = std::chrono::steady_clock::now() + 5s;
         !answer.ends_with("abc") && std::chrono::steady_clock::now() < end;) {
        answer = send_http_request(port(), kValidRequest);
    }
    CHECK(response_body(answer) == "PUT /x here abc");
}

TEST_CASE("the server listens on several addresses at once") {
    std::vector<tw::web::ListeningSocket> listening;
    listening.emplace_back(tw::web::HttpAddress{.address = "127.0.0.1"});
    listening.emplace_back(tw::web::HttpAddress{.address = "::1"});
    const auto answer = [](const Request& request, const Respond& respond) {
        respond({.body = request.connection_origin == tw::web::ConnectionOrigin::loopback ? "here"
                                                                                          : ""});
    };
    HttpServer server{listening, {.answer_request = answer}};
    server.start();
    REQUIRE(server.addresses().size() == 2);
    CHECK(response_body(send_http_request(server.addresses()[0].port, kValidRequest)) == "here");
    CHECK(server.addresses()[1].port != 0);
}

TEST_CASE("a handler may respond later, from another thread") {
    std::vector<std::thread> threads;
    HttpServer server{listen_on_any_port(),
                      {.answer_request = [&](const Request&, const Respond& respond) {
                          threads.emplace_back([respond] { respond({.body = "late"}); });
                      }}};
    server.start();
    CHECK(response_body(send_http_request(server.port(), kValidRequest)) == "late");
    server.stop();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

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
        const auto target = tw::web::read_request_target(row.text);
        CHECK(target.path == row.path);
        CHECK(target.query == row.query);
        CHECK(target.host.value_or("") == row.host);
        CHECK(target.host.has_value() == !row.host.empty());
    }
    CHECK(tw::web::read_request_target("http:///x").host == "");
}

namespace {

struct LimiterFixture {
    ConnectionLimiter::AdmissionDecision admit(std::uint64_t number, std::uint64_t peer) {
        return limiter.admit_connection(number, {.address = peer, .v6 = false});
    }

    /// Fills the unreserved connections: four peers use all that they may have.
    void fill_unreserved_connections() {
        for (std::uint64_t number = 0; number < ConnectionLimiter::kMaxUnreserved; ++number) {
            const auto place = admit(number, number / ConnectionLimiter::kMaxUnreservedPerPeer);
            REQUIRE(place.is_admitted);
            REQUIRE_FALSE(place.is_reserved);
        }
    }

    ConnectionLimiter limiter;
};

constexpr std::uint64_t kNewConnection = 1000;

} // namespace

TEST_CASE_FIXTURE(LimiterFixture, "a peer's connections beyond its limit are reserved ones") {
    for (std::uint64_t number = 0; number < ConnectionLimiter::kMaxUnreservedPerPeer; ++number) {
        CHECK_FALSE(admit(number, 1).is_reserved);
    }
    const auto beyond = admit(kNewConnection, 1);
    CHECK(beyond.is_admitted);
    CHECK(beyond.is_reserved);
    CHECK_FALSE(beyond.evicted);
    CHECK_FALSE(admit(kNewConnection + 1, 2).is_reserved);
    limiter.remove_connection(0);
    CHECK_FALSE(admit(kNewConnection + 2, 1).is_reserved);
}

TEST_CASE_FIXTURE(LimiterFixture,
                  "a new connection evicts the oldest reserved connection without a request") {
    fill_unreserved_connections();
    for (std::uint64_t number = 0; number < ConnectionLimiter::kMaxReserved; ++number) {
        const auto place = admit(kNewConnection + number, 100 + number);
        CHECK(place.is_reserved);
        CHECK_FALSE(place.evicted);
    }
    limiter.mark_request_arrived(kNewConnection);
    const auto place = admit(kNewConnection + 100, 200);
    CHECK(place.is_admitted);
    CHECK(place.evicted == kNewConnection + 1);
    CHECK(limiter.size() == ConnectionLimiter::kMaxUnreserved + ConnectionLimiter::kMaxReserved);
}

TEST_CASE_FIXTURE(LimiterFixture,
                  "a peer at its limit of reserved connections evicts one of its own") {
    fill_unreserved_connections();
    CHECK_FALSE(admit(kNewConnection, 7).evicted);
    for (std::uint64_t number = 1; number <= ConnectionLimiter::kMaxReservedPerPeer; ++number) {
        CHECK_FALSE(admit(kNewConnection + number, 8).evicted);
    }
    CHECK(admit(kNewConnection + 100, 8).evicted == kNewConnection + 1);
}

TEST_CASE_FIXTURE(
    LimiterFixture,
    "a connection with a request is never evicted; if all have one, new connections are refused") {
    fill_unreserved_connections();
    for (std::uint64_t number = 0; number < ConnectionLimiter::kMaxReserved; ++number) {
        static_cast<void>(admit(kNewConnection + number, 100 + number));
        limiter.mark_request_arrived(kNewConnection + number);
    }
    CHECK_FALSE(admit(kNewConnection + 100, 200).is_admitted);
    CHECK(limiter.size() == ConnectionLimiter::kMaxUnreserved + ConnectionLimiter::kMaxReserved);
    limiter.remove_connection(kNewConnection + 3);
    limiter.remove_connection(kNewConnection + 3);
    CHECK(admit(kNewConnection + 101, 200).is_admitted);
}
