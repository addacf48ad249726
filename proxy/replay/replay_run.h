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
    std::vector<ClientScript> scripts{}; ///< client i plays script i modulo their number
    std::size_t clients = 1;
    ReplayClient::Options each{}; ///< its connection_id is drawn for each client
    inspect::Options inspect{};   ///< its observers are the run's own
};

/// What came of it.
struct ReplayResult {
    std::size_t clients = 0;
    std::size_t entered = 0;
    std::array<std::size_t, 7> endings{}; ///< by Ending
    std::string reason{};                 ///< what the server said to the first it closed
    ClientTally tally{};                  ///< of all
    std::uint64_t resent = 0;
    std::uint64_t send_errors = 0;
    double seconds = 0;
    record::SessionStats totals{};
    std::uint32_t sessions = 0;

    [[nodiscard]] std::size_t ended(Ending ending) const {
        return endings[static_cast<std::size_t>(ending)];
    }
};

/// Plays scripts against a server, each client on a socket of its own, and inspects what passes as if
/// it passed the proxy. Ends when all clients have, and early on SIGINT and SIGTERM, with a goodbye.
/// Errors: throws std::system_error, or that of Boost, where there is no socket to be had.
[[nodiscard]] ReplayResult run_replay(ReplayOptions options, inspect::MapSource& maps,
                                      record::RecordSink& sink);

} // namespace tw::replay
