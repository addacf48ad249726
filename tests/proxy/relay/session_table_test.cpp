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

// A game with datagrams of one letter. 'c' begins, 'i' requests information, and with 'w' the server
// accepts the client without proof. The server sends 'p'; the client's reply 'q' verifies it, and the
// server's next 'q' shows that the client plays.
constexpr char kBegin = 'c';
constexpr char kAsk = 'i';
constexpr char kWeak = 'w';
constexpr char kSecret = 'p';
constexpr char kProof = 'q';

DatagramVerdict prove(HandshakeMemory& memory, Direction direction,
                      std::span<const std::byte> datagram) {
    const char letter = datagram.empty() ? '\0' : static_cast<char>(datagram[0]);
    std::byte& told = memory.bytes[0];
    std::byte& returned = memory.bytes[1];
    if (direction == Direction::s2c) {
        told |= letter == kSecret ? std::byte{1} : std::byte{0};
        const bool plays = letter == kProof && returned != std::byte{0};
        return {.standing = plays             ? ClientStanding::player
                            : letter == kWeak ? ClientStanding::unverified_player
                                              : ClientStanding::connless,
                .shows_player = letter != kAsk};
    }
    if (letter == kAsk) {
        return {.request = RequestKind::server_info, .is_answered = true};
    }
    if (told != std::byte{0} && letter == kProof) {
        returned = std::byte{1};
        return {.standing = ClientStanding::verified, .is_answered = true};
    }
    const bool begins = letter == kBegin || letter == kWeak || letter == kSecret;
    return {.standing = begins ? ClientStanding::unverified : ClientStanding::unrecognised,
            .is_answered = begins};
}

Bytes say(char letter, std::size_t size = 8) {
    Bytes datagram(size, static_cast<std::byte>(letter));
    return datagram;
}

struct Setup {
    EchoServer server;
    std::optional<TestRelay> relay;

    explicit Setup(
        std::size_t max_sessions = 16,
        const std::function<void(Options&)>& change = [](Options&) {}) {
        Options options = options_for(server.endpoint());
        options.max_sessions = max_sessions;
        options.judge_datagram = prove;
        change(options);
        relay.emplace(options);
    }

    [[nodiscard]] bool answered(Peer& peer, char letter,
                                std::chrono::milliseconds patience = kPatience) const {
        peer.send(say(letter), relay->address());
        return peer.receive(patience).has_value();
    }

    [[nodiscard]] bool prove_itself(Peer& peer) const {
        return answered(peer, kSecret) && answered(peer, kProof);
    }

    [[nodiscard]] NewClientTotals<std::uint64_t> totals() const {
        return relay->counters().new_clients;
    }
};

constexpr std::chrono::milliseconds kNoPatience{50};

TEST_CASE("the observer hears of a session when it is verified, from its first datagram on") {
    Setup setup;
    Peer stranger;
    Peer asker;
    Peer player;
    CHECK(setup.answered(stranger, kBegin));
    CHECK(setup.answered(asker, kAsk));
    CHECK(setup.prove_itself(player));
    CHECK(setup.answered(player, 'x'));
    CHECK(setup.totals().begun_sessions == 2);
    CHECK(setup.totals().connless_sessions == 1);
    CHECK(setup.totals().verified_sessions == 1);
    CHECK(setup.totals().player_sessions == 1);
    CHECK(setup.relay->counters().sessions_opened == 1);
    const auto events = setup.relay->finish();
    REQUIRE(events.size() == 8);
    CHECK(events[0].event.kind == EventKind::open);
    CHECK(events[0].event.session == 1);
    CHECK(events[0].event.client == endpoint_from(player.endpoint().data()));
    constexpr std::string_view kSaid = "ppqqxx";
    for (std::size_t i = 0; i < kSaid.size(); ++i) {
        CAPTURE(i);
        CHECK((events[1 + i].bytes == say(kSaid[i])));
        CHECK(events[1 + i].event.direction == (i % 2 == 0 ? Direction::c2s : Direction::s2c));
        CHECK(events[1 + i].event.time >= events[i].event.time);
    }
    CHECK(events.back().event.kind == EventKind::close);
}

