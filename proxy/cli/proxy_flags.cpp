#include "proxy/cli/proxy_flags.h"

#include "proxy/bus/subjects.h"
#include "proxy/cli/settings.h"
#include "proxy/relay/endpoint.h"
#include "proxy/run/shared_block.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>
#include <tuple>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/udp.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

namespace tw::cli {

namespace {

namespace asio = boost::asio;

asio::ip::udp::endpoint listen_endpoint(const std::string& text) {
    const HostPort where = parse_host_port(text, "--listen");
    boost::system::error_code error;
    const auto address = asio::ip::make_address(where.host.empty() ? "0.0.0.0" : where.host, error);
    if (error) {
        throw UsageError{fmt::format(
            "--listen {}: expected an address like 127.0.0.1:8303 or [::]:8303, not a name", text)};
    }
    return {address, where.port};
}

relay::ServerOptions server_options(const std::string& text) {
    const HostPort where = parse_host_port(text, "--server");
    if (where.host.empty() || where.port == 0) {
        throw UsageError{
            fmt::format("--server {}: expected HOST:PORT, for example 127.0.0.1:8304", text)};
    }
    return {.host = where.host, .port = where.port};
}

/// NAME=HOST:PORT, without an address to listen on yet.
run::ServedServer named_server(const std::string& text) {
    const auto equals = text.find('=');
    const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
    static_assert(bus::kMaxToken <= run::ServerFacts::kMaxName);
    if (!bus::is_subject_token(name)) {
        throw UsageError{
            fmt::format("--server {}: several servers need names, of letters, digits, - and _, at "
                        "most {}: NAME=HOST:PORT, for example ctf=127.0.0.1:8304",
                        text, bus::kMaxToken)};
    }
    return {.name = name, .where = server_options(text.substr(equals + 1))};
}

/// An address as the system compares it: one of IPv4 within IPv6 is the one of IPv4.
asio::ip::address plain(const asio::ip::address& address) {
    return address.is_v6() && address.to_v6().is_v4_mapped()
               ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6())
               : address;
}

/// Whether what comes to one of them comes to the other, too, so that both cannot be bound.
/// `both_families`: [::] is for IPv4 as well.
bool overlap(const asio::ip::udp::endpoint& left, const asio::ip::udp::endpoint& right,
             bool both_families) {
    const asio::ip::address a = plain(left.address());
    const asio::ip::address b = plain(right.address());
    const auto includes = [both_families](const auto& all, const auto& each) {
        return all.is_unspecified() &&
               (all.is_v6() == each.is_v6() || (both_families && all.is_v6()));
    };
    return left.port() != 0 && left.port() == right.port() &&
           (a == b || includes(a, b) || includes(b, a));
}

/// Of one server; its [::] leaves IPv4 to the addresses of that family.
void check_once(const std::vector<asio::ip::udp::endpoint>& listen) {
    for (auto each = listen.begin(); each != listen.end(); ++each) {
        const auto other = std::find_if(listen.begin(), each, [&](const auto& before) {
            return overlap(before, *each, false);
        });
        if (other == each) {
            continue;
        }
        if (plain(other->address()) == plain(each->address())) {
            throw UsageError{fmt::format("--listen {}: given twice; give each address once",
                                         relay::to_string(*each))};
        }
        const bool wide = each->address().is_unspecified();
        throw UsageError{fmt::format("--listen {}: includes {}; leave one of them out",
                                     relay::to_string(wide ? *each : *other),
                                     relay::to_string(wide ? *other : *each))};
    }
}

/// The last one against those before it.
void check_other(std::span<const run::ServedServer> servers) {
    const run::ServedServer& last = servers.back();
    for (const run::ServedServer& each : servers.first(servers.size() - 1)) {
        const auto& own = last.where.listen.front();
        const auto& other = each.where.listen.front();
        if (each.name == last.name) {
            throw UsageError{fmt::format("--server {0}: two servers have this name; give each its "
                                         "own",
                                         each.name)};
        }
        if (overlap(other, own, true)) {
            throw UsageError{fmt::format("--listen {} for {} and {} for {}: the addresses overlap; "
                                         "give each server its own port",
                                         relay::to_string(other), each.name, relay::to_string(own),
                                         last.name)};
        }
        if (each.where.host == last.where.host && each.where.port == last.where.port) {
            throw UsageError{
                fmt::format("--server: {} and {} are both {}:{}; give each server one name",
                            each.name, last.name, each.where.host, each.where.port)};
        }
    }
}

} // namespace

