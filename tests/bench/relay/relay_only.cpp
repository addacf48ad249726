// The relay without decoding: copies of datagrams go into the rings and are discarded.

#include "proxy/relay/relay.h"
#include "tests/support/local_ring.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

using namespace tw::relay;

/// Reads the copies from the rings and discards them.
class RingDrainer {
  public:
    explicit RingDrainer(unsigned threads) {
        constexpr std::size_t kRingBytes = std::size_t{4} << 20U;
        for (unsigned i = 0; i < threads; ++i) {
            rings_.push_back(std::make_unique<tw::test::LocalRing>(kRingBytes));
            views_.push_back(rings_.back().get());
        }
        thread_ = std::thread{[this] { discard_events(); }};
    }

    ~RingDrainer() {
        stopping_ = true;
        thread_.join();
    }

    RingDrainer(const RingDrainer&) = delete;
    RingDrainer& operator=(const RingDrainer&) = delete;

    [[nodiscard]] std::span<Ring* const> rings() const { return views_; }

  private:
    void discard_events() {
        while (!stopping_) {
            std::size_t count = 0;
            for (auto& ring : rings_) {
                count += ring->consume_events([](const RelayEvent& /*event*/) {});
            }
            if (count == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds{2});
            }
        }
    }

    std::vector<std::unique_ptr<tw::test::LocalRing>> rings_;
    std::vector<Ring*> views_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

/// Returns the signals that end the program, after blocking them, so that it can wait for them.
sigset_t block_end_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

} // namespace

int main(int argc, char** argv) try {
    Options options;
    std::uint16_t listen_port = 0;
    bool observe = false;
    bool own_addresses = false;
    options.server.host = "127.0.0.1";
    options.max_sessions = 4096;
    CLI::App app{"The relay alone"};
    app.add_option("listen_port", listen_port)->required();
    app.add_option("server_port", options.server.port)->required();
    app.add_flag("--busy-poll", options.busy_poll);
    app.add_option("--threads", options.threads);
    app.add_flag("--own-addresses", own_addresses, "each client has its own at the server");
    app.add_flag("--observe", observe, "take the copies out of the ring and throw them away");
    CLI11_PARSE(app, argc, argv);
    if (own_addresses) {
        options.client_address = ClientAddressMode::loopback;
    }
    options.server.listen = {{boost::asio::ip::address_v4::loopback(), listen_port}};
    const sigset_t ends = block_end_signals();
    std::optional<RingDrainer> taker;
    if (observe) {
        taker.emplace(options.threads);
    }
    Relay relay{options, taker ? taker->rings() : std::span<Ring* const>{}};
    relay.start();
    int signal = 0;
    sigwait(&ends, &signal);
    relay.stop();
    relay.join();
    const auto counters = relay.counters();
    fmt::print(stderr, "passed {} + {}, dropped {}, errors {}, copies lost {}\n",
               counters.directions[0].datagrams, counters.directions[1].datagrams,
               counters.directions[0].dropped + counters.directions[1].dropped,
               counters.directions[0].send_errors + counters.directions[1].send_errors,
               counters.directions[0].copies_lost + counters.directions[1].copies_lost);
    return 0;

} catch (const std::exception& error) {

    std::fprintf(stderr, "relay_only: %s\n", error.what());
    return 1;
}
