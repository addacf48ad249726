#include "proxy/cli/proxy_flags.h"

#include "proxy/base/endpoint.h"
#include "proxy/bus/subjects.h"
#include "proxy/channel/shared_run_memory.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/process/relayed_servers.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/relay.h"

#include <chrono>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tw::cli {

namespace {

using relay::ClientAddressMode;

/// The number of twscope's routing table, and the priority of the `ip rule` that selects the table.
constexpr int kRoutingTable = 8303;
/// The largest seed. Records contain numbers of 63 bits.
constexpr std::int64_t kMaxSeed = std::int64_t{1} << 62U;

relay::Impairment parse_impairment(const std::string& text, std::uint64_t seed) {
    const auto parsed = relay::parse_impairment(text, seed);
    if (!parsed) {
        throw usage_error("--impair {}: {}", text, parsed.error());
    }
    return *parsed;
}

namespace asio = boost::asio;

asio::ip::udp::endpoint parse_listen_endpoint(const std::string& text) {
    return parse_endpoint(text, "--listen", "0.0.0.0");
}

relay::ServerOptions parse_server_options(const std::string& text) {
    const HostPort where = parse_server(text);
    return {.host = where.host, .port = where.port};
}

/// Parses NAME=HOST:PORT. The listen addresses are set later.
process::ConfiguredServer parse_named_server(const std::string& text) {
    const auto equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    static_assert(bus::kMaxSubjectTokenBytes <= channel::ServerFacts::kMaxNameBytes);
    if (!bus::is_subject_token(name)) {
        throw usage_error(
            "--server {}: several servers need names, of letters, digits, - and _, at "
            "most {}: NAME=HOST:PORT, for example ctf=127.0.0.1:8304",
            text, bus::kMaxSubjectTokenBytes);
    }
    return {.name = name, .options = parse_server_options(text.substr(equals + 1))};
}

/// Returns an address as the system compares it: an IPv4 address within IPv6 becomes the IPv4
/// address.
asio::ip::address unmapped_address(const asio::ip::address& address) {
    return address.is_v6() && address.to_v6().is_v4_mapped()
               ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6())
               : address;
}

/// True if the addresses overlap, so that only one of them can be bound. `both_families`: whether
/// [::] includes IPv4.
bool addresses_overlap(const asio::ip::udp::endpoint& left, const asio::ip::udp::endpoint& right,
                       bool both_families) {
    const asio::ip::address a = unmapped_address(left.address());
    const asio::ip::address b = unmapped_address(right.address());
    const auto includes = [both_families](const auto& all, const auto& each) {
        return all.is_unspecified() &&
               (all.is_v6() == each.is_v6() || (both_families && all.is_v6()));
    };
    return left.port() != 0 && left.port() == right.port() &&
           (a == b || includes(a, b) || includes(b, a));
}

/// Checks that a server's listen addresses do not overlap. A socket on [::] does not receive IPv4.
void check_listen_addresses(std::span<const asio::ip::udp::endpoint> listen) {
    for (std::size_t i = 1; i < listen.size(); ++i) {
        for (const auto& other : listen.first(i)) {
            if (addresses_overlap(other, listen[i], false)) {
                throw usage_error(
                    "--listen {} and {}: the addresses overlap; leave one of them out",
                    base::to_string(other), base::to_string(listen[i]));
            }
        }
    }
}

/// Checks that the proxy would not forward to one of its own listen addresses. Does not check a
/// server given by its host name, which is resolved later.
void check_no_loop(const relay::ServerOptions& server,
                   const std::vector<asio::ip::udp::endpoint>& listen) {
    boost::system::error_code is_name;
    const auto address = asio::ip::make_address(server.host, is_name);
    if (is_name) {
        return;
    }
    try {
        relay::check_no_forwarding_loop({address, server.port}, listen);
    } catch (const relay::StartError& error) {
        throw usage_error("--listen {}", error.what());
    }
}

