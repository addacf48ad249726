#include "proxy/cli/relay_flags.h"

#include "proxy/cli/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

using relay::ClientAddress;

constexpr std::array<std::pair<std::string_view, ClientAddress>, 4> kModes{
    {{"auto", ClientAddress::automatic},
     {"shared", ClientAddress::shared},
     {"loopback", ClientAddress::loopback},
     {"transparent", ClientAddress::transparent}}};

/// Number of the routing table, and priority of the rule: one that `ip rule` shows as ours.
constexpr int kRoutingTable = 8303;
/// Records hold numbers of 63 bits.
constexpr std::uint64_t kMaxSeed = std::uint64_t{1} << 62U;

ClientAddress mode_of(std::string_view name) {
    return std::find_if(kModes.begin(), kModes.end(),
                        [&](const auto& mode) { return mode.first == name; })
        ->second;
}

} // namespace

void RelayFlags::add_to(CLI::App& command) {
    std::vector<std::string> modes;
    modes.reserve(kModes.size());
    for (const auto& [name, unused] : kModes) {
        modes.emplace_back(name);
    }
    command
        .add_option(
            "--client-address", client_address,
            "Client addresses that the server sees: a 127.x.y.z for each client address (loopback: "
            "the server is on this host's loopback), the client's real one (transparent: needs "
            "CAP_NET_ADMIN and the routes of --print-routes), or the proxy's own for all (shared: "
            "see --insecure-shared). auto: loopback, where possible")
        ->check(CLI::IsMember(modes))
        ->capture_default_str();
    command.add_flag(
        "--insecure-shared", insecure_shared,
        "Let a server on another host see all clients with the proxy's address: they share bans, "
        "limits and one anti-spoofing token, so a stranger can kick players or speak as them");
    command
        .add_option("--state", state,
                    "Folder for the key from which clients' addresses at the server are derived "
                    "[$STATE_DIRECTORY, $XDG_STATE_HOME/twscope or ~/.local/state/twscope]")
        ->type_name("DIR");
    command.add_flag("--print-routes", print_routes,
                     "Print the routing commands that --client-address transparent needs for this "
                     "server, and exit");
    command
        .add_option("--max-per-address", max_per_address,
                    "Maximum sessions per IPv4 address or IPv6 /64, except this host's loopback; 0 "
                    "means unlimited")
        ->check(CLI::Range(std::size_t{0}, std::size_t{60000}))
        ->capture_default_str();
    command.add_flag("--no-admission", no_admission,
                     "Admit every sender at once, limiting only their number: for traffic that is "
                     "not the game's");
    command.add_flag("--no-info-cache", no_info_cache,
                     "Never answer a request for server info from the server's last answer. "
                     "Otherwise, of more than 32 requests per second, the others get the last "
                     "answer, if it is less than a second old");
    command.add_flag(
        "--resync", resync,
        "Ask the server for a full snapshot, at most every 5 seconds per session, where snapshots "
        "cannot be verified because the start of the session was not seen: the client's inputs "
        "acknowledge -1 until the server sends one, and that one until the client has received it. "
        "No other datagram is changed; each request is recorded (session.resync)");
    repeatable(
        command
            .add_option(
                "--impair", impair,
                "Impair the line, separately for each client (repeatable): "
                "'s2c:delay=40ms,jitter=10ms,loss=2%,burst=3,dup=1%,reorder=1%,rate=1mbit'; c2s: "
                "applies to traffic from clients to the server, s2c: to the way back, neither to "
                "both")
            ->type_name("[c2s:|s2c:]NAME=VALUE,..."));
    command
        .add_option("--impair-seed", impair_seed,
                    "Seed of the impairment; the same seed and traffic give the same impairment")
        ->check(CLI::Range(std::uint64_t{0}, kMaxSeed))
        ->capture_default_str();
}

