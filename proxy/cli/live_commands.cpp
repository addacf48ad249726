#include "proxy/analyze/explanation.h"
#include "proxy/analyze/stats_report.h"
#include "proxy/base/log.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/log.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/pipeline/resync.h"
#include "proxy/process/confinement.h"
#include "proxy/process/observer_process.h"
#include "proxy/process/observer_run.h"
#include "proxy/process/relay_run.h"
#include "proxy/process/server_probe.h"
#include "proxy/process/signals.h"
#include "proxy/process/state_folder.h"
#include "proxy/process/supervisor.h"
#include "proxy/process/tap_run.h"
#include "proxy/record/records.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/relay/options.h"
#include "proxy/sink/console.h"
#include "proxy/sink/output.h"
#include "proxy/store/file_output.h"

#include <cerrno>

#include <fmt/ranges.h>
#include <unistd.h>

namespace tw::cli {

namespace {

void log_recording(const RunFlags& flags) {
    log::info("{}", flags.describe_recording());
    for (const std::string& warning : flags.recording.disk_space_warnings(flags.recordings())) {
        log::warn("{}", warning);
    }
}

/// Logs how much this process recorded to a file or folder, how many records are missing in it, and
/// the command that reads it.
void log_recorded_size(const RunFlags& flags, const store::OutputFile* file,
                       std::uint64_t missing_records) {
    if (file == nullptr) {
        return;
    }
    std::error_code ignored;
    const std::string folder = flags.recording.segment_folder(flags.recordings().front());
    const auto path =
        std::filesystem::absolute(folder.empty() ? flags.records.output : folder, ignored)
            .lexically_normal();
    const auto kind = file->has_segments() ? std::filesystem::file_type::directory
                                           : std::filesystem::file_type::regular;
    const bool is_replaced = std::filesystem::status(path, ignored).type() != kind ||
                             file->state.is_path_unusable || file->error() == EACCES;
    const std::uint64_t bytes = file->state.written_bytes; // 0 for pipes and devices
    if (bytes == 0 && (missing_records == 0 || is_replaced)) {
        return;
    }
    std::string text = "recorded " + (bytes == 0 ? "nothing" : record::size_text(bytes));
    if (missing_records != 0) {
        text += "; " + record::count_with_noun(missing_records, "record[s] [is|are]") + " missing";
    }
    if (is_replaced) {
        text += fmt::format("; {} was removed or replaced during the run",
                            record::escape_for_terminal(path.string()));
    } else if (bytes != 0) {
        text += "; read it with: twscope records " + quote_for_shell(path.string());
    }
    log::write_line(missing_records != 0 || is_replaced ? log::Level::warn : log::Level::info,
                    text);
}

/// Flags that must be the same in both processes of a takeover.
constexpr std::array<std::string_view, 5> kFlagsFixedAtTakeover{"client-address", "listen",
                                                                "pseudonyms", "server", "state"};

/// Rereads the configuration of a running command.
class ConfigReloader final : public process::ReloadableConfig {
  public:
    /// `settings`: the complete settings at the start.
    ConfigReloader(Invocation invocation, const RunFlags& flags, const Settings& settings)
        : invocation_{std::move(invocation)}, flags_at_start_{&flags}, values_{settings.flags()} {}

    /// Logs the changes that are not possible, with reasons. Returns no changes if the
    /// configuration is invalid.
    [[nodiscard]] process::ReloadedSettings reload() override;

    [[nodiscard]] std::vector<web::ListeningSocket> open_page_sockets() const override {
        return flags_at_start_->http.open_page_sockets();
    }

  private:
    /// Rereads the configuration and returns the changes. Errors: UsageError; the settings are then
    /// unchanged.
    [[nodiscard]] process::ReloadedSettings reread_configuration();
    [[nodiscard]] std::optional<std::vector<process::ConfiguredServer>>
    reloaded_servers(const RunFlags& flags) const;

