// WebSockets of the live page on a real server: access, hostile frames, slow readers, many viewers.
// Covers: proxy/web/sockets.cpp, proxy/web/page_files.cpp

#include "proxy/web/admin.h"
#include "proxy/web/page_files.h"
#include "proxy/web/sockets.h"
#include "tests/proxy/web/http_client.h"
#include "tests/proxy/web/sample_state.h"
#include "tests/support/snapshot_messages.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/json.hpp>
#include <doctest/doctest.h>
#include <zlib.h>

using namespace tw;
using test::kPageToken;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
namespace json = boost::json;

namespace {

/// A run with one session and a new snapshot at every update.
struct LivePageFixture final : test::SamplePageData {
    explicit LivePageFixture(std::string on = "127.0.0.1") : address{std::move(on)} {
        admin.start();
    }

    ~LivePageFixture() override {
        is_ending = true;
        if (worker.joinable()) {
            worker.join();
        }
    }

    /// Makes a worker add large snapshots of session 1, which differ a little.
    void start_adding_snapshots() {
        worker = std::thread{[this] {
            web::ViewerBatch batch;
            test::Items items;
            for (std::uint16_t id = 0; id < 900; ++id) {
                items[{9, id}] = std::vector<std::int32_t>(10, 1'000'000);
            }
            for (snapshot::Tick tick = 1; !is_ending; ++tick) {
                for (std::uint16_t id = 0; id < 40; ++id) {
                    items[{9, id}][0] = tick;
                }
                if (feed.interest.wants_session(1)) {
                    batch.add_snapshot({.session = 1,
                                        .time = std::int64_t{tick} * 20'000'000,
                                        .tick = tick,
                                        .rebuilt = true},
                                       test::to_snapshot(items).view());
                    if (feed.mailboxes[0].try_put_batch(batch)) {
                        batch.clear();
                    }
                }
                std::this_thread::sleep_for(std::chrono::milliseconds{20});
            }
        }};
    }

    web::PageFeed feed{1};
    std::atomic<bool> is_ending{false};
    std::atomic<std::size_t> servers{0};
    std::thread worker;
    std::string address;
    web::AdminServer admin{{.token = kPageToken}, test::listen_on_any_port(address), *this};

    web::PageFeed* page_feed() override { return &feed; }

    web::RunState state() const override {
        web::RunState state = test::sample_run_state();
        state.servers.resize(servers);
        return state;
    }

    tl::expected<web::LineFilter, web::InputError>
    make_filter(const std::string& text) const override {
        if (text == "a b") {
            return [](std::string_view) { return true; };
        }
        return SamplePageData::make_filter(text);
    }

    [[nodiscard]] std::uint16_t port() const { return admin.server().port(); }
};

/// A WebSocket client that can send any text.
struct ViewerClient {
    explicit ViewerClient(std::uint16_t port, bool small = false,
                          const asio::ip::address_v4& from = asio::ip::address_v4::loopback()) {
        auto& lowest = beast::get_lowest_layer(socket);
        lowest.open(asio::ip::tcp::v4());
        if (small) { // a small buffer, so that unread data fills it soon
            lowest.set_option(asio::socket_base::receive_buffer_size{4096});
        }
        lowest.bind({from, 0});
        lowest.connect({asio::ip::address_v4::loopback(), port});
        socket.set_option(websocket::stream_base::decorator([](websocket::request_type& request) {
            request.set(beast::http::field::authorization, "Bearer " + kPageToken);
        }));
        socket.handshake("localhost", "/api/live");
    }

    void send_text(const std::string& text) { socket.write(asio::buffer(text)); }

    json::object receive_message() {
        beast::flat_buffer buffer;
        socket.read(buffer);
        return json::parse(beast::buffers_to_string(buffer.data())).as_object();
    }

    json::object receive_message(std::string_view kind) {
        while (true) {
            json::object message = receive_message();
            if (message.at("k") == json::string_view{kind.data(), kind.size()}) {
                return message;
            }
        }
    }

