#include "proxy/cli/observing.h"

#include "proxy/analyze/explanation_text.h"
#include "proxy/analyze/stats_report.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/output_file.h"
#include "proxy/process/confinement.h"
#include "proxy/process/observer_process.h"
#include "proxy/process/observer_run.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/options.h"
#include "proxy/sink/console.h"
#include "proxy/sink/output.h"
#include "proxy/store/file_output.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::cli {

namespace {

/// A flag that can change during the run, and its effect.
struct LiveFlag {
    std::string_view name;
    void (*apply)(const RunFlags& flags, process::ReloadedSettings& reload);
};

constexpr std::array kLiveFlags{
    LiveFlag{"impair",
             [](const RunFlags& flags, process::ReloadedSettings& reload) {
                 reload.impairment = flags.impairment();
             }},
    LiveFlag{"log-level",
             [](const RunFlags& flags, process::ReloadedSettings& reload) {
                 reload.log_level = flags.log_level;
             }},
};

/// Flags that must be the same in both processes of a takeover.
constexpr std::array<std::string_view, 5> kRestartFlags{"client-address", "listen", "pseudonyms",
                                                        "server", "state"};

/// Rereads the configuration of a running command.
class ConfigReloader final : public process::ReloadableConfig {
  public:
    /// `settings`: the complete settings at the start. `command`: the command's name.
    ConfigReloader(std::string command, Invocation invocation, MakeFlags make_flags,
                   const RunFlags& flags, const Settings& settings)
        : command_{std::move(command)}, invocation_{std::move(invocation)},
          make_flags_{std::move(make_flags)}, flags_at_start_{&flags}, values_{settings.flags()} {}

    /// Logs the changes that are not possible, with reasons. Returns no changes if the configuration
    /// is invalid.
    [[nodiscard]] process::ReloadedSettings reload() override;

    [[nodiscard]] std::vector<web::ListeningSocket> open_page_sockets() const override {
        return flags_at_start_->http.open_page_sockets();
    }

  private:
    /// Rereads the configuration and returns the changes. Errors: UsageError; the settings are then
    /// unchanged.
    [[nodiscard]] process::ReloadedSettings reread();
    [[nodiscard]] std::optional<std::vector<process::ConfiguredServer>>
    servers_of(const RunFlags& flags) const;