    Invocation invocation_;
    const RunFlags* flags_at_start_;         ///< the session limit of these flags stays in force
    std::vector<process::GivenFlag> values_; ///< the values in force
};

process::ReloadedSettings ConfigReloader::reload() {
    try {
        return reread_configuration();
    } catch (const std::exception& error) {
        log::error("configuration not reloaded: {}", error.what());
        return {};
    }
}

process::ReloadedSettings ConfigReloader::reread_configuration() {
    const auto& given = invocation_.arguments;
    Command command{given[1]};
    const std::unique_ptr<RunFlags> made = flags_at_start_->make_default_flags();
    RunFlags& flags = *made;
    Settings settings{command};
    flags.add_to(command);
    command.parse_arguments({given.begin() + 2, given.end()});
    settings.fill_missing_flags();
    flags.check_flags(settings);
    process::ReloadedSettings reload;
    if (flags.http.is_enabled()) {
        reload.token = flags.http.read_token(flags.state_folder());
    }
    reload.servers = reloaded_servers(flags);
    // [0]: flags that a takeover or a restart changes; [1]: flags that only a restart changes.
    std::array<std::vector<std::string>, 2> waiting;
    const auto flags_now = settings.flags();
    for (std::size_t i = 0; i < flags_now.size(); ++i) {
        const std::string& name = flags_now[i].name;
        if (flags_now[i] == values_[i]) {
            continue;
        }
        if (name == "impair") {
            reload.impairment = flags.impairment();
        } else if (name == "log-level") {
            reload.log_level = flags.log_level;
        } else if (!reload.servers || (name != "server" && name != "listen")) {
            const bool needs_restart =
                command.name != "proxy" ||
                std::ranges::find(kFlagsFixedAtTakeover, name) != kFlagsFixedAtTakeover.end();
            waiting[needs_restart ? 1 : 0].push_back(name);
            continue;
        }
        values_[i] = flags_now[i];
        log::info("{} changed", name);
    }
    for (const auto& names : waiting) {
        if (!names.empty()) {
            log::warn("changed, but takes effect at the next {}restart: {}",
                      &names == waiting.data() ? "takeover or " : "", fmt::join(names, ", "));
        }
    }
    log::info("configuration reloaded");
    return reload;
}

/// Returns the new servers. Returns nullopt if there was a server without a name at the start or
/// there is one now, because only a restart changes such a server.
std::optional<std::vector<process::ConfiguredServer>>
ConfigReloader::reloaded_servers(const RunFlags& flags) const {
    auto servers = flags.servers();
    if (flags_at_start_->servers().empty() || servers.empty()) {
        return std::nullopt;
    }
    flags_at_start_->raise_descriptor_limit(servers.size());
    return servers;
}

/// Returns the command that explains a finding of this run. Returns null if the records do not
/// contain all findings, or if no single path contains all records, as for segments beside a file.
sink::FindingLines::ExplainCommandMaker explain_command(const RunFlags& flags) {
    const RecordFlags& records = flags.records;
    std::error_code ignored;
    const bool is_split = !flags.recording.segment_folder(flags.recordings().front()).empty() &&
                          !std::filesystem::is_directory(records.output, ignored);
    if (records.output.empty() || records.output == "-" || is_split || !records.filter.empty()) {
        return nullptr;
    }
    return [file = quote_for_shell(records.output)](std::uint32_t session, auto tick) {
        return fmt::format("twscope explain {} --session {} --tick {}", file, session, tick);
    };
}

/// Prints the result of a run and returns the exit code. `after_loss`: the previous observer ended
/// without a result.
int report_run(const RunFlags& flags, const process::ObserverResult& result, bool after_loss,
               store::OutputFile* summary) {
    auto checks =
        flags.records.findings_to_fail_on().make_checks(result.worker_result.totals, "--fail-on");
    analyze::add_expectation_checks(checks, result.worker_result.expectations, "--expect");
    const std::chrono::duration<double> seconds = result.duration;
    if (after_loss && (summary != nullptr || !checks.empty())) {
        checks.push_back(
            {.flag = "run",
             .text = "checked as a whole",
             .passed = false,
             .actual = fmt::format("an observer was lost: only the last {:.1f} s were checked",
                                   seconds.count())});
    }
    const int code =
        report_result(analyze::make_outcome(std::move(checks), result.worker_result.totals,
                                            result.worker_result.sessions, seconds.count()),
                      summary);
    if (after_loss) {
        log::warn(
            "an observer was lost: the totals count only the last {:.0f} s, and the exit code "
            "is {}",
            seconds.count(), kExitFailed);
    }
    return after_loss || (code == 0 && result.num_lost_records != 0) ? kExitFailed : code;
}

/// Restricts the rights of this process, which reads data from unknown senders. Must be called
/// after all files and sockets were opened.
void confine_observer(const RunFlags& flags, std::uint32_t number) {
    constexpr std::uint64_t kMiB = 1U << 20U;
    auto readable = flags.records.map_folders();
    const auto of_bus = flags.bus.access.readable_files();
    readable.insert(readable.end(), of_bus.begin(), of_bus.end());
    const process::Confinement confinement = process::confine_calling_thread(
        {.readable = std::move(readable),
         .writable = flags.written_folders(),
         .writable_without_removal = flags.folders_of_reopened_files(),
         .memory_bytes = flags.observer_memory_mib * kMiB});
    if (number == 1) {
        log::debug("inspecting in process {}, confined by: {}", ::getpid(),
                   process::describe(confinement));
    }
}

/// Returns the exit code of `run`. If `run` throws an exception, logs it and returns kExitFailed.
template <typename Run>
int run_and_log_exception(const Run& run) {
    try {
        return run();
    } catch (const std::exception& error) {
        log::error("{}", error.what());
        return kExitFailed;
    }
}

/// Runs the observer until the relay has ended. Returns the exit code.
int run_observer(const RunFlags& flags, process::ObserverRun& run, bool after_loss,
                 sink::BoundedWaitStream& console, const store::OutputFile* file,
                 store::OutputFile* summary) {
    return run_and_log_exception([&] {
        const process::ObserverResult result = run.inspect_until_stopped();
        if (!result.has_inspected) {
            return 0;
        }
        log_recorded_size(flags, file, result.num_records_missing_in_file);
        constexpr std::chrono::milliseconds kLastWords{500};
        console.set_write_timeout(kLastWords);
        if (flags.records.config.counts_traffic) {
            fmt::print(console.file(), "{}",
                       analyze::stats_table({.captures = {"this run"},
                                             .sessions = result.worker_result.sessions,
                                             .duration_ns = result.duration.count(),
                                             .totals = &result.worker_result.totals,
                                             .ledger = &result.worker_result.ledger}));
        }
        return report_run(flags, result, after_loss, summary);
    });
}

/// Sets the actions of signals that may arrive before their handlers exist, in both processes of a
/// live run.
void prepare_signals(const Invocation& invocation) {
    std::signal(SIGUSR1, SIG_IGN); // requests totals, which do not exist yet
    std::signal(SIGUSR2, SIG_IGN); // requests a file of the flight recorder, which is not ready yet
    std::signal(SIGXFSZ, SIG_IGN); // writing beyond the file size limit then fails
    std::signal(SIGCHLD, SIG_DFL); // otherwise the observer's exit status would be lost
    if (invocation.is_observer) {
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
            std::signal(signal, SIG_IGN); // the parent handles these signals, and ends this process
        }
    }
}

/// Runs the observer process, a child of the process that receives the traffic. Returns the exit
/// code.
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
    post.waits_for_previous = greeting->waits_for_previous;
    settings.set_flags_from_process(greeting->flags);
    open_log(greeting->log_level.empty() ? flags.log_level : greeting->log_level);
    const auto mod = flags.records.maps_and_objects.read_mod_description();
    const auto summary = open_output_file("--summary", flags.records.summary);
    const StartMode begin = post.waits_for_previous ? StartMode::take_over : StartMode::append;
    const auto recordings = flags.recordings();
    const auto file = flags.recording.open_live_recording(recordings[0], begin);
    const auto capture = flags.recording.open_live_recording(recordings[1], begin);
    // Text for users must not be mixed with records on standard output.
    sink::BoundedWaitStream console{flags.records.output == "-" ? STDERR_FILENO : STDOUT_FILENO};
    console.set_colors(log_stream().colors());
    const auto bus =
        flags.bus.open_output(flags.server_name(), bus::kLiveTimeouts, !flags.servers().empty());
    process::ObserverOptions options{.config = flags.make_config(*mod),
                                     .map_folders = flags.records.map_folders(),
                                     .map_cache = flags.records.map_cache,
                                     .inspect = !flags.no_inspect,
                                     .requests_full_snapshots = flags.requests_full_snapshots(),
                                     .explain_command = explain_command(flags),
                                     .flight_flag = "--flight 60s,64MiB DIR"};
    options.records_file = file.get();
    if (bus != nullptr) {
        options.bus = {.output = bus.get(), .totals = [&bus] { return bus->totals(); }};
    }
    options.console = flags.quiet ? nullptr : &console;
    options.summary = summary.get();
    options.capture = capture.get();
    if (flags.http.is_enabled()) {
        options.page = process::PageOptions{.access = flags.http.access,
                                            .token = greeting->token,
                                            .is_log_on_terminal = log_stream().is_terminal(),
                                            .recording_folders = flags.recording_folders(),
                                            .explain_finding = analyze::explain_finding_in_lines};
        options.page_addresses = flags.http.page_addresses();
    }
    confine_observer(flags, post.number);
    // An observer that waits was started for a takeover, not because the previous one was lost.
    const bool after_loss = post.number > 1 && !post.waits_for_previous;
    if (post.number == 1) {
        log_recording(flags);
    }
    process::ObserverRun run{std::move(options), std::move(post)};
    return run_observer(flags, run, after_loss, console, file.get(), summary.get());
}