    /// True once the server has closed the connection.
    bool is_closed_by_server() {
        beast::flat_buffer buffer;
        boost::system::error_code error;
        while (!error) {
            buffer.clear();
            socket.read(buffer, error);
        }
        return true;
    }

    asio::io_context io;
    websocket::stream<asio::ip::tcp::socket> socket{io};
};

/// Requests a WebSocket, and returns the status line and headers of the response.
std::string request_web_socket(std::uint16_t port, const std::string& headers,
                               const std::string& path = "/api/live") {
    test::HttpClient client{port};
    client.send("GET " + path +
                " HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
                headers + "\r\n");
    client.end_sending();
    return client.read_all();
}

} // namespace

TEST_CASE("only our own page may open a WebSocket, and only at /api/live") {
    const LivePageFixture page;
    const std::uint16_t port = page.port();
    const std::string here = "localhost:" + std::to_string(port);

    struct Row {
        std::string headers;
        std::string_view status;
        std::string path = "/api/live";
    };

    const Row rows[] = {
        {"Host: " + here + "\r\n", "HTTP/1.1 101 Switching Protocols"},
        {"Host: " + here + "\r\nOrigin: http://" + here + "\r\n",
         "HTTP/1.1 101 Switching Protocols"},
        {"Host: " + here + "\r\nOrigin: http://evil.example\r\n", "HTTP/1.1 403 Forbidden"},
        {"Host: " + here + "\r\nOrigin: null\r\n", "HTTP/1.1 403 Forbidden"},
        {"Host: " + here + "\r\nSec-Fetch-Site: cross-site\r\n", "HTTP/1.1 403 Forbidden"},
        {"Host: evil.example\r\n", "HTTP/1.1 421 Misdirected Request"},
        {"", "HTTP/1.1 400 Bad Request"},
        {"Host: " + here + "\r\n", "HTTP/1.1 404 Not Found", "/api/state"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.headers);
        CHECK(test::response_status(request_web_socket(port, row.headers, row.path)) == row.status);
    }
}

TEST_CASE("the response names a subprotocol only if the client requested it") {
    const LivePageFixture page;
    const auto answer = [&](const std::string& headers) {
        return request_web_socket(page.port(), "Host: localhost\r\n" + headers);
    };
    CHECK(answer("").find("Sec-WebSocket-Protocol") == std::string::npos);
    for (const std::string none : {"other", "twscope.live.10", "xtwscope.live.1", ","}) {
        CAPTURE(none);
        CHECK(answer("Sec-WebSocket-Protocol: " + none + "\r\n").find("Sec-WebSocket-Protocol") ==
              std::string::npos);
    }
    for (const std::string some : {"other,twscope.live.1", "bearer.6162, \ttwscope.live.1 "}) {
        CAPTURE(some);
        CHECK(answer("Sec-WebSocket-Protocol: " + some + "\r\n")
                  .find("Sec-WebSocket-Protocol: twscope.live.1\r\n") != std::string::npos);
    }
    CHECK(answer("Sec-WebSocket-Protocol: twscope.live.1\r\n")
              .find("Sec-WebSocket-Protocol: twscope.live.1") != std::string::npos);
}

TEST_CASE("a viewer gets the frames and states that it requests") {
    LivePageFixture page;
    page.start_adding_snapshots();
    ViewerClient client{page.port()};
    client.send_text(R"({"watch":1,"pace":50})");
    const json::object first = client.receive_message("frame");
    CHECK(first.at("full") == true);
    CHECK(first.at("items").as_array().size() == 900);
    CHECK(client.receive_message("frame").at("full") == false);
    CHECK(client.receive_message("state").at("state").at("viewers") == 1);
}

TEST_CASE("a new token disconnects viewers that used the old one, and no others") {
    LivePageFixture far{"0.0.0.0"};
    LivePageFixture near;
    ViewerClient by_token{far.port()};
    ViewerClient by_loopback{near.port()};
    std::ignore = by_token.receive_message("state");
    std::ignore = by_loopback.receive_message("state");
    far.admin.set_token(kPageToken); // the token does not change
    std::ignore = by_token.receive_message("state");
    for (LivePageFixture* page : {&far, &near}) {
        page->admin.set_token("another-correct-horse-battery");
    }
    CHECK(by_token.is_closed_by_server());
    CHECK(by_token.socket.reason().reason == "the token was changed");
    std::ignore = by_loopback.receive_message("state");
    std::ignore = by_loopback.receive_message("state");
}

