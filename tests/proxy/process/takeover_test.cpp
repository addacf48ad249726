#include "proxy/base/archive.h"
#include "tests/proxy/process/takeover_peers.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace tw::process;
using namespace tw::process::peers;
using namespace tw::relay::test;
using tw::relay::Options;
using tw::relay::Relay;
using tw::relay::ServerIndex;
using tw::relay::ServerOptions;
using tw::relay::TakeoverError;

std::size_t count_sessions(const TakeoverState& state) {
    std::size_t sum = 0;
    for (const tw::relay::HandedOverServer& server : state.relay.servers) {
        sum += server.sessions.size();
    }
    return sum;
}

TEST_CASE("a relay takes over from another, and a third one from that relay") {
    RunningRelay running;
    Peer client;
    REQUIRE(running.echoes_datagram(client));
    TakeoverRequester requester{running.file};
    CHECK(requester.offer().observer_number == 5);
    auto any_port = running.configured_servers();
    any_port[0].options.listen[0].port(0);
    const auto next = make_new_relay(requester, running.options, any_port);
    CHECK(next->listen_endpoints() == running.relay->listen_endpoints());
    const TakeoverState state = requester.take_sessions(*next);
    CHECK(count_sessions(state) == 1);
    CHECK(state.last_recorded_session == 9);
    next->start();
    requester.confirm_forwarding();
    running.finish_after_takeover();
    CHECK(running.echoes_datagram(client));
    CHECK(next->counters().sessions_opened == 1);
    CHECK_FALSE(requester.receive_end_report());
    boost::asio::post(running.io, [&] { running.responder->report_end(11); });
    std::optional<TakeoverRequester::EndReport> left;
    REQUIRE(eventually([&] { return (left = requester.receive_end_report()).has_value(); }));
    CHECK(left->last_recorded_session == 11);
    const auto takeover_socket = requester.take_takeover_socket();
    const auto asking = TakeoverSocket::connect(running.file);
    CHECK(asking);
}

TEST_CASE("if a host name has a new address, players stay at the old server while it answers") {
    RunningRelay running;
    Peer client;
    REQUIRE(running.echoes_datagram(client));
    EchoServer elsewhere;
    std::unique_ptr<TakeoverRequester> requester;
    std::unique_ptr<Relay> next;
    const auto take_sessions_at = [&](const std::string& host) {
        requester.reset();
        requester = make_requester(running.file);
        auto servers = running.configured_servers();
        servers[0].options.host = host;
        auto begun = requester->prepare_server(servers[0], 0);
        Options options = running.options;
        options.server.listen = begun.options.listen;
        options.server.port = elsewhere.endpoint().port(); // as if the name had this address
        next = std::make_unique<Relay>(options, std::span<tw::relay::Ring* const>{}, nullptr,
                                       std::move(begun.listening));
        return requester->take_sessions(*next);
    };
    CHECK_THROWS_AS(std::ignore = take_sessions_at("other.test"), TakeoverError);
    CHECK_THROWS_AS(std::ignore = take_sessions_at("127.0.0.1"), TakeoverError);
    CHECK(running.echoes_datagram(client));
    running.run_on_io_thread([&] {
        running.takeover_servers[0].host_name =
            host_and_port({.host = "game.test",
                           .port = running.configured_servers()[0].options.port,
                           .listen = {}});
    });
    CHECK(count_sessions(take_sessions_at("game.test")) == 1);
    next->start();
    requester->confirm_forwarding();
    running.finish_after_takeover();
    CHECK(running.echoes_datagram(client)); // the old server still answers
    CHECK(next->server_endpoint() != running.relay->server_endpoint());
}

TEST_CASE("other listening addresses, another server or another address mode prevent a takeover") {
    RunningRelay running;
    Peer client;
    const ConfiguredServer own = running.configured_servers()[0];
    const std::function<void(ServerOptions&)> elsewheres[]{
        [](ServerOptions& where) { where.listen.push_back(where.listen[0]); },
        [](ServerOptions& where) { where.listen.clear(); },
        [](ServerOptions& where) { where.listen[0].port(1); },
        [](ServerOptions& where) {
            where.listen[0] = {boost::asio::ip::address_v6::loopback(), 0};
        },
    };
    {
        TakeoverRequester requester{running.file};
        for (const auto& change : elsewheres) {
            ConfiguredServer other = own;
            change(other.options);
            CHECK_THROWS_AS(std::ignore = requester.prepare_server(other, 0), TakeoverError);
        }
    }
    EchoServer elsewhere;
    const std::function<void(Options&, ConfiguredServer&)> changes[]{
        [&](Options& /*options*/, ConfiguredServer& named) {
            named.options.port = elsewhere.endpoint().port();
        },
        [](Options& options, ConfiguredServer& /*named*/) {
            options.client_address = tw::relay::ClientAddressMode::loopback;
        },
    };
    for (const auto& change : changes) {
        const auto requester = make_requester(running.file);
        Options options = running.options;
        ConfiguredServer takeover_servers = own;
        change(options, takeover_servers);
        const auto next = make_new_relay(*requester, options, {takeover_servers});
        CHECK_THROWS_AS(std::ignore = requester->take_sessions(*next), TakeoverError);
        CHECK(running.echoes_datagram(client));
    }
}

