// Covers: proxy/process/server_probe.cpp
#include "proxy/process/server_probe.h"
#include "proxy/wire/packet.h"
#include "tests/support/message_builder.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <doctest/doctest.h>

using namespace tw;
using process::ServerProbe;

namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;
using Bytes = std::vector<std::byte>;
using Datagrams = std::vector<Bytes>;

/// A deadline that no machine exceeds: the answer arrives at once.
constexpr std::chrono::seconds kReplyDeadline{20};
/// The deadline if no answer is expected.
constexpr std::chrono::milliseconds kNoReplyDeadline{50};

Bytes make_connless_datagram(std::string_view text) {
    return wire::encode_connless(
        test::MessageBuilder{}.text("\xff\xff\xff\xff").text(text).bytes());
}

/// The part of a server's information that a probe reads.
Bytes make_info_answer(std::string_view magic, int token) {
    return make_connless_datagram(std::string{magic} + std::to_string(token) + '\0' + "0.6.4" +
                                  '\0');
}

/// Receives requests on a port chosen by the system and sends the test's answers.
class FakeServer {
  public:
    /// Returns the answers to a request.
    using AnswerFunction = std::function<Datagrams(std::span<const std::byte> request)>;
    /// Returns the answers to a request with this token.
    using TokenAnswerFunction = std::function<Datagrams(int token)>;

    FakeServer(asio::io_context& io, AnswerFunction answer,
               const asio::ip::address& address = asio::ip::address_v4::loopback())
        : socket_{io, {address, 0}}, answer_{std::move(answer)} {
        receive_next_request();
    }

    FakeServer(asio::io_context& io, TokenAnswerFunction answer,
               const asio::ip::address& address = asio::ip::address_v4::loopback())
        : FakeServer{
              io, AnswerFunction{[answer = std::move(answer)](std::span<const std::byte> request) {
                  return answer(std::to_integer<int>(request.back()));
              }},
              address} {}

    [[nodiscard]] Udp::endpoint endpoint() const { return socket_.local_endpoint(); }

    [[nodiscard]] int num_requests() const { return requests_; }

    void close() { socket_.close(); }

  private:
    void receive_next_request() {
        socket_.async_receive_from(
            asio::buffer(buffer_), from_,
            [this](const boost::system::error_code& error, std::size_t size) {
                if (error || size == 0) {
                    return;
                }
                ++requests_;
                for (const Bytes& bytes : answer_(std::span{buffer_}.first(size))) {
                    boost::system::error_code ignored;
                    socket_.send_to(asio::buffer(bytes), from_, 0, ignored);
                }
                receive_next_request();
            });
    }

    Udp::socket socket_;
    AnswerFunction answer_;
    Udp::endpoint from_;
    std::array<std::byte, 1024> buffer_{};
    int requests_ = 0;
};

/// Sends one request. Returns whether it was answered; nullopt if the callback was not called.
/// `answer`: a function for FakeServer.
template <typename Answer>
std::optional<bool> is_request_answered(Answer answer, std::chrono::milliseconds deadline) {
    asio::io_context io;
    FakeServer server{io, std::move(answer)};
    ServerProbe probe{io, server.endpoint(), deadline};
    std::optional<bool> told;
    probe.request_info([&](bool answered) {
        told = answered;
        server.close();
    });
    io.run_for(kReplyDeadline);
    return told;
}

} // namespace

TEST_CASE("a socket on the unspecified address is reached at loopback") {
    struct Row {
        std::string listening;
        std::string reached;
    };

    const Row rows[] = {{"0.0.0.0", "127.0.0.1"},   {"::", "::1"},
                        {"127.0.0.1", "127.0.0.1"}, {"127.3.2.1", "127.3.2.1"},
                        {"192.0.2.1", "192.0.2.1"}, {"2001:db8::1", "2001:db8::1"}};
    for (const Row& row : rows) {
        CAPTURE(row.listening);
        CHECK(process::reachable_address({asio::ip::make_address(row.listening), 8303}) ==
              Udp::endpoint{asio::ip::make_address(row.reached), 8303});
    }
}