void ProxyFlags::add_to(CLI::App& command) {
    repeatable(command
                   .add_option("-s,--server", server,
                               "Game server to forward to (repeatable; several servers need names)")
                   ->type_name("[NAME=]HOST:PORT"));
    repeatable(
        command
            .add_option("-l,--listen", listen,
                        "Address for clients to connect to (repeatable); port 0 lets the system "
                        "choose. With named servers, one for each, in the same order")
            ->type_name("ADDR:PORT")
            ->capture_default_str());
    add_outputs(command);
    relay.add_to(command);
    http.add_to(command);
    add_limits(command);
    command
        .add_option("--threads", threads,
                    "Number of relay threads, each with its own inspection thread")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    command
        .add_option("--start-timeout", start_timeout,
                    "Keep trying for this many seconds while the server's name does not resolve or "
                    "an address or port to listen on is unavailable; then exit with code 4")
        ->transform(seconds())
        ->check(CLI::Range(0.0, 86400.0))
        ->capture_default_str();
    command.add_flag(
        "--takeover", takeover,
        "Take over from the running twscope with the same --listen, --server and --state: players "
        "stay connected, and the old process exits. Named servers are matched by name. If this "
        "fails, the old process carries on; exit code 4 if none is running");
    command.add_flag("--busy-poll", busy_poll,
                     "Spin instead of sleeping: lowest latency, at the cost of a whole core");
    command.add_flag("--no-inspect", no_inspect, "Forward without inspecting");
    add_course(command, "Run in the background, returning once datagrams are forwarded");
}

void ProxyFlags::check(const Settings& settings) const {
    RunFlags::check(settings);
    std::ignore = relay_options();
}

std::string ProxyFlags::server_name() const {
    const auto named = servers();
    return !named.empty() ? "fleet" : server.empty() ? "" : server.front();
}

std::vector<run::ServedServer> ProxyFlags::servers() const {
    const auto has_name = [](const std::string& each) {
        return each.find('=') != std::string::npos;
    };
    if (server.size() <= 1 && !std::ranges::any_of(server, has_name)) {
        return {};
    }
    std::vector<run::ServedServer> servers;
    std::ranges::transform(server, std::back_inserter(servers), named_server);
    if (server.size() != listen.size()) {
        throw UsageError{fmt::format("--server: {} named servers, but {} --listen; give each "
                                     "server its own, in the same order",
                                     server.size(), listen.size())};
    }
    for (std::size_t i = 0; i < servers.size(); ++i) {
        servers[i].where.listen.push_back(listen_endpoint(listen[i]));
        check_other(std::span{servers}.first(i + 1));
    }
    return servers;
}

/// Each session and each address to listen on takes a descriptor of this process.
void ProxyFlags::prepare_servers(std::size_t count) const {
    constexpr std::size_t kOthers = 64;
    const std::size_t addresses = servers().empty() ? listen.size() : count;
    const std::size_t needed = count * max_sessions + addresses * threads + kOthers;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed) {
        throw UsageError{fmt::format(
            "--max-sessions {}{} needs {} file descriptors, but this process may have only {}; "
            "raise the limit (ulimit -Hn, LimitNOFILE=) or allow fewer sessions",
            max_sessions, count == 1 ? "" : fmt::format(" for each of {} servers", count), needed,
            limit.rlim_max)};
    }
    // Who takes over gets as many as the other one has.
    limit.rlim_cur = takeover ? limit.rlim_max : std::max<rlim_t>(limit.rlim_cur, needed);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

relay::Options ProxyFlags::relay_options() const {
    relay::Options options;
    for (const std::string& where : listen) {
        options.listen.push_back(listen_endpoint(where));
    }
    const auto named = servers();
    const relay::ServerOptions first =
        named.empty() ? server_options(server.empty() ? "" : server.front()) : named.front().where;
    options.server_host = first.host;
    options.server_port = first.port;
    if (!named.empty()) {
        options.listen = first.listen;
    }
    check_once(options.listen);
    options.max_sessions = max_sessions;
    options.idle_timeout =
        std::chrono::milliseconds{static_cast<std::int64_t>(idle_timeout * 1000)};
    options.threads = threads;
    options.busy_poll = busy_poll;
    relay.apply(options);
    return options;
}

} // namespace tw::cli
