// Covers: proxy/relay/listen_socket.cpp, proxy/relay/counters.cpp, proxy/relay/forwarder.cpp
// Covers: proxy/relay/session.cpp, proxy/relay/relay_thread.cpp
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;
using boost::asio::ip::address_v4;
using boost::asio::ip::address_v6;
using boost::asio::ip::make_address;

TEST_CASE("datagrams of every size pass both ways unchanged and in order") {
    for (const char* address : {"127.0.0.1", "::1"}) {
        CAPTURE(address);
        EchoServer server{make_address(address)};
        TestRelay relay{make_relay_options(server.endpoint())};
        Peer client{make_address(address)};
        std::vector<Bytes> sent;
        for (const std::size_t size : {0U, 1U, 33U, 1399U, 1400U, 1401U, 1500U, 2048U, 2049U, 9000U,
                                       65'000U, 65'507U, 7U, 0U, 12U}) {
            sent.push_back(make_payload(size, static_cast<std::uint32_t>(size)));
            client.send(sent.back(), relay.listen_address());
        }
        for (const auto& bytes : sent) {
            CAPTURE(bytes.size());
            const auto echoed = client.receive();
            REQUIRE(echoed);
            CHECK((*echoed == bytes));
            CHECK(client.sender() == relay.listen_address());
        }
        const auto events = relay.stop_and_take_events();
        REQUIRE(events.size() == 2 * sent.size() + 2);
        CHECK(events.front().event.kind == EventKind::open);
        CHECK(events.front().event.client == endpoint_from(client.endpoint().data()));
        CHECK(events.front().event.server == endpoint_from(server.endpoint().data()));
        CHECK(events.back().event.kind == EventKind::close);
        CHECK(events.back().event.reason == CloseReason::shutdown);
        std::array<std::size_t, 2> seen{};
        for (const auto& kept : events) {
            if (kept.event.kind == EventKind::datagram) {
                auto& number = seen[static_cast<std::size_t>(kept.event.direction)];
                CHECK((kept.bytes == sent[number]));
                CHECK(kept.event.session == 1);
                ++number;
            }
        }
        CHECK(seen[kC2sIndex] == sent.size());
        CHECK(seen[kS2cIndex] == sent.size());
        const auto counters = relay.counters();
        CHECK(counters.directions[kC2sIndex].datagrams == sent.size());
        CHECK(counters.directions[kS2cIndex].datagrams == sent.size());
        CHECK(counters.truncated_datagrams == 0);
    }
}

TEST_CASE("no second relay can listen on the same address, with any number of threads") {
    const EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.threads = 2;
    const Relay first{options};
    options.server.listen = first.listen_endpoints();
    for (const unsigned threads : {1U, 2U}) {
        options.threads = threads;
        CHECK_THROWS_AS(Relay{options}, RetryableStartError);
    }
}

TEST_CASE("each client has one session in one thread, and gets its datagrams in order") {
    for (const unsigned threads : {1U, 2U}) {
        CAPTURE(threads);
        EchoServer server;
        Options options = make_relay_options(server.endpoint());
        options.threads = threads;
        TestRelay relay{options};
        constexpr std::uint32_t kClients = 50;
        constexpr std::uint32_t kDatagrams = 40;
        const auto datagram = [](std::uint32_t client, std::uint32_t number) {
            return make_payload(1 + (client * 31 + number) % 1400, client * 1000 + number);
        };
        std::array<Peer, kClients>
            clients; // all at the same time, so that no two get the same port
        for (std::uint32_t d = 0; d < kDatagrams; ++d) {
            for (std::uint32_t c = 0; c < kClients; ++c) {
                clients[c].send(datagram(c, d), relay.listen_address());
            }
        }
        for (std::uint32_t c = 0; c < kClients; ++c) {
            for (std::uint32_t d = 0; d < kDatagrams; ++d) {
                REQUIRE(clients[c].receive() == datagram(c, d));
            }
        }
        CHECK(relay.num_sessions() == kClients);
        CHECK(relay.counters().sessions_opened == kClients);
        relay.stop();
        relay.join();
        std::set<std::uint32_t> sessions;
        for (Ring* ring : relay.rings) {
            const auto events = take_all_events(*ring);
            CHECK(count_events(events, EventKind::open) == count_events(events, EventKind::close));
            for (const auto& kept : events) {
                CHECK((kept.event.kind != EventKind::open ||
                       sessions.insert(kept.event.session).second));
            }
        }
        CHECK(sessions.size() == kClients);
        CHECK(*sessions.begin() == 1);
        CHECK(*sessions.rbegin() == kClients);
    }
}