TEST_CASE("what was said before and did not fit is reported as a gap") {
    Setup setup;
    Peer player;
    for (int i = 0; i < 4; ++i) {
        player.send(say(kBegin, 1000), setup.relay->address());
        REQUIRE(player.receive());
    }
    CHECK(setup.prove_itself(player));
    std::uint64_t lost = 0;
    std::uint64_t seen = 0;
    for (const KeptEvent& kept : setup.relay->finish()) {
        lost += kept.event.kind == EventKind::gap ? kept.event.lost : 0;
        seen += kept.event.kind == EventKind::datagram ? 1 : 0;
    }
    CHECK(lost + seen == 12);
    CHECK(
        lost ==
        6); // four of a thousand bytes fit with their headers, and the verifying datagram is copied
}

TEST_CASE("a weak session leaves only when it is silent and its place is wanted") {
    Setup setup{2, [](Options& options) {
                    options.new_client_limits.min_unverified_time = std::chrono::milliseconds{1};
                }};
    Peer proven;
    Peer weak;
    Peer late;
    REQUIRE(setup.prove_itself(proven));
    REQUIRE(setup.answered(weak, kWeak));
    CHECK_FALSE(setup.answered(late, kBegin, kNoPatience)); // and the earlier datagrams are counted
    CHECK(setup.totals().unverified_player_sessions == 1);
    std::this_thread::sleep_for(std::chrono::milliseconds{2100});
    CHECK(setup.answered(late, kBegin));
    CHECK(setup.totals().displaced_sessions == 1);
    CHECK(setup.answered(proven, 'x'));
    const auto events = setup.relay->finish();
    CHECK(count_of(events, EventKind::open) == 2);
    CHECK(count_of(events, EventKind::close) == 2);
    CHECK(count_of(events, CloseReason::displaced) == 1);
}

/// Sends datagrams of the odd sizes up to 60, of which half are lost. Returns the sizes that arrive.
std::vector<std::size_t> arriving(const Setup& setup) {
    Peer player;
    std::vector<std::size_t> sizes;
    for (std::size_t size = 1; size < 60; size += 2) {
        player.send(say(kWeak, size), setup.relay->address());
    }
    while (const auto echoed = player.receive(kNoPatience)) {
        sizes.push_back(echoed->size());
    }
    return sizes;
}

TEST_CASE("who only asks changes nothing about the fate of others' datagrams") {
    const auto lossy = [](Options& options) {
        options.impairment = *parse_impairment("c2s:loss=50%", 7);
    };
    const Setup quiet{16, lossy};
    const auto sizes = arriving(quiet);
    CHECK(sizes.size() > 5);
    CHECK(sizes.size() < 25);
    const Setup asked{16, lossy};
    for (int i = 0; i < 3; ++i) {
        Peer asker;
        static_cast<void>(asked.answered(asker, kAsk, kNoPatience));
    }
    CHECK(arriving(asked) == sizes);
}

TEST_CASE("a stranger whom the server does not answer is shown only where it answers nobody") {
    Setup setup{16, [](Options& options) {
                    options.new_client_limits.unverified_timeout = std::chrono::milliseconds{200};
                }};
    setup.server.ignore(std::byte{kBegin});
    Peer player;
    Peer stranger;
    CHECK(setup.prove_itself(player));
    CHECK(eventually([&] {
        static_cast<void>(setup.answered(stranger, kBegin, kNoPatience));
        CHECK(setup.answered(player, 'x'));
        return setup.totals().expired_sessions >= 1;
    }));
    CHECK(setup.relay->counters().sessions_opened == 1);
}

TEST_CASE("what begins nothing is counted: no server answers it") {
    Setup setup;
    Peer stranger;
    Peer player;
    CHECK(setup.answered(stranger, 'x'));
    CHECK(setup.answered(stranger, 'x'));
    CHECK(setup.prove_itself(player));
    CHECK(setup.relay->counters().unanswerable_datagrams == 2);
}

TEST_CASE("who proves nothing leaves in time, however much it sends") {
    Setup setup{16, [](Options& options) {
                    options.new_client_limits.unverified_timeout = std::chrono::milliseconds{200};
                    options.new_client_limits.connless_timeout = std::chrono::milliseconds{100};
                }};
    Peer stranger;
    Peer asker;
    CHECK(setup.answered(asker, kAsk));
    CHECK(eventually([&] {
        static_cast<void>(setup.answered(stranger, kBegin, kNoPatience));
        return setup.totals().expired_sessions >= 1;
    }));
    CHECK(eventually([&] { return setup.relay->num_sessions() == 0; }));
    CHECK(setup.answered(asker, kAsk));
}

