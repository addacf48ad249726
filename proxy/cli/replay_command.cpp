#include "proxy/base/clock.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/process/server_probe.h"
#include "proxy/record/terminal_text.h"
#include "proxy/replay/client_script.h"
#include "proxy/replay/replay_run.h"
#include "proxy/sink/output.h"

#include <cmath>

namespace tw::cli {

namespace {

std::string clients_text(const replay::ReplayResult& result) {
    using replay::ClientEnding;
    constexpr std::array<std::pair<ClientEnding, std::string_view>, 6> kEndings{{
        {ClientEnding::finished, "played to the end"},
        {ClientEnding::interrupted, "interrupted"},
        {ClientEnding::unanswered, "got no answer"},
        {ClientEnding::refused, "refused"},
        {ClientEnding::closed, "disconnected by the server"},
        {ClientEnding::silent, "timed out"},
    }};
    std::string text =
        fmt::format("clients: {}, {} entered the game", result.clients, result.num_entered);
    for (const auto& [ending, what] : kEndings) {
        if (const std::size_t count = result.num_ended(ending); count != 0) {
            text += fmt::format(", {} {}", count, what);
        }
    }
    return text + '\n';
}

/// Describes what a replay did. `num_withheld_messages`: messages of its scripts that were not
/// sent.
std::string replay_text(const replay::ReplayResult& result, std::uint64_t num_withheld_messages) {
    const replay::ClientCounts& counts = result.counts;
    const auto& totals = result.totals;
    std::string text = clients_text(result);
    text += fmt::format("sent: {}, {} in {:.1f} s; {} resent, {} skipped, {} withheld\n",
                        record::count_with_noun(counts.inputs, "input[s]"),
                        record::count_with_noun(counts.messages, "message[s]"), result.seconds,
                        record::count_with_noun(counts.resent_chunks, "chunk[s]"),
                        record::count_with_noun(counts.skipped_inputs, "input[s]"),
                        record::count_with_noun(num_withheld_messages, "message[s]"));
    text +=
        fmt::format("received: {}, {} verified, {} with a wrong checksum, {} undecodable, {} on "
                    "an unknown base\n",
                    record::count_with_noun(totals.snapshots, "snapshot[s]"), totals.verified,
                    totals.mismatched, totals.undecodable, totals.unknown_base);
    text += fmt::format("lost: {} missing, {} incomplete, {} of {}\n",
                        record::count_with_noun(totals.missed, "snapshot[s]"), totals.incomplete,
                        counts.pings - counts.round_trip_us.count,
                        record::count_with_noun(counts.pings, "ping[s]"));
    if (counts.round_trip_us.count != 0) {
        constexpr double kThousand = 1000;
        text += fmt::format("round trip: {:.2f} ms on average, {:.2f} to {:.2f}\n",
                            counts.round_trip_us.mean() / kThousand,
                            static_cast<double>(counts.round_trip_us.min) / kThousand,
                            static_cast<double>(counts.round_trip_us.max) / kThousand);
    }
    return text;
}

/// The most clients of a server.
constexpr std::size_t kMaxClients = 128;
constexpr double kNanosecondsPerSecond = 1e9;
/// The most bytes of a password that fit into a client's info message.
constexpr std::size_t kMaxPasswordBytes = 255;

struct ReplayFlags {
    std::string capture;
    std::string server;
    RecordFlags records;
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;
    replay::ReplayOptions options{};
    std::optional<std::int64_t> session; ///< nullopt for all sessions in turn
    double duration = 0;                 ///< seconds; 0 for the capture's length
    double timeout = 10;
};

/// The clients of a capture.
struct CapturedClients {
    std::vector<replay::ClientScript> scripts;
    std::uint64_t num_withheld_messages = 0; ///< messages of the scripts that are not sent
    bool is_damaged = false;                 ///< parts of the capture could not be read
};

/// Errors: UsageError, also if no client plays; CaptureError.
CapturedClients read_clients(const ReplayFlags& flags, const pipeline::Config& config,
                             inspect::MemoryBudget& memory, pipeline::MapFolders& maps) {
    replay::ClientScriptExtractor reader{
        {.includes_secrets = config.json.show_secrets, .shown_commands = &config.shown_commands}};
    inspect::Observers observers;
    observers.add_observer(reader);
    pipeline::RecordFanout nobody;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = config.json.objects,
                                  .emits_message_records = false,
                                  .memory_budget = &memory,
                                  .observers = &observers},
                                 maps,
                                 nobody,
                                 numbers};
    capture::CaptureRun captured{list_capture_files({flags.capture}), capture::ServerDetector{}};
    captured.read_captures(inspector);
    if (reader.is_truncated()) {
        sink::print_error("{}: does not fit in memory; only its beginning is played",
                          flags.capture);
    }
    CapturedClients clients{.scripts = reader.take_scripts(), .is_damaged = captured.is_damaged()};
    if (flags.session) {
        std::erase_if(clients.scripts, [&](const replay::ClientScript& script) {
            return script.session != flags.session;
        });
    }
    if (clients.scripts.empty()) {
        throw usage_error("{}: no client plays in {}; 'twscope decode' shows what it contains",
                          flags.capture,
                          flags.session ? fmt::format("its session {}", *flags.session) : "it");
    }
    for (const replay::ClientScript& script : clients.scripts) {
        clients.num_withheld_messages += script.num_withheld_messages;
    }
    return clients;
}

