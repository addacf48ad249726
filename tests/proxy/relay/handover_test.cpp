// Covers: proxy/relay/session_maker.cpp, proxy/relay/listen_socket.cpp
#include "proxy/base/archive.h"
#include "proxy/relay/handover.h"
#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
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

RelayState sample() {
    SessionState session;
    session.client.address[0] = std::byte{127};
    session.client.port = 4000;
    session.client.v6 = true;
    session.id = 7;
    session.server = 3;
    session.number = 9;
    session.listener = 1;
    session.control.fill(std::byte{5});
    session.control_length = 32;
    session.counts_against_limit = true;
    session.proof.bytes[3] = std::byte{1};
    session.opened = 1000;
    session.played_ms = 11;
    session.held = {{.time = 3, .direction = Direction::s2c, .bytes = Bytes(10, std::byte{2})}};
    session.held_lost = {1, 2};
    ServerState server{.server = 5, .counters = {}, .listener_drops = {0, 1}};
    server.counters.kernel_dropped = 5;
    return {.last_session = 7,
            .last_number = 9,
            .impairment = "delay=3ms",
            .impairment_seed = 4,
            .servers = {server},
            .sessions = {session, session}};
}

TEST_CASE("a state that is written is read as the same") {
    const auto bytes = to_archive(sample());
    const auto same = from_archive<RelayState>(bytes);
    REQUIRE(same);
    CHECK((to_archive(*same) == bytes));
    CHECK(same->sessions[1].client == sample().sessions[1].client);
    CHECK((same->sessions[1].held[0].bytes == Bytes(10, std::byte{2})));
    CHECK(same->servers[0].counters.kernel_dropped == 5);
    CHECK(same->impairment == "delay=3ms");
}

TEST_CASE("a state that was cut, or goes on behind its end, is refused") {
    auto bytes = to_archive(sample());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(from_archive<RelayState>(std::span{bytes}.first(size)));
    }
    bytes.push_back({});
    CHECK_FALSE(from_archive<RelayState>(bytes));
}

TEST_CASE("a length that lies makes nothing large") {
    const auto bytes = to_archive(std::uint32_t{0xffffffff});
    std::string text;
    std::vector<SessionState> sessions;
    ArchiveReader of_text{bytes};
    of_text.read(text);
    CHECK(of_text.failed());
    CHECK(text.capacity() < 100);
    ArchiveReader of_sessions{bytes};
    of_sessions.read(sessions);
    CHECK(of_sessions.failed());
    CHECK(sessions.size() <= 1);
}

/// A relay with its ring, which can be handed over to another relay.
struct Running {
    std::vector<Ring> memory;
    std::vector<Ring*> rings;
    std::unique_ptr<Relay> relay;

    /// `others`: the servers besides the first one. The servers of `from` get other numbers: the
    /// first one keeps its number, the others are in the opposite order.
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

    /// Takes over everything from a paused relay.
    void take(const Running& from) const {
        const std::size_t servers = relay->next_server_index();
        std::vector<ServerIndex> all;
        for (std::size_t i = 0; i < servers; ++i) {
            all.push_back(static_cast<ServerIndex>(i));
        }
        const auto given = from.relay->handover_state(all);
        auto state = from_archive<RelayState>(to_archive(given.state));
        REQUIRE(state);
        for (SessionState& session : state->sessions) {
            session.server = number_in(session.server, servers);
        }
        for (ServerState& server : state->servers) {
            server.server = number_in(server.server, servers);
        }
        std::vector<UniqueFd> sockets;
        for (const int socket : given.sockets) {
            sockets.push_back(copy_of(socket));
        }
        relay->take_over(*state, std::move(sockets));
    }

    std::vector<KeptEvent> events() {
        std::vector<KeptEvent> all;
        for (Ring& ring : memory) {
            std::ranges::move(take_all(ring), std::back_inserter(all));
        }
        return all;
    }
};

/// Lets `next` go on with what `old`, which is paused, did.
void go_on(const Running& old, const Running& next) {
    next.take(old);
    old.relay->stop_for_handover();
    old.relay->join();
    next.relay->start();
}