TEST_CASE("servers continue by name; a removed server ends, and a new server starts") {
    RunningRelay running{{"ctf", "race", "dm"}};
    Peer client;
    for (const ServerIndex server : {ServerIndex{0}, ServerIndex{1}, ServerIndex{2}}) {
        REQUIRE(running.echoes_datagram(client, server));
    }
    EchoServer late;
    auto servers = running.configured_servers();
    servers[2] = {.name = "late", .options = server_options_on_any_port(late.endpoint())};
    std::swap(servers[0], servers[1]);
    TakeoverRequester requester{running.file};
    const auto next = make_new_relay(requester, running.options, servers);
    CHECK(requester.find_server("dm") != nullptr);
    CHECK(requester.find_server("late") == nullptr);
    CHECK(count_sessions(requester.take_sessions(*next)) == 2);
    next->start();
    requester.confirm_forwarding();
    running.finish_after_takeover();
    CHECK(running.responder->servers_not_continued() == std::vector<ServerIndex>{2});
    CHECK(running.echoes_datagram(client, 0));
    CHECK(running.echoes_datagram(client, 1));
    Peer other;
    const Bytes sent = make_payload(40, 7);
    other.send(sent, next->listen_endpoints(2)[0]);
    CHECK(other.receive() == sent);
    CHECK(next->num_sessions() == 3);
    CHECK(next->server_endpoint(0) == running.relay->server_endpoint(1));
    CHECK(next->server_endpoint(1) == running.relay->server_endpoint(0));
    // After the takeover, the old relay's servers are ignored: the server starts anew.
    auto again = running.configured_servers()[2];
    again.options.listen[0].port(0);
    CHECK(requester.prepare_server(again, 3).listening.empty());
}

TEST_CASE("relays without a common server, or with swapped names, reject a takeover") {
    const RunningRelay running{{"ctf", "race"}};
    TakeoverRequester requester{running.file};
    const auto own = running.configured_servers();
    CHECK_NOTHROW(requester.check_servers(own));
    CHECK_NOTHROW(requester.check_servers({own[1]}));
    CHECK_THROWS_AS(requester.check_servers({{.name = "", .options = own[0].options}}),
                    TakeoverError);
    auto renamed = own;
    renamed[1].name = "racing"; // would listen on an address of the old server "race"
    CHECK_THROWS_WITH_AS(requester.check_servers(renamed),
                         doctest::Contains("for race, which should now be racing"), TakeoverError);
    auto swapped = own;
    std::swap(swapped[0].name, swapped[1].name);
    CHECK_THROWS_AS(requester.check_servers(swapped), TakeoverError);
}

TEST_CASE("a change of servers during the preparation aborts the takeover") {
    RunningRelay running{{"ctf", "race"}};
    Peer client;
    REQUIRE(running.echoes_datagram(client));
    TakeoverRequester requester{running.file};
    const auto next = make_new_relay(requester, running.options, running.configured_servers());
    running.run_on_io_thread([&] { running.takeover_servers.pop_back(); });
    CHECK_THROWS_WITH_AS(std::ignore = requester.take_sessions(*next),
                         doctest::Contains("have changed"), TakeoverError);
    CHECK(running.echoes_datagram(client));
    CHECK_FALSE(running.is_handed_over);
}

