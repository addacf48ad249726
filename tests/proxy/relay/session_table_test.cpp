#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

// A game with datagrams of one letter. 'c' begins, 'i' requests information, and with 'w' the
// server accepts an unverified client. The server sends 'p', and the client's reply 'q' verifies
// the client. The server's next 'q' shows that the client plays.
constexpr char kBeginLetter = 'c';
constexpr char kRequestLetter = 'i';
constexpr char kAcceptUnverified = 'w';
constexpr char kTokenRequest = 'p';
constexpr char kTokenReply = 'q';

DatagramVerdict judge_token_datagram(RememberedHandshakes& memory, Direction direction,
                                     std::span<const std::byte> datagram) {
    const char letter = datagram.empty() ? '\0' : static_cast<char>(datagram[0]);
    std::byte& told = memory.bytes[0];
    std::byte& returned = memory.bytes[1];
    if (direction == Direction::s2c) {
        told |= letter == kTokenRequest ? std::byte{1} : std::byte{0};
        const bool plays = letter == kTokenReply && returned != std::byte{0};
        return {.standing = plays                         ? ClientStanding::player
                            : letter == kAcceptUnverified ? ClientStanding::unverified_player
                                                          : ClientStanding::connless,
                .shows_player = letter != kRequestLetter};
    }
    if (letter == kRequestLetter) {
        return {.request = RequestKind::server_info, .is_answered = true};
    }
    if (told != std::byte{0} && letter == kTokenReply) {
        returned = std::byte{1};
        return {.standing = ClientStanding::verified, .is_answered = true};
    }
    const bool begins =
        letter == kBeginLetter || letter == kAcceptUnverified || letter == kTokenRequest;
    return {.standing = begins ? ClientStanding::unverified : ClientStanding::unrecognised,
            .is_answered = begins};
}

Bytes make_letter_datagram(char letter, std::size_t size = 8) {
    Bytes datagram(size, static_cast<std::byte>(letter));
    return datagram;
}

struct TokenRelayBench {
    EchoServer server;
    std::optional<TestRelay> relay;

    explicit TokenRelayBench(
        std::size_t max_sessions = 16,
        const std::function<void(Options&)>& change = [](Options&) {}) {
        Options options = make_relay_options(server.endpoint());
        options.max_sessions = max_sessions;
        options.judge_datagram = judge_token_datagram;
        change(options);
        relay.emplace(options);
    }

    [[nodiscard]] bool is_letter_answered(Peer& peer, char letter,
                                          std::chrono::milliseconds patience = kMaxWait) const {
        peer.send(make_letter_datagram(letter), relay->listen_address());
        return peer.receive(patience).has_value();
    }

    [[nodiscard]] bool verify_client(Peer& peer) const {
        return is_letter_answered(peer, kTokenRequest) && is_letter_answered(peer, kTokenReply);
    }

    [[nodiscard]] NewClientTotals<std::uint64_t> new_client_totals() const {
        return relay->counters().new_clients;
    }
};

constexpr std::chrono::milliseconds kShortWait{50};

TEST_CASE("a verified session is announced with all datagrams since its first") {
    TokenRelayBench bench;
    Peer stranger;
    Peer asker;
    Peer player;
    CHECK(bench.is_letter_answered(stranger, kBeginLetter));
    CHECK(bench.is_letter_answered(asker, kRequestLetter));
    CHECK(bench.verify_client(player));
    CHECK(bench.is_letter_answered(player, 'x'));
    CHECK(bench.new_client_totals().begun_sessions == 2);
    CHECK(bench.new_client_totals().connless_sessions == 1);
    CHECK(bench.new_client_totals().verified_sessions == 1);
    CHECK(bench.new_client_totals().player_sessions == 1);
    CHECK(bench.relay->counters().sessions_opened == 1);
    const auto events = bench.relay->stop_and_take_events();
    REQUIRE(events.size() == 8);
    CHECK(events[0].event.kind == EventKind::open);
    CHECK(events[0].event.session == 1);
    CHECK(events[0].event.client == endpoint_from(player.endpoint().data()));
    constexpr std::string_view kPlayerLetters = "ppqqxx";
    for (std::size_t i = 0; i < kPlayerLetters.size(); ++i) {
        CAPTURE(i);
        CHECK((events[1 + i].bytes == make_letter_datagram(kPlayerLetters[i])));
        CHECK(events[1 + i].event.direction == (i % 2 == 0 ? Direction::c2s : Direction::s2c));
        CHECK(events[1 + i].event.time >= events[i].event.time);
    }
    CHECK(events.back().event.kind == EventKind::close);
}

