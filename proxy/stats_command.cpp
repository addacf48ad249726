#include "proxy/capture_run.h"
#include "proxy/commands.h"
#include "proxy/map_folders.h"
#include "proxy/objects_file.h"
#include "proxy/pipeline.h"
#include "proxy/settings.h"
#include "proxy/stats_report.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw {

namespace {

struct StatsFlags {
    CaptureFlags captures;
    std::vector<std::string> maps;
    std::string objects_file;
    bool json = false;
};

int run_stats(const StatsFlags& flags) {
    MapFolders maps{{flags.maps.begin(), flags.maps.end()}};
    CaptureRun captures{flags.captures};
    snapshot::ObjectSet objects;
    if (!flags.objects_file.empty()) {
        read_objects_file(flags.objects_file, objects);
    }
    Fanout nobody;
    inspect::Ledger ledger;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{
        {.objects = &objects, .messages = false, .ledger = &ledger}, maps, nobody, numbers};
    captures.read(inspector);
    const inspect::SessionStats totals = inspector.totals();
    const StatsReport report{.captures = flags.captures.paths,
                             .sessions = inspector.sessions_seen(),
                             .duration_ns = captures.last() - captures.first(),
                             .totals = &totals,
                             .ledger = &ledger};
    fmt::print("{}", flags.json ? stats_json(report) : stats_table(report));
    return 0;
}

} // namespace

Action add_stats_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "stats", "Account for every byte of captures: where they went, losses, cadence");
    auto flags = std::make_shared<StatsFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->captures.add_to(*command);
    command
        ->add_option("--maps", flags->maps,
                     "Folder to look for maps in (repeatable), for the findings about positions")
        ->type_name("DIR")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        ->add_option("--objects", flags->objects_file,
                     "Snapshot objects of a mod, as JSON (snapshot/OBJECTS.md describes it)")
        ->type_name("FILE");
    command->add_flag("--json", flags->json, "One JSON object instead of tables");
    return [flags, settings] {
        settings->complete();
        return run_stats(*flags);
    };
}

} // namespace tw