bool echoes(Peer& client, const Relay& relay, std::uint32_t number, ServerIndex server = 0) {
    const Bytes sent = payload(64, number);
    const Udp::endpoint where = relay.listen_endpoints(server)[0];
    client.send(sent, where);
    const auto echoed = client.receive();
    return echoed && *echoed == sent && client.sender() == where;
}

/// Returns the port by which the server knows a client.
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
        REQUIRE(old.relay->pause(kHold));
        // Datagrams that arrive in between wait in the sockets.
        for (std::uint32_t i = 0; i < 20; ++i) {
            clients[i]->send(payload(32, 100 + i), next.relay->listen_endpoints()[0]);
        }
        go_on(old, next);
        CHECK(next.relay->num_sessions() == 20);
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
        CHECK(counters.sessions_opened == 21); // as if there had been only one relay
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
                REQUIRE(
                    echoes(*clients.back(), *old.relay, i, server)); // every client at every server
            }
        }
        options.threads = row.after;
        Running next{options, &old, others};
        REQUIRE(old.relay->pause(kHold));
        go_on(old, next);
        CHECK(next.relay->num_sessions() == 12 * kServers);
        for (ServerIndex server = 0; server < kServers; ++server) {
            CHECK(next.relay->listen_endpoints(server) ==
                  old.relay->listen_endpoints(Running::number_in(server, kServers)));
            for (auto& client : clients) {
                CHECK(echoes(*client, *next.relay, 100, server));
            }
        }
        CHECK(next.relay->num_sessions() == 12 * kServers); // and there is no new session
        next.relay->stop();
        next.relay->join();
        constexpr ServerIndex kSecond[]{1};
        const auto second = next.relay->handover_state(kSecond).state;
        REQUIRE(second.servers.size() == 1);
        CHECK(second.servers[0].counters.directions[0].datagrams == 24);
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
    REQUIRE(old.relay->pause(kHold));
    constexpr ServerIndex kLetGo[]{1};
    old.relay->stop_for_handover(kLetGo);
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
    for (const auto mode : {ClientAddressMode::shared, ClientAddressMode::loopback}) {
        Peer server;
        Options options = options_for(server.endpoint());
        options.client_address = mode;
        Running old{options, nullptr};
        old.relay->start();
        Peer client;
        const std::uint16_t port = port_at_server(client, *old.relay, server);
        const auto address = server.sender().address();
        Running next{options, &old};
        REQUIRE(old.relay->pause(kHold));
        go_on(old, next);
        CHECK(port_at_server(client, *next.relay, server) == port);
        CHECK(server.sender().address() == address);
        // Another session of the same client address gets the same loopback address.
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
        REQUIRE(running.relay->pause(kHold));
        client.send(payload(8, 5), running.relay->listen_endpoints()[0]);
        CHECK_FALSE(client.receive(kNotLong));
        running.relay->resume();
        CHECK(client.receive());
        CHECK(echoes(client, *running.relay, 2));
        CHECK(running.relay->counters().impairment[0].datagrams >= 2);
        REQUIRE(running.relay->pause(kHold)); // a paused relay can be destroyed
        running.relay->stop();
        running.relay->join();
    }
}

