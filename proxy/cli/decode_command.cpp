#include "proxy/capture/capture_run.h"
#include "proxy/cli/capture_flags.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/conclude.h"
#include "proxy/cli/record_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/record/describe_finding.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/worker.h"
#include "proxy/sink/console.h"
#include "proxy/sink/file_output.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw::cli {

namespace {

struct DecodeFlags {
    CaptureFlags captures;
    RecordFlags records;
};

/// Shows warnings and errors on standard error as they come.
class FindingPrinter final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto* const* finding = std::get_if<const record::FindingRecord*>(&record);
        if (finding == nullptr ||
            record::finding_info((*finding)->id).severity == record::Severity::info) {
            return;
        }
        // The rest stands in the records and the totals.
        constexpr std::uint64_t kMaxShown = 20;
        if (++seen_ <= kMaxShown) {
            fmt::print(stderr, "{}\n", record::describe(**finding));
        } else if (seen_ == kMaxShown + 1) {
            fmt::print(stderr, "further findings are only counted and recorded\n");
        }
    }

  private:
    std::uint64_t seen_ = 0;
};

void print_totals(const std::vector<std::string>& captures, const record::SessionStats& totals,
                  std::uint32_t sessions) {
    fmt::print("{}: {} {}, {} datagrams\n", fmt::join(captures, ", "), sessions,
               sessions == 1 ? "session" : "sessions",
               totals.directions[0].datagrams + totals.directions[1].datagrams);
    fmt::print("snapshots: {}, {} verified", totals.snapshots, totals.verified);
    const std::pair<std::string_view, std::uint64_t> failures[] = {
        {"with another checksum", totals.mismatched},
        {"undecodable", totals.undecodable},
        {"on an unknown base", totals.unknown_base},
        {"incomplete", totals.incomplete},
        {"repeated", totals.repeated},
    };
    for (const auto& [what, count] : failures) {
        if (count != 0) {
            fmt::print(", {} {}", count, what);
        }
    }
    fmt::print("\n");
    for (const record::FindingInfo& info : record::finding_table()) {
        if (const auto count = totals.findings[static_cast<std::size_t>(info.id)]; count != 0) {
            fmt::print("{:7} {:30} {:6}  {}\n", record::severity_name(info.severity), info.name,
                       count, info.sentence);
        }
    }
}

double seconds_since(std::chrono::steady_clock::time_point started) {
    return std::chrono::duration<double>{std::chrono::steady_clock::now() - started}.count();
}

int run_decode(const DecodeFlags& flags) {
    const auto started = std::chrono::steady_clock::now();
    const report::FailOn fail_on = flags.records.failing();
    check_summary_file(flags.records.summary);
    run::MapFolders maps{flags.records.map_folders(), flags.records.map_cache};
    capture::CaptureRun captures{flags.captures.paths, flags.captures.servers()};
    const auto objects = flags.records.objects();
    std::optional<sink::FileOutput> file;
    std::optional<sink::JsonLines> json;
    FindingPrinter findings;
    filter::Expectations expectations{flags.records.expectations(*objects)};
    auto filter = flags.records.parse_filter("--filter", flags.records.filter, *objects);
    auto console_filter =
        flags.records.parse_filter("--console-filter", flags.records.console_filter, *objects);
    std::optional<filter::FilteredSink> filtered_json;
    std::optional<filter::FilteredSink> filtered_findings;
    run::Fanout sinks;
    sinks.add(expectations);
    run::add_filtered(sinks, findings, std::move(console_filter), filtered_findings);
    if (!flags.records.output.empty()) {
        flags.records.open_output(file);
        json.emplace(flags.records.json(*objects), *file);
        run::add_filtered(sinks, *json, std::move(filter), filtered_json);
    }
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = objects.get(),
                                  .messages = (json.has_value() || !flags.records.expect.empty()) &&
                                              !flags.records.no_messages},
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
        print_totals(flags.captures.paths, totals, inspector.sessions_seen());
    }
    return conclude(report::outcome_of(fail_on.checks(totals), expectations, totals,
                                       inspector.sessions_seen(), seconds_since(started)),
                    flags.records.summary);
}

} // namespace

Action add_decode_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "decode", "Read captures (pcap or pcapng) as if their traffic had passed the proxy");
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
