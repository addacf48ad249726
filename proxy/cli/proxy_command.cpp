#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/observing.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/relay_run.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/signals.h"
#include "proxy/process/state_folder.h"
#include "proxy/process/tap_run.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::cli {

namespace {

constexpr const char* kCommand = "proxy";

/// The end of the reason why a takeover failed.
constexpr const char* kCarriesOn = "; the running twscope carries on as before";

std::unique_ptr<RunFlags> make_flags() {
    return std::make_unique<ProxyFlags>();
}

process::RelayRunOptions relay_run_options(const ProxyFlags& flags) {
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    process::RelayRunOptions options{.relay = flags.relay_options(),
                                     .admission = !flags.relay.no_admission,
                                     .info_cache = !flags.relay.no_info_cache,
                                     .inspected = !flags.no_inspect,
                                     .ring_bytes = flags.ring_mib * kMiB};
    options.servers = flags.servers();
    if (flags.relay.resync) {
        options.relay.resync = pipeline::make_game_resync();
    }
    return options;
}

/// Binds the addresses. Retries until the timeout while something is not available yet. Returns
/// null and prints an error if that failed.
/// Errors: UsageError for permanent errors.
std::unique_ptr<process::RelayRun> open_relay(const ProxyFlags& flags,
                                              const process::RelayRunOptions& options) {
    constexpr std::chrono::milliseconds kFirstPause{100};
    constexpr std::chrono::milliseconds kLongestPause{2000};
    const auto deadline =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>{flags.takeover ? 0 : flags.start_timeout});
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        try {
            if (!flags.takeover) { // otherwise the page opens when the other process frees its port
                // Only checks; the observer binds the page's addresses.
                std::ignore = flags.http.listen();
            }
            process::BlockedSignals held;
            auto run = std::make_unique<process::RelayRun>(options);
            held.keep_blocked();
            return run;
        } catch (const relay::RetryableStartError& error) {
            const std::string why =
                fmt::format("{}{}", error.what(),
                            flags.takeover ? kCarriesOn
                            : process::TakeoverSocket::connect(options.takeover_file)
                                ? "; a twscope is running there: --takeover takes over from it "
                                  "while players play"
                                : "");
            const auto left = deadline - std::chrono::steady_clock::now();
            if (left <= std::chrono::steady_clock::duration::zero()) {
                sink::print_error("{}", why);
                return nullptr;
            }
            if (pause == kFirstPause) {
                spdlog::warn("{}; trying again for {} seconds", why, flags.start_timeout);
            }
            std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(pause, left));
        } catch (const relay::SharedAddressError& error) {
            throw UsageError{fmt::format(
                "{}; use --client-address transparent, or accept this with --insecure-shared",
                error.what())};
        } catch (const relay::StartError& error) {
            throw UsageError{fmt::format("{}{}", error.what(), flags.takeover ? kCarriesOn : "")};
        }
    }
}

/// Returns the socket file for takeovers: by this process, and later from this process. With
/// several servers it must not depend on the first server, which may have changed by then.
std::filesystem::path takeover_file(const ProxyFlags& flags,
                                    const process::RelayRunOptions& options) {
    return process::TakeoverSocket::path_of(
        flags.relay.state_folder(),
        options.servers.empty() ? base::to_string(options.relay.listen.front()) : "fleet");
}

