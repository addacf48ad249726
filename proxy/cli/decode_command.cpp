#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/conclude.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/record_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/report/finding_printer.h"
#include "proxy/report/totals_text.h"
#include "proxy/run/fanout.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/stopwatch.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct DecodeFlags {
    CaptureFlags captures;
    RecordFlags records;
};

int run_decode(const DecodeFlags& flags) {
    const run::Stopwatch running;
    const report::FailOn fail_on = flags.records.failing();
    std::optional<sink::FileOutput> summary_file;
    open_output_file("--summary", flags.records.summary, summary_file);
    inspect::MemoryBudget memory{flags.captures.memory_bytes()};
    run::MapFolders maps{flags.records.map_folders(),
                         {.cache = flags.records.map_cache, .memory = &memory}};
    capture::CaptureRun captures{flags.captures.paths, flags.captures.servers()};
    const auto objects = flags.records.objects();
    std::optional<sink::FileOutput> file;
    std::optional<sink::JsonLines> json;
    report::FindingPrinter findings{stderr};
    filter::Expectations expectations{flags.records.expectations(*objects)};
    auto filter = flags.records.parse_filter("--filter", flags.records.filter, *objects);
    auto console_filter =
        flags.records.parse_filter("--console-filter", flags.records.console_filter, *objects);
    std::optional<filter::FilteredSink> filtered_json;
    std::optional<filter::FilteredSink> filtered_findings;
    run::Fanout sinks;
    sinks.add(expectations);
    run::add_filtered(sinks, findings, std::move(console_filter), filtered_findings);
    open_output_file("--output", flags.records.output, file);
    if (file) {
        json.emplace(flags.records.json(*objects), *file);
        run::add_filtered(sinks, *json, std::move(filter), filtered_json);
    }
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = objects.get(),
                                  .messages = flags.records.wants_messages(),
                                  .learn_sizes = flags.records.learn_sizes,
                                  .memory = &memory},
                                 maps,
                                 sinks,
                                 numbers};
    captures.read(inspector, flags.records.pseudonym_key);
    const record::SessionStats totals = inspector.totals();
    if (json) {
        const record::SummaryRecord summary{.head = {.time = captures.last()},
                                            .stats = &totals,
                                            .sessions = inspector.sessions_seen()};
        json->on_record(&summary);
        json->flush();
    }
    if (file && file->failed()) {
        fmt::print(stderr, "twscope: --output {}: {}; {} records are missing\n",
                   flags.records.output, std::generic_category().message(file->error()),
                   file->lost_lines());
        return kExitFailed;
    }
    if (!json) {
        fmt::print("{}",
                   report::totals_text(flags.captures.paths, totals, inspector.sessions_seen()));
    }
    auto checks = fail_on.checks(totals, "--fail-on");
    report::add_checks(checks, expectations.report(), "--expect");
    return conclude(
        report::outcome_of(std::move(checks), totals, inspector.sessions_seen(), running.seconds()),
        summary_file);
}

} // namespace

Action add_decode_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "decode",
        "Read captures (pcap or pcapng) as if their traffic had passed through the proxy");
    auto flags = std::make_shared<DecodeFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->captures.add_to(*command);
    flags->records.add_to(*command);
    return [flags, settings] {
        settings->complete();
        return run_decode(*flags);
    };
}

} // namespace tw::cli
