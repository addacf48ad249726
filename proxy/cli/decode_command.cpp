#include "proxy/analyze/outcome.h"
#include "proxy/analyze/stats_report.h"
#include "proxy/analyze/type_sizes.h"
#include "proxy/base/clock.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/log.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/publish_flags.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/demo/demo_reader.h"
#include "proxy/demo/world_demo.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/world/server_worlds.h"

#include <cerrno>
#include <tuple>

namespace tw::cli {

namespace {

struct DecodeFlags {
    CaptureFlags captures;
    RecordFlags records;
    BusFlags bus;
    // Reports, which are printed instead of the totals.
    bool stats = false;
    bool sizes = false;
    std::string objects; ///< file for the objects that `sizes` finds; may be empty
    bool json = false;

    [[nodiscard]] bool has_report() const { return stats || sizes; }
};

/// Errors: UsageError for flags without effect, or if two outputs use standard output.
void check_report_flags(const DecodeFlags& flags) {
    const bool takes_records = flags.records.output == "-";
    const bool takes_objects = flags.objects == "-";
    if (flags.json && !flags.has_report()) {
        throw UsageError{"--json has no effect without --stats or --sizes"};
    }
    if (takes_records && takes_objects) {
        throw UsageError{"-o - and --write-objects - both write to standard output; name a file"};
    }
    if (flags.json && (takes_records || takes_objects)) {
        throw usage_error("--json and {} - both write to standard output; name a file",
                          takes_objects ? "--write-objects" : "-o");
    }
}

/// Everything that a run of `decode` has open: inputs, pipeline and outputs.
class DecodeCommand {
  public:
    /// Opens inputs and outputs. Errors: UsageError, CaptureError.
    explicit DecodeCommand(const DecodeFlags& flags);

    int run();

  private:
    [[nodiscard]] bool finish_records();
    [[nodiscard]] sink::Output* open_record_output();
    [[nodiscard]] std::string name_on_bus() const;
    [[nodiscard]] bool write_queued_demos();
    [[nodiscard]] bool all_readers_left() const;
    [[nodiscard]] int print_reports();
    [[nodiscard]] std::string learned_sizes_text(bool is_written) const;
    [[nodiscard]] int write_objects();
    [[nodiscard]] std::optional<std::string> command_for_captures(std::string command) const;
    [[nodiscard]] sink::FindingLines::ExplainCommandMaker explain_command() const;
    void print_totals() const;

