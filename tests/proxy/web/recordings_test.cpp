// Requests that start, stop, list and download recordings; files as responses.
// Covers: proxy/web/http_server.cpp
#include "proxy/web/admin.h"
#include "tests/proxy/web/http_client.h"
#include "tests/proxy/web/sample_state.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace std::chrono_literals;
using namespace tw;
using web::RecordingKind;

namespace {

/// Returns a deleted but open file with this text. `promised`: the length in the response's header.
std::shared_ptr<const web::ServedFile> make_served_file(std::string_view text,
                                                        std::size_t promised) {
    std::string name = "/tmp/twscope-XXXXXX";
    base::UniqueFd file{::mkstemp(name.data())};
    REQUIRE(file.valid());
    ::unlink(name.c_str());
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    return std::make_shared<web::ServedFile>(
        web::ServedFile{.file = std::move(file), .bytes = promised});
}

struct FileServer {
    FileServer(std::string_view text, std::size_t promised, std::chrono::milliseconds patience)
        : file{make_served_file(text, promised)},
          server{test::listen_on_any_port(),
                 {.answer_request =
                      [this](const web::Request&, const web::Respond& respond) {
                          respond({.body = {}, .file = file, .file_name = "a.demo"});
                      }},
                 {.usual = patience, .reserved = patience}} {
        server.start();
    }

    std::shared_ptr<const web::ServedFile> file;
    web::HttpServer server;
};

std::string make_large_text() {
    std::string text;
    while (text.size() < 3'000'000) {
        text += std::to_string(text.size()) + '\n';
    }
    return text;
}

/// A page whose viewers can start and download recordings.
struct RecordingPage final : test::SamplePageData {
    tl::expected<void, std::string> switch_recording(RecordingKind kind, bool on) override {
        if (kind == RecordingKind::capture) {
            return tl::unexpected{std::string{"not now"}};
        }
        switch_orders.emplace_back(kind, on);
        return {};
    }

    std::optional<std::vector<web::RecordedFile>> list_recordings() const override {
        return std::vector<web::RecordedFile>{{"a.demo", 7, 5}};
    }

    std::shared_ptr<const web::ServedFile> open_recording(std::string_view name) const override {
        return name == "a.demo" ? make_served_file("abc", 3) : nullptr;
    }

    std::vector<std::pair<RecordingKind, bool>> switch_orders;
};

} // namespace

TEST_CASE("a large file is sent completely, with its name") {
    const std::string text = make_large_text();
    const FileServer server{text, text.size(), 5000ms};
    const std::string answer = test::send_get_request(server.server.port(), "/x");
    CHECK(test::response_status(answer) == "HTTP/1.1 200 OK");
    CHECK(answer.find("Content-Length: " + std::to_string(text.size())) != std::string::npos);
    CHECK(answer.find(R"(attachment; filename="a.demo")") != std::string::npos);
    CHECK(test::response_body(answer) == text);
    const std::string head =
        test::send_http_request(server.server.port(), "HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(test::response_body(head).empty());
    CHECK(head.find("Content-Length: " + std::to_string(text.size())) != std::string::npos);
    CHECK(head.find(R"(attachment; filename="a.demo")") != std::string::npos);
}

TEST_CASE("an empty file can be sent") {
    const FileServer server{"", 0, 5000ms};
    const std::string answer = test::send_get_request(server.server.port(), "/x");
    CHECK(answer.find("Content-Length: 0") != std::string::npos);
    CHECK(test::response_body(answer).empty());
}

TEST_CASE("the response of a truncated file ends early, and appended data is not sent") {
    const FileServer cut{"abc", 10, 5000ms};
    const std::string answer = test::send_get_request(cut.server.port(), "/x");
    CHECK(answer.find("Content-Length: 10") != std::string::npos);
    CHECK(test::response_body(answer) == "abc");
    const FileServer grown{"abcdef", 3, 5000ms};
    CHECK(test::response_body(test::send_get_request(grown.server.port(), "/x")) == "abc");
}

TEST_CASE("a client that stops reading a file is disconnected") {
    std::string text;
    text.resize(50'000'000, 'x'); // more than the sockets' buffers hold
    const FileServer server{text, text.size(), 100ms};
    test::HttpClient client{server.server.port()};
    client.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(client.read_some() > 0);
    while (server.file.use_count() > 1) { // until the server stops sending it
        std::this_thread::yield();
    }
    CHECK(client.read_all().size() < text.size()); // the response was cut
    CHECK(test::response_status(test::send_get_request(server.server.port(), "/x")) ==
          "HTTP/1.1 200 OK");
}

TEST_CASE(
    "recordings are started, stopped, listed and downloaded; invalid requests are explained") {
    RecordingPage page;
    test::SamplePageData without;
    using test::request_response;
    const std::string list = "GET /api/recordings";
    const std::string file = "GET /api/recording";
    const std::string order = "POST /api/recordings?";
    CHECK(request_response(page, order + "demos=on") == "200 demos on\n");
    CHECK(request_response(page, order + "demos=off") == "200 demos off\n");
    CHECK(page.switch_orders == std::vector<std::pair<RecordingKind, bool>>{
                                    {RecordingKind::demos, true}, {RecordingKind::demos, false}});
    CHECK(request_response(page, order + "capture=on") == "409 not now\n");
    for (const std::string query :
         {"", "demos=maybe", "demos=on&capture=on", "demos=on&capture=maybe"}) {
        CAPTURE(query);
        CHECK(request_response(page, order + query).starts_with("400 expected one of"));
    }
    CHECK(page.switch_orders.size() == 2);
    CHECK(request_response(page, list) ==
          "200 {\"v\":1,\"files\":[{\"name\":\"a.demo\",\"bytes\":7,\"time_ms\":5}]}\n");
    CHECK(request_response(page, file + "?name=a.demo") == "200 abc");
    CHECK(request_response(page, file + "?name=b.demo").starts_with("404 no such"));
    CHECK(request_response(page, file + "?name=%").starts_with("404 no such"));
    CHECK(request_response(page, file).starts_with("404 no such"));
    CHECK(request_response(without, order + "demos=on").starts_with("409 there is no folder"));
    CHECK(request_response(without, list).starts_with("409 there is no folder"));
    CHECK(request_response(without, file + "?name=a.demo").starts_with("404 no such"));
}