TEST_CASE("an invalid offer or state of the old relay is rejected") {
    const RunningRelay running; // supplies a valid offer
    const auto file = TakeoverSocket::path_of(running.folder.path(), "false-relay");
    const auto takeover_socket = TakeoverSocket::open(file);
    REQUIRE(takeover_socket);
    const int own = running.relay->listening_sockets()[0];

    struct OldRelayMessages {
        TakeoverMessage kind = TakeoverMessage::offer;
        TakeoverOffer offer;
        std::size_t sockets = 2;
        std::optional<TakeoverState> state{};
        std::size_t missing_bytes = 0; ///< bytes that are missing at the end of the last message
        std::size_t upstreams = 0;     ///< sockets of sessions
    };

    const TakeoverServer server{
        .listen_endpoints = {tw::base::endpoint_from(running.relay->listen_endpoints()[0].data())},
        .num_listening_sockets = 1,
        .server_endpoint = running.relay->server_endpoint(),
        .mode = running.relay->client_address_mode()};
    const OldRelayMessages valid_messages{
        .offer = {.network_namespace = own_network_namespace_number(),
                  .observer_number = 1,
                  .servers = {server}}};
    TakeoverState empty;
    empty.relay.impairment = "none";
    empty.relay.servers = {{.counters = {}, .listener_drops = {0}, .sessions = {}}};

    struct Row {
        const char* name;
        std::function<void(OldRelayMessages&)> change;
    };

    const Row rows[]{
        {"a refusal", [](auto& sent) { sent.kind = TakeoverMessage::refusal; }},
        {"another word", [](auto& sent) { sent.kind = TakeoverMessage::state; }},
        {"a damaged offer", [](auto& sent) { sent.missing_bytes = 1; }},
        {"no server", [](auto& sent) { sent.offer.servers.clear(); }},
        {"no listening sockets", [](auto& sent) { sent.sockets = 1; }},
        {"nothing but words", [](auto& sent) { sent.sockets = 0; }},
        {"a server without sockets",
         [](auto& sent) {
             sent.offer.servers[0].num_listening_sockets = 0;
             sent.sockets = 1;
         }},
        {"more sockets than can be",
         [](auto& sent) { sent.offer.servers[0].num_listening_sockets = 0xffffffff; }},
        {"a server without an address",
         [](auto& sent) { sent.offer.servers[0].listen_endpoints.clear(); }},
        {"a mode that there is not",
         [](auto& sent) {
             sent.offer.servers[0].mode = static_cast<tw::relay::ClientAddressMode>(200);
         }},
        {"a name that a terminal obeys",
         [](auto& sent) { sent.offer.servers[0].name = "ctf\x1b[2J"; }},
        {"a server twice",
         [](auto& sent) {
             sent.offer.servers.push_back(sent.offer.servers[0]);
             sent.sockets = 3;
         }},
        {"another network", [](auto& sent) { ++sent.offer.network_namespace; }},
        {"an end where it was to hand over", [](OldRelayMessages& /*sent*/) {}},
        {"a damaged state",
         [&](auto& sent) {
             sent.state = empty;
             sent.missing_bytes = 1;
         }},
        {"no totals of the server",
         [&](auto& sent) { sent.state.emplace(empty).relay.servers.clear(); }},
        {"another server, too",
         [&](auto& sent) { sent.state.emplace(empty).relay.servers.emplace_back(); }},
        {"fewer sessions than sockets",
         [&](auto& sent) {
             sent.state = empty;
             sent.upstreams = 1;
         }},
        {"a session that is damaged",
         [&](auto& sent) {
             sent.state.emplace(empty).relay.servers[0].sessions.emplace_back();
             sent.upstreams = 1;
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        OldRelayMessages messages = valid_messages;
        row.change(messages);
        std::thread old{[&] {
            std::optional<TakeoverLink> link;
            REQUIRE(eventually([&] { return (link = takeover_socket->accept()).has_value(); }));
            std::ignore = link->receive(message_deadline());
            Bytes offer = tw::base::to_archive(messages.offer);
            offer.resize(offer.size() - (messages.state ? 0 : messages.missing_bytes));
            std::ignore = link->send(messages.kind, offer, std::vector<int>(messages.sockets, own),
                                     message_deadline());
            if (messages.state) {
                std::ignore = link->receive(message_deadline());
                Bytes state = tw::base::to_archive(*messages.state);
                state.resize(state.size() - messages.missing_bytes);
                std::ignore =
                    link->send(TakeoverMessage::state, state,
                               std::vector<int>(messages.upstreams, own), message_deadline());
            }
        }};
        const auto take = [&] {
            TakeoverRequester requester{file};
            const auto next =
                make_new_relay(requester, running.options, running.configured_servers());
            std::ignore = requester.take_sessions(*next);
        };
        CHECK_THROWS_AS(take(), TakeoverError);
        old.join();
    }
}

using tw::base::from_archive;
using tw::base::to_archive;

void send_hello(const TakeoverLink& link, std::uint32_t version = TakeoverHello::kVersion) {
    REQUIRE(link.send(TakeoverMessage::hello, to_archive(TakeoverHello{.version = version}), {},
                      message_deadline()));
}

/// Sends `hello` and receives the offer with its sockets.
void receive_offer(TakeoverLink& link) {
    send_hello(link);
    const auto offered = link.receive(message_deadline());
    REQUIRE(offered);
    REQUIRE(offered->kind == TakeoverMessage::offer);
    const auto offer = from_archive<TakeoverOffer>(offered->body);
    REQUIRE(offer);
    std::size_t sockets = 1; // the takeover socket
    for (const TakeoverServer& server : offer->servers) {
        sockets += server.num_listening_sockets;
    }
    CHECK(offered->descriptors.size() == sockets);
}

void send_message(const TakeoverLink& link, TakeoverMessage kind, const Bytes& body = {}) {
    std::ignore = link.send(kind, body, {}, message_deadline());
}

void send_ready(TakeoverLink& link, const std::vector<ServerIndex>& servers) {
    receive_offer(link);
    send_message(link, TakeoverMessage::ready, to_archive(servers));
}

/// Sends `ready` and returns the old relay's state; the old relay then does not forward.
TakeoverLink::Message receive_state(TakeoverLink& link,
                                    const std::vector<ServerIndex>& servers = {0}) {
    send_ready(link, servers);
    auto state = link.receive(message_deadline());
    REQUIRE(state);
    CHECK(state->kind == TakeoverMessage::state);
    return std::move(*state);
}

TEST_CASE("if the new relay misbehaves, the old relay resumes forwarding") {
    struct Row {
        const char* name;
        void (*act)(TakeoverLink&);
    };

    const Row rows[]{
        {"leaves without a word", [](TakeoverLink&) {}},
        {"says nonsense", [](TakeoverLink& link) { send_message(link, TakeoverMessage{77}); }},
        {"does not send_hello", [](auto& link) { send_message(link, TakeoverMessage::ready); }},
        {"greets with nonsense",
         [](TakeoverLink& link) { send_message(link, TakeoverMessage::hello, Bytes(30)); }},
        {"sends descriptors",
         [](TakeoverLink& link) {
             const std::vector<int> descriptors(50, link.descriptor());
             std::ignore =
                 link.send(TakeoverMessage::hello, Bytes(3), descriptors, message_deadline());
         }},
        {"talks without an end",
         [](TakeoverLink& link) { send_message(link, TakeoverMessage::hello, Bytes(5'000'000)); }},
        {"leaves after the offer", [](TakeoverLink& link) { receive_offer(link); }},
        {"says that it forwards what it has not",
         [](TakeoverLink& link) {
             receive_offer(link);
             send_message(link, TakeoverMessage::forwarding);
         }},
        {"says that it is ready, and not for what",
         [](TakeoverLink& link) {
             receive_offer(link);
             send_message(link, TakeoverMessage::ready);
         }},
        {"wishes for no server", [](TakeoverLink& link) { send_ready(link, {}); }},
        {"wishes for a server that there is not",
         [](TakeoverLink& link) {
             send_ready(link, {0, 60000});
         }},
        {"wishes for one twice",
         [](TakeoverLink& link) {
             send_ready(link, {0, 0});
         }},
        {"leaves when it has all", [](TakeoverLink& link) { std::ignore = receive_state(link); }},
        {"says another word when it has all",
         [](TakeoverLink& link) {
             std::ignore = receive_state(link);
             send_message(link, TakeoverMessage::ready, to_archive(std::vector<ServerIndex>{0}));
             CHECK_FALSE(link.receive(message_deadline()));
         }},
        {"falls silent when it has all",
         [](TakeoverLink& link) {
             std::ignore = receive_state(link);
             CHECK_FALSE(link.receive(message_deadline()));
             CHECK(link.is_closed());
             CHECK_FALSE(link.send(TakeoverMessage::forwarding,
                                   message_deadline())); // the new relay does not forward
         }},
    };
    RunningRelay running;
    Peer client;
    REQUIRE(running.echoes_datagram(client));
    for (const Row& row : rows) {
        CAPTURE(row.name);
        {
            TakeoverLink link = running.connect_when_free();
            row.act(link);
        }
        CHECK(running.echoes_datagram(client));
        CHECK_FALSE(running.is_handed_over);
    }
    CHECK(running.relay->counters().sessions_opened == 1);
}

TEST_CASE(
    "sockets that a failed new relay keeps do not wake the old relay after their sessions ended") {
    RunningRelay running{{"ctf", "race"}};
    Peer client;
    Peer other;
    REQUIRE(running.echoes_datagram(client));
    REQUIRE(running.echoes_datagram(other, 1));
    TakeoverLink link = running.connect_when_free();
    const auto kept = receive_state(link, {0, 1});
    int held = -1; // the upstream socket of the session with the second server
    for (const auto& descriptor : kept.descriptors) {
        Udp::endpoint peer;
        auto length = static_cast<socklen_t>(peer.capacity());
        const bool connected = ::getpeername(descriptor.get(), peer.data(), &length) == 0;
        held = connected && peer == running.other_servers[0]->endpoint() ? descriptor.get() : held;
    }
    REQUIRE(held >= 0);
    CHECK_FALSE(link.receive(message_deadline())); // the old relay gives up
    REQUIRE(running.echoes_datagram(client));
    running.run_on_io_thread([&] { running.relay->remove_server(1); });
    // The second server still sends to the kept socket: it echoes what the socket sends.
    const Bytes late = make_payload(40, 2);
    REQUIRE(::send(held, late.data(), late.size(), 0) == static_cast<ssize_t>(late.size()));
    REQUIRE(eventually([&] {
        std::array<std::byte, 64> room{};
        return ::recv(held, room.data(), room.size(), MSG_PEEK | MSG_DONTWAIT) > 0;
    }));
    CHECK(running.echoes_datagram(client));
    CHECK(running.echoes_datagram(client));
}

TEST_CASE("the observer process cannot take over") {
    RunningRelay running;
    running.observer_pid = ::getpid();
    TakeoverLink link = running.connect();
    CHECK_FALSE(link.receive(message_deadline()));
    CHECK(link.is_closed());
    running.observer_pid = 0;
    TakeoverLink another = running.connect_when_free();
    receive_offer(another);
}

TEST_CASE("another version, and a second relay during a takeover, are rejected with a reason") {
    RunningRelay running;
    Peer client;
    for (const std::uint32_t version : {TakeoverHello::kVersion - 1, TakeoverHello::kVersion + 1}) {
        TakeoverLink other = running.connect_when_free();
        Bytes greeting = to_archive(TakeoverHello{.version = version});
        greeting.resize(greeting.size() + 20); // a later version may add members
        REQUIRE(other.send(TakeoverMessage::hello, greeting, {}, message_deadline()));
        const auto refusal = other.receive(message_deadline());
        REQUIRE(refusal);
        CHECK(refusal->kind == TakeoverMessage::refusal);
        const std::string why{reinterpret_cast<const char*>(refusal->body.data()),
                              refusal->body.size()};
        CHECK_MESSAGE(why.find("restart it once") != why.npos, why);
        CHECK_FALSE(other.receive(message_deadline()));
    }
    TakeoverLink first = running.connect_when_free();
    receive_offer(first);
    TakeoverLink second = running.connect();
    const auto busy = second.receive(message_deadline());
    REQUIRE(busy);
    CHECK(busy->kind == TakeoverMessage::busy);
    CHECK_THROWS_AS(TakeoverRequester{running.file}, NoTakeoverPeerError);
    CHECK(running.echoes_datagram(client));
}

TEST_CASE("a relay that would show clients' addresses in another way is rejected") {
    const std::string plain{kExampleClient};

    struct Row {
        std::string running;
        std::string next;
        const char* refusal; ///< null if it may take over
    };

    const Row rows[]{
        {plain, plain, nullptr},
        {"client-1:8303", "client-1:8303", nullptr},
        {"client-1:8303", "", nullptr}, // an older version, or a relay without an observer
        {"", "client-1:8303", nullptr},
        {"client-1:8303", plain, "but the new one has no secret for pseudonyms"},
        {plain, "client-1:8303", "the new one would replace them by pseudonyms"},
        {"client-1:8303", "client-2:8303", "has another secret for pseudonyms"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.running);
        CAPTURE(row.next);
        RunningRelay running{{""}, row.running};
        Peer client;
        std::string refusal;
        try {
            const TakeoverRequester requester{running.file, row.next};
        } catch (const tw::relay::TakeoverError& error) {
            refusal = error.what();
        }
        if (row.refusal == nullptr) {
            CHECK(refusal.empty());
        } else {
            CHECK_MESSAGE(refusal.find(row.refusal) != refusal.npos, refusal);
        }
        CHECK(running.echoes_datagram(client));
    }
    RunningRelay running{{""}, "client-1:8303"};
    TakeoverLink older = running.connect();
    Bytes greeting = to_archive(TakeoverHello{});
    greeting.resize(greeting.size() - sizeof(std::uint32_t)); // without the example
    REQUIRE(older.send(TakeoverMessage::hello, greeting, {}, message_deadline()));
    const auto offered = older.receive(message_deadline());
    REQUIRE(offered);
    CHECK(offered->kind == TakeoverMessage::offer);
}

} // namespace