    std::string command_;
    Invocation invocation_;
    MakeFlags make_flags_;
    const RunFlags* flags_at_start_;         ///< the session limit of these flags stays in force
    std::vector<process::GivenFlag> values_; ///< the values in force
};

process::ReloadedSettings ConfigReloader::reload() {
    try {
        return reread();
    } catch (const std::exception& error) {
        spdlog::error("configuration not reloaded: {}", error.what());
        return {};
    }
}

process::ReloadedSettings ConfigReloader::reread() {
    Command program;
    Command command = program.add_command(command_, {});
    const std::unique_ptr<RunFlags> made = make_flags_();
    RunFlags& flags = *made;
    Settings settings{command};
    flags.add_to(command);
    const auto& given = invocation_.arguments;
    program.parse({given.begin() + 1, given.end()});
    settings.fill_flags();
    flags.check(settings);
    process::ReloadedSettings reload;
    if (flags.http.is_enabled()) {
        reload.token = flags.http.token(flags.state_folder());
    }
    reload.servers = servers_of(flags);
    std::array<std::vector<std::string>, 2> waiting; // [0]: need a takeover; [1]: a restart
    const auto flags_now = settings.flags();
    for (std::size_t i = 0; i < flags_now.size(); ++i) {
        const std::string& name = flags_now[i].name;
        if (flags_now[i] == values_[i]) {
            continue;
        }
        const auto* const live =
            std::ranges::find(kLiveFlags, std::string_view{name}, &LiveFlag::name);
        if (live != kLiveFlags.end()) {
            live->apply(flags, reload);
        } else if (!reload.servers || (name != "server" && name != "listen")) {
            const bool needs_restart =
                command_ != "proxy" ||
                std::ranges::find(kRestartFlags, name) != kRestartFlags.end();
            waiting[needs_restart ? 1 : 0].push_back(name);
            continue;
        }
        values_[i] = flags_now[i];
        spdlog::info("{} changed", name);
    }
    for (const auto& names : waiting) {
        if (!names.empty()) {
            spdlog::warn("changed, but takes effect at the next {}restart: {}",
                         &names == waiting.data() ? "takeover or " : "", fmt::join(names, ", "));
        }
    }
    spdlog::info("configuration reloaded");
    return reload;
}

/// Returns the new servers; nullopt if the servers had no names at the start or have none now,
/// because changing that needs a restart.
std::optional<std::vector<process::ConfiguredServer>>
ConfigReloader::servers_of(const RunFlags& flags) const {
    auto servers = flags.servers();
    if (flags_at_start_->servers().empty() || servers.empty()) {
        return std::nullopt;
    }
    flags_at_start_->prepare_servers(servers.size());
    return servers;
}

/// Returns the descriptor for text to users, which must not be mixed with records on standard
/// output.
int console_descriptor(const RunFlags& flags) {
    return flags.records.output == "-" ? STDERR_FILENO : STDOUT_FILENO;
}

/// Returns the command that explains a finding of this run. Returns null if the records do not
/// contain all findings, or if no single path contains all records, as for segments beside a file.
sink::FindingLines::ExplainCommand explain_command(const RunFlags& flags) {
    const RecordFlags& records = flags.records;
    std::error_code ignored;
    const bool is_split = !flags.recording.folder(lines_recording_kind(), records.output).empty() &&
                          !std::filesystem::is_directory(records.output, ignored);
    if (records.output.empty() || records.output == "-" || is_split || !records.filter.empty()) {
        return nullptr;
    }
    return [file = shell_word(record::terminal_text(records.output))](std::uint32_t session,
                                                                      auto tick) {
        return fmt::format("twscope explain {} --session {} --tick {}", file, session, tick);
    };
}

process::ObserverOptions observer_options(const RunFlags& flags, const wire::ModDescription& mod) {
    return {.config = flags.config(mod),
            .map_folders = flags.records.map_folders(),
            .map_cache = flags.records.map_cache,
            .inspect = !flags.no_inspect,
            .resync = flags.requests_resync(),
            .explain = explain_command(flags),
            .flight_flag = "--flight 60s,64MiB DIR"};
}

void print_stats(sink::BoundedWaitStream& console, const process::ObserverResult& result) {
    fmt::print(console.file(), "{}",
               analyze::stats_table({.captures = {"this run"},
                                     .sessions = result.seen.sessions,
                                     .duration_ns = result.duration.count(),
                                     .totals = &result.seen.totals,
                                     .ledger = &result.seen.ledger}));
}

/// Prints the result of a run and returns the exit code. `after_loss`: the previous observer ended
/// without a result.
int report_run(const RunFlags& flags, const process::ObserverResult& result, bool after_loss,
               store::OutputFile* summary) {
    auto checks = flags.records.fail_on_findings().make_checks(result.seen.totals, "--fail-on");
    analyze::add_expectation_checks(checks, result.seen.expectations, "--expect");
    const std::chrono::duration<double> seconds = result.duration;
    if (after_loss && (summary != nullptr || !checks.empty())) {
        checks.push_back(
            {.flag = "run",
             .text = "checked as a whole",
             .passed = false,
             .actual = fmt::format("an observer was lost: only the last {:.1f} s were checked",
                                   seconds.count())});
    }
    const int code = report_result(analyze::make_outcome(std::move(checks), result.seen.totals,
                                                         result.seen.sessions, seconds.count()),
                                   summary);
    return after_loss || (code == 0 && result.lost_records != 0) ? kExitFailed : code;
}

/// Restricts the process, which reads data from unknown senders. Called when everything is open.
void confine_observer(const RunFlags& flags, std::uint32_t number) {
    constexpr std::uint64_t kMiB = 1U << 20U;
    auto readable = flags.records.map_folders();
    const auto of_bus = flags.bus.access.files();
    readable.insert(readable.end(), of_bus.begin(), of_bus.end());
    const process::Confinement confinement =
        process::confine({.readable = std::move(readable),
                          .writable = flags.written_folders(),
                          .reopened = flags.folders_of_reopened_files(),
                          .memory_bytes = flags.observer_memory_mib * kMiB});
    if (number == 1) {
        spdlog::debug("inspecting in process {}, confined by: {}", ::getpid(),
                      process::describe(confinement));
    }
}

/// Runs the observer until the relay has ended. Returns the exit code.
int run_observer(const RunFlags& flags, process::ObserverRun& run, bool after_loss,
                 sink::BoundedWaitStream& console, store::OutputFile* summary) {
    try {
        const process::ObserverResult result = run.run();
        if (!result.inspected) {
            return 0;
        }
        constexpr std::chrono::milliseconds kLastWords{500};
        console.set_write_timeout(kLastWords);
        if (flags.records.config.stats) {
            print_stats(console, result);
        }
        return report_run(flags, result, after_loss, summary);
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

} // namespace

void prepare_signals(const Invocation& invocation) {
    std::signal(SIGUSR1, SIG_IGN); // requests totals, which do not exist yet
    std::signal(SIGUSR2, SIG_IGN); // requests a file of the flight recorder, which is not ready yet
    std::signal(SIGXFSZ, SIG_IGN); // writing beyond the file size limit then fails
    std::signal(SIGCHLD, SIG_DFL); // otherwise the observer's exit status would be lost
    if (invocation.is_observer) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
            std::signal(signal, SIG_IGN); // only the parent handles these and controls this process
        }
    }
}