TEST_CASE("what was said before a session was proven is handed over, too") {
    EchoServer server;
    Options options = options_for(server.endpoint());
    options.prove = [](VerificationMemory& memory, Direction direction,
                       std::span<const std::byte> bytes) {
        // The third datagram to the server proves the address. The first one is examined twice.
        if (direction == Direction::s2c) {
            return DatagramVerdict{};
        }
        auto& seen = memory.bytes[0];
        seen = static_cast<std::byte>(std::to_integer<unsigned>(seen) + (bytes.empty() ? 0 : 1));
        return DatagramVerdict{.standing = seen >= std::byte{4} ? ClientStanding::player
                                                                : ClientStanding::unverified};
    };
    Running old{options, nullptr};
    old.relay->start();
    Peer client;
    REQUIRE(echoes(client, *old.relay, 1));
    REQUIRE(echoes(client, *old.relay, 2));
    Running next{options, &old};
    REQUIRE(old.relay->pause(kHold));
    go_on(old, next);
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
    REQUIRE(old.relay->pause(kHold));
    constexpr ServerIndex kServers[]{0};
    const auto given = old.relay->handover_state(kServers);
    REQUIRE(given.sockets.size() == 1);
    Udp::socket elsewhere{client.socket().get_executor()};
    elsewhere.connect(other.endpoint());
    const UniqueFd no_socket{::open("/dev/null", O_RDWR | O_CLOEXEC)};

    struct Row {
        const char* name;
        std::function<void(RelayState&)> change{[](RelayState&) {}};
        std::optional<int> socket{};
        int sockets = 1;
    };

    const auto session = [](void (*change)(SessionState&)) {
        return [change](RelayState& state) { change(state.sessions[0]); };
    };
    const Row rows[]{
        {.name = "no socket at all", .sockets = 0},
        {.name = "more sockets than sessions", .sockets = 2},
        {.name = "a descriptor of something else", .socket = no_socket.get()},
        {.name = "a socket that leads elsewhere", .socket = elsewhere.native_handle()},
        {.name = "another kind of address",
         .change = session([](SessionState& state) { state.own_loopback = true; })},
        {.name = "a listening socket that there is not",
         .change = session([](SessionState& state) { state.listener = 1; })},
        {.name = "a server that there is not",
         .change = session([](SessionState& state) { state.server = 1; })},
        {.name = "a standing that there is not", .change = session([](SessionState& state) {
                                                     state.standing =
                                                         static_cast<ClientStanding>(9);
                                                 })},
        {.name = "known to the observer, without a number",
         .change = session([](SessionState& state) { state.id = 0; })},
        {.name = "unverified, and known to the observer",
         .change =
             session([](SessionState& state) { state.standing = ClientStanding::unverified; })},
        {.name = "a player, without a place",
         .change = session([](SessionState& state) { state.counts_against_limit = false; })},
        {.name = "no number", .change = session([](SessionState& state) { state.number = 0; })},
        {.name = "a client without a port",
         .change = session([](SessionState& state) { state.client.port = 0; })},
        {.name = "a direction that there is not",
         .change = session([](SessionState& state) {
             state.held = {{.time = 1, .direction = static_cast<Direction>(2), .bytes = {}}};
         })},
        {.name = "a copy longer than all of them may be",
         .change = session([](SessionState& state) {
             state.held = {{.time = 1, .bytes = Bytes(HeldDatagramCopies::kBytes + 1)}};
         })},
        {.name = "a control message longer than its room",
         .change = session([](SessionState& state) { state.control_length = 65; })},
        {.name = "a number that was never given",
         .change = [](RelayState& state) { state.last_session = 0; }},
        {.name = "one number for two",
         .change =
             [](RelayState& state) {
                 state.sessions.push_back(state.sessions[0]);
                 ++state.sessions[1].client.port;
             },
         .sockets = 2},
        {.name = "one client twice",
         .change =
             [](RelayState& state) {
                 state.sessions.push_back(state.sessions[0]);
                 state.sessions[1].id = state.last_session = 2;
             },
         .sockets = 2},
        {.name = "totals of a server that there is not",
         .change = [](RelayState& state) { state.servers[0].server = 1; }},
        {.name = "totals of more listening sockets",
         .change = [](RelayState& state) { state.servers[0].listener_drops.push_back(1); }},
        {.name = "no impairment", .change = [](RelayState& state) { state.impairment = "!"; }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const Running next{options, &old};
        RelayState state = given.state;
        row.change(state);
        std::vector<UniqueFd> sockets;
        for (int i = 0; i < row.sockets; ++i) {
            sockets.push_back(copy_of(row.socket.value_or(given.sockets[0])));
        }
        CHECK_THROWS_AS(next.relay->take_over(state, std::move(sockets)), HandoverError);
    }

    // Listening sockets: too few, one with another address, one that is not a socket.
    const Running next{options, &old};
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
    CHECK_THROWS_AS((Relay{options, next.rings, nullptr, listening(given.sockets[0])}),
                    HandoverError);
    CHECK_THROWS_AS(
        (Relay{options, next.rings, nullptr, listening(client.socket().native_handle())}),
        HandoverError);
    old.relay->resume();
}

} // namespace
