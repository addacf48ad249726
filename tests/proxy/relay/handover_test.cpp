// Covers: proxy/relay/session_maker.cpp, proxy/relay/listen_socket.cpp
#include "proxy/base/archive.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

constexpr std::chrono::milliseconds kHold{2000};
constexpr std::chrono::milliseconds kNotLong{50};

UniqueFd copy_of(int descriptor) {
    return UniqueFd{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
}

SessionState sample() {
    SessionState state;
    state.client.address[0] = std::byte{127};
    state.client.port = 4000;
    state.id = 7;
    state.server = 3;
    state.number = 9;
    state.listener = 1;
    state.reply = Bytes(32, std::byte{5});
    state.standing = Standing::player;
    state.has_place = true;
    state.answered = true;
    state.proof.bytes[3] = std::byte{1};
    state.opened = 1000;
    state.told = 1001;
    state.begun_ns = 5;
    state.active_ns = 6;
    state.heard_ms = 7;
    state.played_ms = 11;
    state.repeats = 2;
    state.kernel_drops = 8;
    state.held = {{.time = 3, .direction = Direction::s2c, .bytes = Bytes(10, std::byte{2})}};
    state.held_lost = {1, 2};
    return state;
}

std::vector<std::byte> written(const SessionState& state) {
    std::vector<std::byte> out;
    write(out, state);
    return out;
}

TEST_CASE("a session that is written is read as the same") {
    const auto bytes = written(sample());
    CHECK((written(read_session(bytes)) == bytes));
}

TEST_CASE("a session that was cut, or goes on behind its end, is refused") {
    auto bytes = written(sample());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(std::ignore = read_session(std::span{bytes}.first(size)), HandoverError);
    }
    bytes.push_back({});
    CHECK_THROWS_AS(std::ignore = read_session(bytes), HandoverError);
}

TEST_CASE("a session that says what cannot be is refused") {
    struct Row {
        const char* name;
        void (*change)(SessionState&);
    };

    const Row rows[]{
        {"a standing that there is not",
         [](SessionState& state) { state.standing = static_cast<Standing>(9); }},
        {"known to the observer, without a number", [](SessionState& state) { state.id = 0; }},
        {"unproven, and known to the observer",
         [](SessionState& state) { state.standing = Standing::unproven; }},
        {"a player, without a place", [](SessionState& state) { state.has_place = false; }},
        {"no number", [](SessionState& state) { state.number = 0; }},
        {"a client without a port", [](SessionState& state) { state.client.port = 0; }},
        {"a direction that there is not",
         [](SessionState& state) { state.held[0].direction = static_cast<Direction>(2); }},
        {"a copy longer than all of them may be",
         [](SessionState& state) { state.held[0].bytes.resize(HeldCopies::kBytes + 1); }},
        {"a control message longer than its room",
         [](SessionState& state) { state.reply.resize(ReplyControl{}.size() + 1); }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionState state = sample();
        row.change(state);
        CHECK_THROWS_AS(std::ignore = read_session(written(state)), HandoverError);
    }
}

TEST_CASE("a length that lies makes nothing large") {
    std::vector<std::byte> bytes;
    ArchiveWriter writer{bytes};
    writer.number(std::uint32_t{0xffffffff});
    ArchiveReader reader{bytes};
    std::vector<std::byte> out;
    reader.bytes(out, std::size_t{0xffffffff});
    CHECK(out.empty());
    CHECK(reader.failed());
    std::uint32_t next = 1;
    reader.number(next);
    CHECK(next == 0);
}

TEST_CASE("totals of a server that were cut are refused") {
    ServerState state{.server = 5, .counters = {}, .listener_drops = {0, 1}};
    state.counters.kernel_dropped = 5;
    std::vector<std::byte> bytes;
    write(bytes, state);
    const ServerState same = read_server(bytes);
    CHECK(same.server == 5);
    CHECK(same.counters.kernel_dropped == 5);
    CHECK(same.listener_drops == state.listener_drops);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(std::ignore = read_server(std::span{bytes}.first(size)), HandoverError);
    }
    bytes.push_back({});
    CHECK_THROWS_AS(std::ignore = read_server(bytes), HandoverError);
}