TEST_CASE("an idle session is closed, and another session can be opened") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.max_sessions = 1;
    options.idle_timeout = std::chrono::milliseconds{40};
    TestRelay relay{options};
    Peer first;
    REQUIRE(relay.echoes_datagram(first));
    CHECK(eventually([&] { return relay.counters().sessions_closed == 1; }));
    CHECK(eventually([&] { return relay.rings[0]->num_unconsumed_bytes() != 0; }));
    Peer second;
    CHECK(relay.echoes_datagram(second));
    const auto events = relay.stop_and_take_events();
    CHECK(count_events(events, EventKind::open) == 2);
    CHECK(count_events(events, EventKind::close) == 2);
    const auto close = std::ranges::find_if(
        events, [](const EventCopy& kept) { return kept.event.kind == EventKind::close; });
    CHECK(close->event.session == 1);
    CHECK(close->event.reason == CloseReason::idle);
}

TEST_CASE("a session survives a server that refuses datagrams until it is restarted") {
    std::uint16_t port = 0;
    {
        const Peer reserved;
        port = reserved.endpoint().port();
    }
    TestRelay relay{make_relay_options(Udp::endpoint{address_v4::loopback(), port})};
    Peer client;
    CHECK(eventually([&] {
        client.send(make_payload(10, 1), relay.listen_address());
        return relay.counters().icmp_refused >= 2;
    }));
    Peer server{address_v4::loopback(), port};
    client.send(make_payload(20, 2), relay.listen_address());
    auto got = server.receive();
    // Skips an older datagram that was still in transit.
    while (got && *got != make_payload(20, 2)) {
        got = server.receive();
    }
    REQUIRE(got);
    server.send(make_payload(30, 3), server.sender());
    CHECK(client.receive() == make_payload(30, 3));
    CHECK(relay.counters().sessions_opened == 1);
    CHECK(relay.counters().sessions_closed == 0);
}

TEST_CASE("a client that is gone does not affect other clients") {
    Peer server;
    TestRelay relay{make_relay_options(server.endpoint())};
    Peer stays;
    stays.send(make_payload(10, 2), relay.listen_address());
    REQUIRE(server.receive());
    const auto to_stays = server.sender();
    Udp::endpoint to_gone;
    {
        Peer gone;
        gone.send(make_payload(10, 1), relay.listen_address());
        REQUIRE(server.receive());
        to_gone = server.sender();
    }
    for (std::uint32_t i = 0; i < 100; ++i) {
        server.send(make_payload(50, i), to_gone);
        server.send(make_payload(60, i), to_stays);
    }
    for (std::uint32_t i = 0; i < 100; ++i) {
        CHECK(stays.receive() == make_payload(60, i));
    }
}

TEST_CASE("datagrams that arrived before stop() are forwarded") {
    Peer server;
    TestRelay relay{make_relay_options(server.endpoint()), TestRelay::kRingBytes, false};
    Peer client;
    constexpr std::uint32_t kDatagrams = 500;
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
        client.send(make_payload(64, i), relay.listen_address());
    }
    relay.stop(); // stops at once: all datagrams still wait in the socket
    relay.start();
    relay.join();
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
        REQUIRE(server.receive() == make_payload(64, i));
    }
    const auto events = relay.take_events();
    CHECK(count_events(events, EventKind::datagram) == kDatagrams);
    CHECK(events.back().event.kind == EventKind::close);
}

TEST_CASE("with a full ring, datagrams are forwarded, and a gap counts the missing copies") {
    EchoServer server;
    TestRelay relay{make_relay_options(server.endpoint()), Ring::kMinBytes};
    Peer client;
    constexpr std::uint32_t kDatagrams = 1000; // in all, eight times the size of the ring
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
        client.send(make_payload(1000, i), relay.listen_address());
        REQUIRE(client.receive() == make_payload(1000, i));
    }
    auto events = relay.take_events();
    REQUIRE(relay.echoes_datagram(client));
    const auto rest = relay.stop_and_take_events();
    events.insert(events.end(), rest.begin(), rest.end());
    std::array<std::uint64_t, 2> total{};
    for (const auto& kept : events) {
        auto& sum = total[static_cast<std::size_t>(kept.event.direction)];
        if (kept.event.kind == EventKind::datagram) {
            ++sum;
        } else if (kept.event.kind == EventKind::gap) {
            CHECK(kept.event.session == 1);
            sum += kept.event.lost;
        }
    }
    CHECK(rest.front().event.kind == EventKind::gap);
    CHECK(total[kC2sIndex] == kDatagrams + 1);
    CHECK(total[kS2cIndex] == kDatagrams + 1);
    CHECK(relay.counters().directions[kC2sIndex].copies_lost > 0);
}

TEST_CASE("a busy-polling relay forwards the same, also after its thread slept") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.busy_poll = true;
    TestRelay relay{options};
    Peer client;
    for (std::uint32_t i = 0; i < 20; ++i) {
        CHECK(relay.echoes_datagram(client, i));
        if (i % 10 == 0) { // longer than the thread polls
            std::this_thread::sleep_for(std::chrono::milliseconds{60});
        }
    }
}

