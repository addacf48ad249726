#include "proxy/analyze/comparison_report.h"
#include "proxy/analyze/datagram_listing.h"
#include "proxy/analyze/explanation.h"
#include "proxy/analyze/map_visits.h"
#include "proxy/analyze/type_sizes.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/filter/keys.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/record/findings.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <iterator>

namespace tw::cli {

namespace {

constexpr const char* kJsonHelp = "Print one JSON object instead of text";

/// Prints the meaning of findings, and their causes if `has_causes` or `as_json` is true.
int print_findings(const std::vector<const record::FindingInfo*>& infos, bool has_causes,
                   bool as_json) {
    namespace json = boost::json;
    json::array findings;
    for (const record::FindingInfo* info : infos) {
        if (!as_json) {
            sink::print_wrapped(stdout,
                                fmt::format("{} ({})\n    {}\n", info->name,
                                            record::severity_name(info->severity), info->sentence) +
                                    (has_causes ? fmt::format("    {}\n", info->cause) : ""));
            continue;
        }
        findings.push_back(json::object{{"id", info->name},
                                        {"severity", record::severity_name(info->severity)},
                                        {"what", info->sentence},
                                        {"cause", info->cause}});
    }
    if (as_json) {
        fmt::print("{}\n", record::json_text(json::object{{"findings", std::move(findings)}}));
    } else if (!has_causes) {
        sink::print_wrapped(stdout, "\n'twscope explain ID' says what causes a finding, 'twscope "
                                    "explain FILE' what happened in a capture or recording.\n");
    }
    return 0;
}

struct ExplainFlags {
    CaptureFlags captures; ///< captures or recordings
    MapAndObjectFlags maps_and_objects;
    std::optional<std::int64_t> session;
    std::optional<std::int64_t> tick;
    std::optional<std::int64_t> frame;
    bool learn_sizes = false;
    bool json = false;
};

constexpr std::int64_t kMaxTick = std::numeric_limits<std::int32_t>::max();

void inspect_captures(const ExplainFlags& flags, const wire::ModDescription& mod,
                      capture::CaptureRun& captures, record::RecordSink& sink, bool learn_sizes,
                      const inspect::Observers& observers) {
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    pipeline::MapFolders maps{flags.maps_and_objects.map_folders(), {.memory = &memory}};
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = &mod.objects,
                                  .described_messages = &mod.messages,
                                  .learn_sizes = learn_sizes,
                                  .memory_budget = &memory,
                                  .observers = &observers},
                                 maps,
                                 sink,
                                 numbers};
    captures.read_captures(inspector);
}

/// Reads captures into an explanation, and prints what could not be read. Returns the exit code,
/// which is not 0 if the captures are damaged or empty.
int read_captures(const ExplainFlags& flags, analyze::ExplanationReader& reader) {
    const auto mod = flags.maps_and_objects.read_mod_description();
    capture::CaptureRun captures{flags.captures.files(), flags.captures.server_detector()};
    LineCallbackOutput lines{[&reader](std::string_view line) { reader.on_line(line); }};
    sink::JsonLines json{{.objects = &mod->objects}, lines};
    analyze::SnapshotDatagrams datagrams{
        [&captures](analyze::SnapshotDatagram& datagram) {
            const auto position = captures.datagram_position_at(datagram.time);
            datagram.file = position.path;
            datagram.frame = position.frame;
        },
        [&] {
            json.flush(); // passes findings of this datagram to the reader
            analyze::Explanation& explanation = reader.explanation();
            if (explanation.has_finding() && explanation.datagrams.empty()) {
                explanation.datagrams =
                    datagrams.find_datagrams(explanation.session, explanation.datagram_tick());
            }
        }};
    inspect::Observers observers;
    observers.add_observer(datagrams);
    inspect_captures(flags, *mod, captures, json, flags.learn_sizes, observers);
    json.flush();
    return captures.is_damaged() ? kExitFailed : captures.is_empty() ? kExitUsage : 0;
}