/// Returns the options of a live run's supervisor: its observer, its duration, and the effect of
/// signals. `flags` and `settings` must be filled in, and outlive the run. Errors: UsageError.
process::SupervisorOptions make_supervisor_options(const RunFlags& flags, const Settings& settings,
                                                   const Invocation& invocation) {
    process::SupervisorOptions options;
    const bool reports = !flags.records.summary.empty() || flags.http.is_enabled() ||
                         flags.records.config.counts_traffic;
    if (!flags.no_inspect || reports) {
        options.observer_command = {invocation.arguments[0], kObserverArgument,
                                    invocation.arguments[1]};
    }
    options.startup.flags = settings.flags();
    if (flags.http.is_enabled()) {
        options.startup.token = flags.http.read_token(flags.state_folder());
    }
    if (flags.duration > 0) {
        options.time_limit = {.duration = std::chrono::duration<double>{flags.duration},
                              .reason = "the --duration has elapsed"};
    }
    options.config = std::make_shared<ConfigReloader>(invocation, flags, settings);
    std::signal(SIGHUP,
                options.terminal.existed_at_start() ? SIG_DFL
                                                    : SIG_IGN); // until the supervisor handles it
    return options;
}

int exit_code(const process::LiveRunResult& result) {
    if (!result.observer_exit) {
        return 0;
    }
    const int code = result.observer_exit->code;
    const bool failed =
        result.observer_exit->signal != 0 || (code == 0 && result.num_observer_failures != 0);
    return failed ? kExitFailed : code;
}

