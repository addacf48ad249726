// Covers: proxy/relay/session_maker.cpp, proxy/relay/listen_socket.cpp
#include "proxy/base/archive.h"
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

constexpr std::chrono::milliseconds kPauseTimeout{2000};
constexpr std::chrono::milliseconds kNoDatagramWait{50};

HandedOverState sample_handed_over_state() {
    HandedOverSession session;
    session.client.address[0] = std::byte{127};
    session.client.port = 4000;
    session.client.v6 = true;
    session.id = 7;
    session.server.port = 8303;
    session.facts.number = 9;
    session.listener = 1;
    session.facts.control.fill(std::byte{5});
    session.facts.control_length = 32;
    session.facts.counts_against_limit = true;
    session.facts.handshake.bytes[3] = std::byte{1};
    session.facts.opened_at = 1000;
    session.facts.last_play_ms = 11;
    session.held_copies = {
        {.time = 3, .direction = Direction::s2c, .bytes = Bytes(10, std::byte{2})}};
    session.lost_held_copies = {1, 2};
    HandedOverServer server{
        .counters = {}, .listener_drops = {0, 1}, .sessions = {session, session}};
    server.counters.kernel_dropped = 5;
    return {.last_observed_id = 7,
            .last_number = 9,
            .impairment = "delay=3ms",
            .impairment_seed = 4,
            .servers = {server}};
}

TEST_CASE("a takeover state is read as it was written") {
    const auto bytes = to_archive(sample_handed_over_state());
    const auto same = from_archive<HandedOverState>(bytes);
    REQUIRE(same);
    CHECK((to_archive(*same) == bytes));
    const HandedOverServer& server = same->servers.at(0);
    CHECK(server.sessions.at(1).client == sample_handed_over_state().servers[0].sessions[1].client);
    CHECK((server.sessions[1].held_copies.at(0).bytes == Bytes(10, std::byte{2})));
    CHECK(server.counters.kernel_dropped == 5);
    CHECK(same->impairment == "delay=3ms");
}

TEST_CASE("a takeover state that is truncated or too long is rejected") {
    auto bytes = to_archive(sample_handed_over_state());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(from_archive<HandedOverState>(std::span{bytes}.first(size)));
    }
    bytes.push_back({});
    CHECK_FALSE(from_archive<HandedOverState>(bytes));
}

TEST_CASE("a wrong length in a takeover state allocates little memory") {
    const auto bytes = to_archive(std::uint32_t{0xffffffff});
    std::string text;
    std::vector<HandedOverSession> sessions;
    ArchiveReader of_text{bytes};
    of_text.read(text);
    CHECK(of_text.failed());
    CHECK(text.capacity() < 100);
    ArchiveReader of_sessions{bytes};
    of_sessions.read(sessions);
    CHECK(of_sessions.failed());
    CHECK(sessions.size() <= 1);
}

std::vector<UniqueFd> duplicate_sockets(const std::vector<int>& sockets) {
    std::vector<UniqueFd> copies;
    std::ranges::transform(sockets, std::back_inserter(copies), duplicate_descriptor);
    return copies;
}

/// Returns a server's index in the relay before or after this one. The first server keeps its
/// index, and the other servers are in reverse order.
ServerIndex index_in_other_relay(std::size_t number, std::size_t servers) {
    return static_cast<ServerIndex>(number == 0 ? 0 : servers - number);
}

/// Returns a running relay. With `from`, returns a relay that has the listening sockets of `from`
/// and is not started. `others`: the servers besides the first one, as in the running relay.
std::unique_ptr<TestRelay> make_relay(Options options, const TestRelay* from = nullptr,
                                      const std::vector<ServerOptions>& others = {}) {
    std::vector<UniqueFd> listening;
    if (from != nullptr) {
        options.server.listen = from->listen_endpoints();
        listening = duplicate_sockets(from->listening_sockets());
    }
    auto made = std::make_unique<TestRelay>(options, std::size_t{1} << 20U, from == nullptr,
                                            std::move(listening));
    for (std::size_t i = 1; i <= others.size(); ++i) {
        const ServerIndex there = index_in_other_relay(i, others.size() + 1);
        ServerOptions other = others[(from != nullptr ? there : i) - 1U];
        listening.clear();
        if (from != nullptr) {
            other.listen = from->listen_endpoints(there);
            listening = duplicate_sockets(from->listening_sockets(there));
        }
        CHECK(made->add_server(other, std::move(listening)) == i);
    }
    return made;
}