/// Prints the use of each byte of the datagram in frame `flags.frame` of a capture.
int list_datagram(const ExplainFlags& flags) {
    if (flags.session || flags.tick) {
        throw UsageError{"--frame selects a datagram; leave out --session and --tick"};
    }
    if (flags.captures.files().size() != 1) {
        throw UsageError{"--frame selects a datagram of one capture; name only that one"};
    }
    const auto frame = static_cast<std::uint64_t>(*flags.frame);
    const auto mod = flags.maps_and_objects.read_mod_description();
    capture::CaptureRun captures{flags.captures.files(), flags.captures.server_detector()};
    std::function<void(std::string_view)> use_line;
    LineCallbackOutput lines{[&use_line](std::string_view line) { use_line(line); }};
    sink::JsonLines json{{.objects = &mod->objects}, lines};
    capture::CaptureRun::DatagramPosition position;
    analyze::DatagramListing listing{[&](record::Timestamp time) {
                                         position = captures.datagram_position_at(time);
                                         return position.frame == frame;
                                     },
                                     [&json] { json.flush(); }};
    use_line = [&listing](std::string_view line) { listing.on_line(line); };
    captures.stop_when([&listing] { return listing.is_complete(); });
    inspect::Observers observers;
    observers.add_observer(listing);
    inspect_captures(flags, *mod, captures, json, flags.learn_sizes, observers);
    json.flush();
    if (!listing.is_complete()) {
        throw usage_error("--frame {}: {} has no datagram of a game in this frame", frame,
                          record::escape_for_terminal(flags.captures.paths.front()));
    }
    if (flags.json) {
        boost::json::object object = listing.json();
        object["file"] = flags.captures.paths.front();
        object["frame"] = frame;
        fmt::print("{}\n", record::json_text(object));
    } else {
        sink::print_text(stdout, listing.text(fmt::format("frame {} of {}", frame,
                                                          flags.captures.paths.front())));
    }
    return 0;
}

/// Throws UsageError if a path looks like the misspelt name of a finding.
void reject_misspelt_finding(const std::string& path) {
    std::error_code ignored;
    if (path == "-" || std::filesystem::exists(path, ignored)) {
        return;
    }
    const std::string_view near = most_similar_finding(path);
    if (!near.empty() || path.find('/') == std::string::npos) {
        throw usage_error("{}: neither a file nor a finding{}", record::escape_for_terminal(path),
                          near.empty() ? " ('twscope explain' lists these)"
                                       : fmt::format("; did you mean \"{}\"?", near));
    }
}

/// Returns the findings that the arguments name, or all findings if there are no arguments. Returns
/// an empty list if the arguments are files. Errors: UsageError if findings and files are named.
std::vector<const record::FindingInfo*> find_named_findings(const ExplainFlags& flags) {
    std::vector<const record::FindingInfo*> named;
    const auto& paths = flags.captures.paths;
    for (const std::string& path : paths) {
        if (const auto id = record::find_finding(path)) {
            named.push_back(&record::finding_info(*id));
        } else {
            reject_misspelt_finding(path);
        }
    }
    if (!named.empty() && named.size() != paths.size()) {
        throw UsageError{
            "explain takes names of findings, or files with findings, not both; select "
            "a finding in files with --session and --tick"};
    }
    if (paths.empty()) {
        for (const record::FindingInfo& info : record::finding_table()) {
            named.push_back(&info);
        }
    }
    if (!named.empty() && (flags.session || flags.tick)) {
        throw UsageError{"--session and --tick select a finding in files; name one"};
    }
    if (!named.empty() && flags.frame) {
        throw UsageError{"--frame selects a datagram of a capture; name one"};
    }
    return named;
}