/// Checks that the relay can show the server the clients' addresses in the way the flags ask for.
/// Skips a server that is given by its host name. Errors: UsageError.
void check_client_address(const relay::ServerOptions& server, ClientAddressMode wanted,
                          bool may_share) {
    boost::system::error_code is_name;
    const auto address = asio::ip::make_address(server.host, is_name);
    if (is_name) {
        return;
    }
    const asio::ip::udp::endpoint endpoint{address, server.port};
    try {
        std::ignore = relay::choose_client_address_mode(wanted, may_share,
                                                        base::endpoint_from(endpoint.data()));
    } catch (const relay::SharedAddressError& error) {
        throw usage_error("{}{}", error.what(), kSharedAddressHint);
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
}

/// Checks that two servers do not conflict. `other` was configured first.
void check_servers_differ(const process::ConfiguredServer& other,
                          const process::ConfiguredServer& server) {
    const auto& own_listen = server.options.listen.front();
    const auto& other_listen = other.options.listen.front();
    if (other.name == server.name) {
        throw usage_error("--server {0}: two servers have this name; give each its own",
                          other.name);
    }
    if (addresses_overlap(other_listen, own_listen, true)) {
        throw usage_error("--listen {} for {} and {} for {}: the addresses overlap; give each "
                          "server its own port",
                          base::to_string(other_listen), other.name, base::to_string(own_listen),
                          server.name);
    }
    if (other.options.host == server.options.host && other.options.port == server.options.port) {
        throw usage_error("--server: {} and {} are both {}:{}; give each server one name",
                          other.name, server.name, other.options.host, other.options.port);
    }
    check_no_loop(other.options, server.options.listen);
    check_no_loop(server.options, other.options.listen);
}

/// Returns whether a run can create files in this folder or, if it is missing, create the folder.
bool can_create_files(std::filesystem::path folder) {
    std::error_code ignored;
    if (std::filesystem::exists(folder, ignored)) {
        return ::access(folder.c_str(), W_OK | X_OK) == 0;
    }
    while (folder.has_parent_path() && !std::filesystem::exists(folder.parent_path(), ignored)) {
        folder = folder.parent_path();
    }
    try {
        check_creatable({"--state", folder.string()});
        return true;
    } catch (const UsageError&) {
        return false;
    }
}

} // namespace

ProxyFlags::ProxyFlags() {
    forwarding.client_address = ClientAddressMode::automatic;
    forwarding.allow_shared_address = false;
}

void ProxyFlags::add_relay_flags(Command& command) {
    command.add_choice<ClientAddressMode>(
        "--client-address", forwarding.client_address, "MODE",
        {{"auto", ClientAddressMode::automatic},
         {"shared", ClientAddressMode::shared},
         {"loopback", ClientAddressMode::loopback},
         {"transparent", ClientAddressMode::transparent}},
        "Client addresses that the server sees: a 127.x.y.z for each client address (loopback: "
        "the server is on this host's loopback), the client's real one (transparent: needs "
        "CAP_NET_ADMIN and the routes of --print-routes), or the proxy's own for all (shared: "
        "see --insecure-shared). auto: loopback, where possible");
    command.add_switch(
        "--insecure-shared", forwarding.allow_shared_address,
        "Let a server on another host see all clients with the proxy's address: they share bans, "
        "limits and one anti-spoofing token, so a stranger can kick players or speak as them");
    add_state_flag(command, state,
                   "the key from which clients' addresses at the server are derived");
    command.add_switch("--print-routes", print_routes,
                       "Print the routing commands that --client-address transparent needs for "
                       "this server, and exit");
    command.add_number("--max-per-address", &forwarding.new_client_limits.max_per_address, 0, 60000,
                       "Maximum sessions per IPv4 address or IPv6 /64, except this host's "
                       "loopback; 0 means unlimited");
    command.add_switch("--no-admission", no_admission,
                       "Admit every sender at once, limiting only their number: for traffic that "
                       "is not the game's");
    command.add_switch("--no-info-cache", no_info_cache,
                       "Never answer a request for server info from the server's last answer. "
                       "Otherwise, of more than 32 requests per second, the others get the last "
                       "answer, if it is less than a second old");
    command.add_switch(
        "--resync", resync,
        "Ask the server for a full snapshot, at most every 5 seconds per session, where snapshots "
        "cannot be verified because the start of the session was not seen: the client's inputs "
        "acknowledge -1 until the server sends one, and that one until the client has received it. "
        "No other datagram is changed; each request is recorded (session.resync)");
    command.add("--impair", &impair, "NAME=VALUE,...",
                "Impair the network, separately for each client (repeatable), for example "
                "'s2c:delay=40ms,loss=2%': delay=40ms, jitter=10ms, loss=2%, burst=3, dup=1%, "
                "reorder=1%, rate=1mbit; c2s: applies to traffic from clients to the server, s2c: "
                "to the way back, neither to both");
    command.add_number(
        "--impair-seed", &forwarding.impairment.seed, 0, kMaxSeed,
        "Seed of the impairment; the same seed and traffic give the same impairment");
}