/// Returns the exit code of a run whose observer could not start.
int exit_code_of_failed_start(const process::ProcessExit& ending) {
    if (ending.signal == SIGINT || ending.signal == SIGTERM) {
        log::info("stopping: {} during start-up",
                  ending.signal == SIGINT ? "interrupted" : "terminated");
        return 0;
    }
    if (ending.signal == 0 && ending.code != 0) {
        return ending.code; // the observer printed the reason
    }
    sink::print_error("the observer could not start: {}", process::describe(ending));
    return kExitUsage;
}

/// The end of the error about a failed takeover.
constexpr const char* kTakeoverErrorSuffix = "; the running twscope carries on as before";

/// A function that forwards or taps traffic until the end of the run, and calls `started` when it
/// handles datagrams. Returns the exit code.
template <typename Flags>
using LiveRunFunction = int (*)(const Flags& flags, const Settings& settings,
                                const Invocation& invocation, const std::function<void()>& started);

/// Adds the flags of a command for live traffic, and its action, which runs the observer in the
/// observer process.
template <typename Flags>
void add_live_command(Command& command, const std::string& traffic, LiveRunFunction<Flags> run) {
    auto flags = std::make_shared<Flags>();
    auto settings = std::make_shared<Settings>(command);
    flags->add_to(command);
    command.traffic_heading = traffic;
    const auto run_command = [flags, settings, run](const Invocation& invocation) {
        prepare_signals(invocation);
        if (invocation.is_observer) {
            return run_observer_process(*flags, *settings);
        }
        if (flags->check_config) {
            return check_config(*flags, *settings);
        }
        settings->fill_flags_and_set_color();
        open_log(flags->log_level);
        const auto start = [&](const std::function<void()>& started) {
            return run(*flags, *settings, invocation, started);
        };
        return flags->background ? run_in_background(start) : start([] {});
    };
    command.action = [settings, run_command](const Invocation& invocation) {
        return settings->run_command([&] { return run_command(invocation); });
    };
}

