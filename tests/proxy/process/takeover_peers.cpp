#include "tests/proxy/process/takeover_peers.h"

#include <chrono>
#include <future>
#include <utility>

#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

namespace tw::process::peers {

using namespace tw::relay::test;
using base::Clock;
using relay::Options;
using relay::Relay;
using relay::ServerIndex;
using relay::ServerOptions;

TakeoverLink::Time message_deadline() {
    return Clock::now() + kMaxWait;
}

ServerOptions server_options_on_any_port(const Udp::endpoint& server) {
    return make_relay_options(server).server;
}

RunningRelay::RunningRelay(const std::vector<std::string>& names,
                           const std::string& example_client) {
    options.server.listen[0] = {boost::asio::ip::address_v4::loopback(), 0};
    relay = std::make_unique<Relay>(options);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) {
            other_servers.push_back(std::make_unique<EchoServer>());
            std::ignore =
                relay->add_server(server_options_on_any_port(other_servers.back()->endpoint()));
        }
        takeover_servers.push_back({.number = static_cast<ServerIndex>(i),
                                    .name = names[i],
                                    .host_name = i == 0 ? kServerName : ""});
    }
    relay->start();
    auto door = TakeoverSocket::open(file);
    REQUIRE(door);
    TakeoverResponder::Dependencies parts{.io = &io, .relay = relay.get()};
    parts.example_client = example_client;
    parts.on_handed_over = [this] { is_handed_over = true; };
    parts.relay_status = [this]() -> TakeoverResponder::RelayStatus {
        return {.servers = takeover_servers,
                .observer_number = 5,
                .observer_pid = observer_pid,
                .last_recorded_session = 9};
    };
    responder.emplace(std::move(parts), std::move(*door));
    responder->start();
    thread = std::thread{[this] { io.run(); }};
}

// NOLINTNEXTLINE(bugprone-exception-escape)
RunningRelay::~RunningRelay() {
    boost::asio::post(io, [this] {
        responder->stop();
        io.stop();
    });
    thread.join();
    responder.reset();
    relay.reset();
}

TakeoverLink RunningRelay::connect() const {
    auto link = TakeoverSocket::connect(file);
    REQUIRE(link);
    return std::move(*link);
}

TakeoverLink RunningRelay::connect_when_free() const {
    constexpr std::chrono::milliseconds kAnswer{200};
    while (true) {
        TakeoverLink link = connect();
        if (!link.receive(Clock::now() + kAnswer)) {
            return link; // no message `busy`: no other takeover is in progress
        }
    }
}

bool RunningRelay::echoes_datagram(Peer& client, ServerIndex server_index) const {
    const Bytes sent = make_payload(40, 1);
    client.send(sent, relay->listen_endpoints(server_index)[0]);
    const auto echoed = client.receive();
    return echoed && *echoed == sent;
}

std::vector<ConfiguredServer> RunningRelay::configured_servers() const {
    std::vector<ConfiguredServer> all;
    for (const auto& each : takeover_servers) {
        const auto leads_to = to_asio_endpoint(relay->server_endpoint(each.number));
        all.push_back({.name = each.name, .options = server_options_on_any_port(leads_to)});
        all.back().options.listen = relay->listen_endpoints(each.number);
    }
    return all;
}

void RunningRelay::run_on_io_thread(const std::function<void()>& what) {
    std::promise<void> done;
    boost::asio::post(io, [&] {
        what();
        done.set_value();
    });
    done.get_future().wait();
}

void RunningRelay::finish_after_takeover() {
    REQUIRE(eventually([&] { return is_handed_over.load(); }));
    relay->stop_for_takeover(responder->servers_not_continued());
    relay->join();
}

std::unique_ptr<Relay> make_new_relay(TakeoverRequester& requester, Options options,
                                      const std::vector<ConfiguredServer>& servers) {
    requester.check_servers(servers);
    std::unique_ptr<Relay> relay;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        auto begun = requester.prepare_server(servers[i], static_cast<ServerIndex>(i));
        if (i > 0) {
            std::ignore = relay->add_server(begun.options, std::move(begun.listening));
            continue;
        }
        options.server = begun.options;
        relay = std::make_unique<Relay>(options, std::span<relay::Ring* const>{}, nullptr,
                                        std::move(begun.listening));
    }
    return relay;
}

std::unique_ptr<TakeoverRequester> make_requester(const std::filesystem::path& file) {
    std::unique_ptr<TakeoverRequester> requester;
    REQUIRE(eventually([&] {
        try {
            requester = std::make_unique<TakeoverRequester>(file);
            return true;
        } catch (const NoTakeoverPeerError&) {
            return false; // the relay has not noticed yet that the previous connection ended
        }
    }));
    return requester;
}

} // namespace tw::process::peers
