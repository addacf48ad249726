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

/// How long a word is waited for.
[[nodiscard]] TakeoverLink::Time soon();

/// A server as the options of a relay say it, which listens where the system chooses.
[[nodiscard]] tw::relay::ServerOptions where_of(const tw::relay::test::Udp::endpoint& server);

/// A relay that runs and can be taken over from.
class Running {
  public:
    static constexpr const char* kServerName = "game.test:8303";

    /// One server without a name.
    Running() : Running{{""}} {}

    explicit Running(const std::vector<std::string>& names, const std::string& example_client = {});
    // NOLINTNEXTLINE(bugprone-exception-escape): where a join fails there is no way on
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    [[nodiscard]] TakeoverLink ask() const;
    /// Asks until the one that asked before has been seen to leave.
    [[nodiscard]] TakeoverLink ask_when_free() const;
    [[nodiscard]] bool echoes(tw::relay::test::Peer& client,
                              tw::relay::ServerIndex server_index = 0) const;
    /// The servers as a configuration has them.
    [[nodiscard]] std::vector<ConfiguredServer> configured() const;
    /// Does it where the responder reads what it changes.
    void change(const std::function<void()>& what);
    /// The one that took over forwards: this one ends.
    void end();

    tw::test::TemporaryFolder folder;
    std::filesystem::path file = TakeoverSocket::path_of(folder.path(), "test");
    tw::relay::test::EchoServer server;
    std::vector<std::unique_ptr<tw::relay::test::EchoServer>> others;
    std::vector<TakeoverServer> served;
    tw::relay::Options options = tw::relay::test::options_for(server.endpoint());
    boost::asio::io_context io;
    std::unique_ptr<tw::relay::Relay> relay;
    std::optional<TakeoverResponder> responder;
    std::atomic<bool> given{false};
    std::atomic<pid_t> observer_process{0};
    std::thread thread;
};

/// A relay that begins with these servers, as RelayRun does.
[[nodiscard]] std::unique_ptr<tw::relay::Relay>
make_next(TakeoverRequester& requester, tw::relay::Options options,
          const std::vector<ConfiguredServer>& servers);

/// A requester, once nobody else is one any more.
[[nodiscard]] std::unique_ptr<TakeoverRequester> make_requester(const std::filesystem::path& file);

} // namespace tw::process::peers