    const DecodeFlags* flags_;
    base::Stopwatch stopwatch_;
    analyze::FindingsToFailOn fail_on_;
    std::unique_ptr<store::OutputFile> summary_file_;
    std::unique_ptr<wire::ModDescription> mod_;
    pipeline::Config config_;
    inspect::MemoryBudget memory_;
    pipeline::MapFolders map_folders_;
    std::optional<capture::CaptureRun> captures_;
    std::unique_ptr<store::OutputFile> record_file_;
    std::unique_ptr<store::OutputFile> bus_;
    std::optional<sink::DuplicatingOutput> file_and_bus_;
    std::unique_ptr<store::OutputFile> capture_file_;
    analyze::FindingPrinter finding_printer_{stderr, log_stream().console_style()};
    analyze::PlayerTable players_;
    pipeline::RecordFanout session_sinks_;
    std::optional<analyze::TypeSizes> sizes_;
    std::optional<store::FileQueue> demo_files_;
    pipeline::RecordFanout world_sinks_;
    std::optional<world::WorldMerger> worlds_;
    std::optional<demo::WorldDemo> world_demos_;
    std::atomic<std::uint32_t> session_numbers_{0};
    std::optional<pipeline::Pipeline> pipeline_;
    pipeline::WorkerResult result_;
};

DecodeCommand::DecodeCommand(const DecodeFlags& flags)
    : flags_{&flags}, fail_on_{flags.records.findings_to_fail_on()},
      mod_{flags.records.maps_and_objects.read_mod_description()},
      config_{flags.records.make_config(*mod_, flags.bus.is_enabled())},
      memory_{flags.captures.memory_bytes()}, map_folders_{flags.records.map_folders(),
                                                           {.cache = flags.records.map_cache,
                                                            .memory = &memory_,
                                                            .includes_file_bytes =
                                                                config_.demos.has_value()}} {
    const RecordFlags& records = flags.records;
    records.check_capture_flags();
    check_report_flags(flags);
    std::ignore = flags.bus.publish_options(name_on_bus());
    auto files = flags.captures.files();
    check_outputs(files, {{"--output", records.output},
                          {"--summary", records.summary},
                          {"--write-objects", flags.objects},
                          {"--write", records.capture}});
    check_replaceable("--summary", records.summary, FileType::summary);
    check_replaceable("--write-objects", flags.objects, FileType::objects);
    check_replaceable("--write", records.capture, FileType::capture);
    captures_.emplace(std::move(files), flags.captures.server_detector());
    // Opening the outputs truncates them, so all flags are checked before.
    summary_file_ = open_output_file("--summary", records.summary);
    config_.inspect.memory_budget = &memory_;
    config_.inspect.learn_sizes |= flags.sizes;
    config_.counts_traffic = flags.stats;
    session_sinks_.add_sink(players_);
    pipeline::WorkerOutputs outputs{.records = open_record_output(),
                                    .findings = &finding_printer_,
                                    .sessions = &session_sinks_};
    if (!records.capture.empty()) {
        capture_file_ = open_recording({capture_recording_kind(), records.capture});
        outputs.capture = capture_file_.get();
    }
    if (config_.demos) {
        outputs.files = &demo_files_.emplace(store::FileQueue::FullQueuePolicy::wait);
    }
    if (config_.writes_worlds()) {
        worlds_.emplace(mod_->objects, world_sinks_, world::MergeDelay{},
                        world::WorldMerger::memory_share(flags.captures.memory_bytes()));
    }
    if (flags.sizes) {
        session_sinks_.add_sink(sizes_.emplace(mod_->objects));
    }
    pipeline_.emplace(config_, outputs, worlds_ ? &*worlds_ : nullptr, map_folders_,
                      session_numbers_);
    world_sinks_.add_sink(pipeline_->record_writer());
    if (worlds_ && config_.demos) {
        world_sinks_.add_sink(world_demos_.emplace(*config_.demos, *demo_files_));
        worlds_->send_messages_to(*world_demos_);
    }
}

/// Finishes the record outputs. Returns false if records are missing.
bool DecodeCommand::finish_records() {
    pipeline_->record_writer().write_summary(
        {.head = {.time = captures_->last_time()},
         .stats = &result_.totals,
         .sessions = result_.sessions,
         .worlds = worlds_ ? std::optional{worlds_->totals().worlds} : std::nullopt});
    const bool written = record_file_ == nullptr || finish_output("--output", *record_file_);
    return (bus_ == nullptr || finish_publishing(*bus_)) && written;
}

std::string DecodeCommand::name_on_bus() const {
    return std::filesystem::path{flags_->captures.paths.front()}.stem().string();
}

/// Opens the outputs of record lines: a file, a bus, or both. Returns null without such outputs.
sink::Output* DecodeCommand::open_record_output() {
    const std::string& output = flags_->records.output;
    if (!output.empty()) {
        check_replaceable("--output", output);
        record_file_ = open_recording({lines_recording_kind(), output});
    }
    bus_ = flags_->bus.open_output(name_on_bus(), bus::kFileTimeouts);
    if (record_file_ != nullptr && bus_ != nullptr) {
        return &file_and_bus_.emplace(*record_file_, *bus_);
    }
    return record_file_ != nullptr ? record_file_.get() : bus_.get();
}

/// Finishes the demos. Returns false if demos, or parts of them, are missing.
bool DecodeCommand::write_queued_demos() {
    if (!demo_files_) {
        return true;
    }
    if (world_demos_) {
        world_demos_->end_demos();
    }
    demo_files_->finish_writing();
    std::uint64_t num_named = 0;
    for (auto path = demo_files_->take_written_path(); path;
         path = demo_files_->take_written_path()) {
        sink::print_text(stderr, fmt::format("wrote {}\n", record::escape_for_terminal(*path)));
        ++num_named;
    }
    if (const auto all = demo_files_->num_created_files(); num_named < all) {
        sink::print_text(stderr, fmt::format("and {}\n", record::count_with_noun(all - num_named,
                                                                                 "more demo[s]")));
    }
    while (const auto complaint = demo_files_->take_error_text()) {
        sink::print_error("not written: {}", *complaint);
    }
    demo::DemoLosses losses = result_.demo_losses;
    if (world_demos_) {
        losses.merge(world_demos_->losses());
        losses.messages_over_limit += worlds_->lost_message_count();
    }
    for (const std::string& loss : describe_losses(losses)) {
        sink::print_error("--demo: {}", loss);
    }
    if (demo_files_->num_created_files() == 0 &&
        losses.sessions_without_map + losses.single_snapshot_demos == 0) {
        sink::print_error("--demo: no demo written: no client was shown a game");
    }
    return demo_files_->num_lost_blocks() == 0 && losses.num_unwritten_chunks() == 0;
}

/// True if nothing uses the records any more: their reader has left, and there is no other output.
bool DecodeCommand::all_readers_left() const {
    const RecordFlags& records = flags_->records;
    return record_file_ != nullptr && record_file_->error() == EPIPE && bus_ == nullptr &&
           capture_file_ == nullptr && !demo_files_ && !summary_file_ && !flags_->has_report() &&
           records.expect.empty() && records.fail_on.empty();
}

int DecodeCommand::print_reports() {
    const bool is_taken = flags_->records.output == "-" || flags_->objects == "-";
    std::FILE* const people = is_taken ? stderr : stdout;
    if (flags_->stats) {
        const analyze::StatsReport report{.captures = flags_->captures.paths,
                                          .sessions = result_.sessions,
                                          .duration_ns =
                                              captures_->last_time() - captures_->first_time(),
                                          .totals = &result_.totals,
                                          .ledger = &result_.ledger};
        sink::print_text(people, flags_->json ? analyze::stats_json(report)
                                              : analyze::stats_table(report) + players_.text());
    }
    if (!sizes_) {
        return 0;
    }
    if (!sizes_->has_snapshots()) {
        sink::print_error("--sizes: {}",
                          result_.totals.snapshots == 0
                              ? "no snapshot; capture while somebody plays"
                              : "no snapshot with known items: the capture begins during the "
                                "game; begin it before a player joins");
        return captures_->is_damaged() ? kExitFailed : kExitUsage;
    }
    sink::print_text(people, flags_->json ? record::json_text(sizes_->sizes_json()) + '\n'
                                          : sizes_->sizes_table());
    const int written = write_objects();
    if (!flags_->json) {
        sink::print_text(people, learned_sizes_text(written == 0));
    }
    return written;
}

/// Returns a text that says which objects have wrong sizes, and which command to run next.
/// `is_written`: false if the file of objects could not be written.
std::string DecodeCommand::learned_sizes_text(bool is_written) const {
    if (!sizes_->has_differences()) {
        return sizes_->has_unreported_differences()
                   ? "\"not as agreed\" fits all checksums, but too few snapshots contain the "
                     "object to be sure; capture a longer game.\n"
               : flags_->records.maps_and_objects.objects_file.empty()
                   ? "All sizes are as agreed in 0.6.\n"
                   : "All sizes are as agreed in 0.6, or as in the objects file.\n";
    }
    std::string misread;
    std::string wrong_in_file;
    for (const analyze::SizeDifference& each : sizes_->differences()) {
        (each.is_file_wrong ? wrong_in_file : misread) += fmt::format("  {}\n", each.text);
    }
    std::string text;
    if (!misread.empty()) {
        text += fmt::format("\nClients misread these objects, and drop the snapshots:\n{}"
                            "Send the agreed number of ints, and put new fields into an object of "
                            "your own with a UUID.\n",
                            misread);
    }
    if (!wrong_in_file.empty()) {
        text +=
            fmt::format("\nThe objects file is wrong, not the server; clients can read these "
                        "objects:\n{}Correct their sizes in the file, or leave --objects out.\n",
                        wrong_in_file);
    }
    const std::string& objects = flags_->objects;
    const bool has_file = is_written && !objects.empty() && objects != "-";
    const auto command = command_for_captures("twscope decode");
    if (command && flags_->records.maps_and_objects.objects_file.empty()) {
        text += fmt::format("\n{}To read this game in spite of it:\n  {} {} -o game.jsonl\n",
                            has_file ? record::escape_for_terminal(objects) + " was written. " : "",
                            *command,
                            has_file ? "--objects " + quote_for_shell(objects) : "--learn-sizes");
    }
    return text;
}

/// Writes the objects that --sizes found. The file is opened only now, because an existing file
/// must stay unchanged if there was no snapshot. Returns the exit code.
int DecodeCommand::write_objects() {
    const auto file = open_output_file("--write-objects", flags_->objects);
    if (file) {
        file->write(sizes_->objects_json());
    }
    if (file && file->failed()) {
        sink::print_error("--write-objects {}: {}", file->path(),
                          std::generic_category().message(file->error()));
        return kExitFailed;
    }
    return 0;
}

/// Appends the captures, and the flags for reading them, to a command; nullopt if the captures
/// cannot be read again.
std::optional<std::string> DecodeCommand::command_for_captures(std::string command) const {
    for (const std::string& path : flags_->captures.paths) {
        if (path == "-") {
            return std::nullopt;
        }
        command += ' ' + quote_for_shell(path);
    }
    const std::pair<std::string_view, const std::string&> same[] = {
        {"--server", flags_->captures.server},
        {"--objects", flags_->records.maps_and_objects.objects_file}};
    for (const auto& [flag, value] : same) {
        command += value.empty() ? "" : fmt::format(" {} {}", flag, quote_for_shell(value));
    }
    return command;
}

/// Returns the command that explains a finding of these captures; null if there is none.
sink::FindingLines::ExplainCommandMaker DecodeCommand::explain_command() const {
    auto command = command_for_captures("twscope explain");
    if (!command) {
        return nullptr;
    }
    *command += config_.inspect.learn_sizes ? " --learn-sizes" : "";
    return [command](std::uint32_t session, auto tick) {
        return fmt::format("{} --session {} --tick {}", *command, session, tick);
    };
}

/// Prints the totals, unless a report or the records are printed.
void DecodeCommand::print_totals() const {
    if (flags_->has_report() || flags_->records.output == "-") {
        return;
    }
    const std::string sizes =
        command_for_captures("twscope decode").value_or("twscope decode FILE");
    const std::string explain =
        command_for_captures("twscope explain").value_or("twscope explain FILE");
    const bool are_demos = std::ranges::all_of(flags_->captures.paths, [](const std::string& path) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(path,
                                                ignored) && // reading a pipe consumes its data
               demo::looks_like_demo(std::as_bytes(std::span{read_file_start(path).bytes()}));
    });
    const std::string_view accepted = are_demos ? "applied" : "verified"; // demos have no checksums
    sink::print_wrapped(
        record_file_ == nullptr && bus_ == nullptr ? stdout : stderr,
        analyze::totals_text(flags_->captures.paths, result_.totals, result_.sessions,
                             fmt::format("{} --sizes\n  {}", sizes, explain), accepted) +
            players_.text(accepted));
}

int DecodeCommand::run() {
    captures_->stop_when([this] { return all_readers_left(); });
    captures_->read_captures(pipeline_->inspector(), config_.pseudonym_key);
    if (worlds_) {
        worlds_->merge_waiting_ticks();
    }
    pipeline_->write_remaining_data(captures_->last_time());
    result_ = pipeline_->take_result();
    if (worlds_) {
        worlds_->totals().add_findings_to(result_.totals);
        if (const auto dropped = worlds_->totals().worlds.dropped; dropped != 0) {
            sink::print_error("{} in no world: more than {} servers are active at once; choose one "
                              "with --server",
                              record::count_with_noun(dropped, "snapshot[s] [is|are]"),
                              world::WorldMerger::kMaxServers);
        }
    }
    finding_printer_.print_finding_summary(explain_command());
    const bool recorded = finish_records();
    const bool captured = capture_file_ == nullptr ||
                          (finish_output("--write", *capture_file_, "packet[s] [is|are]") &&
                           result_.capture_losses == 0);
    const bool filmed = write_queued_demos();
    const int reported = print_reports();
    print_totals();
    auto checks = fail_on_.make_checks(result_.totals, "--fail-on");
    analyze::add_expectation_checks(checks, result_.expectations, "--expect");
    const int code = report_result(analyze::make_outcome(std::move(checks), result_.totals,
                                                         result_.sessions, stopwatch_.seconds()),
                                   summary_file_.get());
    const bool whole = recorded && captured && filmed && !captures_->is_damaged();
    const int worst = code == 0 ? reported : code;
    return worst != 0 ? worst : !whole ? kExitFailed : captures_->is_empty() ? kExitUsage : 0;
}

int run_decode(const DecodeFlags& flags) {
    return DecodeCommand{flags}.run();
}

} // namespace

void add_decode_command(Command& command) {
    command.about = "Decode captures (pcap or pcapng) and demos as if their traffic had passed "
                    "through the proxy";
    DecodeFlags& flags = add_settings_and_action(command, run_decode);
    flags.captures.add_to(command);
    flags.records.add_to(command);
    flags.records.add_demo_and_capture_flags(command);
    flags.bus.add_to(command);
    command.add_switch("--stats", flags.stats,
                       "Show traffic by message and item type, losses, and the snapshot rate");
    command.add_switch("--sizes", flags.sizes,
                       "Show which of the server's snapshot objects differ in size from those "
                       "agreed in 0.6; decodes as with --learn-sizes");
    command.add("--write-objects", &flags.objects, "FILE",
                "Write what --sizes finds in the format of --objects; - means standard output");
    command.dependent_flags.push_back({{"--write-objects"}, {"--sizes"}});
    command.add_switch("--json", flags.json,
                       "Print each report as one JSON object instead of text");
}

} // namespace tw::cli
