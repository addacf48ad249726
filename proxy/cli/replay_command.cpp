#include "proxy/base/clock.h"
#include "proxy/base/numbers.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/process/server_probe.h"
#include "proxy/record/terminal_text.h"
#include "proxy/relay/listen_socket.h"
#include "proxy/replay/client_script.h"
#include "proxy/replay/replay_run.h"
#include "proxy/sink/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

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
        fmt::format("clients: {}, {} entered the game", result.clients, result.entered);
    for (const auto& [ending, what] : kEndings) {
        if (const std::size_t count = result.num_ended(ending); count != 0) {
            text += fmt::format(", {} {}", count, what);
        }
    }
    return text + '\n';
}

/// Describes what a replay did. `withheld`: messages of its scripts that were not sent.
std::string replay_text(const replay::ReplayResult& result, std::uint64_t withheld) {
    const replay::ClientCounts& counts = result.counts;
    const auto& totals = result.totals;
    std::string text = clients_text(result);
    text += fmt::format("sent: {}, {} in {:.1f} s; {} resent, {} skipped, {} withheld\n",
                        record::count_with_noun(counts.inputs, "input[s]"),
                        record::count_with_noun(counts.messages, "message[s]"), result.seconds,
                        record::count_with_noun(result.resent, "chunk[s]"),
                        record::count_with_noun(counts.skipped, "input[s]"),
                        record::count_with_noun(withheld, "message[s]"));
    text +=
        fmt::format("received: {}, {} verified, {} with a wrong checksum, {} undecodable, {} on "
                    "an unknown base\n",
                    record::count_with_noun(totals.snapshots, "snapshot[s]"), totals.verified,
                    totals.mismatched, totals.undecodable, totals.unknown_base);
    text += fmt::format("lost: {} missing, {} incomplete, {} of {} pings\n",
                        record::count_with_noun(totals.missed, "snapshot[s]"), totals.incomplete,
                        counts.pings - counts.round_trip_us.count, counts.pings);
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
constexpr double kMinSpeed = 0.01;
constexpr double kMaxSpeed = 100;
constexpr double kNanoseconds = 1e9;
/// The most bytes of a password that fit into a client's info message.
constexpr std::size_t kMaxPassword = 255;

struct ReplayFlags {
    std::string capture;
    std::string server;
    RecordFlags records;
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;
    std::size_t clients = 1;
    std::optional<std::int64_t> session; ///< nullopt for all sessions in turn
    double speed = 1;
    double duration = 0; ///< seconds; 0 for the capture's length
    double timeout = 10;
    std::string password;
};

/// Everything that a run of `replay` has open.
class ReplayCommand {
  public:
    /// Opens inputs and outputs. Errors: UsageError, CaptureError.
    explicit ReplayCommand(const ReplayFlags& flags);

    /// Replays everything. Returns the exit code.
    int run();

  private:
    void read_scripts();
    void open_sinks();
    [[nodiscard]] HostPort server_name() const;
    [[nodiscard]] boost::asio::ip::udp::endpoint server() const;
    [[nodiscard]] int report_run(const replay::ReplayResult& result);
    [[nodiscard]] bool finish_file(const replay::ReplayResult& result);

    const ReplayFlags* flags_;
    analyze::FindingsToFailOn fail_on_;
    std::unique_ptr<store::OutputFile> summary_;
    inspect::MemoryBudget memory_;
    pipeline::MapFolders maps_;
    std::unique_ptr<wire::ModDescription> mod_;
    pipeline::Config config_;
    std::unique_ptr<store::OutputFile> file_;
    std::optional<pipeline::RecordWriter> written_;
    std::vector<replay::ClientScript> scripts_;
    std::uint64_t withheld_ = 0;
    bool damaged_ = false; ///< parts of the capture could not be read
};

ReplayCommand::ReplayCommand(const ReplayFlags& flags)
    : flags_{&flags}, fail_on_{flags.records.fail_on_findings()}, memory_{flags.memory_mib << 20U},
      maps_{flags.records.map_folders(), {.cache = flags.records.map_cache, .memory = &memory_}},
      mod_{flags.records.lookup.description()}, config_{flags.records.complete(*mod_)} {
    check_outputs({flags.capture, flags.records.lookup.objects_file},
                  {{"--output", flags.records.output}, {"--summary", flags.records.summary}});
    static_cast<void>(server_name());
    read_scripts();
    open_sinks();
}

void ReplayCommand::read_scripts() {
    replay::ScriptReader reader{
        {.secrets = config_.json.show_secrets, .shown_commands = &config_.shown_commands}};
    inspect::Observers observers;
    observers.add(reader);
    pipeline::RecordFanout nobody;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.objects = &mod_->objects, .messages = false, .memory = &memory_, .observers = &observers},
        maps_,
        nobody,
        numbers};
    CaptureFlags named;
    named.paths = {flags_->capture};
    capture::CaptureRun captured{named.files(), capture::ServerDetector{}};
    captured.read(inspector);
    damaged_ = captured.is_damaged();
    if (reader.is_truncated()) {
        sink::print_error("{}: does not fit in memory; only its beginning is played",
                          flags_->capture);
    }
    scripts_ = reader.take_scripts();
    if (flags_->session) {
        std::erase_if(scripts_, [this](const replay::ClientScript& script) {
            return script.session != flags_->session;
        });
    }
    if (scripts_.empty()) {
        throw UsageError{fmt::format(
            "{}: no client plays in {}; 'twscope decode' shows what it contains", flags_->capture,
            flags_->session ? fmt::format("its session {}", *flags_->session) : "it")};
    }
    withheld_ = std::accumulate(scripts_.begin(), scripts_.end(), std::uint64_t{0},
                                [](std::uint64_t sum, const replay::ClientScript& script) {
                                    return sum + script.withheld;
                                });
}

