#include "proxy/analyze/comparison_report.h"
#include "proxy/analyze/explanation.h"
#include "proxy/analyze/json_text.h"
#include "proxy/analyze/map_visits.h"
#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/pipeline/map_folders.h"
#include "proxy/record/findings.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

constexpr const char* kJsonHelp = "Print one JSON object instead of text";

int print_findings(bool as_json) {
    namespace json = boost::json;
    const auto text = [](std::string_view view) {
        return json::string_view{view.data(), view.size()};
    };
    json::array findings;
    for (const record::FindingInfo& info : record::finding_table()) {
        if (!as_json) {
            fmt::print("{} ({})\n    {}\n    {}\n", info.name, record::severity_name(info.severity),
                       info.sentence, info.cause);
            continue;
        }
        findings.push_back(json::object{{"id", text(info.name)},
                                        {"severity", text(record::severity_name(info.severity))},
                                        {"what", text(info.sentence)},
                                        {"cause", text(info.cause)}});
    }
    if (as_json) {
        fmt::print("{}\n", analyze::json_text(json::object{{"findings", std::move(findings)}}));
    }
    return 0;
}

} // namespace

Action add_findings_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "findings", "List every finding twscope can report, with its usual cause");
    auto as_json = std::make_shared<bool>(false);
    command->add_flag("--json", *as_json, kJsonHelp);
    return [as_json] { return print_findings(*as_json); };
}

namespace {

struct ExplainFlags {
    CaptureFlags captures; ///< captures or recordings
    LookupFlags lookup;
    std::int64_t session = 0;
    std::int64_t tick = -1;
    bool json = false;
};

/// Passes record lines to an explanation as they are written.
class ExplanationLines final : public sink::Output {
  public:
    explicit ExplanationLines(analyze::Explanation& story) : story_{&story} {}

    void write(std::string_view block) override { story_->on_lines(block); }

  private:
    analyze::Explanation* story_;
};

constexpr std::int64_t kLastTick = std::numeric_limits<std::int32_t>::max();

/// Reads captures into an explanation. Returns false if some of the data could not be read, which
/// is printed.
bool read_captures(const ExplainFlags& flags, analyze::Explanation& story) {
    const wire::ModDescription mod = flags.lookup.description();
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    pipeline::MapFolders maps{flags.lookup.map_folders(), {.memory = &memory}};
    capture::CaptureRun captures{flags.captures.files(), flags.captures.servers()};
    ExplanationLines lines{story};
    sink::JsonLines json{{.objects = &mod.objects}, lines};
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.objects = &mod.objects, .described = &mod.messages, .memory = &memory},
        maps,
        json,
        numbers};
    captures.read(inspector);
    json.flush();
    return !captures.damaged();
}

int run_explain(const ExplainFlags& flags) {
    analyze::Explanation story{
        {.session = flags.session > 0 ? std::optional{flags.session} : std::nullopt,
         .tick = flags.tick >= 0 ? std::optional{flags.tick} : std::nullopt}};
    bool whole = true;
    const std::string& first = flags.captures.paths.front();
    const sink::FileBegin begin = look_at_begin(first);
    if (holds_records(first, begin)) {
        for (const std::string& path : flags.captures.paths) {
            whole =
                read_records(path, [&](std::string_view line) { story.on_line(line); }) && whole;
        }
    } else {
        whole = read_captures(flags, story);
    }
    const std::string text = flags.json
                                 ? analyze::json_text(analyze::explanation_json(story)) + '\n'
                             : story.found() ? explanation_text(story)
                                             : explainable_findings_text(story);
    fmt::print("{}", record::terminal_lines(text));
    return whole ? 0 : kExitFailed;
}

} // namespace