TEST_CASE("each client address has its own loopback address, also in the next run") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.client_address = ClientAddressMode::automatic;
    constexpr std::size_t kClients = 16;
    // A loopback client with the server's port is refused. These have other ports, as the server's
    // address is theirs, too.
    const std::array<Peer, 2> with_other_ports;
    std::array<std::set<std::string>, 2> seen;
    for (auto& addresses : seen) {
        TestRelay relay{options};
        CHECK(relay.client_address_mode() == ClientAddressMode::loopback);
        for (std::size_t i = 0; i < kClients; ++i) {
            const auto own = make_address("127.0.1." + std::to_string(1 + i));
            for (const Peer& other : with_other_ports) {
                Peer client{own, other.endpoint().port()};
                REQUIRE(relay.echoes_datagram(client));
            }
        }
        for (const auto& kept : relay.stop_and_take_events()) {
            if (kept.event.kind == EventKind::open) {
                const std::string text = to_string(kept.event.upstream);
                CHECK(is_loopback(kept.event.upstream));
                addresses.insert(text.substr(0, text.find(':')));
            }
        }
        CHECK(addresses.size() == kClients);
    }
    CHECK((seen[0] == seen[1]));
}

TEST_CASE("a relay on all addresses replies from the address that the client used") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.server.listen = {Udp::endpoint{address_v6::any(), 0}};
    for (const std::string_view impairment : {"none", "delay=1ms"}) {
        options.impairment = parse_impairment(impairment).value();
        TestRelay relay{options};
        const auto port = relay.listen_address().port();
        for (const char* address : {"127.0.0.1", "127.0.0.77", "::1"}) {
            CAPTURE(address);
            const Udp::endpoint asked{make_address(address), port};
            Peer client{make_address(asked.address().is_v4() ? "127.0.0.1" : "::1")};
            client.send(make_payload(10, 1), asked);
            CHECK(client.receive() == make_payload(10, 1));
            CHECK(client.sender() == asked);
        }
    }
}

TEST_CASE("a relay that cannot start gives the reason in one line") {
    Peer taken;
    const auto good = make_relay_options(Udp::endpoint{address_v4::loopback(), 8303});

    struct Row {
        std::string name;
        std::string says;
        Options options;
    };

    std::vector<Row> rows{
        {"port in use", "cannot listen on 127.0.0.1:", good},
        {"no such name", "cannot resolve", good},
        {"no server port", "port is missing", good},
        {"no threads", "threads", good},
        {"nothing to listen on", "number of listening addresses", good},
        {"its own server", "is the server's own address; listen on", good},
        {"loopback mode elsewhere", "loopback", good},
        {"transparent mode between families", "of one family: listen on an IPv4 address", good},
    };
    rows[0].options.server.listen = {taken.endpoint()};
    rows[1].options.server.host = "no such name";
    rows[2].options.server.port = 0;
    rows[3].options.threads = 0;
    rows[4].options.server.listen.clear();
    {
        const Peer free;
        rows[5].options.server.listen = {free.endpoint()};
        rows[5].options.server.port = free.endpoint().port();
    }
    rows[6].options.server.host = "192.0.2.1";
    rows[6].options.client_address = ClientAddressMode::loopback;
    rows[7].options.server.listen = {Udp::endpoint{address_v6::loopback(), 0}};
    rows[7].options.client_address = ClientAddressMode::transparent;
    for (const auto& row : rows) {
        CAPTURE(row.name);
        std::string said;
        try {
            const Relay relay{row.options};
        } catch (const StartError& error) {
            said = error.what();
        }
        CAPTURE(said);
        CHECK(said.find(row.says) != std::string::npos);
        CHECK(said.find('\n') == std::string::npos);
    }
}

TEST_CASE("after a change of the server's address, only new sessions use the new address") {
    Peer first;
    Peer second;
    TestRelay relay{make_relay_options(first.endpoint())};
    const auto door = relay.listen_address();
    const Bytes bytes(10);
    Peer early;
    early.send(bytes, door);
    REQUIRE(first.receive());
    relay.set_server_address(second.endpoint());
    CHECK(relay.server_endpoint().port == second.endpoint().port());
    Peer late;
    late.send(bytes, door);
    CHECK(second.receive());
    early.send(bytes, door);
    CHECK(first.receive());
    CHECK_THROWS_AS(relay.set_server_address(door), StartError);
    CHECK(relay.server_endpoint().port == second.endpoint().port());
}

TEST_CASE("with loopback addresses, the server's new address must be on this host") {
    Peer server;
    Options options = make_relay_options(server.endpoint());
    options.client_address = ClientAddressMode::loopback;
    Relay relay{options};
    CHECK_THROWS_AS(relay.set_server_address({boost::asio::ip::make_address("192.0.2.1"), 8303}),
                    StartError);
    CHECK_THROWS_AS(relay.set_server_address({boost::asio::ip::make_address("::1"), 8303}),
                    StartError);
    CHECK(relay.server_endpoint().port == server.endpoint().port());
}

} // namespace
