#include "proxy/cli/run_flags.h"

#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/settings.h"
#include "proxy/sink/output.h"

#include <cstdlib>
#include <tuple>

#include <fmt/ranges.h>

namespace tw::cli {

void add_duration_flag(Command& command, double& seconds) {
    command.add_time("--duration", seconds, 0.001, 366 * 86400.0, "Stop after this many seconds");
}

void add_log_level_flag(Command& command, std::string& level) {
    command.add("--log-level", &level, "LEVEL", "Log level on standard error").allowed_words = {
        "error", "warn", "info", "debug", "trace"};
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
        return given.substr(0, given.find(':')); // the first one: systemd may list several folders
    }
    if (const std::string home = variable("XDG_STATE_HOME"); !home.empty()) {
        return std::filesystem::path{home} / "twscope";
    }
    const std::string home = variable("HOME");
    if (home.empty()) { // the current folder is not safe: other users may write to it
        throw UsageError{"HOME is not set, so there is no folder for keys; name one with --state"};
    }
    return std::filesystem::path{home} / ".local" / "state" / "twscope";
}

void add_state_flag(Command& command, std::string& state, const std::string& content) {
    command.add("--state", &state, "DIR",
                fmt::format("Folder for {} [$STATE_DIRECTORY, $XDG_STATE_HOME/twscope or "
                            "~/.local/state/twscope]",
                            content));
}

void RunFlags::add_output_flags(Command& command) {
    records.add_to(command);
    records.add_demo_and_capture_flags(command);
    recording.add_to(command);
    bus.add_to(command);
    flight.add_to(command);
}

void RunFlags::add_limit_flags(Command& command) {
    command.add_time("--idle-timeout", idle_timeout, 0.1, 86400,
                     "End a session after this many seconds without a datagram");
    command.add_number("--max-sessions", &max_sessions, 1, 60000,
                       "Places for connections, also of clients that are still joining. To limit "
                       "players, use the server's sv_max_clients");
    command.add_number("--ring", &ring_mib, 1, 4096,
                       "Memory in MiB, per thread, for copies waiting to be inspected");
    add_memory_flag(command, memory_mib);
    command.add_number("--observer-memory", &observer_memory_mib, 128, 1 << 20,
                       "Memory limit in MiB for the observer, the process that inspects; it is "
                       "restarted if it needs more");
}

void RunFlags::add_lifecycle_flags(Command& command, const std::string& background_help) {
    command.add_switch("--background", background, background_help);
    add_duration_flag(command, duration);
    command.add_switch(
        "--stats", records.config.counts_traffic,
        "At the end, print traffic by message and item type, as 'twscope decode --stats' does");
    command.add_switch("-q,--quiet", quiet, "Do not print the status, findings or their table");
    command.add_switch("--check-config", check_config,
                       "Read flags, variables and --config, print what a run would do, or its "
                       "errors, and exit");
    add_log_level_flag(command, log_level);
}

std::vector<RunFlags::Check> RunFlags::flag_checks(const Settings& settings) const {
    std::vector<Check> checks = traffic_checks(settings);
    // Checks the values of a flag one by one, so that all wrong ones are reported.
    const auto add_checks = [&checks](const Texts& values, const auto& check) {
        for (const std::string& value : values) {
            checks.emplace_back([&value, check] { check(value); });
        }
    };
    // The file of --objects is read once for all checks.
    const auto mod = std::make_shared<std::unique_ptr<wire::ModDescription>>();
    const auto described = [this, mod]() -> const wire::ModDescription& {
        if (*mod == nullptr) {
            *mod = records.maps_and_objects.read_mod_description();
        }
        return **mod;
    };
    checks.emplace_back([described] { std::ignore = described(); });
    add_checks(records.fail_on, [](const auto& word) {
        std::ignore = parse_findings_to_fail_on("--fail-on", {word});
    });
    add_checks(flight.triggers, [](const auto& word) {
        std::ignore = parse_findings_to_fail_on("--flight-on", {word});
    });
    add_checks(records.maps_and_objects.maps,
               [](const auto& name) { std::ignore = require_folder("--maps", name); });
    add_checks(records.expect, [this, described](const auto& text) {
        std::ignore = records.parse_expectations({text}, described());
    });
    add_checks(http.addresses,
               [](const auto& address) { std::ignore = parse_http_address(address); });
    const Check more[] = {
        [this] { std::ignore = parse_time_and_size("--rotate", recording.rotate); },
        [this] { std::ignore = parse_time_and_size("--keep", recording.keep); },
        [this] { std::ignore = recording.min_free_bytes(); },
        [this] { std::ignore = recording.max_message_bytes(); },
        [this] { recording.check_recordings(recordings()); },
        [this, &settings] { check_files(settings); },
        [this] { check_replaceable("--summary", records.summary, FileType::summary); },
        [this] { std::ignore = records.map_folders(); },
        [this] { std::ignore = records.demo_options(); },
        [this] { records.check_capture_flags(); },
        [this] { check_inspection_flags(); },
        [this] { std::ignore = flight.options(records.config.json.show_secrets, memory_mib); },
        [this, described] { std::ignore = records.parse_output_filter(described()); },
        [this, described] {
            std::ignore =
                records.parse_filter("--write-filter", records.capture_filter, described());
        },
        [this, described] {
            std::ignore =
                records.parse_filter("--console-filter", records.console_filter, described());
        },
        [this] { check_bus_name("--bus-name", bus.name); },
        [this] { std::ignore = parse_time_and_size("--bus-limits", bus.limits); },
        [this] { std::ignore = bus.spool_bytes(); },
        [this] { std::ignore = bus.access.bus_access(); },
        [this] { std::ignore = page_recording_options(); },
        [this] { http.check_token_file(); },
    };
    checks.insert(checks.end(), std::begin(more), std::end(more));
    return checks;
}