void ReplayCommand::open_sinks() {
    const RecordFlags& records = flags_->records;
    summary_ = open_output_file("--summary", records.summary);
    if (!records.output.empty()) {
        check_replaceable("--output", records.output);
        file_ = open_recording(lines_recording_kind(), records.output);
    }
    written_.emplace(config_, pipeline::Outputs{.records = file_.get()});
}

HostPort ReplayCommand::server_name() const {
    HostPort where = parse_host_port(flags_->server, "--server");
    if (where.host.empty() || where.port == 0) {
        throw UsageError{fmt::format("--server {}: expected HOST:PORT, for example 127.0.0.1:8303",
                                     flags_->server)};
    }
    return where;
}

boost::asio::ip::udp::endpoint ReplayCommand::server() const {
    const HostPort where = server_name();
    return process::resolve_answering_addresses(where.host, where.port, process::AnswersWanted::one)
        .front();
}

/// Finishes the records file. Returns false if records are missing.
bool ReplayCommand::finish_file(const replay::ReplayResult& result) {
    if (file_ == nullptr) {
        return true;
    }
    const record::SummaryRecord summary{
        .head = {.time = base::now_utc()}, .stats = &result.totals, .sessions = result.sessions};
    written_->write_summary(summary);
    return cli::finish_records("--output", *file_);
}

int ReplayCommand::report_run(const replay::ReplayResult& result) {
    using replay::ClientEnding;
    auto checks = fail_on_.make_checks(result.totals, "--fail-on");
    analyze::add_expectation_checks(checks, written_->expectations().list(), "--expect");
    const int code = report_result(
        analyze::make_outcome(std::move(checks), result.totals, result.sessions, result.seconds),
        summary_.get());
    if (result.num_ended(ClientEnding::unanswered) == result.clients) {
        sink::print_error("no answer from {}; is the server running?", flags_->server);
        return kExitNotYet;
    }
    if (!result.reason.empty()) {
        sink::print_error("the server said: {}", record::terminal_text(result.reason));
    }
    if (result.num_ended(ClientEnding::refused) == result.clients) {
        sink::print_error("{} let no client in; if it needs a password, give --password",
                          flags_->server);
        return kExitUsage;
    }
    if (code != 0) {
        return code;
    }
    const std::size_t fine =
        result.num_ended(ClientEnding::finished) + result.num_ended(ClientEnding::interrupted);
    return fine == result.clients && result.send_errors == 0 ? 0 : kExitFailed;
}