/// Lets `next` continue the sessions of `old`, which is paused.
void hand_over_sessions(TestRelay& old, TestRelay& next) {
    std::vector<ServerIndex> here;
    std::vector<ServerIndex> there;
    for (std::size_t i = 0; i < next.next_server_index(); ++i) {
        here.push_back(static_cast<ServerIndex>(i));
        there.push_back(index_in_other_relay(i, next.next_server_index()));
    }
    const auto given = old.takeover_state(there);
    const auto state = from_archive<HandedOverState>(to_archive(given.state));
    REQUIRE(state);
    next.take_over(*state, here, duplicate_sockets(given.sockets));
    old.stop_for_takeover();
    old.join();
    next.start();
}

/// Returns the port by which the server knows a client.
std::uint16_t client_port_at_server(Peer& client, const TestRelay& relay, Peer& server) {
    client.send(make_payload(8, 1), relay.listen_address());
    return server.receive() ? server.sender().port() : std::uint16_t{0};
}

TEST_CASE("sessions continue in another relay with any number of threads") {
    struct Row {
        unsigned before;
        unsigned after;
    };

    for (const Row& row : {Row{1, 1}, Row{1, 3}, Row{4, 1}, Row{3, 2}}) {
        CAPTURE(row.before);
        CAPTURE(row.after);
        EchoServer server;
        Options options = make_relay_options(server.endpoint());
        options.threads = row.before;
        options.server.listen.push_back(options.server.listen[0]);
        const auto old = make_relay(options);
        std::vector<std::unique_ptr<Peer>> clients;
        for (std::uint32_t i = 0; i < 20; ++i) {
            clients.push_back(std::make_unique<Peer>());
            REQUIRE(old->echoes_datagram(*clients.back(), i));
        }
        options.threads = row.after;
        const auto next = make_relay(options, old.get());
        REQUIRE(old->pause_threads(kPauseTimeout));
        // Datagrams that arrive in between wait in the sockets.
        for (std::uint32_t i = 0; i < 20; ++i) {
            clients[i]->send(make_payload(32, 100 + i), next->listen_address());
        }
        hand_over_sessions(*old, *next);
        CHECK(next->num_sessions() == 20);
        for (std::uint32_t i = 0; i < 20; ++i) {
            const auto waited = clients[i]->receive();
            REQUIRE(waited);
            CHECK((*waited == make_payload(32, 100 + i)));
            CHECK(next->echoes_datagram(*clients[i], 200 + i));
        }
        Peer late;
        CHECK(next->echoes_datagram(late, 1));
        const auto events = next->stop_and_take_events();
        const Counters counters = next->counters();
        CHECK(counters.sessions_opened == 21); // as if there had been only one relay
        CHECK(counters.directions[0].datagrams == 61);
        CHECK(count_events(old->take_events(), CloseReason::handed_over) == 20);
        std::set<std::uint32_t> ids;
        for (const auto& kept : events) {
            if (kept.event.kind == EventKind::open) {
                ids.insert(kept.event.session);
            }
        }
        CHECK(ids.size() == 21);
        CHECK(*ids.rbegin() == 21);
    }
}

TEST_CASE("sessions of several servers continue, even if the servers' numbers change") {
    struct Row {
        unsigned before;
        unsigned after;
    };

    constexpr std::size_t kServers = 3;
    for (const Row& row : {Row{1, 1}, Row{2, 3}, Row{3, 1}}) {
        CAPTURE(row.before);
        CAPTURE(row.after);
        std::array<EchoServer, kServers> servers;
        Options options = make_relay_options(servers[0].endpoint());
        options.threads = row.before;
        std::vector<ServerOptions> others;
        for (std::size_t i = 1; i < kServers; ++i) {
            others.push_back(make_relay_options(servers[i].endpoint()).server);
        }
        const auto old = make_relay(options, nullptr, others);
        std::vector<std::unique_ptr<Peer>> clients;
        for (std::uint32_t i = 0; i < 12; ++i) {
            clients.push_back(std::make_unique<Peer>());
            for (ServerIndex server = 0; server < kServers; ++server) {
                // Every client plays at every server.
                REQUIRE(old->echoes_datagram(*clients.back(), i, server));
            }
        }
        options.threads = row.after;
        const auto next = make_relay(options, old.get(), others);
        REQUIRE(old->pause_threads(kPauseTimeout));
        hand_over_sessions(*old, *next);
        CHECK(next->num_sessions() == 12 * kServers);
        for (ServerIndex server = 0; server < kServers; ++server) {
            CHECK(next->listen_endpoints(server) ==
                  old->listen_endpoints(index_in_other_relay(server, kServers)));
            for (auto& client : clients) {
                CHECK(next->echoes_datagram(*client, 100, server));
            }
        }
        CHECK(next->num_sessions() == 12 * kServers); // and there is no new session
        next->stop();
        next->join();
        constexpr ServerIndex kSecond[]{1};
        const auto second = next->takeover_state(kSecond).state;
        REQUIRE(second.servers.size() == 1);
        CHECK(second.servers[0].counters.directions[0].datagrams == 24);
        std::map<std::uint32_t, ServerIndex> before;
        for (const auto& kept : old->take_events()) {
            if (kept.event.kind == EventKind::open) {
                before[kept.event.session] = kept.event.server_index;
            }
        }
        for (const auto& kept : next->take_events()) {
            if (kept.event.kind == EventKind::open) {
                CHECK(kept.event.server_index ==
                      index_in_other_relay(before.at(kept.event.session), kServers));
            }
        }
    }
}