/// Prints why clients could not play. Returns the exit code of the command. `code`: the exit code
/// of the checks that the user requested.
int report_clients(const ReplayFlags& flags, const replay::ReplayResult& result, int code) {
    using replay::ClientEnding;
    if (result.num_ended(ClientEnding::unanswered) == result.clients) {
        sink::print_error("no answer from {}; is the server running?", flags.server);
        return kExitRetryable;
    }
    if (!result.reason.empty()) {
        sink::print_error("the server said: {}", record::escape_for_terminal(result.reason));
    }
    if (result.num_ended(ClientEnding::refused) == result.clients) {
        sink::print_error("{} let no client in; if it needs a password, give --password",
                          flags.server);
        return kExitUsage;
    }
    const std::size_t fine =
        result.num_ended(ClientEnding::finished) + result.num_ended(ClientEnding::interrupted);
    const bool failed = fine != result.clients || result.send_errors != 0;
    return code == 0 && failed ? kExitFailed : code;
}

int run_replay_command(const ReplayFlags& flags) {
    if (flags.options.client_options.password.size() > kMaxPasswordBytes) {
        throw usage_error("--password: is longer than {} bytes", kMaxPasswordBytes);
    }
    if (find_file_type(flags.capture) == FileType::records) {
        throw usage_error("{}: replay needs a capture; a recording has no packets", flags.capture);
    }
    if (flags.server.empty()) {
        throw UsageError{"replay needs a game server: -s HOST:PORT, for example -s 127.0.0.1:8303"};
    }
    const RecordFlags& records = flags.records;
    const analyze::FindingsToFailOn fail_on = records.findings_to_fail_on();
    inspect::MemoryBudget memory{flags.memory_mib << 20U};
    pipeline::MapFolders maps{records.map_folders(),
                              {.cache = records.map_cache, .memory = &memory}};
    const auto mod = records.maps_and_objects.read_mod_description();
    const pipeline::Config config = records.make_config(*mod, false);
    check_outputs({flags.capture, records.maps_and_objects.objects_file},
                  {{"--output", records.output}, {"--summary", records.summary}});
    check_replaceable("--summary", records.summary, FileType::summary);
    const HostPort server = parse_server(flags.server);
    CapturedClients clients = read_clients(flags, config, memory, maps);
    // Opening the outputs truncates them, so all flags are checked before.
    const auto summary = open_output_file("--summary", records.summary);
    check_replaceable("--output", records.output);
    const auto file =
        records.output.empty() ? nullptr : open_recording({lines_recording_kind(), records.output});
    pipeline::RecordWriter written{config, pipeline::WorkerOutputs{.records = file.get()}};
    replay::ReplayOptions options = flags.options;
    options.client_options.duration = std::llround(flags.duration * kNanosecondsPerSecond);
    options.client_options.timeout = std::llround(flags.timeout * kNanosecondsPerSecond);
    options.inspect = config.make_inspect_options(inspect::Observers::none());
    options.inspect.memory_budget = &memory;
    options.scripts = std::move(clients.scripts);
    options.server =
        process::resolve_answering_addresses(server.host, server.port, process::AnswersWanted::one)
            .front();
    const replay::ReplayResult result = replay::run_replay(std::move(options), maps, written);
    bool is_recorded = true;
    if (file != nullptr) {
        written.write_summary({.head = {.time = base::now_utc()},
                               .stats = &result.totals,
                               .sessions = result.sessions});
        is_recorded = finish_output("--output", *file);
    }
    sink::print_text(records.output == "-" ? stderr : stdout,
                     replay_text(result, clients.num_withheld_messages));
    auto checks = fail_on.make_checks(result.totals, "--fail-on");
    analyze::add_expectation_checks(checks, written.expectations().list(), "--expect");
    const int checked = report_result(
        analyze::make_outcome(std::move(checks), result.totals, result.sessions, result.seconds),
        summary.get());
    const int code = report_clients(flags, result, checked);
    return code == 0 && (!is_recorded || clients.is_damaged) ? kExitFailed : code;
}

} // namespace

void add_replay_command(Command& command) {
    command.about = "Replay the clients of a capture against a real server, and check its answers";
    ReplayFlags& flags = add_settings_and_action(command, run_replay_command);
    command
        .add("capture", &flags.capture, "CAPTURE",
             "A capture (Teeworlds 0.6, 0.7 or DDNet) whose clients are replayed, or a folder of "
             "segments")
        .is_required = true;
    command.add("-s,--server", &flags.server, "HOST:PORT", "Game server to play on");
    command.add_number("--clients", &flags.options.clients, 1, kMaxClients,
                       "Number of simultaneous clients; they share the capture's sessions");
    command.add_number("--session", &flags.session, 1, kMaxSessionNumber,
                       "Replay only this session of the capture");
    command.add_decimal("--speed", flags.options.client_options.speed, 0.01, 100,
                        "Playback speed, relative to the capture");
    command.add_time("--duration", flags.duration, 0.001, 86400,
                     "Keep each client connected for exactly this many seconds (by default, until "
                     "it has sent everything); they start 50 ms apart");
    command.add_time("--timeout", flags.timeout, 0.1, 3600,
                     "Give up after this many seconds without an answer from the server");
    command.add("--password", &flags.options.client_options.password, "TEXT",
                "Server password; the captured one is never sent");
    flags.records.add_to(command);
    // Flags without effect: a replay has no console and no merged snapshots, and plays clients of
    // our own.
    for (const char* const useless : {"--view", "--console-filter", "--pseudonyms"}) {
        command.remove_flag(useless);
    }
    add_memory_flag(command, flags.memory_mib);
}

} // namespace tw::cli