int run_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
              const std::function<void()>& started) {
    flags.check(settings); // checks the observer's flags, too, to report errors once and at once
    process::RelayRunOptions options = relay_run_options(flags);
    options.supervision = supervision(kCommand, flags, settings, invocation, make_flags);
    options.started = [&started] {
        process::notify_service_ready();
        started();
    };
    const process::StoredKey key =
        process::read_or_create_key(flags.relay.state_folder(), "addresses.key");
    options.relay.address_key = key.key;
    options.takeover_file = takeover_file(flags, options);
    flags.prepare_servers(std::max<std::size_t>(options.servers.size(), 1));
    std::optional<process::HandoverTaker> taker;
    if (flags.takeover) {
        options.taker = &taker.emplace(options.takeover_file);
    }
    const relay::ClientAddress wanted = options.relay.client_address;
    const auto run = open_relay(flags, options);
    if (run == nullptr) {
        return kExitNotYet;
    }
    if (const auto ending = run->start_observer()) {
        return exit_code_of_failed_start(*ending);
    }
    const relay::ClientAddress mode = run->client_address();
    if (flags.takeover) {
        run->take_over();
        if (options.supervision.observer) {
            spdlog::info("{}", flags.describe_recording());
        }
    }
    if (mode == relay::ClientAddress::loopback && !key.warning.empty()) {
        spdlog::warn("{} (see --state)", key.warning);
    }
    const std::string addresses = describe_client_address(wanted, mode);
    if (mode == relay::ClientAddress::shared) {
        run->log_routes({});
        spdlog::warn("{}", addresses);
    } else {
        run->log_routes(addresses);
    }
    try {
        return exit_code(run->run());
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

int start_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
                const std::function<void()>& started) {
    try {
        return run_relay(flags, settings, invocation, started);
    } catch (const process::NoTakeoverPeer& error) {
        sink::print_error("--takeover: {}", error.what());
        return kExitNotYet;
    } catch (const relay::HandoverError& error) {
        sink::print_error("--takeover: {}{}", error.what(), kCarriesOn);
        return kExitUsage;
    }
}

int print_routes(const ProxyFlags& flags) {
    if (flags.servers().size() > 1) {
        throw UsageError{"--print-routes: name one server at a time"};
    }
    const relay::Options options = flags.relay_options();
    try {
        const auto server =
            process::resolve_answering_addresses(options.server_host, options.server_port,
                                                 process::AnswersWanted::one)
                .front();
        fmt::print("{}",
                   transparent_routes(server, relay::is_local_address(server), options.listen));
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
    return 0;
}

int run_command(const ProxyFlags& flags, Settings& settings, const Invocation& invocation) {
    prepare_signals(invocation);
    if (invocation.observer != 0) {
        return observe(flags, settings, invocation);
    }
    if (flags.check_config) {
        return check_config(flags, settings);
    }
    settings.complete();
    flags.require_server();
    open_log(flags.log_level);
    if (flags.relay.print_routes) {
        return print_routes(flags);
    }
    const auto start = [&](const std::function<void()>& started) {
        return start_relay(flags, settings, invocation, started);
    };
    return flags.background ? run_in_background(start) : start([] {});
}

} // namespace

Action add_proxy_command(Command& program, Invocation invocation) {
    Command command = program.add_command(
        kCommand, "Forward traffic between clients and a server, and record what happens");
    auto flags = std::make_shared<ProxyFlags>();
    auto settings = std::make_shared<Settings>(command);
    flags->add_to(command);
    set_flag_headings(command, "Forward");
    return [flags, settings, invocation = std::move(invocation)] {
        return settings->run([&] { return run_command(*flags, *settings, invocation); });
    };
}

namespace {

constexpr const char* kTapCommand = "tap";

constexpr const char* kAboutTap =
    "A tap only observes, at no cost to the game. It needs CAP_NET_RAW to open the interface and "
    "drops it afterwards. It cannot change traffic: --resync, --impair and other flags that affect "
    "traffic belong to proxy. See docs/tap.md.";

std::unique_ptr<RunFlags> make_tap_flags() {
    return std::make_unique<TapFlags>();
}

process::TapRunOptions tap_run_options(const TapFlags& flags) {
    constexpr unsigned kMiB = 20;
    constexpr double kSecond = 1e9;
    return {.live = {.interface = flags.interface,
                     .ports = flags.ports(),
                     .buffer_bytes = flags.buffer_mib << kMiB},
            .servers = flags.guess(),
            .shown = flags.shown(),
            .limits = {.idle_timeout = static_cast<std::int64_t>(flags.idle_timeout * kSecond),
                       .max_sessions = flags.max_sessions},
            .ring_bytes = flags.ring_mib << kMiB};
}

int run_tap(const TapFlags& flags, const Settings& settings, const Invocation& invocation,
            const std::function<void()>& started) {
    flags.check(settings); // checks the observer's flags, too, to report errors once and at once
    process::TapRunOptions options = tap_run_options(flags);
    options.supervision = supervision(kTapCommand, flags, settings, invocation, make_tap_flags);
    std::optional<process::TapRun> tap;
    try {
        tap.emplace(std::move(options));
    } catch (const capture::NoInterfaceError& error) {
        sink::print_error("{}", error.what());
        return kExitNotYet;
    } catch (const capture::NoPermissionError& error) {
        throw UsageError{fmt::format(
            "{}: this needs CAP_NET_RAW: run 'sudo setcap cap_net_raw=ep TWSCOPE' with this "
            "program's path, set AmbientCapabilities=CAP_NET_RAW in its systemd unit, or use sudo",
            error.what())};
    } catch (const capture::CaptureError& error) {
        throw UsageError{error.what()};
    }
    if (const auto ending = tap->start_observer()) {
        return exit_code_of_failed_start(*ending);
    }
    process::notify_service_ready();
    started();
    try {
        const int code = exit_code(tap->run());
        return code == 0 && tap->failed() ? kExitFailed : code;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

int run_tap_command(const TapFlags& flags, Settings& settings, const Invocation& invocation) {
    prepare_signals(invocation);
    if (invocation.observer != 0) {
        return observe(flags, settings, invocation);
    }
    if (flags.check_config) {
        return check_config(flags, settings);
    }
    settings.complete();
    flags.require_interface();
    open_log(flags.log_level);
    const auto start = [&](const std::function<void()>& started) {
        return run_tap(flags, settings, invocation, started);
    };
    return flags.background ? run_in_background(start) : start([] {});
}

} // namespace

Action add_tap_command(Command& program, Invocation invocation) {
    Command command = program.add_command(
        kTapCommand, "Observe traffic on an interface and record what happens, without forwarding",
        kAboutTap);
    auto flags = std::make_shared<TapFlags>();
    auto settings = std::make_shared<Settings>(command);
    flags->add_to(command);
    set_flag_headings(command, "Observe");
    return [flags, settings, invocation = std::move(invocation)] {
        return settings->run([&] { return run_tap_command(*flags, *settings, invocation); });
    };
}

namespace {

struct HealthFlags {
    std::string address = "127.0.0.1:8303";
    double timeout = 2;
};

int run_health(const HealthFlags& flags) {
    const HostPort where = parse_host_port(flags.address, "health");
    boost::system::error_code error;
    const auto address =
        boost::asio::ip::make_address(where.host.empty() ? "127.0.0.1" : where.host, error);
    if (error || where.port == 0) {
        throw UsageError{
            fmt::format("health {}: expected an address like 127.0.0.1:8303", flags.address)};
    }
    boost::asio::io_context io{1};
    const std::chrono::milliseconds deadline{static_cast<std::int64_t>(flags.timeout * 1000)};
    process::ServerProbe probe{io, process::reachable_address({address, where.port}), deadline};
    bool ok = false;
    probe.request([&](bool answered) { ok = answered; });
    io.run();
    if (!ok) {
        sink::print_error("no server answered through {} within {} s", flags.address,
                          flags.timeout);
        return 1;
    }
    fmt::print("healthy: the server answered a request for its info through {}\n", flags.address);
    return 0;
}

} // namespace

Action add_health_command(Command& program) {
    Command command = program.add_command(
        "health", "Request server info through a running proxy; exit with 0 if an answer arrives");
    auto flags = std::make_shared<HealthFlags>();
    // The proxy's own variable, as both commands use the same address in a container.
    command.add("address", &flags->address, "ADDR:PORT", "Address the proxy listens on")
        .read_variable("TWSCOPE_LISTEN");
    command.add_time("--timeout", flags->timeout, 0.01, 60, "Seconds to wait for an answer");
    return [flags] { return run_health(*flags); };
}

} // namespace tw::cli