TEST_CASE("hostile WebSocket frames close only their own connection") {
    LivePageFixture page;
    page.start_adding_snapshots();
    ViewerClient watching{page.port()};
    watching.send_text(R"({"watch":1})");

    ViewerClient binary{page.port()};
    binary.socket.binary(true);
    binary.send_text("\x01\x02");
    CHECK(binary.is_closed_by_server());

    ViewerClient huge{page.port()};
    boost::system::error_code ignored;
    huge.socket.write(asio::buffer(std::string(1 << 20, 'x')), ignored);
    CHECK(huge.is_closed_by_server());

    ViewerClient unmasked{page.port()};
    auto& raw = beast::get_lowest_layer(unmasked.socket);
    asio::write(raw, asio::buffer("\x81\x02{}", 4), ignored);
    CHECK(unmasked.is_closed_by_server());

    ViewerClient reserved{page.port()};
    // A complete header, because the server waits for the rest of an incomplete one.
    asio::write(beast::get_lowest_layer(reserved.socket), asio::buffer(std::string(14, '\xff')),
                ignored);
    CHECK(reserved.is_closed_by_server());

    ViewerClient gone{page.port()};
    gone.send_text(R"({"watch":1})");
    beast::get_lowest_layer(gone.socket).close();

    ViewerClient nonsense{page.port()};
    nonsense.send_text("\xc3\x28"); // invalid UTF-8
    CHECK(nonsense.is_closed_by_server());

    CHECK(watching.receive_message("frame").at("session") == 1);
    CHECK(watching.receive_message("frame").at("session") == 1);
}

TEST_CASE(
    "one of twenty viewers reads nothing: the others miss nothing, and memory stays bounded") {
    LivePageFixture page;
    page.start_adding_snapshots();
    ViewerClient stuck{page.port(), true};
    stuck.send_text(R"({"watch":1,"pace":50})");
    std::vector<std::unique_ptr<ViewerClient>> clients;
    for (int i = 0; i < 19; ++i) {
        clients.push_back(std::make_unique<ViewerClient>(page.port()));
        clients.back()->send_text(R"({"watch":1,"pace":50})");
    }
    std::vector<std::int64_t> last(clients.size(), 0);
    bool whole = true;
    for (int round = 0; round < 300; ++round) {
        for (std::size_t i = 0; i < clients.size(); ++i) {
            const json::object frame = clients[i]->receive_message("frame");
            const std::int64_t number = frame.at("n").as_int64();
            whole = whole && (last[i] == 0 || number == last[i] + 1);
            last[i] = number;
        }
    }
    CHECK(whole);
    const std::string state =
        test::response_body(test::send_get_request(page.port(), "/api/state"));
    const json::object counted = json::parse(state).as_object();
    CHECK(counted.at("viewers") == 20);
    // Data for the viewer that reads nothing may wait only in its queue and in the system's buffer.
    CHECK(counted.at("viewers_lost").as_int64() > 0);
}

TEST_CASE("a state longer than the queue reaches a viewer that reads") {
    LivePageFixture page;
    page.servers = 5000;
    ViewerClient client{page.port()};
    for (int i = 0; i < 2; ++i) { // the queue is empty again after the first state
        const json::object state = client.receive_message("state");
        CHECK(state.at("state").at("servers").as_array().size() == page.servers);
        CHECK(json::serialize(state).size() > web::WebSocket::kMaxQueuedBytes);
    }
}