/// Returns whether the explained finding, or the error that it follows from, may come from an
/// object whose size is not the agreed one.
bool may_come_from_wrong_size(const analyze::Explanation& explanation) {
    constexpr std::array<std::string_view, 5> kAboutSizes{
        "snapshot.size_differs", "snapshot.type_out_of_range", "snapshot.id_out_of_range",
        "snapshot.size_out_of_range", "snapshot.update_truncated"};
    const std::string_view id = explanation.base_error ? explanation.base_error->id
                                                       : record::text_of(explanation.finding, "id");
    return std::ranges::find(kAboutSizes, id) != kAboutSizes.end();
}

/// Collects the sizes of the explained session's objects, and notes whether the explained snapshot
/// is verified.
class ExplainedSessionSizes final : public record::RecordSink {
  public:
    ExplainedSessionSizes(const analyze::Explanation& explanation,
                          const snapshot::ObjectSet& objects)
        : explanation_{&explanation}, sizes_{objects} {}

    void on_record(const record::Record& record) override {
        if (const auto* const* each = std::get_if<const record::SnapshotRecord*>(&record)) {
            if ((*each)->head.session != explanation_->session) {
                return;
            }
            is_verified_ =
                is_verified_ || ((*each)->rebuilt && (*each)->tick == explanation_->finding_tick());
        }
        const auto* const* found = std::get_if<const record::FindingRecord*>(&record);
        if (found != nullptr && (*found)->head.session != explanation_->session &&
            (*found)->id == record::FindingId::snapshot_size_differs) {
            resized_sessions_[(*found)->item->type_id].insert((*found)->head.session);
        }
        sizes_.on_record(record);
    }

    /// Adds the sizes that differ from the agreed ones. Adds no size if the explained snapshot is
    /// wrong even with the inferred sizes, because the sizes are then not the cause.
    void add_sizes_to(analyze::Explanation& explanation) const {
        if (!is_verified_) {
            return;
        }
        explanation.causing_sizes = sizes_.differences();
        std::set<std::uint32_t> others;
        for (const analyze::SizeDifference& each : explanation.causing_sizes) {
            if (const auto found = resized_sessions_.find(each.type_id);
                found != resized_sessions_.end()) {
                others.insert(found->second.begin(), found->second.end());
            }
        }
        explanation.num_other_resized_sessions = others.size();
    }

  private:
    const analyze::Explanation* explanation_;
    analyze::TypeSizes sizes_;
    bool is_verified_ = false;
    /// For each type, the other sessions in which its size differs from the agreed size.
    std::map<std::uint16_t, std::set<std::uint32_t>> resized_sessions_;
};

/// Reads the captures again to infer the sizes of the server's objects from its checksums. Adds the
/// sizes that are the finding's cause to the explanation.
void add_causing_sizes(const ExplainFlags& flags, analyze::Explanation& explanation) {
    const auto mod = flags.maps_and_objects.read_mod_description();
    capture::CaptureRun captures{flags.captures.files(), flags.captures.server_detector()};
    captures.set_quiet(true); // the first reading has printed all problems of the captures
    ExplainedSessionSizes sizes{explanation, mod->objects};
    inspect_captures(flags, *mod, captures, sizes, true, inspect::Observers::none());
    sizes.add_sizes_to(explanation);
}

std::string command_with_files(std::string command, const ExplainFlags& flags) {
    for (const std::string& path : flags.captures.paths) {
        command += ' ' + quote_for_shell(path);
    }
    return command;
}