TEST_CASE("totals that were cut, or name no impairment, are refused") {
    RelayState state{.last_session = 1, .last_number = 2, .impairment = {}};
    state.impairment.directions[0].delay = std::chrono::milliseconds{3};
    state.impairment.seed = 4;
    std::vector<std::byte> bytes;
    write(bytes, state);
    const RelayState same = read_relay(bytes);
    CHECK(same.last_session == 1);
    CHECK(same.last_number == 2);
    CHECK(same.impairment == state.impairment);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(std::ignore = read_relay(std::span{bytes}.first(size)), HandoverError);
    }
    bytes.back() = std::byte{'!'};
    CHECK_THROWS_AS(std::ignore = read_relay(bytes), HandoverError);
}

/// A relay with its ring, which another one may follow.
struct Running {
    std::vector<Ring> memory;
    std::vector<Ring*> rings;
    std::unique_ptr<Relay> relay;

    /// `others`: the servers besides the first one. Those of `from` go on under other numbers: the
    /// first one stays, the rest are in the opposite order.
    Running(const Options& options, const Running* from,
            const std::vector<ServerOptions>& others = {}) {
        memory.reserve(options.threads);
        for (unsigned i = 0; i < options.threads; ++i) {
            rings.push_back(&memory.emplace_back(std::size_t{1} << 20U));
        }
        Options wanted = options;
        std::vector<UniqueFd> listening;
        if (from != nullptr) {
            wanted.listen = from->relay->listen_endpoints();
            listening = from->listening(0);
        }
        relay = std::make_unique<Relay>(wanted, rings, nullptr, std::move(listening));
        for (std::size_t i = 0; i < others.size(); ++i) {
            ServerOptions other = others[i];
            listening.clear();
            if (from != nullptr) {
                const ServerIndex there = number_in(i + 1, others.size() + 1);
                other = others[there - 1U];
                other.listen = from->relay->listen_endpoints(there);
                listening = from->listening(there);
            }
            CHECK(relay->add_server(other, std::move(listening)) == i + 1);
        }
    }

    /// A server's number in the relay before or after this one. It is its own inverse.
    static ServerIndex number_in(std::size_t number, std::size_t servers) {
        return static_cast<ServerIndex>(number == 0 ? 0 : servers - number);
    }

    [[nodiscard]] std::vector<UniqueFd> listening(ServerIndex server) const {
        std::vector<UniqueFd> sockets;
        for (const int socket : relay->listening_sockets(server)) {
            sockets.push_back(copy_of(socket));
        }
        return sockets;
    }

    /// Takes all of a relay that holds.
    void take(const Running& from) const {
        const std::size_t servers = relay->next_server();
        from.relay->for_each_session([&](const SessionState& state, int socket) {
            SessionState here = read_session(written(state));
            here.server = number_in(here.server, servers);
            relay->take_over(here, copy_of(socket));
        });
        for (ServerIndex server = 0; server < servers; ++server) {
            ServerState totals = from.relay->handover_state(server);
            totals.server = number_in(server, servers);
            relay->take_over(totals);
        }
        relay->take_over(from.relay->handover_state());
    }

    std::vector<KeptEvent> events() {
        std::vector<KeptEvent> all;
        for (Ring& ring : memory) {
            std::ranges::move(take_all(ring), std::back_inserter(all));
        }
        return all;
    }
};

bool echoes(Peer& client, const Relay& relay, std::uint32_t number, ServerIndex server = 0) {
    const Bytes sent = payload(64, number);
    const Udp::endpoint where = relay.listen_endpoints(server)[0];
    client.send(sent, where);
    const auto echoed = client.receive();
    return echoed && *echoed == sent && client.sender() == where;
}

/// Sends back the port each datagram came from: what the server knows a client by.
std::uint16_t port_at_server(Peer& client, const Relay& relay, Peer& server) {
    client.send(payload(8, 1), relay.listen_endpoints()[0]);
    return server.receive() ? server.sender().port() : std::uint16_t{0};
}