TEST_CASE("a viewer beyond the limit is refused until another one leaves") {
    LivePageFixture page;
    std::vector<std::unique_ptr<ViewerClient>> clients;
    const auto connect_viewer = [&](const asio::ip::address_v4& from) {
        clients.push_back(std::make_unique<ViewerClient>(page.port(), false, from));
        clients.back()->receive_message("state"); // the viewer is admitted
    };
    const auto own = asio::ip::address_v4::loopback();
    const auto other = asio::ip::make_address_v4("127.0.0.2");
    while (clients.size() < web::Viewers::kMaxViewersPerPeer) {
        connect_viewer(own);
    }
    CHECK_THROWS(ViewerClient{page.port()}); // the remaining viewers must be other peers
    while (clients.size() < web::Viewers::kMaxViewers) {
        connect_viewer(other);
    }
    CHECK_THROWS(ViewerClient{page.port(), false, other});
    clients.clear();
    for (int i = 0;; ++i) {
        try {
            ViewerClient{page.port()}.receive_message("state");
            break;
        } catch (const boost::system::system_error&) {
            REQUIRE(i < 100);
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
    }
}

TEST_CASE("scripts can request snapshots and records, and invalid requests are explained") {
    struct Row {
        std::string path;
        std::string_view status;
        std::string_view holds;
    };

    LivePageFixture page;
    page.start_adding_snapshots();
    const Row rows[] = {
        {"/page.js", "HTTP/1.1 200 OK", "use strict"},
        {"/page.css", "HTTP/1.1 200 OK", "{"},
        {"/api/sessions", "HTTP/1.1 200 OK", R"("sessions":[{"number":1)"},
        {"/api/findings", "HTTP/1.1 200 OK", R"("cause":)"},
        {"/api/objects", "HTTP/1.1 200 OK", R"("name":"character")"},
        {"/api/keys", "HTTP/1.1 200 OK", "{}"},
        {"/api/world?session=1", "HTTP/1.1 200 OK", "{}"},
        {"/api/world", "HTTP/1.1 404 Not Found", "to make a world of"},
        {"/api/world?session=", "HTTP/1.1 400 Bad Request", "name a session"},
        {"/api/world?session=0", "HTTP/1.1 400 Bad Request", "name a session"},
        {"/api/world?session=9", "HTTP/1.1 404 Not Found", "no snapshot"},
        {"/api/map", "HTTP/1.1 400 Bad Request", "name a session"},
        {"/api/map?session=1", "HTTP/1.1 404 Not Found", "unknown"},
        {"/api/records?filter=a%20b&wait=0", "HTTP/1.1 200 OK", ""},
        {"/api/records?filter=x", "HTTP/1.1 400 Bad Request", "no (at 3)"},
        {"/api/records?filter=%", "HTTP/1.1 400 Bad Request", "%20"},
        {"/api/records?wait=5", "HTTP/1.1 400 Bad Request", "0 to 4"},
        {"/api/records?wait=nan", "HTTP/1.1 400 Bad Request", "0 to 4"},
        {"/api/records?limit=1000000", "HTTP/1.1 400 Bad Request", "at most"},
        {"/api/live", "HTTP/1.1 404 Not Found", ""},
    };
    for (const Row& row : rows) {
        CAPTURE(row.path);
        const std::string answer = test::send_get_request(page.port(), row.path);
        CHECK(test::response_status(answer) == row.status);
        CHECK(test::response_body(answer).find(row.holds) != std::string::npos);
    }
}

TEST_CASE("responses are compressed for clients that accept gzip") {
    const LivePageFixture page;
    const std::string plain = test::response_body(test::send_get_request(page.port(), "/page.js"));
    const std::string packed = test::send_get_request(
        page.port(), "/page.js", "Host: localhost\r\nAccept-Encoding: gzip, br\r\n");
    CHECK(packed.find("Content-Encoding: gzip\r\n") != std::string::npos);
    CHECK(test::send_get_request(page.port(), "/page.js").find("Content-Encoding") ==
          std::string::npos);
    const std::string body = test::response_body(packed);
    CHECK(body == web::gzip_text(plain));
    std::string unpacked(plain.size() + 1, '\0');
    z_stream stream{};
    REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
    std::string input = body;
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
    stream.avail_out = static_cast<uInt>(unpacked.size());
    CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
    unpacked.resize(stream.total_out);
    inflateEnd(&stream);
    CHECK(unpacked == plain);
}
