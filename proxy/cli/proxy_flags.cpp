#include "proxy/cli/proxy_flags.h"

#include "proxy/cli/capture_flags.h"
#include "proxy/cli/settings.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <tuple>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/udp.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

namespace asio = boost::asio;

/// Of --duration, in seconds: a millisecond to a year.
constexpr double kShortestRun = 0.001;
constexpr double kLongestRun = 366 * 86400.0;

/// Times are seconds; 500ms, 30s and 2min are understood, too.
CLI::Validator seconds() {
    const std::map<std::string, double> units{{"ms", 0.001}, {"s", 1}, {"min", 60}, {"h", 3600}};
    return CLI::AsNumberWithUnit{units, CLI::AsNumberWithUnit::DEFAULT, "ms|s|min|h"};
}

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

/// How long, how many, how much.
void add_limits(ProxyFlags& flags, CLI::App& command) {
    command
        .add_option("--idle-timeout", flags.idle_timeout,
                    "End a session after this many seconds without a datagram")
        ->transform(seconds())
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
    command
        .add_option("--max-sessions", flags.max_sessions,
                    "Clients connected at the same time; more are refused")
        ->check(CLI::Range(std::size_t{1}, std::size_t{60000}))
        ->capture_default_str();
    command
        .add_option("--threads", flags.threads,
                    "Relay threads; each has an inspection thread beside it")
        ->check(CLI::Range(1U, 64U))
        ->capture_default_str();
    command
        .add_option("--ring", flags.ring_mib,
                    "MiB of copies that may wait to be inspected, for each thread")
        ->check(CLI::Range(std::size_t{1}, std::size_t{4096}))
        ->capture_default_str();
    add_memory_flag(command, flags.memory_mib);
    command
        .add_option("--observer-memory", flags.observer_memory_mib,
                    "MiB of memory that the process that inspects may take; it is started again "
                    "when it wants more")
        ->check(CLI::Range(std::size_t{128}, std::size_t{1} << 20U))
        ->capture_default_str();
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
    records.add_to(command);
    artifacts.add_to(command);
    recording.add_to(command);
    flight.add_to(command);
    relay.add_to(command);
    http.add_to(command);
    add_limits(*this, command);
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
    command.add_flag("--background", background,
                     "Return as soon as datagrams are forwarded, and go on in the background");
    command.add_option("--duration", duration, "Stop after this many seconds")
        ->transform(seconds())
        ->check(CLI::Range(kShortestRun, kLongestRun));
    command.add_flag("--busy-poll", busy_poll,
                     "Spin instead of sleeping: lowest latency, but takes a whole core");
    command.add_flag(
        "--stats", stats,
        "At the end, print where every byte went (as 'twscope stats' does for captures)");
    command.add_flag("--no-inspect", no_inspect, "Only forward; inspect nothing");
    command.add_flag("-q,--quiet", quiet, "Do not print a line every second");
    command
        .add_option("--log-level", log_level,
                    "How much twscope logs about itself on standard error")
        ->check(CLI::IsMember({"error", "warn", "info", "debug", "trace"}))
        ->capture_default_str();
}

void ProxyFlags::check() const {
    const auto objects = records.objects();
    std::ignore = records.failing();
    std::ignore = recording.options(records.output);
    std::ignore = records.map_folders();
    std::ignore = artifacts.demos(records.show_secrets);
    artifacts.check_capture(records.show_secrets);
    if (no_inspect && (artifacts.wants_demos() || !artifacts.capture.empty() || flight.on())) {
        throw UsageError{"--demo, --write and --flight need what --no-inspect switches off"};
    }
    flight.check(records.show_secrets, memory_mib);
    std::ignore = records.parse_filter("--filter", records.filter, *objects);
    std::ignore = records.parse_filter("--write-filter", artifacts.capture_filter, *objects);
    std::ignore = records.parse_filter("--console-filter", records.console_filter, *objects);
    std::ignore = records.expectations(*objects);
    std::ignore = http.where();
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
