#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/record_choice.h"
#include "proxy/cli/record_feed.h"
#include "proxy/cli/records_files.h"
#include "proxy/cli/settings.h"
#include "proxy/record/terminal_text.h"
#include "proxy/report/story.h"
#include "proxy/run/map_folders.h"
#include "proxy/sink/json_lines.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct ExplainFlags {
    CaptureFlags captures; ///< or files of records
    LookupFlags lookup;
    std::int64_t session = 0;
    std::int64_t tick = -1;
};

/// Hands lines to a story as they are written.
class StoryLines final : public sink::Output {
  public:
    explicit StoryLines(report::Story& story) : story_{&story} {}

    void write(std::string_view block) override { story_->on_lines(block); }

  private:
    report::Story* story_;
};

constexpr std::int64_t kLastTick = std::numeric_limits<std::int32_t>::max();

/// False: some of it could not be read, as it says.
bool read_captures(const ExplainFlags& flags, report::Story& story) {
    const wire::ModDescription mod = flags.lookup.description();
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    run::MapFolders maps{flags.lookup.map_folders(), {.memory = &memory}};
    capture::CaptureRun captures{flags.captures.files(), flags.captures.servers()};
    StoryLines lines{story};
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
    report::Story story{{.session = flags.session > 0 ? std::optional{flags.session} : std::nullopt,
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
    if (!story.found()) {
        fmt::print("{}", record::terminal_lines(report::other_stories_text(story)));
        return whole ? 0 : kExitFailed;
    }
    fmt::print("{}", record::terminal_lines(report::story_text(story)));
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
    return [flags, settings] {
        settings->complete();
        return run_explain(*flags);
    };
}

} // namespace tw::cli