Action add_explain_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "explain", "Explain one finding about snapshots, from captures or records");
    auto flags = std::make_shared<ExplainFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->captures.add_to(*command);
    command
        ->add_option("--session", flags->session,
                     "Session of the finding (by default, that of the first error, or else of the "
                     "first warning)")
        ->type_name("NUMBER")
        ->check(session_number());
    command->add_option("--tick", flags->tick, "Tick of the snapshot")
        ->type_name("TICK")
        ->check(CLI::Range(std::int64_t{0}, kLastTick));
    flags->lookup.add_to(*command, "to name the tiles");
    command->add_flag("--json", flags->json, kJsonHelp);
    return [flags, settings] {
        settings->complete();
        return run_explain(*flags);
    };
}

namespace {

using analyze::View;

struct CompareFlags {
    std::array<std::string, 2> files;
    CaptureFlags captures; ///< --server and --memory
    std::string objects_file;
    /// Nullopt for all sessions; 0 for the merged snapshots.
    std::array<std::optional<std::int64_t>, 2> sessions;
    bool json = false;
};

/// Lists the map visits in a view. Returns nullopt if it is damaged and contains none.
std::optional<analyze::MapVisitReader> list_map_visits(const RecordsOrigin& origin,
                                                       std::optional<std::int64_t> session,
                                                       std::string_view session_flag) {
    analyze::MapVisitReader stays;
    static_cast<void>(read_lines(
        origin, true, [&](std::string_view line) { static_cast<void>(stays.on_line(line)); }));
    if (stays.stays().empty()) {
        const std::string nothing =
            fmt::format("{}: contains no snapshot with known items{}", origin.path,
                        stays.unusable() == 0 ? "" : " (recorded without items?)");
        if (read_lines(origin, false, [](std::string_view /*line*/) {})) {
            throw UsageError{nothing};
        }
        sink::print_error("{}", nothing);
        return std::nullopt;
    }
    bool any = false;
    for (const analyze::MapVisit& stay : stays.stays()) {
        any = any || !session || stay.session == *session;
    }
    if (!any) {
        throw UsageError{fmt::format("{} {}: {} has no snapshots of this session", session_flag,
                                     *session, origin.path)};
    }
    return stays;
}

/// One of the two files, read along with the other.
class Reading {
  public:
    Reading(RecordsOrigin origin, View view, std::vector<std::optional<std::size_t>> pairs)
        : path_{origin.path}, feed_{std::move(origin)}, view_{view}, pairs_{std::move(pairs)} {}

    [[nodiscard]] bool done() const { return done_; }

    /// At the end: true if the file was read completely. Prints the number of unreadable lines.
    [[nodiscard]] bool whole() const {
        return report_no_records(path_, stays_.broken()) && feed_.whole();
    }

    /// Reads to the next snapshot that has a counterpart, or to the end.
    void step(analyze::GameComparison& comparison) {
        while (const auto line = feed_.next()) {
            auto snapshot = stays_.on_line(*line);
            if (snapshot && snapshot->stay < pairs_.size() && pairs_[snapshot->stay]) {
                comparison.on_snapshot(*pairs_[snapshot->stay], view_, snapshot->tick,
                                       std::move(snapshot->items));
                return;
            }
        }
        done_ = true;
    }