TEST_CASE("a server's information in any of its forms is an answer") {
    for (const std::string_view magic : {"inf3", "dtsf", "iext"}) {
        CAPTURE(magic);
        CHECK(is_request_answered(
                  [&](int token) { return Datagrams{make_info_answer(magic, token)}; },
                  kReplyDeadline) == true);
    }
}

TEST_CASE("datagrams that only resemble an answer are ignored") {
    struct Row {
        std::string_view name;
        std::function<Bytes(int token)> answer;
    };

    const Row rows[] = {
        {"nothing", [](int) { return Bytes{}; }},
        {"one byte", [](int) { return Bytes(1); }},
        {"zeros", [](int) { return Bytes(1400); }},
        {"the wrong token", [](int token) { return make_info_answer("inf3", token + 1); }},
        {"the token and more digits",
         [](int token) { return make_info_answer("inf3", token * 10); }},
        {"no token", [](int) { return make_connless_datagram("inf3"); }},
        {"a token without its end",
         [](int token) { return make_connless_datagram("inf3" + std::to_string(token)); }},
        {"magic cut", [](int) { return make_connless_datagram("in"); }},
        {"another magic", [](int token) { return make_info_answer("nope", token); }},
        {"a request",
         [](int token) { return make_connless_datagram("gie3" + std::to_string(token)); }},
        {"as long as can be", [](int) { return make_connless_datagram(std::string(1380, '9')); }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(is_request_answered([&](int token) { return Datagrams{row.answer(token)}; },
                                  kNoReplyDeadline) == false);
    }
}

TEST_CASE("an answer after invalid datagrams still counts") {
    CHECK(is_request_answered(
              [](int token) {
                  return Datagrams{Bytes(3), make_info_answer("inf3", token + 1),
                                   make_info_answer("inf3", token)};
              },
              kReplyDeadline) == true);
}

TEST_CASE("a lost request is repeated") {
    int number = 0;
    CHECK(is_request_answered(
              [&](int token) {
                  return ++number < 2 ? Datagrams{} : Datagrams{make_info_answer("inf3", token)};
              },
              kReplyDeadline) == true);
}

TEST_CASE("a server that supports only 0.7 answers after the token exchange") {
    constexpr wire::Token kServer{0x0a, 0x0b, 0x0c, 0x0d};

    struct Row {
        std::string_view name;
        wire::Token to_client; ///< replaces the client's token if it is not 0
        int token_off;
        bool answered;
    };

    const Row rows[] = {
        {"as servers do", {}, 0, true},
        {"with another number", {}, 1, false},
        {"for another client", {1, 2, 3, 4}, 0, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        wire::Token client{};
        bool asked = false;
        const auto answer = [&](std::span<const std::byte> request) -> Datagrams {
            wire::PacketScratch scratch;
            const auto packet = wire::decode_packet(request, wire::Protocol::unknown, scratch);
            REQUIRE(packet);
            if (packet->dialect == wire::Dialect::six) {
                return {}; // the server does not support this
            }
            if (packet->kind == wire::PacketKind::control) {
                CHECK(request.size() >= 519); // servers do not answer shorter requests
                client = *wire::decode_control(*packet, std::nullopt).token;
                return {wire::encode_control(
                    {.kind = wire::ControlKind::token, .token = kServer, .seven_token = client})};
            }
            asked = true;
            CHECK(packet->header_token == kServer);
            Bytes info{std::byte{0x21}};
            const bool other = row.to_client != wire::Token{};
            for (const auto& token : {other ? row.to_client : client, kServer}) {
                const auto bytes = std::as_bytes(std::span{token});
                info.insert(info.end(), bytes.begin(), bytes.end());
            }
            for (const char letter : std::string_view{"\xff\xff\xff\xffinf3"}) {
                info.push_back(static_cast<std::byte>(letter));
            }
            // A number below 64 is a varint of one byte.
            const auto number = std::to_integer<int>(packet->payload.back()) + row.token_off;
            info.push_back(static_cast<std::byte>(number));
            return {info};
        };
        const auto patience = row.answered ? std::chrono::milliseconds{kReplyDeadline}
                                           : std::chrono::milliseconds{400};
        CHECK(is_request_answered(FakeServer::AnswerFunction{answer}, patience) == row.answered);
        CHECK(asked);
    }
}

TEST_CASE("a probe without a server gets no answer") {
    asio::io_context io;
    Udp::endpoint where;
    {
        const Udp::socket free{io, {asio::ip::address_v4::loopback(), 0}};
        where = free.local_endpoint();
    }
    ServerProbe probe{io, where, kNoReplyDeadline};
    std::optional<bool> told;
    probe.request_info([&](bool answered) { told = answered; });
    io.run_for(kReplyDeadline);
    CHECK(told == false);
}

TEST_CASE("a request during a probe shares its answer") {
    asio::io_context io;
    FakeServer server{io, [](int token) { return Datagrams{make_info_answer("inf3", token)}; }};
    ServerProbe probe{io, server.endpoint(), kReplyDeadline};
    int answered = 0;
    int refused = 0;
    const std::size_t too_many = 3;
    for (std::size_t i = 0; i < ServerProbe::kMaxWaitingCallbacks + too_many; ++i) {
        probe.request_info([&](bool yes) {
            ++(yes ? answered : refused);
            if (answered == static_cast<int>(ServerProbe::kMaxWaitingCallbacks)) {
                server.close();
            }
        });
    }
    CHECK(refused == static_cast<int>(too_many));
    io.run_for(kReplyDeadline);
    CHECK(answered == static_cast<int>(ServerProbe::kMaxWaitingCallbacks));
    CHECK(refused == static_cast<int>(too_many));
    CHECK(server.num_requests() == 1);
}

TEST_CASE("a probe can be repeated, also from its callback, with another token") {
    asio::io_context io;
    std::vector<int> tokens;
    FakeServer server{io, [&](int token) {
                          tokens.push_back(token);
                          return Datagrams{make_info_answer("inf3", token)};
                      }};
    ServerProbe probe{io, server.endpoint(), kReplyDeadline};
    int answers = 0;
    probe.request_info([&](bool first) {
        answers += first ? 1 : 0;
        probe.request_info([&](bool second) {
            answers += second ? 1 : 0;
            server.close();
        });
    });
    io.run_for(kReplyDeadline);
    CHECK(answers == 2);
    REQUIRE(tokens.size() >= 2);
    CHECK(tokens.front() != tokens.back());
}

TEST_CASE("after stop() no callback is called") {
    asio::io_context io;
    FakeServer server{io, [](int token) { return Datagrams{make_info_answer("inf3", token)}; }};
    ServerProbe probe{io, server.endpoint(), kNoReplyDeadline};
    bool told = false;
    probe.request_info([&](bool) { told = true; });
    probe.stop();
    server.close();
    io.run_for(kReplyDeadline);
    CHECK_FALSE(told);
}

using process::AnswersWanted;

namespace {

using Endpoints = std::vector<Udp::endpoint>;

/// The deadline if no answer is expected.
constexpr std::chrono::milliseconds kShortDeadline{200};

/// A server on a port chosen by the system, on a thread of its own. With `answers` false it ignores
/// all requests.
class ServerThread {
  public:
    explicit ServerThread(const char* address, bool answers = true)
        : server_{io_,
                  [answers](int token) {
                      return answers ? Datagrams{make_info_answer("inf3", token)} : Datagrams{};
                  },
                  asio::ip::make_address(address)},
          thread_{[this] { io_.run(); }} {}

    ServerThread(const ServerThread&) = delete;
    ServerThread& operator=(const ServerThread&) = delete;

    ~ServerThread() {
        io_.stop();
        thread_.join();
    }

    [[nodiscard]] Udp::endpoint endpoint() const { return server_.endpoint(); }

  private:
    asio::io_context io_;
    FakeServer server_;
    std::thread thread_;
};

bool has_ipv6_loopback() {
    asio::io_context io;
    boost::system::error_code error;
    Udp::socket socket{io, Udp::v6()};
    socket.bind({asio::ip::address_v6::loopback(), 0}, error);
    return !error;
}

} // namespace

TEST_CASE("resolving a name gives the addresses that answer") {
    const ServerThread first{"127.0.0.1"};
    const ServerThread second{"127.0.0.2"};
    const ServerThread silent{"127.0.0.3", false};
    const Udp::endpoint nobody{asio::ip::make_address("127.0.0.4"), second.endpoint().port()};
    const auto all = [](const Endpoints& addresses, std::chrono::milliseconds deadline) {
        return process::find_answering_addresses(addresses, AnswersWanted::all, deadline);
    };
    CHECK(all({first.endpoint(), second.endpoint()}, kReplyDeadline) ==
          Endpoints{first.endpoint(), second.endpoint()});
    CHECK(all({silent.endpoint(), second.endpoint()}, kShortDeadline) ==
          Endpoints{second.endpoint()});
    CHECK(all({nobody, second.endpoint()}, kShortDeadline) == Endpoints{second.endpoint()});
    CHECK(process::find_answering_addresses({silent.endpoint(), nobody, second.endpoint()},
                                            AnswersWanted::one,
                                            kReplyDeadline) == Endpoints{second.endpoint()});
}

TEST_CASE("all addresses are returned if none answers, and a single one without asking") {
    const ServerThread silent{"127.0.0.1", false};
    const Udp::endpoint nobody{asio::ip::make_address("127.0.0.4"), silent.endpoint().port()};
    CHECK(process::find_answering_addresses({}, AnswersWanted::all).empty());
    CHECK(process::find_answering_addresses({silent.endpoint()}, AnswersWanted::one,
                                            kReplyDeadline) == Endpoints{silent.endpoint()});
    CHECK(process::find_answering_addresses({silent.endpoint(), nobody}, AnswersWanted::one,
                                            kShortDeadline) ==
          Endpoints{silent.endpoint(), nobody});
}

TEST_CASE("a server is found that listens only on the IPv6 address of its name") {
    if (!has_ipv6_loopback()) {
        MESSAGE("no IPv6 here");
        return;
    }
    const ServerThread six{"::1"};
    const Udp::endpoint four{asio::ip::make_address("127.0.0.1"), six.endpoint().port()};
    CHECK(process::find_answering_addresses({four, six.endpoint()}, AnswersWanted::one,
                                            kReplyDeadline) == Endpoints{six.endpoint()});
    CHECK(process::find_answering_addresses({four, six.endpoint()}, AnswersWanted::all,
                                            kShortDeadline) == Endpoints{six.endpoint()});
}

namespace tw::process {
namespace {

using Change = SilenceDetector::Change;

/// A relay whose totals are read once a second.
class RelayCounterScript {
  public:
    Change advance_second(std::uint64_t to_server, std::uint64_t from_server,
                          std::uint64_t refused = 0) {
        now_ += std::chrono::seconds{1};
        counters_.directions[0].datagrams += to_server;
        counters_.directions[1].datagrams += from_server;
        counters_.icmp_refused += refused;
        return detector.on_second(now_, counters_);
    }

    [[nodiscard]] SilenceDetector::Time now() const { return now_; }

    SilenceDetector detector;

  private:
    SilenceDetector::Time now_{std::chrono::hours{1}};
    relay::Counters counters_;
};

} // namespace

TEST_CASE("a silence and its end are reported once each") {
    RelayCounterScript script;
    CHECK(script.advance_second(0, 0) == Change::none);
    CHECK(script.advance_second(2, 0, 2) == Change::none);
    CHECK(script.advance_second(2, 0, 2) == Change::none);
    CHECK(script.advance_second(2, 0, 2) == Change::none);
    CHECK(script.advance_second(2, 0, 2) == Change::began);
    CHECK(script.detector.is_silent());
    CHECK(describe_silence_change(Change::began, "127.0.0.1:8303", script.detector.silence(),
                                  script.now()) ==
          "the server 127.0.0.1:8303 does not answer: 8 datagrams in 3 seconds without an answer, "
          "8 refused: nothing listens there");
    for (int i = 0; i < 60; ++i) {
        CHECK(script.advance_second(2, 0) == Change::none);
    }
    CHECK(script.advance_second(0, 0) == Change::none);
    CHECK(script.detector.is_silent()); // the last request was not answered
    CHECK(script.advance_second(2, 1) == Change::ended);
    CHECK_FALSE(script.detector.is_silent());
    CHECK(describe_silence_change(Change::ended, "127.0.0.1:8303", script.detector.silence(),
                                  script.now()) ==
          "the server 127.0.0.1:8303 answers again, after 65 seconds and 128 datagrams");
    CHECK(script.advance_second(50, 25) == Change::none);
    CHECK(script.detector.silence().unanswered == 0);
}

TEST_CASE("a server that stops during a game is reported within five seconds") {
    RelayCounterScript script;
    CHECK(script.advance_second(50, 25) == Change::none);
    int seconds = 1;
    while (script.advance_second(50, 0) != Change::began && seconds < 10) {
        ++seconds;
    }
    CHECK(seconds <= 5);
    CHECK(script.detector.silence().refused == 0);
    CHECK(script.advance_second(50, 25) == Change::ended);
}

TEST_CASE("a server that is not silent is not reported") {
    RelayCounterScript script;
    SUBCASE("no clients") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.advance_second(0, 0) == Change::none);
        }
    }
    SUBCASE("another client gets answers") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.advance_second(50, i % 3 == 0 ? 1 : 0) == Change::none);
        }
    }
    SUBCASE("a client sends rarely") {
        for (int i = 0; i < 100; ++i) {
            CHECK(script.advance_second(i % 7 == 0 ? 1 : 0, 0) == Change::none);
        }
    }
    SUBCASE("a single burst") {
        CHECK(script.advance_second(1000, 0) == Change::none);
        for (int i = 0; i < 10; ++i) {
            CHECK(script.advance_second(0, 0) == Change::none);
        }
    }
}

