#include "proxy/cli/background.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/conclude.h"
#include "proxy/cli/log.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/cli/reload.h"
#include "proxy/cli/settings.h"
#include "proxy/report/stats_report.h"
#include "proxy/report/story.h"
#include "proxy/run/confinement.h"
#include "proxy/run/greeting.h"
#include "proxy/run/observer_process.h"
#include "proxy/run/observer_run.h"
#include "proxy/run/relay_run.h"
#include "proxy/run/resync.h"
#include "proxy/run/service_notice.h"
#include "proxy/run/state_folder.h"
#include "proxy/sink/prompt_stream.h"

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

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// What people read; records on standard output must not be mixed with anything.
int console_of(const ProxyFlags& flags) {
    return flags.records.output == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

run::ObserverOptions observer_options(const ProxyFlags& flags, const snapshot::ObjectSet& objects,
                                      sink::RecordTarget* file, sink::PromptStream& console) {
    const RecordFlags& records = flags.records;
    return {.objects = &objects,
            .map_folders = records.map_folders(),
            .map_cache = records.map_cache,
            .inspect = !flags.no_inspect,
            .messages = records.wants_messages(flags.artifacts.wants_demos()),
            .learn_sizes = records.learn_sizes,
            .resync = flags.relay.resync,
            .memory_bytes = flags.memory_mib << 20U,
            .ledger = flags.stats,
            .file = file,
            .json = records.json(objects),
            .console = flags.quiet ? nullptr : &console,
            .filter = records.parse_filter("--filter", records.filter, objects),
            .console_filter =
                records.parse_filter("--console-filter", records.console_filter, objects),
            .expectations = records.expectations(objects),
            .pseudonym_key = records.pseudonym_key,
            .demos = flags.artifacts.demos(records.show_secrets),
            .views = records.views(),
            .capture_filter =
                records.parse_filter("--write-filter", flags.artifacts.capture_filter, objects),
            .flight = flags.flight.options(records.show_secrets)};
}

void print_stats(sink::PromptStream& console, const run::ObserverResult& result) {
    fmt::print(console.file(), "{}",
               report::stats_table({.captures = {"this run"},
                                    .sessions = result.seen.sessions,
                                    .duration_ns = result.duration.count(),
                                    .totals = &result.seen.totals,
                                    .ledger = &result.seen.ledger}));
}

int conclude_run(const ProxyFlags& flags, const run::ObserverResult& result,
                 std::optional<sink::FileOutput>& summary) {
    auto checks = flags.records.failing().checks(result.seen.totals, "--fail-on");
    report::add_checks(checks, filter::Expectations{result.seen.expectations}.report(), "--expect");
    const std::chrono::duration<double> seconds = result.duration;
    const int code = conclude(report::outcome_of(std::move(checks), result.seen.totals,
                                                 result.seen.sessions, seconds.count()),
                              summary);
    return code == 0 && result.lost_records != 0 ? kExitFailed : code;
}

/// Everything is open: the process that reads what strangers send needs little more.
void confine_observer(const ProxyFlags& flags, std::uint32_t number) {
    constexpr std::uint64_t kMiB = 1U << 20U;
    run::Allowance allowance{.readable = flags.records.map_folders(),
                             .memory_bytes = flags.observer_memory_mib * kMiB};
    if (!flags.records.map_cache.empty()) {
        allowance.writable.emplace_back(flags.records.map_cache);
    }
    for (const auto& folder : flags.artifacts.folders()) {
        allowance.writable.push_back(folder);
    }
    if (flags.flight.on()) {
        allowance.writable.push_back(flags.flight.folder());
    }
    if (const auto folder = flags.recording.folder(flags.records.output); !folder.empty()) {
        allowance.writable.emplace_back(folder);
    }
    const run::Confinement confinement = run::confine(allowance);
    if (number == 1) {
        spdlog::info("inspecting in process {}, confined by: {}", ::getpid(),
                     run::describe(confinement));
    }
}

/// Looks until the relay has ended. Returns the exit code.
int look(const ProxyFlags& flags, run::ObserverRun& run, sink::PromptStream& console,
         std::optional<sink::FileOutput>& summary) {
    try {
        const run::ObserverResult result = run.run();
        if (!result.looked) {
            return 0;
        }
        constexpr std::chrono::milliseconds kLastWords{500};
        console.set_patience(kLastWords);
        if (flags.stats) {
            print_stats(console, result);
        }
        return conclude_run(flags, result, summary);
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

/// The process that looks: the relay's child.
int observe(const ProxyFlags& flags, Settings& settings, const Invocation& invocation) {
    using Begin = sink::Recording::Begin;
    const std::uint32_t number = invocation.observer;
    run::ObserverPost post{.number = number,
                           .waits = invocation.observer_waits,
                           .link = run::ProcessLink{relay::UniqueFd{run::ObserverProcess::kLink}},
                           .memory = relay::UniqueFd{run::ObserverProcess::kMemory}};
    auto greeting = run::await_greeting(post.link);
    if (!greeting) {
        // The log is not open yet, and its default is standard output, where records may go.
        fmt::print(stderr, "twscope: the relay did not say how to begin\n");
        return kExitFailed;
    }
    settings.complete(std::move(greeting->settings));
    open_log(greeting->log_level.empty() ? flags.log_level : greeting->log_level);
    const auto objects = flags.records.objects();
    std::optional<sink::FileOutput> summary;
    open_output_file("--summary", flags.records.summary, summary);
    const auto file =
        flags.recording.open(flags.records.output, post.waits ? Begin::shared : Begin::behind);
    std::optional<sink::CaptureTarget> capture;
    flags.artifacts.open_capture(capture, sink::CaptureTarget::Begin::behind);
    sink::PromptStream console{console_of(flags)};
    run::ObserverOptions options = observer_options(flags, *objects, file.get(), console);
    options.summary = summary ? &*summary : nullptr;
    options.capture = capture ? &*capture : nullptr;
    const auto page = [&flags, &greeting] {
        return run::PageOptions{.listening = flags.http.listen(),
                                .admin = flags.http.options(),
                                .token = greeting->token,
                                .log_is_private = log_stream().is_terminal(),
                                .tell_story = report::story_of_lines};
    };
    if (flags.http.on() && post.waits) {
        options.late_page = page;
    } else if (flags.http.on()) {
        options.page = page();
    }
    confine_observer(flags, number);
    run::ObserverRun run{std::move(options), std::move(post)};
    return look(flags, run, console, summary);
}

/// The command that starts this program again, as observer.
std::vector<std::string> observer_command(const Invocation& invocation, std::uint32_t number,
                                          bool waits) {
    std::vector<std::string> command = invocation.arguments;
    command.insert(command.begin() + 1, fmt::format("--observer={}{}", number, waits ? "+" : ""));
    return command;
}

run::RelayRunOptions relay_run_options(const ProxyFlags& flags, const Invocation& invocation) {
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    run::RelayRunOptions options{.relay = flags.relay_options(),
                                 .admission = !flags.relay.no_admission,
                                 .inspected = !flags.no_inspect,
                                 .ring_bytes = flags.ring_mib * kMiB};
    if (flags.relay.resync) {
        options.relay.resync = run::game_resync();
    }
    const bool reports = !flags.records.output.empty() || !flags.records.summary.empty() ||
                         flags.http.on() || flags.stats;
    if (options.inspected || reports) {
        options.observer = [invocation](std::uint32_t number, bool waits) {
            return observer_command(invocation, number, waits);
        };
    }
    if (flags.duration > 0) {
        options.time_limit = {.after = std::chrono::duration<double>{flags.duration},
                              .reason = "the time given with --duration is over"};
    }
    return options;
}

int exit_code(const run::RelayRunResult& result) {
    if (!result.observer) {
        return 0;
    }
    if (result.observer->signal != 0) {
        return kExitFailed;
    }
    return result.observer->code == 0 && result.observer_failures != 0 ? kExitFailed
                                                                       : result.observer->code;
}

/// Each session and each address to listen on takes a descriptor of this process.
void raise_descriptor_limit(const relay::Options& options) {
    constexpr std::size_t kOthers = 64;
    const std::size_t needed =
        options.max_sessions + options.listen.size() * options.threads + kOthers;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < needed) {
        throw UsageError{fmt::format("--max-sessions {} needs {} descriptors, and this process may "
                                     "have {}; raise the limit (ulimit -Hn, LimitNOFILE=) or ask "
                                     "for fewer sessions",
                                     options.max_sessions, needed, limit.rlim_max)};
    }
    limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, needed);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Binds, and tries again as long as it may for what may come yet. Null: that never came, and it is
/// said. Errors: UsageError for all that will not change.
std::unique_ptr<run::RelayRun> open_relay(const ProxyFlags& flags,
                                          const run::RelayRunOptions& options) {
    constexpr std::chrono::milliseconds kFirstPause{100};
    constexpr std::chrono::milliseconds kLongestPause{2000};
    const auto deadline =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>{flags.takeover ? 0 : flags.start_timeout});
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        try {
            return std::make_unique<run::RelayRun>(options);
        } catch (const relay::NotYetError& error) {
            const auto left = deadline - std::chrono::steady_clock::now();
            if (left <= std::chrono::steady_clock::duration::zero()) {
                fmt::print(stderr, "twscope: {}\n", error.what());
                return nullptr;
            }
            if (pause == kFirstPause) {
                spdlog::warn("{}; trying again for {} seconds", error.what(), flags.start_timeout);
            }
            std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(pause, left));
        } catch (const relay::SharedAddressError& error) {
            throw UsageError{fmt::format("{}; keep their own with --client-address transparent, or "
                                         "accept it with --insecure-shared",
                                         error.what())};
        } catch (const relay::StartError& error) {
            throw UsageError{error.what()};
        }
    }
}