/// Returns the commands that list the sizes of the server's objects and, if a size is the cause,
/// verify that the right size solves the problem.
std::string next_commands(const ExplainFlags& flags, bool are_records,
                          const analyze::Explanation& explanation) {
    const std::string decode = are_records ? "twscope decode CAPTURE-OF-THIS-GAME"
                                           : command_with_files("twscope decode", flags);
    if (analyze::is_objects_file_wrong(explanation)) {
        return fmt::format("\nWhat to run next, without --objects or with a corrected file\n"
                           "  {} --expect 'always ok'\n",
                           decode);
    }
    std::string text =
        fmt::format("\nWhat to run next\n  {} --sizes --write-objects sizes.json\n", decode);
    if (!explanation.causing_sizes.empty()) {
        text +=
            fmt::format("  {} --objects sizes.json --expect 'always ok'\n"
                        "The second exits with 0 if twscope can read the game with these sizes; "
                        "clients of 0.6 still cannot.\n"
                        "After the server is mended, with a new capture of a join, and without "
                        "--objects\n"
                        "  twscope decode NEW-CAPTURE --expect 'always ok'\n",
                        decode);
    }
    return text;
}

int run_explain(const ExplainFlags& flags) {
    if (const auto named = find_named_findings(flags); !named.empty()) {
        return print_findings(named, !flags.captures.paths.empty(), flags.json);
    }
    if (flags.frame) {
        return list_datagram(flags);
    }
    analyze::ExplanationReader reader{{.session = flags.session, .tick = flags.tick}};
    int code = 0;
    const std::string& first = flags.captures.paths.front();
    const store::FileStartReader start = read_file_start(first); // keeps a pipe open
    const bool are_records = may_be_recording(first, start);
    if (are_records) {
        for (const std::string& path : flags.captures.paths) {
            const auto use_line = [&](std::string_view line) { reader.on_line(line); };
            code = read_records(path, use_line) ? code : kExitFailed;
        }
    } else {
        code = read_captures(flags, reader);
    }
    analyze::Explanation& explanation = reader.explanation();
    if (reader.lacks_selected_session()) {
        throw usage_error("--session {0}: there is no session {0}; there {1}", *flags.session,
                          record::choose_plural(explanation.num_sessions, "[is|are] ") +
                              record::count_with_noun(explanation.num_sessions, "session[s]"));
    }
    const bool is_readable_again =
        !are_records && std::ranges::find(flags.captures.paths, "-") == flags.captures.paths.end();
    if (is_readable_again && may_come_from_wrong_size(explanation)) {
        add_causing_sizes(flags, explanation);
    }
    const auto select = [](std::int64_t session, std::int64_t tick) {
        return fmt::format("--session {} --tick {}", session, tick);
    };
    const auto text = [&]() -> std::string {
        if (flags.json) {
            return record::json_text(analyze::explanation_json(explanation)) + '\n';
        }
        if (!explanation.has_finding()) {
            return explainable_findings_text(
                explanation, select,
                command_with_files(are_records ? "twscope records" : "twscope decode -o -", flags) +
                    " --filter finding");
        }
        return explanation_text(explanation, select) +
               (may_come_from_wrong_size(explanation)
                    ? next_commands(flags, are_records, explanation)
                    : "");
    };
    (flags.json ? sink::print_text : sink::print_wrapped)(stdout, text());
    return code;
}

struct CompareFlags {
    std::array<std::string, 2> files;
    CaptureFlags captures; ///< --server and --memory
    std::string objects_file;
    /// The session to read from each file; nullopt: all sessions; 0: the merged snapshots.
    std::array<std::optional<std::int64_t>, 2> sessions;
    bool json = false;
};

constexpr std::array<std::string_view, 2> kSessionFlags{"--session", "--other-session"};

/// One of the two inputs. It is read twice: by list_visits(), and then, together with the other
/// input, by read_snapshots().
class ComparedInput {
  public:
    explicit ComparedInput(RecordSource source) : source_{std::move(source)} {
        if (source_.path == "-") {
            throw UsageError{"-: standard input cannot be read twice; name a file"};
        }
    }