void RunFlags::check_flags(const Settings& settings) const {
    for (const Check& check : flag_checks(settings)) {
        check();
    }
}

std::string RunFlags::describe_recording() const {
    const char* const names = records.config.pseudonym_key.empty() ? "" : " with pseudonyms";
    std::vector<std::string> parts;
    for (const NamedRecording& each : recordings()) {
        if (!each.path.empty()) {
            const bool is_capture = &each.kind == &capture_recording_kind();
            parts.push_back(fmt::format("{}{} to {}", each.kind.content, is_capture ? "" : names,
                                        recording.describe_place(each)));
        }
    }
    if (bus.is_enabled()) {
        parts.push_back(fmt::format("records{} to the bus", names));
    }
    if (!records.demo.empty()) {
        parts.push_back("demos to " + records.demo);
    }
    if (flight.is_enabled()) {
        parts.push_back("the last datagrams to memory, and on request to " +
                        flight.folder().string());
    }
    return parts.empty() ? "not recording (use -o FILE)"
                         : fmt::format("recording {}", fmt::join(parts, "; "));
}

namespace {

/// Returns whether `folder` is missing and a run creates it together with the state folder.
bool is_created_with_state_folder(const std::filesystem::path& folder, const RunFlags& flags) {
    std::error_code ignored;
    if (folder.empty() || std::filesystem::exists(folder, ignored)) {
        return false;
    }
    const auto rest = resolve_path(flags.state_folder()).lexically_relative(resolve_path(folder));
    return !rest.empty() && *rest.begin() != "..";
}

/// Adds all errors of the flags, and of the files and addresses that the flags name.
void add_flag_problems(const RunFlags& flags, const Settings& settings,
                       std::vector<std::string>& problems) {
    for (const RunFlags::Check& check : flags.flag_checks(settings)) {
        add_problem_of_check(problems, check);
    }
    add_problem_of_check(problems, [&] {
        flags.raise_descriptor_limit(std::max<std::size_t>(flags.servers().size(), 1));
    });
    for (const NamedRecording& each : flags.recordings()) {
        add_problem_of_check(problems, [&] {
            const std::string folder = flags.recording.segment_folder(each);
            const std::string created = folder.empty() ? each.path : folder;
            std::error_code ignored;
            if (std::filesystem::is_regular_file(folder, ignored)) {
                throw make_open_error(each.kind.flag, each.path,
                                      std::make_error_code(std::errc::not_a_directory));
            }
            if (!is_created_with_state_folder(std::filesystem::path{created}.parent_path(),
                                              flags)) {
                check_creatable({each.kind.flag, created});
            }
        });
    }
    add_problem_of_check(problems, [&] { check_creatable({"--summary", flags.records.summary}); });
    add_problem_of_check(problems, [&] {
        if (flags.recording.segment_folder(flags.recordings().front()).empty()) {
            check_replaceable("--output", flags.records.output);
        }
    });
}

} // namespace