/// Where others ask to take over from the run, and this one asks with --takeover.
std::filesystem::path takeover_file(const ProxyFlags& flags, const relay::Options& options) {
    return run::TakeoverDoor::path_of(flags.relay.state_folder(),
                                      relay::to_string(options.listen.front()));
}

int run_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
              const std::function<void()>& started) {
    flags.check(); // the observer's part, too: whoever mistyped it is to hear of it once, at once
    run::RelayRunOptions options = relay_run_options(flags, invocation);
    options.greeting.settings = settings.text();
    options.reload = Reloading{invocation, flags, settings};
    options.open_records = [&flags] { return open_records_again(flags); };
    options.started = [&started] {
        run::notify_ready();
        started();
    };
    std::signal(SIGHUP, options.terminal.exists() ? SIG_DFL : SIG_IGN); // until it is heard
    const run::KeptKey key = run::keep_key(flags.relay.state_folder(), "addresses.key");
    options.relay.address_key = key.key;
    options.takeover_file = takeover_file(flags, options.relay);
    if (flags.http.on()) {
        options.greeting.token = flags.http.token(flags.relay.state_folder());
    }
    raise_descriptor_limit(options.relay);
    std::optional<run::HandoverTaker> taker;
    if (flags.takeover) {
        options.taker = &taker.emplace(options.takeover_file);
    }
    const relay::ClientAddress wanted = options.relay.client_address;
    const auto run = open_relay(flags, options);
    if (run == nullptr) {
        return kExitNotYet;
    }
    if (const auto ending = run->open()) {
        if (ending->signal == 0 && ending->code != 0) {
            return ending->code; // and it has said why
        }
        fmt::print(stderr, "twscope: the observer could not start: {}\n", run::describe(*ending));
        return kExitUsage;
    }
    const relay::ClientAddress mode = run->client_address();
    if (mode == relay::ClientAddress::loopback && !key.warning.empty()) {
        spdlog::warn("{} (see --state)", key.warning);
    }
    spdlog::log(mode == relay::ClientAddress::shared ? spdlog::level::warn : spdlog::level::info,
                describe_client_address(wanted, mode));
    if (flags.takeover) {
        run->take_over();
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
    } catch (const run::NobodyThere& error) {
        fmt::print(stderr, "twscope: --takeover: {}\n", error.what());
        return kExitNotYet;
    } catch (const relay::HandoverError& error) {
        fmt::print(stderr, "twscope: --takeover: {}\n", error.what());
        return kExitUsage;
    }
}