int ReplayCommand::run() {
    replay::ReplayOptions options{
        .scripts = std::move(scripts_),
        .clients = flags_->clients,
        .each = {.password = flags_->password,
                 .speed = flags_->speed,
                 .duration = std::llround(flags_->duration * kNanoseconds),
                 .timeout = std::llround(flags_->timeout * kNanoseconds)},
        .inspect = config_.make_inspect_options(inspect::Observers::none())};
    options.inspect.messages = flags_->records.wants_messages(false, false);
    options.inspect.memory = &memory_;
    try {
        options.server = server();
    } catch (const relay::RetryableStartError& error) {
        sink::print_error("{}", error.what());
        return kExitNotYet;
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
    const replay::ReplayResult result = replay::run_replay(std::move(options), maps_, *written_);
    const bool recorded = finish_file(result);
    sink::print_text(flags_->records.output == "-" ? stderr : stdout,
                     replay_text(result, withheld_));
    const int code = report_run(result);
    return code == 0 && (!recorded || damaged_) ? kExitFailed : code;
}

std::string find_problem_of_speed(const std::string& text) {
    const auto speed = base::parse_number<double>(text);
    return speed && *speed >= kMinSpeed && *speed <= kMaxSpeed
               ? std::string{}
               : fmt::format("expected a number from {} to {}", kMinSpeed, kMaxSpeed);
}

std::string find_problem_of_password(const std::string& text) {
    return text.size() > kMaxPassword ? fmt::format("is longer than {} bytes", kMaxPassword)
                                      : std::string{};
}

void add_replay_flags(ReplayFlags& flags, Command& command) {
    command
        .add("capture", &flags.capture, "CAPTURE",
             "Capture whose clients are replayed (Teeworlds 0.6, 0.7 or DDNet), or folder "
             "of segments")
        .required();
    command.add("-s,--server", &flags.server, "HOST:PORT", "Game server to play on");
    command.add_number("--clients", &flags.clients, 1, kMaxClients,
                       "Number of simultaneous clients; they share the capture's sessions");
    command.add("--session", &flags.session, "NUMBER", "Replay only this session of the capture")
        .check(find_problem_of_session);
    command.add("--speed", &flags.speed, "NUMBER", "Playback speed, relative to the capture")
        .check(find_problem_of_speed);
    command.add_time("--duration", flags.duration, 0.001, 86400,
                     "Keep each client connected for exactly this many seconds (by default, until "
                     "it has sent everything); they start 50 ms apart");
    command.add_time("--timeout", flags.timeout, 0.1, 3600,
                     "Give up after this many seconds without an answer from the server");
    command
        .add("--password", &flags.password, "TEXT",
             "Server password; the captured one is never sent")
        .check(find_problem_of_password);
    flags.records.add_to(command);
    // A replay has no console and no merged snapshots, and the clients are our own.
    for (const char* const useless : {"--view", "--console-filter", "--pseudonyms"}) {
        command.remove(useless);
    }
    add_memory_flag(command, flags.memory_mib);
}

} // namespace

Action add_replay_command(Command& program) {
    Command command = program.add_command(
        "replay", "Replay the clients of a capture against a real server, and check its answers");
    auto flags = std::make_shared<ReplayFlags>();
    auto settings = std::make_shared<Settings>(command);
    add_replay_flags(*flags, command);
    return complete_and_run(settings, [flags] {
        if (flags->server.empty()) {
            throw UsageError{
                "replay needs a game server: -s HOST:PORT, for example -s 127.0.0.1:8303"};
        }
        return ReplayCommand{*flags}.run();
    });
}

} // namespace tw::cli