process::RelayRunOptions relay_run_options(const ProxyFlags& flags) {
    process::RelayRunOptions options{.relay = flags.relay_options(),
                                     .limits_new_clients = !flags.no_admission,
                                     .repeats_info_answers = !flags.no_info_cache,
                                     .is_inspected = !flags.no_inspect,
                                     .ring_bytes = flags.ring_mib << 20U,
                                     .address_limit = "--max-per-address"};
    options.servers = flags.servers();
    if (flags.resync) {
        options.relay.resync_functions = pipeline::make_snapshot_resync_functions();
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
                            flags.takeover ? kTakeoverErrorSuffix
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
                log::warn("{}; trying again for {} {}", why, flags.start_timeout,
                          record::choose_plural(flags.start_timeout == 1 ? 1 : 2, "second[s]"));
            }
            std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(pause, left));
        } catch (const relay::SharedAddressError& error) {
            throw usage_error("{}{}", error.what(), kSharedAddressHint);
        } catch (const relay::StartError& error) {
            throw usage_error("{}{}", error.what(), flags.takeover ? kTakeoverErrorSuffix : "");
        }
    }
}

/// Returns the path of the socket through which this process takes over, and a later process takes
/// over from it. With several servers, the path must not depend on the first server, which may have
/// changed by then.
std::filesystem::path takeover_file(const ProxyFlags& flags,
                                    const process::RelayRunOptions& options) {
    return process::TakeoverSocket::path_of(
        flags.state_folder(),
        options.servers.empty() ? base::to_string(options.relay.server.listen.front()) : "fleet");
}

int run_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
              const std::function<void()>& started) {
    flags.check_flags(settings); // also the observer's flags, so that errors are printed once
    process::RelayRunOptions options = relay_run_options(flags);
    options.supervision = make_supervisor_options(flags, settings, invocation);
    options.on_forwarding = [&started] {
        process::notify_service_ready();
        started();
    };
    const process::StoredKey key =
        process::read_or_create_key(flags.state_folder(), "addresses.key");
    options.relay.address_key = key.key;
    options.takeover_file = takeover_file(flags, options);
    if (!flags.no_inspect) {
        options.example_client = record::client_address_text(std::string{process::kExampleClient},
                                                             flags.records.config.pseudonym_key);
    }
    flags.raise_descriptor_limit(std::max<std::size_t>(options.servers.size(), 1));
    std::optional<process::TakeoverRequester> requester;
    if (flags.takeover) {
        options.requester = &requester.emplace(options.takeover_file, options.example_client);
    }
    const relay::ClientAddressMode wanted = options.relay.client_address;
    const auto run = open_relay(flags, options);
    if (run == nullptr) {
        return kExitRetryable;
    }
    if (const auto ending = run->start_observer()) {
        return exit_code_of_failed_start(*ending);
    }
    const relay::ClientAddressMode mode = run->client_address_mode();
    if (flags.takeover) {
        run->take_over();
        if (!options.supervision.observer_command.empty()) {
            log_recording(flags);
        }
    }
    if (mode == relay::ClientAddressMode::loopback && !key.warning.empty()) {
        log::warn("{} (see --state)", key.warning);
    }
    const std::string addresses = describe_client_address_mode(wanted, mode);
    if (mode == relay::ClientAddressMode::shared) {
        run->log_routes({});
        log::warn("{}", addresses);
    } else {
        run->log_routes(addresses);
    }
    return run_and_log_exception([&] { return exit_code(run->forward_until_stopped()); });
}