  private:
    std::string path_;
    RecordFeed feed_;
    View view_;
    std::vector<std::optional<std::size_t>> pairs_; ///< by map visit
    analyze::MapVisitReader stays_;
    bool done_ = false;
};

/// Returns the pair of each map visit of a view.
std::vector<std::optional<std::size_t>> pairs_by_visit(const analyze::MapVisitPairs& pairs,
                                                       View view, std::size_t stays) {
    std::vector<std::optional<std::size_t>> by_stay(stays);
    for (std::size_t i = 0; i < pairs.pairs.size(); ++i) {
        by_stay[view == View::a ? pairs.pairs[i].first : pairs.pairs[i].second] = i;
    }
    return by_stay;
}

void read_both(Reading& a, Reading& b, analyze::GameComparison& comparison) {
    View turn = View::a;
    while (!a.done() || !b.done()) {
        turn = comparison.behind().value_or(turn == View::a ? View::b : View::a);
        Reading& wanted = turn == View::a ? a : b;
        Reading& other = turn == View::a ? b : a;
        (wanted.done() ? other : wanted).step(comparison);
    }
    comparison.finish();
}

int run_compare(const CompareFlags& flags) {
    wire::ModDescription mod;
    read_objects_file(flags.objects_file, mod);
    const auto origin = [&](std::size_t view) {
        if (flags.files[view] == "-") {
            throw UsageError{"-: standard input cannot be read twice; name a file"};
        }
        return RecordsOrigin{.path = flags.files[view],
                             .servers = flags.captures.servers(),
                             .objects = &mod.objects,
                             .memory_bytes = flags.captures.memory_bytes()};
    };
    const auto listed_a = list_map_visits(origin(0), flags.sessions[0], "--session");
    const auto listed_b = list_map_visits(origin(1), flags.sessions[1], "--other-session");
    if (!listed_a || !listed_b) {
        return kExitFailed;
    }
    const std::vector<analyze::MapVisit>& stays_a = listed_a->stays();
    const std::vector<analyze::MapVisit>& stays_b = listed_b->stays();
    const analyze::MapVisitPairs pairs =
        pair_map_visits(stays_a, stays_b, flags.sessions[0], flags.sessions[1]);
    analyze::GameComparison comparison{pairs.pairs.size(), mod.objects};
    Reading a{origin(0), View::a, pairs_by_visit(pairs, View::a, stays_a.size())};
    Reading b{origin(1), View::b, pairs_by_visit(pairs, View::b, stays_b.size())};
    read_both(a, b, comparison);
    const analyze::ComparisonReport report{.files = flags.files,
                                           .stays = {&stays_a, &stays_b},
                                           .pairs = &pairs,
                                           .comparison = &comparison,
                                           .unusable = {listed_a->unusable(), listed_b->unusable()},
                                           .behind = {listed_a->behind(), listed_b->behind()}};
    fmt::print("{}", record::terminal_lines(flags.json ? comparison_json(report)
                                                       : comparison_text(report)));
    const bool whole_a = a.whole();
    const bool whole_b = b.whole();
    if (!comparison.equal()) {
        return kExitFinding;
    }
    return whole_a && whole_b ? 0 : kExitFailed;
}

} // namespace

Action add_compare_command(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("compare", "Compare two captures, demos or recordings of the same game");
    auto flags = std::make_shared<CompareFlags>();
    auto settings = std::make_shared<Settings>(*command);
    constexpr std::array<const char*, 2> kNames{"a", "b"};
    for (std::size_t view = 0; view < kNames.size(); ++view) {
        command
            ->add_option(kNames[view], flags->files[view],
                         "Capture, demo, recording, or folder of segments")
            ->type_name("FILE")
            ->required();
    }
    command
        ->add_option("--session", flags->sessions[0],
                     "Only this session of A, or 0 for its worlds (by default all, paired by "
                     "what they show, else by client and map, else by map, else in order of "
                     "appearance)")
        ->type_name("NUMBER")
        ->check(session_or_worlds());
    command
        ->add_option("--other-session", flags->sessions[1],
                     "Only this session of B, or 0 for its worlds")
        ->type_name("NUMBER")
        ->check(session_or_worlds());
    command
        ->add_option("--server", flags->captures.server,
                     "In captures, inspect only this server's traffic (by default, servers are "
                     "recognised by what they send)")
        ->type_name("[ADDRESS]:PORT");
    add_memory_flag(*command, flags->captures.memory_mib);
    command
        ->add_option("--objects", flags->objects_file,
                     "JSON file describing a mod's objects and messages (snapshot/OBJECTS.md)")
        ->type_name("FILE");
    command->add_flag("--json", flags->json, kJsonHelp);
    return [flags, settings] {
        settings->complete();
        return run_compare(*flags);
    };
}

} // namespace tw::cli