TEST_CASE("a silence is reported only if a probe is unanswered, too") {
    for (const bool answers : {false, true}) {
        CAPTURE(answers);
        SilenceReporter report;
        relay::Counters counters;
        int asked = 0;
        int shown = 0;
        int seconds = 0;
        SilenceDetector::Time now{std::chrono::hours{1}};
        // A client sends requests that no server answers.
        const auto advance_second = [&] {
            counters.directions[0].datagrams += 2;
            now += std::chrono::seconds{1};
            report.report_changes(
                now, counters, "game",
                [&](const auto& silence) { shown += silence.has_value() ? 1 : 0; },
                [&] {
                    ++asked;
                    counters.directions[1].datagrams += answers ? 1 : 0;
                });
            ++seconds;
        };
        while (asked == 0 && seconds < 10) {
            advance_second();
        }
        CHECK(asked == 1);
        CHECK(shown == 0);
        advance_second();
        CHECK((shown > 0) == !answers);
    }
}

TEST_CASE("the end of a silence is noticed although all clients have given up") {
    SilenceReporter report;
    relay::Counters counters;
    SilenceDetector::Time now{std::chrono::hours{1}};
    bool is_back = false;
    const auto seconds = [&](int count, std::uint64_t sent) {
        for (int i = 0; i < count; ++i) {
            counters.directions[0].datagrams += sent;
            now += std::chrono::seconds{1};
            report.report_changes(
                now, counters, "game", [](const auto& /*silence*/) {},
                [&] { counters.directions[1].datagrams += is_back ? 1 : 0; });
        }
    };
    seconds(10, 50);
    const auto since = report.silent_since();
    REQUIRE(since);
    CHECK(*since <=
          base::now_utc() - std::chrono::nanoseconds{SilenceDetector::kSilenceTime}.count());
    seconds(10, 0);
    CHECK(report.silent_since() == since);
    is_back = true;
    seconds(3, 0);
    CHECK(!report.silent_since());
}

} // namespace tw::process
