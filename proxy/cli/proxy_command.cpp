#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/observing.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/relay_run.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/signals.h"
#include "proxy/process/state_folder.h"
#include "proxy/process/tap_run.h"
#include "proxy/record/records.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// The end of the reason why a takeover failed.
constexpr const char* kCarriesOn = "; the running twscope carries on as before";

/// Forwards or taps traffic until the end of the run. Calls `started` when datagrams are handled.
template <typename Flags>
using LiveRun = int (*)(const Flags& flags, const Settings& settings, const Invocation& invocation,
                        const std::function<void()>& started);

/// Adds a command for live traffic. In the observer process, its action runs the observer.
template <typename Flags>
Action add_live_command(Command command, Invocation invocation, const std::string& traffic,
                        LiveRun<Flags> run) {
    auto flags = std::make_shared<Flags>();
    auto settings = std::make_shared<Settings>(command);
    flags->add_to(command);
    set_flag_headings(command, traffic);
    const auto run_command = [flags, settings, invocation = std::move(invocation), run] {
        prepare_signals(invocation);
        if (invocation.is_observer) {
            return run_observer_process(*flags, *settings);
        }
        if (flags->check_config) {
            return check_config(*flags, *settings);
        }
        settings->complete();
        open_log(flags->log_level);
        const auto start = [&](const std::function<void()>& started) {
            return run(*flags, *settings, invocation, started);
        };
        return flags->background ? run_in_background(start) : start([] {});
    };
    return [settings, run_command] { return settings->run(run_command); };
}

template <typename Flags>
std::unique_ptr<RunFlags> make_flags() {
    return std::make_unique<Flags>();
}

process::RelayRunOptions relay_run_options(const ProxyFlags& flags) {
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    process::RelayRunOptions options{.relay = flags.relay_options(),
                                     .admission = !flags.relay.no_admission,
                                     .info_cache = !flags.relay.no_info_cache,
                                     .inspected = !flags.no_inspect,
                                     .ring_bytes = flags.ring_mib * kMiB,
                                     .address_limit = "--max-per-address"};
    options.servers = flags.servers();
    if (flags.relay.resync) {
        options.relay.resync = pipeline::make_resync_functions();
    }
    return options;
}

/// Binds the addresses. Retries until the timeout while a name or address is not available yet.
/// Returns null and prints an error if that failed.
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
            process::BlockedSignals held;
            auto run = std::make_unique<process::RelayRun>(options);
            held.keep_signals_blocked();
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

/// Returns the path of the socket through which this process takes over, and a later process takes
/// over from it. With several servers, the path must not depend on the first server, which may have
/// changed by then.
std::filesystem::path takeover_file(const ProxyFlags& flags,
                                    const process::RelayRunOptions& options) {
    return process::TakeoverSocket::path_of(
        flags.relay.state_folder(),
        options.servers.empty() ? base::to_string(options.relay.listen.front()) : "fleet");
}

