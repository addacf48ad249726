#include "proxy/cli/proxy_flags.h"

#include "proxy/cli/settings.h"

#include <chrono>
#include <cstdint>
#include <tuple>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/udp.hpp>
#include <fmt/format.h>

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

} // namespace

void ProxyFlags::add_to(CLI::App& command) {
    command.add_option("-s,--server", server, "The game server behind the proxy")
        ->type_name("HOST:PORT");
    command
        .add_option("-l,--listen", listen,
                    "Where clients connect (repeatable); port 0 lets the system choose")
        ->type_name("ADDR:PORT")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->capture_default_str();
    add_outputs(command);
    relay.add_to(command);
    http.add_to(command);
    add_limits(command);
    command
        .add_option("--threads", threads, "Relay threads; each has an inspection thread beside it")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    command
        .add_option("--start-timeout", start_timeout,
                    "Try again for this many seconds when the server's name does not resolve or an "
                    "address or port to listen on is not there yet; then end with exit code 4")
        ->transform(seconds())
        ->check(CLI::Range(0.0, 86400.0))
        ->capture_default_str();
    command.add_flag("--takeover", takeover,
                     "Take over from the twscope that runs with the same --listen, --server and "
                     "--state: its players stay, and it ends. When that fails it goes on; exit "
                     "code 4 where none runs");
    command.add_flag("--busy-poll", busy_poll,
                     "Spin instead of sleeping: lowest latency, but takes a whole core");
    command.add_flag("--no-inspect", no_inspect, "Only forward; inspect nothing");
    add_course(command, "Return as soon as datagrams are forwarded, and go on in the background");
}

void ProxyFlags::check() const {
    RunFlags::check();
    std::ignore = relay_options();
}

relay::Options ProxyFlags::relay_options() const {
    relay::Options options;
    for (const std::string& where : listen) {
        options.listen.push_back(listen_endpoint(where));
    }
    const HostPort upstream = parse_host_port(server, "--server");
    if (upstream.host.empty() || upstream.port == 0) {
        throw UsageError{
            fmt::format("--server {}: expected HOST:PORT, for example 127.0.0.1:8304", server)};
    }
    options.server_host = upstream.host;
    options.server_port = upstream.port;
    options.max_sessions = max_sessions;
    options.idle_timeout =
        std::chrono::milliseconds{static_cast<std::int64_t>(idle_timeout * 1000)};
    options.threads = threads;
    options.busy_poll = busy_poll;
    relay.apply(options);
    return options;
}

} // namespace tw::cli