TEST_CASE("sessions go on in another relay, whatever the numbers of threads") {
    struct Row {
        unsigned before;
        unsigned after;
    };

    for (const Row& row : {Row{1, 1}, Row{1, 3}, Row{4, 1}, Row{3, 2}}) {
        CAPTURE(row.before);
        CAPTURE(row.after);
        EchoServer server;
        Options options = options_for(server.endpoint());
        options.threads = row.before;
        options.listen.push_back(options.listen[0]);
        Running old{options, nullptr};
        old.relay->start();
        std::vector<std::unique_ptr<Peer>> clients;
        for (std::uint32_t i = 0; i < 20; ++i) {
            clients.push_back(std::make_unique<Peer>());
            REQUIRE(echoes(*clients.back(), *old.relay, i));
        }
        options.threads = row.after;
        Running next{options, &old};
        REQUIRE(old.relay->hold(kHold));
        // What comes in between waits in the sockets.
        for (std::uint32_t i = 0; i < 20; ++i) {
            clients[i]->send(payload(32, 100 + i), next.relay->listen_endpoints()[0]);
        }
        next.take(old);
        CHECK(next.relay->num_sessions() == 20);
        old.relay->leave();
        old.relay->join();
        next.relay->start();
        for (std::uint32_t i = 0; i < 20; ++i) {
            const auto waited = clients[i]->receive();
            REQUIRE(waited);
            CHECK((*waited == payload(32, 100 + i)));
            CHECK(echoes(*clients[i], *next.relay, 200 + i));
        }
        Peer late;
        CHECK(echoes(late, *next.relay, 1));
        next.relay->stop();
        next.relay->join();
        const Counters counters = next.relay->counters();
        CHECK(counters.sessions_opened == 21); // as if it had been one relay
        CHECK(counters.directions[0].datagrams == 61);
        std::size_t handed = 0;
        for (const auto& kept : old.events()) {
            handed +=
                kept.event.kind == EventKind::close && kept.event.reason == CloseReason::handed_over
                    ? 1
                    : 0;
        }
        CHECK(handed == 20);
        std::set<std::uint32_t> ids;
        for (const auto& kept : next.events()) {
            if (kept.event.kind == EventKind::open) {
                ids.insert(kept.event.session);
            }
        }
        CHECK(ids.size() == 21);
        CHECK(*ids.rbegin() == 21);
    }
}

TEST_CASE("sessions of several servers go on with theirs, whatever their numbers are there") {
    struct Row {
        unsigned before;
        unsigned after;
    };

    constexpr std::size_t kServers = 3;
    for (const Row& row : {Row{1, 1}, Row{2, 3}, Row{3, 1}}) {
        CAPTURE(row.before);
        CAPTURE(row.after);
        std::array<EchoServer, kServers> servers;
        Options options = options_for(servers[0].endpoint());
        options.threads = row.before;
        std::vector<ServerOptions> others;
        for (std::size_t i = 1; i < kServers; ++i) {
            const Options of = options_for(servers[i].endpoint());
            others.push_back({.host = of.server_host, .port = of.server_port, .listen = of.listen});
        }
        Running old{options, nullptr, others};
        old.relay->start();
        std::vector<std::unique_ptr<Peer>> clients;
        for (std::uint32_t i = 0; i < 12; ++i) {
            clients.push_back(std::make_unique<Peer>());
            for (ServerIndex server = 0; server < kServers; ++server) {
                REQUIRE(echoes(*clients.back(), *old.relay, i, server)); // all at all of them
            }
        }
        options.threads = row.after;
        Running next{options, &old, others};
        REQUIRE(old.relay->hold(kHold));
        next.take(old);
        CHECK(next.relay->num_sessions() == 12 * kServers);
        old.relay->leave();
        old.relay->join();
        next.relay->start();
        for (ServerIndex server = 0; server < kServers; ++server) {
            CHECK(next.relay->listen_endpoints(server) ==
                  old.relay->listen_endpoints(Running::number_in(server, kServers)));
            for (auto& client : clients) {
                CHECK(echoes(*client, *next.relay, 100, server));
            }
        }
        CHECK(next.relay->num_sessions() == 12 * kServers); // and no new one
        next.relay->stop();
        next.relay->join();
        CHECK(next.relay->handover_state(1).counters.directions[0].datagrams == 24);
        std::map<std::uint32_t, ServerIndex> before;
        for (const auto& kept : old.events()) {
            if (kept.event.kind == EventKind::open) {
                before[kept.event.session] = kept.event.server_index;
            }
        }
        for (const auto& kept : next.events()) {
            if (kept.event.kind == EventKind::open) {
                CHECK(kept.event.server_index ==
                      Running::number_in(before.at(kept.event.session), kServers));
            }
        }
    }
}