int run_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
              const std::function<void()>& started) {
    flags.check(settings); // also checks the observer's flags, so that errors are printed once
    process::RelayRunOptions options = relay_run_options(flags);
    options.supervision = supervision("proxy", flags, settings, invocation, make_flags<ProxyFlags>);
    options.started = [&started] {
        process::notify_service_ready();
        started();
    };
    const process::StoredKey key =
        process::read_or_create_key(flags.relay.state_folder(), "addresses.key");
    options.relay.address_key = key.key;
    options.takeover_file = takeover_file(flags, options);
    if (!flags.no_inspect) {
        options.example_client = record::client_address_text(std::string{process::kExampleClient},
                                                             flags.records.config.pseudonym_key);
    }
    flags.prepare_servers(std::max<std::size_t>(options.servers.size(), 1));
    std::optional<process::HandoverTaker> taker;
    if (flags.takeover) {
        options.taker = &taker.emplace(options.takeover_file, options.example_client);
    }
    const relay::ClientAddressMode wanted = options.relay.client_address;
    const auto run = open_relay(flags, options);
    if (run == nullptr) {
        return kExitNotYet;
    }
    if (const auto ending = run->start_observer()) {
        return exit_code_of_failed_start(*ending);
    }
    const relay::ClientAddressMode mode = run->client_address();
    if (flags.takeover) {
        run->take_over();
        if (!options.supervision.observer.empty()) {
            spdlog::info("{}", flags.describe_recording());
        }
    }
    if (mode == relay::ClientAddressMode::loopback && !key.warning.empty()) {
        spdlog::warn("{} (see --state)", key.warning);
    }
    const std::string addresses = describe_client_address_mode(wanted, mode);
    if (mode == relay::ClientAddressMode::shared) {
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

int print_routes(const ProxyFlags& flags, const Settings& settings) {
    flags.check_traffic(settings);
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

int start_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
                const std::function<void()>& started) {
    if (flags.relay.print_routes) {
        return print_routes(flags, settings);
    }
    try {
        return run_relay(flags, settings, invocation, started);
    } catch (const process::NoTakeoverPeerError& error) {
        sink::print_error("--takeover: {}", error.what());
        return kExitNotYet;
    } catch (const relay::HandoverError& error) {
        sink::print_error("--takeover: {}{}", error.what(), kCarriesOn);
        return kExitUsage;
    }
}

} // namespace

Action add_proxy_command(Command& program, Invocation invocation) {
    return add_live_command<ProxyFlags>(
        program.add_command(
            "proxy", "Forward traffic between clients and a server, and record what happens"),
        std::move(invocation), "Forward", start_relay);
}

namespace {

constexpr const char* kAboutTap =
    "A tap only observes, at no cost to the game. It needs CAP_NET_RAW to open the interface and "
    "drops it afterwards. It cannot change traffic: --resync, --impair and other flags that affect "
    "traffic belong to proxy. See docs/tap.md.";

process::TapRunOptions tap_run_options(const TapFlags& flags) {
    constexpr unsigned kMiB = 20;
    constexpr double kSecond = 1e9;
    return {.live = {.interface = flags.interface,
                     .ports = flags.ports(),
                     .buffer_bytes = flags.buffer_mib << kMiB},
            .servers = flags.server_detector(),
            .shown = flags.traffic_text(),
            .limits = {.idle_timeout = static_cast<std::int64_t>(flags.idle_timeout * kSecond),
                       .max_sessions = flags.max_sessions},
            .ring_bytes = flags.ring_mib << kMiB};
}

int run_tap(const TapFlags& flags, const Settings& settings, const Invocation& invocation,
            const std::function<void()>& started) {
    flags.check(settings); // also checks the observer's flags, so that errors are printed once
    process::TapRunOptions options = tap_run_options(flags);
    options.supervision = supervision("tap", flags, settings, invocation, make_flags<TapFlags>);
    std::optional<process::TapRun> tap;
    try {
        tap.emplace(std::move(options));
    } catch (const capture::NoInterfaceError& error) {
        sink::print_error("{}", error.what());
        return kExitNotYet;
    } catch (const relay::RetryableStartError& error) { // a page address is not available yet
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

} // namespace

Action add_tap_command(Command& program, Invocation invocation) {
    return add_live_command<TapFlags>(
        program.add_command(
            "tap", "Observe traffic on an interface and record what happens, without forwarding",
            kAboutTap),
        std::move(invocation), "Observe", run_tap);
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
        sink::print_error("no server answered at {} within {} s", flags.address, flags.timeout);
        return 1;
    }
    fmt::print("healthy: a server answered a request for its info at {}\n", flags.address);
    return 0;
}

} // namespace

Action add_health_command(Command& program) {
    Command command = program.add_command(
        "health", "Request server info through a running proxy; exit with 0 if an answer arrives");
    auto flags = std::make_shared<HealthFlags>();
    // The proxy's own variable: in a container, both commands use the same address.
    command.add("address", &flags->address, "ADDR:PORT", "Address the proxy listens on")
        .read_environment_variable("TWSCOPE_LISTEN");
    command.add_time("--timeout", flags->timeout, 0.01, 60, "Seconds to wait for an answer");
    return [flags] { return run_health(*flags); };
}

namespace {

constexpr const char* kInterface = "twscope";

struct ExtcapFlags {
    bool interfaces = false;
    std::string version;
    std::string interface;
    bool dlts = false;
    bool config = false;
    bool capture = false;
    std::string fifo;
    std::string capture_filter;
    std::string server;
    std::string listen = "127.0.0.1:8303";
    std::string filter;
    bool cleanup = false;
    bool debug = false; ///< ignored, as is the value of `unused`
    std::string unused;
};

void print_interfaces() {
    fmt::print("extcap {{version={}}}{{display=twscope}}\n"
               "interface {{value={}}}{{display=Teeworlds and DDNet, through twscope}}\n",
               TWSCOPE_VERSION, kInterface);
}

void print_link_types() {
    fmt::print("dlt {{number=1}}{{name=EN10MB}}{{display=Ethernet}}\n");
}

void print_options() {
    fmt::print(
        "arg {{number=0}}{{call=--server}}{{display=Game server}}{{type=string}}{{required=true}}"
        "{{placeholder=127.0.0.1:8304}}{{tooltip=HOST:PORT of the server to forward clients to}}\n"
        "arg {{number=1}}{{call=--listen}}{{display=Clients connect to}}{{type=string}}"
        "{{default=127.0.0.1:8303}}{{tooltip=ADDR:PORT to listen on}}\n"
        "arg {{number=2}}{{call=--filter}}{{display=Only packets with}}{{type=string}}"
        "{{placeholder=session == 1 and message}}"
        "{{tooltip=twscope filter: show only packets with a matching record}}\n");
}

/// Combines Wireshark's capture filter and the option --filter; both have to match.
std::string combined_filter(const ExtcapFlags& flags) {
    if (flags.filter.empty() || flags.capture_filter.empty()) {
        return flags.filter + flags.capture_filter;
    }
    return fmt::format("({}) and ({})", flags.filter, flags.capture_filter);
}

/// Prints what is wrong with a capture filter; prints nothing if it is valid.
int check_filter(const std::string& text) {
    if (const auto parsed = filter::Filter::parse(text, {.show_secrets = true}); !parsed) {
        fmt::print("{}\n", parsed.error().message);
    }
    return 0;
}

/// Continues as `twscope proxy`. Wireshark ends the process with SIGTERM.
int capture_with_proxy(const ExtcapFlags& flags) {
    if (flags.fifo.empty() || flags.server.empty()) {
        throw UsageError{"extcap: a capture needs --fifo and --server HOST:PORT (the interface "
                         "option 'Game server')"};
    }
    std::vector<std::string> words{"twscope",    "proxy", "-s",       flags.server,     "-l",
                                   flags.listen, "-w",    flags.fifo, "--show-secrets", "-q"};
    // Wireshark shows everything on standard error as an error when the capture ends.
    words.insert(words.end(), {"--log-level", "error"});
    if (const std::string filter = combined_filter(flags); !filter.empty()) {
        words.insert(words.end(), {"--write-filter", filter});
    }
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    // Ends with Wireshark, so that players do not pass an unused proxy.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::execv("/proc/self/exe", arguments.data());
    throw std::system_error{errno, std::generic_category(), "/proc/self/exe"};
}

/// Accepts unknown arguments that begin with --extcap-, because newer versions of Wireshark may add
/// such arguments. Errors: UsageError for other unknown arguments.
void check_unknown_arguments(const std::vector<std::string>& rest) {
    bool may_be_value = false;
    for (const std::string& word : rest) {
        const bool flag = word.starts_with("--extcap-");
        if (!flag && (!may_be_value || word.starts_with('-'))) {
            throw UsageError{fmt::format("extcap has no {}", record::terminal_text(word))};
        }
        may_be_value = flag && word.find('=') == std::string::npos;
    }
}

int run_extcap(const ExtcapFlags& flags) {
    if (flags.interfaces) {
        print_interfaces();
        return 0;
    }
    if (flags.interface != kInterface) {
        throw UsageError{
            fmt::format("extcap: the only interface is {}; see --extcap-interfaces", kInterface)};
    }
    if (flags.dlts) {
        print_link_types();
    } else if (flags.config) {
        print_options();
    } else if (flags.capture) {
        return capture_with_proxy(flags);
    } else if (!flags.cleanup) {
        return check_filter(flags.capture_filter);
    }
    return 0;
}

} // namespace

Action add_extcap_command(Command& program) {
    Command command =
        program.add_command("extcap", "Capture in Wireshark, which lists twscope as an interface "
                                      "once it is in its extcap folder");
    command.hide_from_help(); // only Wireshark starts it
    auto flags = std::make_shared<ExtcapFlags>();
    command.add_switch("--extcap-interfaces", flags->interfaces, "Print the interfaces");
    command.add("--extcap-version", &flags->version, "VERSION", "Wireshark's version");
    command.add("--extcap-interface", &flags->interface, "NAME", "Interface to use");
    command.add_switch("--extcap-dlts", flags->dlts, "Print the interface's link type");
    command.add_switch("--extcap-config", flags->config, "Print the interface's options");
    command.add_switch("--capture", flags->capture, "Capture until SIGTERM");
    command.add("--fifo", &flags->fifo, "FILE", "Pipe to write to");
    command.add("--extcap-capture-filter", &flags->capture_filter, "EXPRESSION",
                "Capture only packets with a matching record; without --capture, check the "
                "filter's syntax");
    command.add("-s,--server", &flags->server, "HOST:PORT", "Game server to forward to");
    command.add("-l,--listen", &flags->listen, "ADDR:PORT", "Address for clients to connect to");
    command.add("--filter", &flags->filter, "EXPRESSION",
                "Capture only packets with a matching record");
    command.add("--extcap-reload-option", &flags->unused, "NAME",
                "An option whose values are asked for: none has any");
    command.add_switch("--extcap-cleanup-postkill", flags->cleanup, "Nothing is left to clean up");
    command.add_switch("--debug", flags->debug, "For other extcaps; nothing is written");
    command.add("--debug-file", &flags->unused, "FILE", "The same");
    return [flags, command] {
        check_unknown_arguments(command.unknown_arguments());
        return run_extcap(*flags);
    };
}

} // namespace tw::cli
