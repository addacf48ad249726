#include "proxy/admin/http_server.h"
#include "tests/proxy/admin/http_client.h"

#include <atomic>
#include <chrono>
#include <list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using tw::admin::HttpServer;
using tw::admin::kMaxBodyBytes;
using tw::admin::kMaxConnections;
using tw::admin::kMaxHeaderBytes;
using tw::admin::Request;
using tw::admin::Respond;
using tw::test::ask;
using tw::test::body_of;
using tw::test::HttpClient;
using tw::test::status_of;

namespace {

void echo(const Request& request, const Respond& respond) {
    respond({.body = std::string{request.method} + ' ' + std::string{request.path} + ' ' +
                     std::string{request.host} + ' ' + std::string{request.body}});
}

struct EchoServer {
    explicit EchoServer(std::chrono::milliseconds timeout = 5000ms)
        : server{{.address = "127.0.0.1", .port = 0, .timeout = timeout}, echo} {
        server.start();
    }

    HttpServer server;

    [[nodiscard]] std::uint16_t port() const { return server.port(); }
};

const std::string kGood = "PUT /x?y=1 HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc";

} // namespace

TEST_CASE("a request is handed over and answered, and the connection ends") {
    const EchoServer echo_server;
    const std::string answer = ask(echo_server.port(), kGood);
    CHECK(status_of(answer) == "HTTP/1.1 200 OK");
    CHECK(body_of(answer) == "PUT /x here abc");
    CHECK(answer.find("Connection: close") != std::string::npos);
    CHECK(answer.find("X-Content-Type-Options: nosniff") != std::string::npos);
    CHECK(answer.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
}

TEST_CASE("HEAD is answered without the body but with its length") {
    const EchoServer echo_server;
    const std::string answer = ask(echo_server.port(), "HEAD / HTTP/1.1\r\nHost: here\r\n\r\n");
    CHECK(body_of(answer).empty());
    CHECK(answer.find("Content-Length: 12\r\n") != std::string::npos);
}

TEST_CASE("a request cut off at any byte gets no answer of 200 and stops nobody") {
    const EchoServer echo_server;
    for (std::size_t size = 0; size < kGood.size(); ++size) {
        CAPTURE(size);
        HttpClient client{echo_server.port()};
        client.send(kGood.substr(0, size));
        client.end_sending();
        CHECK(client.read_all().find(" 200 ") == std::string::npos);
    }
    CHECK(body_of(ask(echo_server.port(), kGood)) == "PUT /x here abc");
}

TEST_CASE("what is no request, or too long, is refused by name") {
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
    const EchoServer echo_server;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(status_of(ask(echo_server.port(), row.request)) == row.status);
    }
    CHECK(body_of(ask(echo_server.port(), kGood)) == "PUT /x here abc");
}

TEST_CASE("two Host headers count as none") {
    const EchoServer echo_server;
    const std::string answer =
        ask(echo_server.port(), "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    CHECK(body_of(answer) == "GET /  ");
}

TEST_CASE("who says nothing is put out after the time given") {
    const EchoServer echo_server{100ms};
    HttpClient silent{echo_server.port()};
    HttpClient slow{echo_server.port()};
    slow.send("GET / HT");
    CHECK(silent.read_all().empty());
    CHECK(slow.read_all().empty());
    CHECK(body_of(ask(echo_server.port(), kGood)) == "PUT /x here abc");
}

TEST_CASE("more connections than there is room for are closed, and room is given back") {
    const EchoServer echo_server;
    std::list<HttpClient> held;
    for (std::size_t i = 0; i < kMaxConnections; ++i) {
        held.emplace_back(echo_server.port());
    }
    HttpClient beyond{echo_server.port()};
    CHECK(beyond.read_all().empty());
    for (HttpClient& client : held) {
        client.send(kGood);
        CHECK(body_of(client.read_all()) == "PUT /x here abc");
    }
    held.clear();
    // The server's side of a connection ends a moment after ours.
    std::string answer;
    for (const auto end = std::chrono::steady_clock::now() + 5s;
         answer.empty() && std::chrono::steady_clock::now() < end;) {
        answer = ask(echo_server.port(), kGood);
    }
    CHECK(body_of(answer) == "PUT /x here abc");
}

TEST_CASE("an answer may come later, from another thread") {
    std::vector<std::thread> threads;
    HttpServer server{{.address = "127.0.0.1", .port = 0},
                      [&](const Request&, const Respond& respond) {
                          threads.emplace_back([respond] { respond({.body = "late"}); });
                      }};
    server.start();
    CHECK(body_of(ask(server.port(), kGood)) == "late");
    server.stop();
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST_CASE("an address that is taken or not ours is told in one line") {
    const EchoServer echo_server;
    CHECK_THROWS_WITH_AS((HttpServer{{.address = "127.0.0.1", .port = echo_server.port()}, echo}),
                         doctest::Contains("Address already in use"), std::runtime_error);
    CHECK_THROWS_WITH_AS((HttpServer{{.address = "nowhere", .port = 0}, echo}),
                         doctest::Contains("cannot listen on nowhere:0"), std::runtime_error);
}
