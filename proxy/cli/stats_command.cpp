#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/settings.h"
#include "proxy/inspect/attribution.h"
#include "proxy/record/terminal_text.h"
#include "proxy/report/stats_report.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/worker.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct StatsFlags {
    CaptureFlags captures;
    LookupFlags lookup;
    bool json = false;
};

int run_stats(const StatsFlags& flags) {
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    run::MapFolders maps{flags.lookup.map_folders(), {.memory = &memory}};
    capture::CaptureRun captures{flags.captures.files(), flags.captures.servers()};
    const wire::ModDescription mod = flags.lookup.description();
    run::Fanout nobody;
    record::Ledger ledger;
    inspect::Attribution attribution{ledger};
    inspect::Observers observers;
    observers.add(attribution);
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = &mod.objects,
                                  .described = &mod.messages,
                                  .messages = false,
                                  .memory = &memory,
                                  .observers = &observers},
                                 maps,
                                 nobody,
                                 numbers};
    captures.read(inspector);
    const record::SessionStats totals = inspector.totals();
    const report::StatsReport report{.captures = flags.captures.paths,
                                     .sessions = inspector.sessions_seen(),
                                     .duration_ns = captures.last() - captures.first(),
                                     .totals = &totals,
                                     .ledger = &ledger};
    fmt::print("{}", record::terminal_lines(flags.json ? report::stats_json(report)
                                                       : report::stats_table(report)));
    return captures.damaged() ? kExitFailed : 0;
}

} // namespace

Action add_stats_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "stats", "Show where every byte of captures went, their losses and their cadence");
    auto flags = std::make_shared<StatsFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->captures.add_to(*command);
    flags->lookup.add_to(*command, "for findings about positions");
    command->add_flag("--json", flags->json, "Print one JSON object instead of tables");
    return [flags, settings] {
        settings->complete();
        return run_stats(*flags);
    };
}

} // namespace tw::cli