TEST_CASE("only the sessions of a server that is not continued are closed") {
    EchoServer first;
    EchoServer second;
    const auto old = make_relay(make_relay_options(first.endpoint()), nullptr,
                                {make_relay_options(second.endpoint()).server});
    Peer client;
    REQUIRE(old->echoes_datagram(client, 1));
    REQUIRE(old->echoes_datagram(client, 2, 1));
    REQUIRE(old->pause_threads(kPauseTimeout));
    constexpr ServerIndex kLetGo[]{1};
    old->stop_for_takeover(kLetGo);
    old->join();
    std::map<ServerIndex, CloseReason> ends;
    std::map<std::uint32_t, ServerIndex> servers;
    for (const auto& kept : old->take_events()) {
        if (kept.event.kind == EventKind::open) {
            servers[kept.event.session] = kept.event.server_index;
        } else if (kept.event.kind == EventKind::close) {
            ends[servers.at(kept.event.session)] = kept.event.reason;
        }
    }
    CHECK(ends == std::map<ServerIndex, CloseReason>{{0, CloseReason::handed_over},
                                                     {1, CloseReason::removed}});
}

TEST_CASE("after a takeover, the server sees the same addresses, also loopback addresses") {
    for (const auto mode : {ClientAddressMode::shared, ClientAddressMode::loopback}) {
        Peer server;
        Options options = make_relay_options(server.endpoint());
        options.client_address = mode;
        const auto old = make_relay(options);
        Peer client;
        const std::uint16_t port = client_port_at_server(client, *old, server);
        const auto address = server.sender().address();
        const auto next = make_relay(options, old.get());
        REQUIRE(old->pause_threads(kPauseTimeout));
        hand_over_sessions(*old, *next);
        CHECK(client_port_at_server(client, *next, server) == port);
        CHECK(server.sender().address() == address);
        // Another session of the same client address gets the same loopback address.
        Peer second;
        CHECK(client_port_at_server(second, *next, server) != port);
        CHECK(server.sender().address() == address);
    }
}

TEST_CASE("a paused relay resumes, with its impairment") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.impairment = *parse_impairment("delay=1ms");
    for (const bool busy_poll : {false, true}) {
        options.busy_poll = busy_poll;
        TestRelay relay{options};
        Peer client;
        REQUIRE(relay.echoes_datagram(client));
        REQUIRE(relay.pause_threads(kPauseTimeout));
        client.send(make_payload(8, 5), relay.listen_address());
        CHECK_FALSE(client.receive(kNoDatagramWait));
        relay.resume_threads();
        CHECK(client.receive());
        CHECK(relay.echoes_datagram(client, 2));
        CHECK(relay.counters().impairment[0].datagrams >= 2);
        REQUIRE(relay.pause_threads(kPauseTimeout)); // a paused relay can be destroyed
    }
}