TEST_CASE("a server that nobody goes on with is taken out, and others are handed over") {
    EchoServer first;
    EchoServer second;
    const Options options = options_for(first.endpoint());
    const Options of = options_for(second.endpoint());
    Running old{
        options, nullptr, {{.host = of.server_host, .port = of.server_port, .listen = of.listen}}};
    old.relay->start();
    Peer client;
    REQUIRE(echoes(client, *old.relay, 1));
    REQUIRE(echoes(client, *old.relay, 2, 1));
    REQUIRE(old.relay->hold(kHold));
    constexpr ServerIndex kLetGo[]{1};
    old.relay->leave(kLetGo);
    old.relay->join();
    std::map<ServerIndex, CloseReason> ends;
    std::map<std::uint32_t, ServerIndex> servers;
    for (const auto& kept : old.events()) {
        if (kept.event.kind == EventKind::open) {
            servers[kept.event.session] = kept.event.server_index;
        } else if (kept.event.kind == EventKind::close) {
            ends[servers.at(kept.event.session)] = kept.event.reason;
        }
    }
    CHECK(ends == std::map<ServerIndex, CloseReason>{{0, CloseReason::handed_over},
                                                     {1, CloseReason::removed}});
}

TEST_CASE("the server sees no new address, with loopback addresses of clients' own, too") {
    for (const auto mode : {ClientAddress::shared, ClientAddress::loopback}) {
        Peer server;
        Options options = options_for(server.endpoint());
        options.client_address = mode;
        Running old{options, nullptr};
        old.relay->start();
        Peer client;
        const std::uint16_t port = port_at_server(client, *old.relay, server);
        const auto address = server.sender().address();
        Running next{options, &old};
        REQUIRE(old.relay->hold(kHold));
        next.take(old);
        old.relay->leave();
        old.relay->join();
        next.relay->start();
        CHECK(port_at_server(client, *next.relay, server) == port);
        CHECK(server.sender().address() == address);
        // Another session of the same client address has the same one.
        Peer second;
        CHECK(port_at_server(second, *next.relay, server) != port);
        CHECK(server.sender().address() == address);
    }
}

TEST_CASE("a relay that held goes on, its impaired lines, too") {
    EchoServer server;
    Options options = options_for(server.endpoint());
    options.impairment = *parse_impairment("delay=1ms");
    for (const bool busy_poll : {false, true}) {
        options.busy_poll = busy_poll;
        Running running{options, nullptr};
        running.relay->start();
        Peer client;
        REQUIRE(echoes(client, *running.relay, 1));
        REQUIRE(running.relay->hold(kHold));
        client.send(payload(8, 5), running.relay->listen_endpoints()[0]);
        CHECK_FALSE(client.receive(kNotLong));
        running.relay->resume();
        CHECK(client.receive());
        CHECK(echoes(client, *running.relay, 2));
        CHECK(running.relay->counters().fates[0].datagrams >= 2);
        REQUIRE(running.relay->hold(kHold)); // and it can end while it holds
        running.relay->stop();
        running.relay->join();
    }
}