    /// Lists the map visits, and prints which part of the input could not be read. Returns false if
    /// the input is damaged and has no visit. Errors: UsageError if an undamaged input has no
    /// visit, or none of the session.
    [[nodiscard]] bool list_visits(std::optional<std::int64_t> session, std::string_view flag) {
        is_complete_ = read_record_lines(source_, false, [this](std::string_view line) {
            static_cast<void>(visits_.on_line(line));
        });
        const auto& visits = visits_.visits();
        if (visits.empty()) {
            const std::string nothing = fmt::format(
                "{}: contains no snapshot with known items{}", source_.path,
                visits_.unusable_snapshot_count() == 0 ? "" : " (recorded without items?)");
            if (is_complete_) {
                throw UsageError{nothing};
            }
            sink::print_error("{}", nothing);
            return false;
        }
        if (session &&
            std::ranges::find(visits, *session, &analyze::MapVisit::session) == visits.end()) {
            throw usage_error("{} {}: {} has no snapshots of this session", flag, *session,
                              source_.path);
        }
        is_complete_ =
            report_invalid_lines(source_.path, visits_.invalid_line_count()) && is_complete_;
        return true;
    }

    [[nodiscard]] const analyze::MapVisitReader& visits() const { return visits_; }

    /// True if the whole input could be read.
    [[nodiscard]] bool is_complete() const { return is_complete_; }

    template <typename Use>
    void read_snapshots(const Use& use) const {
        analyze::MapVisitReader visits;
        static_cast<void>(read_record_lines(source_, true, [&](std::string_view line) {
            if (auto snapshot = visits.on_line(line)) {
                use(*std::move(snapshot));
            }
        }));
    }

  private:
    RecordSource source_;
    analyze::MapVisitReader visits_{false};
    bool is_complete_ = true;
};

using ComparedInputs = std::array<std::optional<ComparedInput>, 2>;

/// Compares the snapshots of all pairs of map visits. Reads each input in a thread of its own; a
/// thread that is ahead waits.
analyze::GameComparison compare_inputs(const ComparedInputs& inputs,
                                       const analyze::MapVisitPairs& pairs) {
    std::array<std::map<std::size_t, std::size_t>, 2> pair_of; // indexes of the pairs, by map visit
    for (std::size_t i = 0; i < pairs.pairs.size(); ++i) {
        pair_of[0][pairs.pairs[i].first] = i;
        pair_of[1][pairs.pairs[i].second] = i;
    }
    const auto games = analyze::assign_game_numbers(inputs[0]->visits().visits());
    std::vector<std::size_t> games_of_pairs;
    for (const auto& pair : pairs.pairs) {
        games_of_pairs.push_back(games[pair.first]);
    }
    analyze::GameComparison comparison{pairs.pairs.size(), std::move(games_of_pairs)};
    std::mutex mutex;
    std::condition_variable changed;
    std::array<bool, 2> has_ended{};
    const auto end = [&](std::size_t view) {
        const std::lock_guard lock{mutex};
        has_ended[view] = true;
        changed.notify_all();
    };
    const auto read = [&](std::size_t view) {
        try {
            inputs[view]->read_snapshots([&](analyze::MapVisitSnapshot snapshot) {
                const auto pair = pair_of[view].find(snapshot.visit);
                if (pair == pair_of[view].end()) {
                    return;
                }
                std::unique_lock lock{mutex};
                changed.wait(lock,
                             [&] { return has_ended[1 - view] || !comparison.is_ahead(view); });
                comparison.on_snapshot(pair->second, view, snapshot.tick,
                                       std::move(snapshot.items));
                changed.notify_all();
            });
        } catch (...) {
            end(view);
            throw;
        }
        end(view);
    };
    auto other = std::async(std::launch::async, read, 1);
    read(0);
    other.get();
    comparison.count_unpaired_ticks();
    return comparison;
}