int print_routes(const ProxyFlags& flags, const Settings& settings) {
    for (const auto& check : flags.traffic_checks(settings)) {
        check();
    }
    if (flags.servers().size() > 1) {
        throw UsageError{"--print-routes: name one server at a time"};
    }
    const relay::Options options = flags.relay_options();
    const auto server = process::resolve_answering_addresses(
                            options.server.host, options.server.port, process::AnswersWanted::one)
                            .front();
    fmt::print("{}", transparent_routing_script(server, relay::is_local_address(server),
                                                options.server.listen));
    return 0;
}

int start_relay(const ProxyFlags& flags, const Settings& settings, const Invocation& invocation,
                const std::function<void()>& started) {
    if (flags.print_routes) {
        return print_routes(flags, settings);
    }
    try {
        return run_relay(flags, settings, invocation, started);
    } catch (const process::NoTakeoverPeerError& error) {
        sink::print_error("--takeover: {}", error.what());
        return kExitRetryable;
    } catch (const relay::TakeoverError& error) {
        sink::print_error("--takeover: {}{}", error.what(), kTakeoverErrorSuffix);
        return kExitUsage;
    }
}

constexpr const char* kAboutTap =
    "A tap only observes, at no cost to the game. It needs CAP_NET_RAW to open the interface and "
    "drops it afterwards. It cannot change traffic: --resync, --impair and other flags that affect "
    "traffic belong to proxy. See docs/tap.md.";

process::TapRunOptions tap_run_options(const TapFlags& flags) {
    constexpr double kSecond = 1e9;
    std::vector<std::uint16_t> ports;
    for (const std::string& server : flags.servers) {
        ports.push_back(parse_host_port(server, "--server").port);
    }
    return {.live_capture = {.interface = flags.interface,
                             .ports = std::move(ports),
                             .buffer_bytes = flags.buffer_mib << 20U},
            .servers = flags.server_detector(),
            .description = flags.describe_interface_and_servers(),
            .limits = {.idle_timeout = static_cast<std::int64_t>(flags.idle_timeout * kSecond),
                       .max_sessions = flags.max_sessions},
            .ring_bytes = flags.ring_mib << 20U};
}

int run_tap(const TapFlags& flags, const Settings& settings, const Invocation& invocation,
            const std::function<void()>& started) {
    flags.check_flags(settings); // also the observer's flags, so that errors are printed once
    process::TapRunOptions options = tap_run_options(flags);
    options.supervision = make_supervisor_options(flags, settings, invocation);
    std::optional<process::TapRun> tap;
    try {
        tap.emplace(std::move(options));
    } catch (const capture::NoInterfaceError& error) {
        sink::print_error("{}", error.what());
        return kExitRetryable;
    } catch (const capture::NoPermissionError& error) {
        throw usage_error(
            "{}: this needs CAP_NET_RAW: run 'sudo setcap cap_net_raw=ep TWSCOPE' with this "
            "program's path, set AmbientCapabilities=CAP_NET_RAW in its systemd unit, or use sudo",
            error.what());
    }
    if (const auto ending = tap->start_observer()) {
        return exit_code_of_failed_start(*ending);
    }
    process::notify_service_ready();
    started();
    return run_and_log_exception([&] {
        const int code = exit_code(tap->capture_until_stopped());
        return code == 0 && tap->is_interface_gone() ? kExitFailed : code;
    });
}

} // namespace

void add_proxy_command(Command& command) {
    command.about = "Forward traffic between clients and a server, and record what happens";
    add_live_command<ProxyFlags>(command, "Forward", start_relay);
}

void add_tap_command(Command& command) {
    command.about = "Observe traffic on an interface and record what happens, without forwarding";
    command.footer = kAboutTap;
    add_live_command<TapFlags>(command, "Observe", run_tap);
}

} // namespace tw::cli