TEST_CASE("the observer hears of who waits for a server that says nothing") {
    Peer silent;
    Options options = options_for(silent.endpoint());
    options.judge_datagram = prove;
    options.new_client_limits.unverified_timeout = std::chrono::milliseconds{200};
    TestRelay relay{options, Ring::kMinBytes};
    Peer waiting;
    Peer stray;
    CHECK(eventually([&] {
        waiting.send(say(kBegin), relay.address());
        stray.send(say('x'), relay.address());
        return relay.counters().new_clients.unverified_player_sessions >= 1;
    }));
    for (const KeptEvent& kept : relay.finish()) {
        CHECK((kept.event.kind != EventKind::open ||
               kept.event.client != endpoint_from(stray.endpoint().data())));
    }
}

TEST_CASE("a session has so many datagrams a second") {
    Setup setup{16, [](Options& options) { options.new_client_limits.player_datagram_rate = 100; }};
    Peer player;
    REQUIRE(setup.prove_itself(player));
    for (int i = 0; i < 1000; ++i) {
        player.send(say('x'), setup.relay->address());
    }
    CHECK(eventually([&] { return setup.totals().rejected_by_session_rate >= 700; }));
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    Peer other;
    CHECK(setup.prove_itself(other));
}

TEST_CASE("idle sessions that leave at once hold nobody up") {
    // For a manual test with more sessions: TW_IDLE_SESSIONS=15000 (needs a limit of 20,000 open files).
    const char* const wanted =
        std::getenv("TW_IDLE_SESSIONS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    const std::size_t num_idle = wanted == nullptr ? 1000 : std::stoul(wanted);
    // A client socket has one session per listening port, so fewer descriptors are needed.
    constexpr std::size_t kListeners = 4;
    const std::chrono::milliseconds timeout{1000 + num_idle};
    Setup setup{2 * num_idle, [&](Options& options) {
                    options.judge_datagram = nullptr;
                    options.idle_timeout = timeout;
                    options.server.listen.resize(kListeners, options.server.listen.front());
                }};
    boost::asio::io_context loop;
    std::vector<Udp::socket> idle;
    const auto listening = setup.relay->listen_endpoints();
    for (std::size_t i = 0; i < num_idle; ++i) {
        if (i % kListeners == 0) {
            // At the server's address, where the system gives no client the server's port: the
            // relay would take such a client's datagrams for forged.
            idle.emplace_back(loop, Udp::endpoint{boost::asio::ip::address_v4::loopback(), 0});
        }
        idle.back().send_to(boost::asio::buffer(say('x')), listening[i % kListeners]);
        if (i % 100 == 99) {
            CAPTURE(i);
            REQUIRE(eventually([&] {
                setup.relay->events(); // otherwise the ring would become full
                return setup.relay->counters().sessions_opened == i + 1;
            }));
        }
    }
    for (std::size_t i = 0; i < num_idle; ++i) { // as nearly at the same time as possible
        idle[i / kListeners].send_to(boost::asio::buffer(say('x')), listening[i % kListeners]);
    }
    Peer player;
    const auto longest_until = [&](const auto& over) {
        auto longest = Clock::duration::zero();
        while (!over()) {
            const auto sent = Clock::now();
            REQUIRE(setup.answered(player, 'x'));
            longest = std::max(longest, Clock::now() - sent);
        }
        return std::chrono::duration_cast<std::chrono::microseconds>(longest).count();
    };
    const auto quiet_until = Clock::now() + timeout / 2;
    const auto quiet = longest_until([&] { return Clock::now() >= quiet_until; });
    REQUIRE(setup.relay->counters().sessions_closed == 0);
    const auto leaving = longest_until([&] { return setup.relay->num_sessions() == 1; });
    MESSAGE("the longest round trip took ", leaving, " us while ", num_idle, " sessions left, and ",
            quiet, " us before");
    CHECK(setup.relay->counters().sessions_closed == num_idle);
}

} // namespace