int check_config(const RunFlags& flags, Settings& settings) {
    std::vector<std::string> problems = settings.try_fill_missing_flags();
    settings.print_replaced_flags();
    if (settings.is_config_file_read()) {
        add_flag_problems(flags, settings, problems);
    }
    for (const std::string& problem : problems) {
        sink::print_error("{}", settings.add_source_to_message(problem));
    }
    if (!settings.is_config_file_read()) {
        sink::print_error(
            "there may be more errors: the configuration file was not read to its end");
    }
    if (!problems.empty()) {
        return kExitUsage;
    }
    std::string text;
    for (const std::string& line : flags.describe_traffic_source()) {
        text += line + '\n';
    }
    text += flags.describe_recording() + '\n';
    if (!flags.records.output.empty() || flags.bus.is_enabled()) {
        text += fmt::format("client addresses: {}\n", flags.records.config.pseudonym_key.empty()
                                                          ? "recorded as they are"
                                                          : "pseudonyms");
    }
    for (const std::string& warning : flags.recording.disk_space_warnings(flags.recordings())) {
        text += "warning: " + warning + '\n';
    }
    const std::size_t secret_size = flags.records.config.pseudonym_key.size();
    if (constexpr std::size_t kShort = 16; secret_size != 0 && secret_size < kShort) {
        text += fmt::format("warning: --pseudonyms: a secret shorter than {} characters can be "
                            "guessed, and the addresses with it\n",
                            kShort);
    }
    text += flags.http.describe() + '\n';
    for (const std::string& line : settings.describe_sources()) {
        text += "from " + line + '\n';
    }
    sink::print_text(stdout, text);
    return 0;
}

void RunFlags::check_files(const Settings& settings) const {
    const std::string none; // replaces the path of --output or --write if it names segments
    const bool whole = recording.rotate.empty();
    std::vector<std::string> read = bus.access.named_files();
    read.insert(read.end(),
                {records.maps_and_objects.objects_file, settings.config_file(), http.token_file});
    check_distinct_files(read, {{"--output", whole ? records.output : none},
                                {"--summary", records.summary},
                                {"--write", whole ? records.capture : none}});
}

void RunFlags::check_inspection_flags() const {
    const std::pair<bool, const char*> needs[] = {{!records.output.empty(), "--output"},
                                                  {!records.capture.empty(), "--write"},
                                                  {!records.demo.empty(), "--demo"},
                                                  {flight.is_enabled(), "--flight"},
                                                  {bus.is_enabled(), "--bus"},
                                                  {!records.expect.empty(), "--expect"},
                                                  {!records.fail_on.empty(), "--fail-on"},
                                                  {requests_full_snapshots(), "--resync"},
                                                  {!http.recordings.empty(), "--http-recordings"}};
    std::vector<const char*> given;
    for (const auto& [is_given, flag] : needs) {
        if (no_inspect && is_given) {
            given.push_back(flag);
        }
    }
    if (!given.empty()) {
        throw usage_error("{} {} inspection; drop --no-inspect", fmt::join(given, ", "),
                          given.size() == 1 ? "needs" : "need");
    }
}

pipeline::Config RunFlags::make_config(const wire::ModDescription& mod) const {
    auto on_page = page_recording_options();
    pipeline::Config config = records.make_config(mod, on_page || bus.is_enabled());
    config.memory_bytes = memory_mib << 20U;
    config.max_message_bytes = recording.max_message_bytes();
    config.limits_findings = true;
    config.flight = flight.options(config.json.show_secrets, memory_mib);
    config.page_recordings = std::move(on_page);
    return config;
}

std::optional<pipeline::PageRecordingOptions> RunFlags::page_recording_options() const {
    return http.page_recording_options({.folder = {},
                                        .version = records.demo_version,
                                        .messages = records.config.json.messages,
                                        .show_secrets = records.config.json.show_secrets});
}

std::vector<std::filesystem::path> RunFlags::recording_folders() const {
    std::vector<std::filesystem::path> folders;
    if (!records.demo.empty()) {
        folders.emplace_back(records.demo);
    }
    if (flight.is_enabled()) {
        folders.push_back(flight.folder());
    }
    if (const auto page = page_recording_options()) {
        folders.push_back(page->demos.folder);
    }
    return folders;
}

std::vector<std::filesystem::path> RunFlags::written_folders() const {
    std::vector<std::filesystem::path> folders = recording_folders();
    if (!records.map_cache.empty()) {
        folders.emplace_back(records.map_cache);
    }
    if (const auto folder = bus.spool_folder(); !folder.empty()) {
        folders.push_back(folder);
    }
    for (const NamedRecording& each : recordings()) {
        if (const std::string folder = recording.segment_folder(each); !folder.empty()) {
            folders.emplace_back(folder);
        }
    }
    return folders;
}

std::vector<std::filesystem::path> RunFlags::folders_of_reopened_files() const {
    std::vector<std::string> paths{records.summary};
    for (const NamedRecording& each : recordings()) {
        paths.push_back(recording.segment_folder(each).empty() ? each.path : std::string{});
    }
    std::vector<std::filesystem::path> folders;
    for (const std::string& path : paths) {
        std::error_code ignored;
        if (!path.empty() && path != "-" && !std::filesystem::is_character_file(path, ignored)) {
            folders.push_back(resolve_path(path).parent_path());
        }
    }
    return folders;
}

} // namespace tw::cli