TEST_CASE("what was said before a session was proven is handed over, too") {
    EchoServer server;
    Options options = options_for(server.endpoint());
    options.prove = [](ProofMemory& memory, Direction direction, std::span<const std::byte> bytes) {
        // Proven with the third datagram to the server; the first one is looked at twice.
        if (direction == Direction::s2c) {
            return Verdict{};
        }
        auto& seen = memory.bytes[0];
        seen = static_cast<std::byte>(std::to_integer<unsigned>(seen) + (bytes.empty() ? 0 : 1));
        return Verdict{.standing = seen >= std::byte{4} ? Standing::player : Standing::unproven};
    };
    Running old{options, nullptr};
    old.relay->start();
    Peer client;
    REQUIRE(echoes(client, *old.relay, 1));
    REQUIRE(echoes(client, *old.relay, 2));
    Running next{options, &old};
    REQUIRE(old.relay->hold(kHold));
    next.take(old);
    old.relay->leave();
    old.relay->join();
    next.relay->start();
    CHECK(echoes(client, *next.relay, 3));
    next.relay->stop();
    next.relay->join();
    CHECK(old.events().empty());
    std::size_t datagrams = 0;
    for (const auto& kept : next.events()) {
        datagrams += kept.event.kind == EventKind::datagram ? 1 : 0;
    }
    CHECK(datagrams == 6);
}

TEST_CASE("sockets and sessions that do not fit are refused") {
    EchoServer server;
    EchoServer other;
    Options options = options_for(server.endpoint());
    Running old{options, nullptr};
    old.relay->start();
    Peer client;
    REQUIRE(echoes(client, *old.relay, 1));
    REQUIRE(old.relay->hold(kHold));
    SessionState state;
    UniqueFd socket;
    old.relay->for_each_session([&](const SessionState& each, int descriptor) {
        state = each;
        socket = copy_of(descriptor);
    });
    Running next{options, &old};
    UniqueFd pipe{::open("/dev/null", O_RDWR | O_CLOEXEC)};
    CHECK_THROWS_AS(next.relay->take_over(state, std::move(pipe)), HandoverError);
    CHECK_THROWS_AS(next.relay->take_over(state, UniqueFd{}), HandoverError);
    Udp::socket elsewhere{client.socket().get_executor()};
    elsewhere.connect(other.endpoint());
    state.id = 2;
    CHECK_THROWS_AS(next.relay->take_over(state, copy_of(elsewhere.native_handle())),
                    HandoverError);
    state.id = 3;
    state.own_loopback = true;
    CHECK_THROWS_AS(next.relay->take_over(state, copy_of(socket.get())), HandoverError);
    state.own_loopback = false;
    state.id = 4;
    state.listener = 1;
    CHECK_THROWS_AS(next.relay->take_over(state, copy_of(socket.get())), HandoverError);
    state.listener = 0;
    state.id = 5;
    next.relay->take_over(state, copy_of(socket.get()));
    state.id = 6;
    CHECK_THROWS_AS(next.relay->take_over(state, copy_of(socket.get())), HandoverError);
    state.id = 7;
    state.server = 1;
    CHECK_THROWS_AS(next.relay->take_over(state, copy_of(socket.get())), HandoverError);
    RelayState totals = old.relay->handover_state();
    totals.last_session = 4;
    CHECK_THROWS_AS(next.relay->take_over(totals), HandoverError);
    ServerState of_server = old.relay->handover_state(0);
    of_server.server = 1;
    CHECK_THROWS_AS(next.relay->take_over(of_server), HandoverError);
    of_server.server = 0;
    of_server.listener_drops.push_back(1);
    CHECK_THROWS_AS(next.relay->take_over(of_server), HandoverError);

    // Listening sockets: too few, of another address, none at all.
    options.listen = old.relay->listen_endpoints();
    options.listen.push_back(options.listen[0]);
    const auto listening = [&](int descriptor) {
        std::vector<UniqueFd> sockets;
        sockets.push_back(copy_of(descriptor));
        return sockets;
    };
    const int own = old.relay->listening_sockets()[0];
    CHECK_THROWS_AS((Relay{options, next.rings, nullptr, listening(own)}), HandoverError);
    options.listen.pop_back();
    CHECK_THROWS_AS((Relay{options, next.rings, nullptr, listening(socket.get())}), HandoverError);
    CHECK_THROWS_AS(
        (Relay{options, next.rings, nullptr, listening(client.socket().native_handle())}),
        HandoverError);
    old.relay->resume();
}

} // namespace