relay::Impairment ProxyFlags::impairment() const {
    for (const std::string& each : impair) { // so that an error names only the wrong value
        std::ignore = parse_impairment(each, 0);
    }
    return parse_impairment(impair.empty() ? "none" : fmt::format("{}", fmt::join(impair, ";")),
                            forwarding.impairment.seed);
}

std::string describe_client_address_mode(ClientAddressMode wanted, ClientAddressMode chosen) {
    const bool asked = wanted != ClientAddressMode::automatic;
    switch (chosen) {
    case ClientAddressMode::loopback:
        return fmt::format("the server sees each client with its own 127.x.y.z address ({})",
                           asked ? "as --client-address says" : "the server is on loopback");
    case ClientAddressMode::transparent:
        return "the server sees each client's real address (as --client-address says; its answers "
               "need the routes of --print-routes)";
    default:
        return fmt::format(
            "the server sees all clients with the proxy's address (as {} says): they share bans, "
            "limits and one anti-spoofing token, and a stranger can kick players or speak as them",
            asked ? "--client-address" : "--insecure-shared");
    }
}

std::string transparent_routing_script(const boost::asio::ip::udp::endpoint& server,
                                       bool server_is_local,
                                       const std::vector<boost::asio::ip::udp::endpoint>& listen) {
    const bool same_port = std::any_of(
        listen.begin(), listen.end(), [&](const auto& own) { return own.port() == server.port(); });
    if (server_is_local && same_port) {
        throw usage_error("--print-routes: the server is on this host and also uses port {0}, so "
                          "routes cannot tell its answers from the proxy's; listen on another port",
                          server.port());
    }
    const bool v6 = server.address().is_v6();
    const std::string ip = v6 ? "ip -6" : "ip";
    const std::string address = server.address().to_string();
    // 17 is UDP: ip knows the name only where /etc/protocols is installed.
    const std::string rule =
        server_is_local
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
    if (!server_is_local) {
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

void ProxyFlags::add_to(Command& command) {
    command.add("-s,--server", &server, "[NAME=]HOST:PORT",
                "Game server to forward to (repeatable; several servers need names)");
    command.add("-l,--listen", &listen, "ADDR:PORT",
                "Address for clients to connect to (repeatable); port 0 lets the system "
                "choose. With named servers, one for each, in the same order");
    add_output_flags(command);
    add_relay_flags(command);
    http.add_to(command);
    add_limit_flags(command);
    command.add_number("--threads", &forwarding.threads, 1, 64,
                       "Number of relay threads, each with its own inspection thread");
    command.add_time("--start-timeout", start_timeout, 0, 86400,
                     "Keep trying for this many seconds while the server's name does not resolve "
                     "or an address or port to listen on is unavailable; then exit with code 4");
    command.add_switch(
        "--takeover", takeover,
        "Take over from the running twscope with the same --listen, --server and --state: players "
        "stay connected, and the old process exits. Named servers are matched by name. If this "
        "fails, the old process carries on; exit code 4 if none is running");
    command.add_switch("--busy-poll", forwarding.busy_poll,
                       "Spin instead of sleeping: lowest latency, at the cost of a whole core");
    command.add_switch("--no-inspect", no_inspect, "Forward without inspecting");
    add_lifecycle_flags(command, "Run in the background, returning once datagrams are forwarded");
}

std::vector<RunFlags::Check> ProxyFlags::traffic_checks(const Settings& settings) const {
    std::vector<Check> checks;
    const bool named = has_named_servers();
    if (server.empty() && !settings.is_given("server")) { // otherwise a wrong value was reported
        checks.emplace_back([] {
            throw UsageError{
                "proxy needs a game server: -s HOST:PORT, for example -s 127.0.0.1:8304"};
        });
    }
    for (const std::string& each : server) {
        checks.emplace_back([&each, named] {
            std::ignore = named ? parse_named_server(each).options : parse_server_options(each);
        });
    }
    for (const std::string& each : listen) {
        checks.emplace_back([&each] { std::ignore = parse_listen_endpoint(each); });
    }
    for (const std::string& each : impair) {
        checks.emplace_back([&each] { std::ignore = parse_impairment(each, 0); });
    }
    checks.emplace_back([this] { std::ignore = impairment(); });
    for (std::size_t i = 0; named && i < server.size(); ++i) {
        checks.emplace_back([this, i] {
            const auto own = named_server(i).options;
            check_no_loop(own, own.listen);
        });
        for (std::size_t j = 0; j < i; ++j) {
            checks.emplace_back(
                [this, i, j] { check_servers_differ(named_server(j), named_server(i)); });
        }
    }
    if (!named && !server.empty()) {
        checks.emplace_back([this] {
            const auto own = unnamed_server();
            check_no_loop(own, own.listen);
        });
    }
    if (!print_routes) {
        checks.emplace_back([this] { std::ignore = state_folder(); });
        for (const std::string& each : server) {
            checks.emplace_back([this, &each, named] {
                check_client_address(named ? parse_named_server(each).options
                                           : parse_server_options(each),
                                     forwarding.client_address, forwarding.allow_shared_address);
            });
        }
    }
    return checks;
}

std::vector<std::string> ProxyFlags::describe_traffic_source() const {
    std::vector<std::string> lines;
    const auto named = servers();
    for (std::size_t i = 0; i < listen.size(); ++i) {
        lines.push_back(fmt::format("listening on {}{}, forwarding to {}", listen[i],
                                    parse_listen_endpoint(listen[i]).address().is_loopback()
                                        ? process::kThisMachineOnly
                                        : "",
                                    server[named.empty() ? 0 : i]));
    }
    // One client address gets at most half of all sessions.
    const std::size_t per_address = no_admission
                                        ? 0
                                        : std::min(forwarding.new_client_limits.max_per_address,
                                                   std::max<std::size_t>(max_sessions / 2, 1));
    lines.push_back(fmt::format(
        "at most {} {}",
        per_address == 0
            ? record::count_with_noun(max_sessions, "session[s]")
            : fmt::format("{} per address (except loopback), {}",
                          record::count_with_noun(per_address, "session[s]"), max_sessions),
        named.size() > 1 ? "per server" : "in all"));
    if (!can_create_files(state_folder())) {
        lines.push_back(fmt::format("cannot write to {}: bans do not outlast the run, and no other "
                                    "twscope can take over from it (see --state)",
                                    state_folder().string()));
    }
    return lines;
}

std::string ProxyFlags::server_name() const {
    const auto named = servers();
    return !named.empty() ? "fleet" : server.empty() ? "" : server.front();
}

bool ProxyFlags::has_named_servers() const {
    return server.size() > 1 || std::ranges::any_of(server, [](const std::string& each) {
               return each.find('=') != std::string::npos;
           });
}

process::ConfiguredServer ProxyFlags::named_server(std::size_t index) const {
    process::ConfiguredServer named = parse_named_server(server[index]);
    if (server.size() != listen.size()) {
        throw usage_error("--server: {} named servers, but {} --listen; give each "
                          "server its own, in the same order",
                          server.size(), listen.size());
    }
    named.options.listen.push_back(parse_listen_endpoint(listen[index]));
    return named;
}

relay::ServerOptions ProxyFlags::unnamed_server() const {
    relay::ServerOptions only = parse_server_options(server.empty() ? "" : server.front());
    std::ranges::transform(listen, std::back_inserter(only.listen), parse_listen_endpoint);
    check_listen_addresses(only.listen);
    return only;
}

std::vector<process::ConfiguredServer> ProxyFlags::servers() const {
    std::vector<process::ConfiguredServer> servers;
    for (std::size_t i = 0; has_named_servers() && i < server.size(); ++i) {
        const process::ConfiguredServer& last = servers.emplace_back(named_server(i));
        for (std::size_t j = 0; j < i; ++j) {
            check_servers_differ(servers[j], last);
        }
    }
    return servers;
}

/// Each session and each address to listen on takes one descriptor.
void ProxyFlags::raise_descriptor_limit(std::size_t server_count) const {
    constexpr std::size_t kOtherDescriptors = 64;
    const std::size_t addresses = servers().empty() ? listen.size() : server_count;
    const std::size_t needed =
        server_count * max_sessions + addresses * forwarding.threads + kOtherDescriptors;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed) {
        throw usage_error(
            "--max-sessions {}{} needs {} file descriptors, but this process may have only {}; "
            "raise the limit (ulimit -Hn, LimitNOFILE=) or allow fewer sessions",
            max_sessions,
            server_count == 1 ? "" : fmt::format(" for each of {} servers", server_count), needed,
            limit.rlim_max);
    }
    // A process that takes over receives all descriptors of the running process.
    limit.rlim_cur = takeover ? limit.rlim_max : std::max<rlim_t>(limit.rlim_cur, needed);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

relay::Options ProxyFlags::relay_options() const {
    relay::Options options = forwarding;
    options.impairment = impairment();
    const auto named = servers();
    options.server = named.empty() ? unnamed_server() : named.front().options;
    options.max_sessions = max_sessions;
    options.idle_timeout =
        std::chrono::milliseconds{static_cast<std::int64_t>(idle_timeout * 1000)};
    return options;
}

void TapFlags::add_to(Command& command) {
    command.add(
        "-i,--interface", &interface, "IFACE",
        "Interface that carries the game's traffic; any: all of this host, for a server on it");
    command.add("--server", &servers, "[ADDRESS]:PORT",
                "Inspect only this server's traffic (repeatable; by default, servers are "
                "recognised by what they send)");
    command.add_number("--buffer", &buffer_mib, 1, 1024,
                       "Kernel buffer in MiB for frames waiting to be read; frames that do not fit "
                       "are dropped and reported as a gap (inspect.gap)",
                       "MIB");
    add_output_flags(command);
    http.add_to(command);
    add_state_flag(command, state, "the live page's token");
    add_limit_flags(command);
    add_lifecycle_flags(command, "Run in the background, returning once the interface is open");
}

std::vector<RunFlags::Check> TapFlags::traffic_checks(const Settings& settings) const {
    std::vector<Check> checks;
    if (interface.empty() && !settings.is_given("interface")) { // else a wrong value was reported
        checks.emplace_back([] {
            throw UsageError{
                "tap needs an interface: -i IFACE, for example -i eth0 ('ip link' lists them)"};
        });
    }
    for (const std::string& each : servers) {
        checks.emplace_back([&each] {
            capture::ServerDetector detector;
            add_server(detector, each);
        });
    }
    return checks;
}

std::vector<std::string> TapFlags::describe_traffic_source() const {
    return {"observing " + describe_interface_and_servers()};
}

capture::ServerDetector TapFlags::server_detector() const {
    capture::ServerDetector detector;
    detector.select_traffic(capture::ServerDetector::TrafficSelection::recognised);
    for (const std::string& server : servers) {
        add_server(detector, server);
    }
    return detector;
}

std::string TapFlags::describe_interface_and_servers() const {
    return servers.empty() ? fmt::format("{}, servers by what they send", interface)
                           : fmt::format("{}, {} {}", interface,
                                         record::choose_plural(servers.size(), "server[s]"),
                                         fmt::join(servers, ", "));
}

} // namespace tw::cli
