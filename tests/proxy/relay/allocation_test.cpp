#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/allocation_count.h"
#include "tests/support/local_ring.h"

#include <span>
#include <string_view>

#include <doctest/doctest.h>
#include <sys/socket.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;
using tw::test::allocation_count;

/// Sends a datagram to the server and back with system calls, which do not allocate.
bool send_round_trip(int client, int server, std::span<std::byte> buffer) {
    SocketAddress from{};
    socklen_t length = sizeof from;
    if (::send(client, buffer.data(), buffer.size(), 0) < 0 ||
        ::recvfrom(server, buffer.data(), buffer.size(), 0, &from.base, &length) < 0) {
        return false;
    }
    return ::sendto(server, buffer.data(), buffer.size(), 0, &from.base, length) >= 0 &&
           ::recv(client, buffer.data(), buffer.size(), 0) >= 0;
}

TEST_CASE("forwarding for an open session allocates nothing, also with an impairment") {
    struct Row {
        bool busy_poll;
        std::string_view impairment;
        int round_trips;
    };

    for (const Row& row : {Row{false, "none", 2000}, Row{true, "none", 2000},
                           Row{false, "delay=1ms,jitter=1ms,rate=100mbit", 500}}) {
        CAPTURE(row.busy_poll);
        CAPTURE(row.impairment);
        Peer server;
        Options options = make_relay_options(server.endpoint());
        options.busy_poll = row.busy_poll;
        options.impairment = parse_impairment(row.impairment).value();
        // The ring becomes full. Also while it is full, the relay must not allocate memory.
        tw::test::LocalRing ring{Ring::kMinBytes};
        Ring* const rings[] = {&ring};
        Relay relay{options, rings};
        relay.start();
        Peer client;
        client.socket().connect(relay.listen_endpoints()[0]);
        Bytes buffer(600);
        const int c = client.socket().native_handle();
        const int s = server.socket().native_handle();
        for (int i = 0; i < 100; ++i) {
            REQUIRE(send_round_trip(c, s, buffer));
        }
        const auto before = allocation_count();
        bool passed = true;
        std::uint64_t observed = 0;
        for (int i = 1; i <= row.round_trips; ++i) {
            passed = passed && send_round_trip(c, s, buffer);
            if (i % 500 == 0) {
                observed += ring.consume_events([](const RelayEvent&) {});
            }
        }
        const auto after = allocation_count();
        CHECK(passed);
        CHECK(observed > 300);
        CHECK(relay.counters().directions[0].copies_lost > 0);
        CHECK(after - before == 0);
    }
}

/// Treats a client as a player once the server has answered.
DatagramVerdict judge_by_server_answer(RememberedHandshakes& /*memory*/, Direction direction,
                                       std::span<const std::byte> /*datagram*/) {
    return {.standing =
                direction == Direction::s2c ? ClientStanding::player : ClientStanding::unverified,
            .shows_player = true};
}

TEST_CASE("if memory for a new session is missing, only that session is lost") {
    if (!tw::test::counts_allocations()) {
        return;
    }

    struct Row {
        const char* name;
        DatagramJudge judge;
        ClientAddressMode mode;
        std::string_view impairment;
    };

    const Row rows[] = {
        {"let in at once", nullptr, ClientAddressMode::loopback, "none"},
        {"to be proven", judge_by_server_answer, ClientAddressMode::loopback, "none"},
        {"on a bad line", judge_by_server_answer, ClientAddressMode::shared, "delay=1ms,dup=50%"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Peer server;
        Options options = make_relay_options(server.endpoint());
        options.judge_datagram = row.judge;
        options.client_address = row.mode;
        options.max_sessions = 600;
        options.impairment = *parse_impairment(row.impairment, 1);
        tw::test::LocalRing ring{std::size_t{1} << 20U};
        Ring* const rings[] = {&ring};
        Relay relay{options, rings};
        relay.start();
        Bytes buffer(600);
        const int s = server.socket().native_handle();
        const timeval patience{.tv_sec = 0, .tv_usec = 500'000};
        ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        Peer player;
        player.socket().connect(relay.listen_endpoints()[0]);
        for (int i = 0; i < 20; ++i) {
            REQUIRE(send_round_trip(player.socket().native_handle(), s, buffer));
        }
        for (int n = 0; n < 40; ++n) {
            CAPTURE(n);
            Peer late;
            late.socket().connect(relay.listen_endpoints()[0]);
            const std::uint64_t failed = relay.counters().datagrams_without_socket;
            tw::test::fail_allocation_after(n);
            REQUIRE(::send(late.socket().native_handle(), buffer.data(), 1, 0) == 1);
            // The player's datagram comes later, so the relay has handled the newcomer by then.
            bool played = true;
            for (int i = 0; i < 3; ++i) {
                SocketAddress from{};
                socklen_t length = sizeof from;
                played = played && ::send(player.socket().native_handle(), buffer.data(),
                                          buffer.size(), 0) > 0;
                ssize_t size = 0;
                do { // skips the newcomer's datagram of one byte
                    length = sizeof from;
                    size = ::recvfrom(s, buffer.data(), buffer.size(), 0, &from.base, &length);
                } while (size == 1);
                played = played && size == static_cast<ssize_t>(buffer.size());
            }
            tw::test::fail_allocation_after(-1);
            // With an impairment, a datagram may be lost if there is no memory to let it wait.
            CHECK((played || row.impairment != "none"));
            CHECK(relay.counters().datagrams_without_socket - failed <= 1);
        }
        CHECK((relay.counters().datagrams_without_socket != 0 || row.impairment != "none"));
        // A client that comes now is served as usual.
        Peer last;
        last.socket().connect(relay.listen_endpoints()[0]);
        last.send(buffer, relay.listen_endpoints()[0]);
        bool got_in = false;
        for (int i = 0; i < 100 && !got_in; ++i) {
            const auto datagram = server.receive(std::chrono::milliseconds{100});
            got_in = datagram && datagram->size() == buffer.size();
        }
        CHECK(got_in);
    }
}

} // namespace