TEST_CASE("earlier datagrams that were not stored are reported as a gap") {
    TokenRelayBench bench;
    Peer player;
    for (int i = 0; i < 4; ++i) {
        player.send(make_letter_datagram(kBeginLetter, 1000), bench.relay->listen_address());
        REQUIRE(player.receive());
    }
    CHECK(bench.verify_client(player));
    std::uint64_t lost = 0;
    std::uint64_t seen = 0;
    for (const EventCopy& kept : bench.relay->stop_and_take_events()) {
        lost += kept.event.kind == EventKind::gap ? kept.event.lost : 0;
        seen += kept.event.kind == EventKind::datagram ? 1 : 0;
    }
    CHECK(lost + seen == 12);
    // Four datagrams of 1000 bytes fit with their headers, and the verifying datagram is copied.
    CHECK(lost == 6);
}

TEST_CASE("an unverified player is evicted only if it is silent and a new client needs room") {
    TokenRelayBench bench{2, [](Options& options) {
                              options.new_client_limits.min_unverified_time =
                                  std::chrono::milliseconds{1};
                          }};
    Peer proven;
    Peer weak;
    Peer late;
    REQUIRE(bench.verify_client(proven));
    REQUIRE(bench.is_letter_answered(weak, kAcceptUnverified));
    CHECK_FALSE(bench.is_letter_answered(late, kBeginLetter, kShortWait));
    CHECK(bench.new_client_totals().unverified_player_sessions == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds{2100});
    CHECK(bench.is_letter_answered(late, kBeginLetter));
    CHECK(bench.new_client_totals().displaced_sessions == 1);
    CHECK(bench.is_letter_answered(proven, 'x'));
    const auto events = bench.relay->stop_and_take_events();
    CHECK(count_events(events, EventKind::open) == 2);
    CHECK(count_events(events, EventKind::close) == 2);
    CHECK(count_events(events, CloseReason::displaced) == 1);
}

/// Sends datagrams of odd sizes up to 60. Half of them are lost. Returns the sizes that arrive.
std::vector<std::size_t> arriving_datagram_sizes(const TokenRelayBench& bench) {
    Peer player;
    std::vector<std::size_t> sizes;
    for (std::size_t size = 1; size < 60; size += 2) {
        player.send(make_letter_datagram(kAcceptUnverified, size), bench.relay->listen_address());
    }
    while (const auto echoed = player.receive(kShortWait)) {
        sizes.push_back(echoed->size());
    }
    return sizes;
}

TEST_CASE("connectionless sessions do not change the random impairment of other sessions") {
    const auto set_half_loss = [](Options& options) {
        options.impairment = *parse_impairment("c2s:loss=50%", 7);
    };
    const TokenRelayBench quiet{16, set_half_loss};
    const auto sizes = arriving_datagram_sizes(quiet);
    CHECK(sizes.size() > 5);
    CHECK(sizes.size() < 25);
    const TokenRelayBench asked{16, set_half_loss};
    for (int i = 0; i < 3; ++i) {
        Peer asker;
        static_cast<void>(asked.is_letter_answered(asker, kRequestLetter, kShortWait));
    }
    CHECK(arriving_datagram_sizes(asked) == sizes);
}

TEST_CASE("an unanswered new client is announced only if the server answers no client") {
    TokenRelayBench bench{16, [](Options& options) {
                              options.new_client_limits.unverified_timeout =
                                  std::chrono::milliseconds{200};
                          }};
    bench.server.ignore_datagrams_with(std::byte{kBeginLetter});
    Peer player;
    Peer stranger;
    CHECK(bench.verify_client(player));
    CHECK(eventually([&] {
        static_cast<void>(bench.is_letter_answered(stranger, kBeginLetter, kShortWait));
        CHECK(bench.is_letter_answered(player, 'x'));
        return bench.new_client_totals().expired_sessions >= 1;
    }));
    CHECK(bench.relay->counters().sessions_opened == 1);
}

TEST_CASE("datagrams that servers do not answer are counted") {
    TokenRelayBench bench;
    Peer stranger;
    Peer player;
    CHECK(bench.is_letter_answered(stranger, 'x'));
    CHECK(bench.is_letter_answered(stranger, 'x'));
    CHECK(bench.verify_client(player));
    CHECK(bench.relay->counters().unanswerable_datagrams == 2);
}