void RelayFlags::apply(relay::Options& options) const {
    options.client_address = mode_of(client_address);
    options.insecure_shared = insecure_shared;
    options.admission.max_per_address = max_per_address;
    std::string text;
    for (const std::string& each : impair) {
        text += (text.empty() ? "" : ";") + each;
    }
    const auto parsed = relay::parse_impairment(text.empty() ? "none" : text, impair_seed);
    if (!parsed) {
        throw UsageError{fmt::format("--impair {}: {}", text, parsed.error())};
    }
    options.impairment = *parsed;
}

std::filesystem::path RelayFlags::state_folder() const {
    return tw::cli::state_folder(state);
}

std::filesystem::path state_folder(const std::string& given_folder) {
    if (!given_folder.empty()) {
        return given_folder;
    }
    const auto variable = [](const char* name) {
        const char* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe): one thread
        return std::string{value == nullptr ? "" : value};
    };
    if (const std::string given = variable("STATE_DIRECTORY"); !given.empty()) {
        return given.substr(0, given.find(':')); // systemd may set several
    }
    if (const std::string home = variable("XDG_STATE_HOME"); !home.empty()) {
        return std::filesystem::path{home} / "twscope";
    }
    const std::string home = variable("HOME");
    if (home.empty()) { // the current folder may be one where others write
        throw UsageError{"HOME is not set, so there is no folder for keys; name one with --state"};
    }
    return std::filesystem::path{home} / ".local" / "state" / "twscope";
}

std::string describe_client_address(ClientAddress wanted, ClientAddress chosen) {
    const bool asked = wanted != ClientAddress::automatic;
    switch (chosen) {
    case ClientAddress::loopback:
        return fmt::format("the server sees each client's address as its own 127.x.y.z ({})",
                           asked ? "as --client-address says" : "it is on loopback");
    case ClientAddress::transparent:
        return "the server sees each client's real address (as --client-address says; its answers "
               "need the routes of --print-routes)";
    default:
        return fmt::format(
            "the server sees all clients with the proxy's address (as {} says): they share bans, "
            "limits and one anti-spoofing token, and a stranger can kick players or speak as them",
            asked ? "--client-address" : "--insecure-shared");
    }
}

std::string transparent_routes(const boost::asio::ip::udp::endpoint& server, bool server_is_here,
                               const std::vector<boost::asio::ip::udp::endpoint>& listen) {
    const bool same_port = std::any_of(
        listen.begin(), listen.end(), [&](const auto& own) { return own.port() == server.port(); });
    if (server_is_here && same_port) {
        throw UsageError{
            fmt::format("--print-routes: the server is on this host and also uses port {0}, so "
                        "routes cannot tell its answers from the proxy's; listen on another port",
                        server.port())};
    }
    const bool v6 = server.address().is_v6();
    const std::string ip = v6 ? "ip -6" : "ip";
    const std::string address = server.address().to_string();
    // 17 is UDP: ip knows the name only where /etc/protocols is installed.
    const std::string rule =
        server_is_here
            // A server bound to all addresses has no source address yet when the route is chosen.
            ? fmt::format("ipproto 17 sport {}", server.port())
            : fmt::format("from {} ipproto 17 sport {}", address, server.port());
    std::string text = fmt::format(
        "# Hand what the server {0}:{1} sends to its clients to the proxy on this host.\n"
        "# Run as root on the proxy's host, before: twscope proxy --client-address transparent "
        "...\n"
        "{2} rule add pref {3} {4} lookup {3}\n"
        "{2} route add local default dev lo table {3}\n",
        address, server.port(), ip, kRoutingTable, rule);
    if (!server_is_here) {
        text += fmt::format(
            "# On the server's host, route traffic to the clients through this host, for example:\n"
            "#   {} route replace default via ADDRESS_OF_THIS_HOST\n",
            ip);
    }
    text += fmt::format("# To undo:\n"
                        "#   {0} rule del pref {1}; {0} route flush table {1}\n",
                        ip, kRoutingTable);
    return text;
}

} // namespace tw::cli
