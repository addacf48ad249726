#pragma once

#include "proxy/inspect/inspector.h"
#include "proxy/replay/client_script.h"
#include "proxy/replay/replay_client.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::replay {

struct ReplayOptions {
    boost::asio::ip::udp::endpoint server{};
    /// Client number i plays script number i modulo the number of scripts.
    std::vector<ClientScript> scripts{};
    std::size_t clients = 1;
    /// Settings of all clients. The member connection_id is replaced by a random id per client.
    ReplayClient::Options client_options{};
    /// Settings of inspection. The member `observers` is replaced.
    inspect::Options inspect{};
};

struct ReplayResult {
    std::size_t clients = 0;
    std::size_t num_entered = 0;          ///< number of clients that entered the game
    std::array<std::size_t, 7> endings{}; ///< number of clients with each ClientEnding
    /// The reason that the server gave when it first closed a connection.
    std::string reason{};
    ClientCounts counts{}; ///< totals of all clients
    std::uint64_t send_errors = 0;
    double seconds = 0;
    record::SessionStats totals{};
    std::uint32_t sessions = 0;

    [[nodiscard]] std::size_t num_ended(ClientEnding ending) const {
        return endings[static_cast<std::size_t>(ending)];
    }
};

/// Plays scripts against a server and inspects the traffic. Each client has a separate socket.
/// Returns when all clients have ended. On SIGINT and SIGTERM, closes the connections and returns
/// early.
/// Errors: throws std::system_error or boost::system::system_error if a socket cannot be opened.
[[nodiscard]] ReplayResult run_replay(ReplayOptions options, inspect::MapSource& maps,
                                      record::RecordSink& sink);

} // namespace tw::replay
