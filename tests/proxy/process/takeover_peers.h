#pragma once

#include "proxy/process/takeover.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/program.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace tw::process::peers {

/// Returns a short deadline from now, for a message that is expected at once.
[[nodiscard]] TakeoverLink::Time message_deadline();

/// Returns a relay's options for this server, with a listening port that the system chooses.
[[nodiscard]] tw::relay::ServerOptions
server_options_on_any_port(const tw::relay::test::Udp::endpoint& server);

/// A running relay from which another relay can take over.
class RunningRelay {
  public:
    static constexpr const char* kServerName = "game.test:8303";

    /// One server without a name.
    RunningRelay() : RunningRelay{{""}} {}

    explicit RunningRelay(const std::vector<std::string>& names,
                          const std::string& example_client = {});
    // NOLINTNEXTLINE(bugprone-exception-escape): a failing join ends the test program
    ~RunningRelay();
    RunningRelay(const RunningRelay&) = delete;
    RunningRelay& operator=(const RunningRelay&) = delete;

    [[nodiscard]] TakeoverLink connect() const;
    /// Connects repeatedly until the relay has noticed the end of the previous connection.
    [[nodiscard]] TakeoverLink connect_when_free() const;
    [[nodiscard]] bool echoes_datagram(tw::relay::test::Peer& client,
                                       tw::relay::ServerIndex server_index = 0) const;
    /// Returns the servers in the form of a configuration.
    [[nodiscard]] std::vector<ConfiguredServer> configured_servers() const;
    /// Runs `what` on the responder's thread and waits until it has returned.
    void run_on_io_thread(const std::function<void()>& what);
    /// Ends this relay after the new relay has reported that it forwards.
    void finish_after_takeover();

    tw::test::TemporaryFolder folder;
    std::filesystem::path file = TakeoverSocket::path_of(folder.path(), "test");
    tw::relay::test::EchoServer server;
    std::vector<std::unique_ptr<tw::relay::test::EchoServer>> other_servers;
    std::vector<TakeoverServer> takeover_servers;
    tw::relay::Options options = tw::relay::test::make_relay_options(server.endpoint());
    boost::asio::io_context io;
    std::unique_ptr<tw::relay::Relay> relay;
    std::optional<TakeoverResponder> responder;
    std::atomic<bool> is_handed_over{false};
    std::atomic<pid_t> observer_pid{0};
    std::thread thread;
};

/// Constructs the new relay of a takeover with these servers, as RelayRun does.
[[nodiscard]] std::unique_ptr<tw::relay::Relay>
make_new_relay(TakeoverRequester& requester, tw::relay::Options options,
               const std::vector<ConfiguredServer>& servers);

/// Returns a requester as soon as the connection of the previous requester has ended.
[[nodiscard]] std::unique_ptr<TakeoverRequester> make_requester(const std::filesystem::path& file);

} // namespace tw::process::peers
