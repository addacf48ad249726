// The relay alone, without a decoder behind it: what `twscope proxy` costs before it looks.

#include "proxy/relay/relay.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

int main(int argc, char** argv) {
    using namespace tw::relay;
    Options options;
    std::uint16_t listen_port = 0;
    bool observe = false;
    options.server_host = "127.0.0.1";
    options.max_sessions = 4096;
    CLI::App app{"The relay alone"};
    app.add_option("listen_port", listen_port)->required();
    app.add_option("server_port", options.server_port)->required();
    app.add_flag("--busy-poll", options.busy_poll);
    app.add_option("--threads", options.threads);
    bool own_addresses = false;
    app.add_flag("--own-addresses", own_addresses, "each client has its own at the server");
    app.add_flag("--observe", observe, "take the copies out of the ring and throw them away");
    CLI11_PARSE(app, argc, argv);
    if (own_addresses) {
        options.client_address = ClientAddress::loopback;
    }
    options.listen = {{boost::asio::ip::address_v4::loopback(), listen_port}};

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);

    constexpr std::size_t kRingBytes = std::size_t{4} << 20U;
    std::vector<std::unique_ptr<Ring>> rings;
    std::vector<Ring*> views;
    for (unsigned i = 0; observe && i < options.threads; ++i) {
        rings.push_back(std::make_unique<Ring>(kRingBytes));
        views.push_back(rings.back().get());
    }
    Relay relay{options, views};
    relay.start();
    std::atomic<bool> stopping{false};
    std::uint64_t bytes = 0;
    std::thread observer{[&] {
        while (!stopping && observe) {
            std::size_t count = 0;
            for (auto& ring : rings) {
                count += ring->consume([&](const Event& event) { bytes += event.bytes.size(); });
            }
            if (count == 0) { // as an observer does: see run::Worker
                std::this_thread::sleep_for(std::chrono::milliseconds{2});
            }
        }
    }};
    int signal = 0;
    sigwait(&signals, &signal);
    relay.stop();
    relay.join();
    stopping = true;
    observer.join();
    const auto counters = relay.counters();
    fmt::print(stderr, "passed {} + {}, dropped {}, errors {}, copies lost {}, observed {} bytes\n",
               counters.directions[0].datagrams, counters.directions[1].datagrams,
               counters.directions[0].dropped + counters.directions[1].dropped,
               counters.directions[0].send_errors + counters.directions[1].send_errors,
               counters.directions[0].copies_lost + counters.directions[1].copies_lost, bytes);
    return 0;
}