int print_routes(const ProxyFlags& flags) {
    const relay::Options options = flags.relay_options();
    try {
        const auto server = relay::resolve_server(options.server_host, options.server_port);
        fmt::print("{}", transparent_routes(server, relay::is_own_address(server), options.listen));
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
    return 0;
}

int run_command(const ProxyFlags& flags, Settings& settings, const Invocation& invocation) {
    std::signal(SIGUSR1, SIG_IGN); // who asks for totals before there are any
    std::signal(SIGUSR2, SIG_IGN); // or for what the flight recorder keeps
    std::signal(SIGPIPE, SIG_IGN); // a reader that leaves costs its own lines
    std::signal(SIGXFSZ, SIG_IGN); // and so does a file that may not grow
    std::signal(SIGCHLD, SIG_DFL); // else nobody could say how the observer ended
    if (invocation.observer != 0) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
            std::signal(signal, SIG_IGN); // they are for the relay, which says what to do
        }
        return observe(flags, settings, invocation);
    }
    settings.complete();
    if (flags.server.empty()) {
        throw UsageError{
            "proxy needs the game server: -s HOST:PORT, for example -s 127.0.0.1:8304"};
    }
    open_log(flags.log_level);
    if (flags.relay.print_routes) {
        return print_routes(flags);
    }
    const auto start = [&](const std::function<void()>& started) {
        return start_relay(flags, settings, invocation, started);
    };
    return flags.background ? in_background(start) : start([] {});
}

} // namespace

Action add_proxy_command(CLI::App& app, Invocation invocation) {
    CLI::App* command = app.add_subcommand(
        "proxy", "Stand between clients and a server: forward everything, record what happens");
    auto flags = std::make_shared<ProxyFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->add_to(*command);
    return [flags, settings, invocation = std::move(invocation)] {
        return run_command(*flags, *settings, invocation);
    };
}

} // namespace tw::cli