int run_compare(const CompareFlags& flags) {
    wire::ModDescription mod;
    read_objects_file(flags.objects_file, mod);
    ComparedInputs inputs;
    for (std::size_t view = 0; view < inputs.size(); ++view) {
        const std::string& path = flags.files[view];
        const std::string hint = file_type_hint(path, FileType::records);
        if (!hint.empty() &&
            may_be_recording(path, read_file_start(path))) { // not a capture or demo
            throw usage_error("{}: is no capture, demo or recording{}", path, hint);
        }
        inputs[view].emplace(RecordSource{.path = flags.files[view],
                                          .servers = flags.captures.server_detector(),
                                          .objects = &mod.objects,
                                          .memory_bytes = flags.captures.memory_bytes()});
    }
    for (std::size_t view = 0; view < inputs.size(); ++view) {
        if (!inputs[view]->list_visits(flags.sessions[view], kSessionFlags[view])) {
            return kExitFailed;
        }
    }
    const analyze::MapVisitReader& a = inputs[0]->visits();
    const analyze::MapVisitReader& b = inputs[1]->visits();
    const auto pairs =
        pair_map_visits(a.visits(), b.visits(), flags.sessions[0], flags.sessions[1]);
    if (!pairs) {
        throw UsageError{"too many sessions have the same name or address: select one with "
                         "--session"};
    }
    const auto comparison = compare_inputs(inputs, *pairs);
    const analyze::ComparisonReport report{.files = flags.files,
                                           .readers = {&a, &b},
                                           .pairs = &*pairs,
                                           .differences = &comparison.result(),
                                           .worlds_command = "twscope decode CAPTURE --view world "
                                                             "--items all -o FILE.jsonl.zst"};
    fmt::print("{}", record::escape_lines_for_terminal(flags.json ? comparison_json(report)
                                                                  : comparison_text(report)));
    if (!comparison.result().are_games_equal()) {
        return kExitFinding;
    }
    return inputs[0]->is_complete() && inputs[1]->is_complete() ? 0 : kExitFailed;
}

} // namespace

void add_explain_command(Command& command) {
    command.about = "Explain a finding about snapshots in captures or records, the bytes "
                    "of a datagram, or what findings mean";
    ExplainFlags& flags = add_settings_and_action(command, run_explain);
    command.add("captures", &flags.captures.paths, "FILE|ID...",
                "Captures, demos, recordings or folders of segments; or names of findings, "
                "such as snapshot.crc_mismatch; nothing lists all findings in short");
    flags.captures.add_source_flags(command);
    command.add_number("--session", &flags.session, 1, kMaxSessionNumber,
                       "Session of the finding (by default, that of the first error, preferring "
                       "one that names the cause of others, or of the first warning)");
    command.add_number("--tick", &flags.tick, 0, kMaxTick, "Tick of the snapshot", "TICK");
    command.add_number("--frame", &flags.frame, 1, std::numeric_limits<std::int64_t>::max(),
                       "Name every byte of the datagram in this frame of a capture, instead of "
                       "explaining a finding (frames are numbered as in Wireshark)");
    flags.maps_and_objects.add_to(command, ", to name the tiles");
    add_learn_sizes_flag(command, flags.learn_sizes);
    command.add_switch("--json", flags.json, kJsonHelp);
}

void add_compare_command(Command& command) {
    command.about = "Compare two captures, demos or recordings of the same game";
    CompareFlags& flags = add_settings_and_action(command, run_compare);
    command.add("a", &flags.files[0], "FILE", "A capture, demo, recording or folder of segments")
        .is_required = true;
    command.add("b", &flags.files[1], "FILE", "Another capture, demo or recording of the same game")
        .is_required = true;
    command.add_number("--session", &flags.sessions[0], 0, kMaxSessionNumber,
                       "Only this session of A, or 0 for its worlds (by default all, paired by "
                       "player name and client address)");
    command.add_number("--other-session", &flags.sessions[1], 0, kMaxSessionNumber,
                       "Only this session of B, or 0 for its worlds");
    flags.captures.add_source_flags(command, "In captures, inspect");
    add_objects_flag(command, flags.objects_file);
    command.add_switch("--json", flags.json, kJsonHelp);
}

} // namespace tw::cli