int run_observer_process(const RunFlags& flags, Settings& settings) {
    using StartMode = store::Recording::StartMode;
    relay::lower_thread_priority(); // output threads, which start later, inherit the priority
    process::ObserverChannel post{
        .link = channel::ProcessLink{base::UniqueFd{process::ObserverProcess::kLinkDescriptor}},
        .memory = base::UniqueFd{process::ObserverProcess::kMemoryDescriptor}};
    auto greeting = process::await_startup(post.link);
    if (!greeting) {
        // The log is not open yet, and its default is standard output, where records may go.
        sink::print_error("the relay did not send the observer's settings");
        return kExitFailed;
    }
    post.number = greeting->number;
    post.waits = greeting->waits;
    settings.complete_from_process(greeting->flags);
    open_log(greeting->log_level.empty() ? flags.log_level : greeting->log_level);
    const auto mod = flags.records.lookup.description();
    const auto summary = open_output_file("--summary", flags.records.summary);
    const StartMode begin = post.waits ? StartMode::shared : StartMode::behind;
    const auto file = flags.recording.open(lines_recording_kind(), flags.records.output, begin);
    const auto capture =
        flags.recording.open(capture_recording_kind(), flags.artifacts.capture, begin);
    sink::BoundedWaitStream console{console_descriptor(flags)};
    console.set_colors(log_stream().colors());
    const auto bus =
        flags.bus.open(flags.server_name(), bus::kLiveTimeouts, !flags.servers().empty());
    process::ObserverOptions options = observer_options(flags, *mod);
    options.file = file.get();
    if (bus != nullptr) {
        options.bus = {.output = bus.get(), .totals = [&bus] { return bus->totals(); }};
    }
    options.console = flags.quiet ? nullptr : &console;
    options.summary = summary.get();
    options.capture = capture.get();
    if (flags.http.is_enabled()) {
        options.page = process::PageOptions{.admin = flags.http.admin,
                                            .token = greeting->token,
                                            .log_is_private = log_stream().is_terminal(),
                                            .recording_folders = flags.recording_folders(),
                                            .explain_finding = analyze::explanation_of_lines};
        options.page_addresses = flags.http.page_addresses();
    }
    confine_observer(flags, post.number);
    // An observer that waits was started for a takeover, not because the previous one was lost.
    const bool after_loss = post.number > 1 && !post.waits;
    if (post.number == 1) {
        spdlog::info("{}", flags.describe_recording());
    }
    process::ObserverRun run{std::move(options), std::move(post)};
    return run_observer(flags, run, after_loss, console, summary.get());
}

process::SupervisorOptions supervision(const std::string& command, const RunFlags& flags,
                                       const Settings& settings, const Invocation& invocation,
                                       const MakeFlags& make_flags) {
    process::SupervisorOptions options;
    const bool reports =
        !flags.records.summary.empty() || flags.http.is_enabled() || flags.records.config.stats;
    if (!flags.no_inspect || reports) {
        options.observer = {invocation.arguments.front(), kObserverArgument, command};
    }
    options.startup.flags = settings.flags();
    if (flags.http.is_enabled()) {
        options.startup.token = flags.http.token(flags.state_folder());
    }
    if (flags.duration > 0) {
        options.time_limit = {.after = std::chrono::duration<double>{flags.duration},
                              .reason = "the --duration has elapsed"};
    }
    options.config =
        std::make_shared<ConfigReloader>(command, invocation, make_flags, flags, settings);
    std::signal(SIGHUP,
                options.terminal.existed_at_start() ? SIG_DFL : SIG_IGN); // run() replaces this
    return options;
}

int exit_code(const process::LiveRunResult& result) {
    if (!result.observer) {
        return 0;
    }
    if (result.observer->signal != 0) {
        return kExitFailed;
    }
    return result.observer->code == 0 && result.observer_failures != 0 ? kExitFailed
                                                                       : result.observer->code;
}

int exit_code_of_failed_start(const process::ProcessExit& ending) {
    if (ending.signal == SIGINT || ending.signal == SIGTERM) {
        spdlog::info("stopping: {} during start-up",
                     ending.signal == SIGINT ? "interrupted" : "terminated");
        return 0;
    }
    if (ending.signal == 0 && ending.code != 0) {
        return ending.code; // the observer printed the reason
    }
    sink::print_error("the observer could not start: {}", process::describe(ending));
    return kExitUsage;
}

} // namespace tw::cli
