#pragma once

#include "proxy/relay/options.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of `proxy` about what the server sees, and how bad the line is made.
struct RelayFlags {
    std::string client_address = "auto";
    bool print_routes = false;
    std::vector<std::string> impair;
    std::uint64_t impair_seed = 1;
    std::size_t max_per_address = relay::AdmissionLimits{}.max_per_address;
    bool no_admission = false;
    bool no_info_cache = false;
    bool insecure_shared = false;
    bool resync = false;
    std::string state; ///< empty: where state_folder() says

    void add_to(CLI::App& command);
    /// Fills in what these flags are about. Errors: UsageError.
    void apply(relay::Options& options) const;
    [[nodiscard]] std::filesystem::path state_folder() const;
};

/// Where what has to outlast a run is kept: `given_folder` with --state, else $STATE_DIRECTORY (as systemd sets
/// it), $XDG_STATE_HOME/twscope or ~/.local/state/twscope.
[[nodiscard]] std::filesystem::path state_folder(const std::string& given_folder);

/// One line for the start-up log: what the server sees as its clients' addresses, and why.
[[nodiscard]] std::string describe_client_address(relay::ClientAddress wanted,
                                                  relay::ClientAddress chosen);

/// A shell script that lets a server's answers find a proxy that uses its clients' own addresses.
///
/// `server_is_here`: the server runs on the proxy's host.
/// Errors: UsageError when the proxy's own answers would be taken for the server's.
[[nodiscard]] std::string
transparent_routes(const boost::asio::ip::udp::endpoint& server, bool server_is_here,
                   const std::vector<boost::asio::ip::udp::endpoint>& listen);

} // namespace tw::cli