TEST_CASE("an unverified session ends at its timeout, however much the client sends") {
    TokenRelayBench bench{16, [](Options& options) {
                              options.new_client_limits.unverified_timeout =
                                  std::chrono::milliseconds{200};
                              options.new_client_limits.connless_timeout =
                                  std::chrono::milliseconds{100};
                          }};
    Peer stranger;
    Peer asker;
    CHECK(bench.is_letter_answered(asker, kRequestLetter));
    CHECK(eventually([&] {
        static_cast<void>(bench.is_letter_answered(stranger, kBeginLetter, kShortWait));
        return bench.new_client_totals().expired_sessions >= 1;
    }));
    CHECK(eventually([&] { return bench.relay->num_sessions() == 0; }));
    CHECK(bench.is_letter_answered(asker, kRequestLetter));
}

TEST_CASE("a client that waits for a silent server is announced") {
    Peer silent;
    Options options = make_relay_options(silent.endpoint());
    options.judge_datagram = judge_token_datagram;
    options.new_client_limits.unverified_timeout = std::chrono::milliseconds{200};
    TestRelay relay{options, Ring::kMinBytes};
    Peer waiting;
    Peer stray;
    CHECK(eventually([&] {
        waiting.send(make_letter_datagram(kBeginLetter), relay.listen_address());
        stray.send(make_letter_datagram('x'), relay.listen_address());
        return relay.counters().new_clients.unverified_player_sessions >= 1;
    }));
    for (const EventCopy& kept : relay.stop_and_take_events()) {
        CHECK((kept.event.kind != EventKind::open ||
               kept.event.client != endpoint_from(stray.endpoint().data())));
    }
}

TEST_CASE("the datagrams of a session are limited per second") {
    TokenRelayBench bench{
        16, [](Options& options) { options.new_client_limits.player_datagram_rate = 100; }};
    Peer player;
    REQUIRE(bench.verify_client(player));
    for (int i = 0; i < 1000; ++i) {
        player.send(make_letter_datagram('x'), bench.relay->listen_address());
    }
    CHECK(eventually([&] { return bench.new_client_totals().rejected_by_session_rate >= 700; }));
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    Peer other;
    CHECK(bench.verify_client(other));
}

TEST_CASE("closing many idle sessions does not delay other sessions") {
    // For more sessions, set TW_IDLE_SESSIONS=15000 and allow 20,000 open files.
    const char* const wanted =
        std::getenv("TW_IDLE_SESSIONS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    const std::size_t num_idle = wanted == nullptr ? 1000 : std::stoul(wanted);
    // A client socket has one session per listening port, so fewer descriptors are needed.
    constexpr std::size_t kListeners = 4;
    const std::chrono::milliseconds timeout{1000 + num_idle};
    TokenRelayBench bench{2 * num_idle, [&](Options& options) {
                              options.judge_datagram = nullptr;
                              options.idle_timeout = timeout;
                              options.server.listen.resize(kListeners,
                                                           options.server.listen.front());
                          }};
    boost::asio::io_context loop;
    std::vector<Udp::socket> idle;
    const auto listening = bench.relay->listen_endpoints();
    for (std::size_t i = 0; i < num_idle; ++i) {
        if (i % kListeners == 0) {
            // At the server's address, where the system gives no client the server's port: the
            // relay would take such a client's datagrams for forged.
            idle.emplace_back(loop, Udp::endpoint{boost::asio::ip::address_v4::loopback(), 0});
        }
        idle.back().send_to(boost::asio::buffer(make_letter_datagram('x')),
                            listening[i % kListeners]);
        if (i % 100 == 99) {
            CAPTURE(i);
            REQUIRE(eventually([&] {
                bench.relay->take_events(); // otherwise the ring would become full
                return bench.relay->counters().sessions_opened == i + 1;
            }));
        }
    }
    for (std::size_t i = 0; i < num_idle; ++i) { // as nearly at the same time as possible
        idle[i / kListeners].send_to(boost::asio::buffer(make_letter_datagram('x')),
                                     listening[i % kListeners]);
    }
    Peer player;
    const auto longest_round_trip_until = [&](const auto& over) {
        auto longest = Clock::duration::zero();
        while (!over()) {
            const auto sent = Clock::now();
            REQUIRE(bench.is_letter_answered(player, 'x'));
            longest = std::max(longest, Clock::now() - sent);
        }
        return std::chrono::duration_cast<std::chrono::microseconds>(longest).count();
    };
    const auto quiet_until = Clock::now() + timeout / 2;
    const auto quiet = longest_round_trip_until([&] { return Clock::now() >= quiet_until; });
    REQUIRE(bench.relay->counters().sessions_closed == 0);
    const auto leaving = longest_round_trip_until([&] { return bench.relay->num_sessions() == 1; });
    MESSAGE("the longest round trip took ", leaving, " us while ", num_idle, " sessions left, and ",
            quiet, " us before");
    CHECK(bench.relay->counters().sessions_closed == num_idle);
}

} // namespace