TEST_CASE("stored datagrams of unannounced sessions are handed over") {
    EchoServer server;
    Options options = make_relay_options(server.endpoint());
    options.judge_datagram = [](RememberedHandshakes& memory, Direction direction,
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
    const auto old = make_relay(options);
    Peer client;
    REQUIRE(old->echoes_datagram(client, 1));
    REQUIRE(old->echoes_datagram(client, 2));
    const auto next = make_relay(options, old.get());
    REQUIRE(old->pause_threads(kPauseTimeout));
    hand_over_sessions(*old, *next);
    CHECK(next->echoes_datagram(client, 3));
    CHECK(old->take_events().empty());
    CHECK(count_events(next->stop_and_take_events(), EventKind::datagram) == 6);
}

TEST_CASE("invalid sockets and sessions are rejected") {
    EchoServer server;
    EchoServer other;
    Options options = make_relay_options(server.endpoint());
    const auto old = make_relay(options);
    Peer client;
    REQUIRE(old->echoes_datagram(client, 1));
    REQUIRE(old->pause_threads(kPauseTimeout));
    constexpr ServerIndex kServers[]{0};
    const auto given = old->takeover_state(kServers);
    REQUIRE(given.sockets.size() == 1);
    Udp::socket elsewhere{client.socket().get_executor()};
    elsewhere.connect(other.endpoint());
    const UniqueFd no_socket{::open("/dev/null", O_RDWR | O_CLOEXEC)};

    struct Row {
        const char* name;
        std::function<void(HandedOverState&, HandedOverSession&)> change;
        int sockets = 1;
        std::optional<int> socket{};
    };

    constexpr ClientStanding kUnknown{9};
    constexpr auto kNew = ClientStanding::unverified;
    static constexpr std::chrono::hours kHour{1};
    constexpr std::size_t kTooLong = HeldDatagramCopies::kBytes + 1;
    const auto change_nothing = [](auto&, auto&) {};
    const auto add_copy = [](auto& all, auto& session, std::uint32_t id, std::uint16_t port) {
        HandedOverSession other = session;
        other.id = all.last_observed_id = id;
        other.client.port = port;
        all.servers[0].sessions.push_back(other);
    };
    const Row rows[]{
        {"no socket at all", change_nothing, 0},
        {"more sockets than sessions", change_nothing, 2},
        {"a descriptor of something else", change_nothing, 1, no_socket.get()},
        {"a socket that leads elsewhere", change_nothing, 1, elsewhere.native_handle()},
        {"another server", [](auto&, auto& session) { ++session.server.port; }},
        {"an unknown listening socket", [](auto&, auto& session) { session.listener = 1; }},
        {"more servers than were asked for", [](auto& all, auto&) { all.servers.emplace_back(); }},
        {"an unknown standing", [](auto&, auto& session) { session.facts.standing = kUnknown; }},
        {"known to the observer, without a number", [](auto&, auto& session) { session.id = 0; }},
        {"unverified, but known", [](auto&, auto& session) { session.facts.standing = kNew; }},
        {"a player without a place",
         [](auto&, auto& session) { session.facts.counts_against_limit = false; }},
        {"no number", [](auto&, auto& session) { session.facts.number = 0; }},
        {"a client without a port", [](auto&, auto& session) { session.client.port = 0; }},
        {"a session of the future", [](auto&, auto& session) { session.facts.began_at += kHour; }},
        {"an unknown direction",
         [](auto&, auto& session) {
             session.held_copies = {{.direction = Direction{2}, .bytes = {}}};
         }},
        {"a copy longer than all may be",
         [](auto&, auto& session) { session.held_copies = {{.bytes = Bytes(kTooLong)}}; }},
        {"a control message longer than its room",
         [](auto&, auto& session) { session.facts.control_length = 65; }},
        {"a number that was never given", [](auto& all, auto&) { all.last_observed_id = 0; }},
        {"one number for two", [&](auto& all, auto& session) { add_copy(all, session, 1, 9); }, 2},
        {"one client twice",
         [&](auto& all, auto& session) { add_copy(all, session, 2, session.client.port); }, 2},
        {"totals of more listening sockets",
         [](auto& all, auto&) { all.servers[0].listener_drops.push_back(1); }},
        {"no impairment", [](auto& all, auto&) { all.impairment = "!"; }},
    };
    const auto take_over_changed_state = [&](const Row& row) {
        const auto next = make_relay(options, old.get());
        HandedOverState state = given.state;
        row.change(state, state.servers[0].sessions[0]);
        const int socket = row.socket.value_or(given.sockets[0]);
        const std::vector<int> sockets(static_cast<std::size_t>(row.sockets), socket);
        next->take_over(state, kServers, duplicate_sockets(sockets));
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK_THROWS_AS(take_over_changed_state(row), TakeoverError);
    }
    CHECK_NOTHROW(take_over_changed_state({"as it was given", change_nothing}));
    options.client_address = ClientAddressMode::loopback;
    CHECK_THROWS_AS(take_over_changed_state({"another kind of client address", change_nothing}),
                    TakeoverError);
    options.client_address = ClientAddressMode::shared;

    // Listening sockets: too few, one with another address, one that is not a socket.
    options.server.listen = old->listen_endpoints();
    options.server.listen.push_back(options.server.listen[0]);
    const auto start_relay_with = [&](int descriptor) {
        const TestRelay next{options, Ring::kMinBytes, false, duplicate_sockets({descriptor})};
    };
    const int own = old->listening_sockets()[0];
    CHECK_THROWS_AS(start_relay_with(own), TakeoverError);
    options.server.listen.pop_back();
    CHECK_THROWS_AS(start_relay_with(given.sockets[0]), TakeoverError);
    CHECK_THROWS_AS(start_relay_with(client.socket().native_handle()), TakeoverError);
    old->resume_threads();
}

} // namespace
