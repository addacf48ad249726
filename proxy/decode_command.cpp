#include "proxy/capture_run.h"
#include "proxy/commands.h"
#include "proxy/map_folders.h"
#include "proxy/pipeline.h"
#include "proxy/record/console.h"
#include "proxy/record/file_output.h"
#include "proxy/record_flags.h"
#include "proxy/settings.h"
#include "proxy/verdict.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tw {

namespace {

struct DecodeFlags {
    CaptureFlags captures;
    RecordFlags records;
};

/// Shows warnings and errors on standard error as they come.
class FindingPrinter final : public inspect::RecordSink {
  public:
    void on_record(const inspect::Record& record) override {
        const auto* const* finding = std::get_if<const inspect::FindingRecord*>(&record);
        if (finding == nullptr ||
            inspect::finding_info((*finding)->id).severity == inspect::Severity::info) {
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

void print_totals(const std::vector<std::string>& captures, const inspect::SessionStats& totals,
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
    for (const inspect::FindingInfo& info : inspect::finding_table()) {
        if (const auto count = totals.findings[static_cast<std::size_t>(info.id)]; count != 0) {
            fmt::print("{:7} {:30} {:6}  {}\n", inspect::severity_name(info.severity), info.name,
                       count, info.sentence);
        }
    }
}

double seconds_since(std::chrono::steady_clock::time_point started) {
    return std::chrono::duration<double>{std::chrono::steady_clock::now() - started}.count();
}

int run_decode(const DecodeFlags& flags) {
    const auto started = std::chrono::steady_clock::now();
    const FailOn fail_on{flags.records.fail_on};
    check_summary_file(flags.records.summary);
    MapFolders maps{{flags.records.maps.begin(), flags.records.maps.end()},
                    flags.records.map_cache};
    CaptureRun captures{flags.captures};
    const auto objects = flags.records.objects();
    std::optional<record::FileOutput> file;
    std::optional<record::JsonLines> json;
    FindingPrinter findings;
    record::Expectations expectations{flags.records.expectations(*objects)};
    auto filter = flags.records.parse_filter("--filter", flags.records.filter, *objects);
    auto console_filter =
        flags.records.parse_filter("--console-filter", flags.records.console_filter, *objects);
    std::optional<record::FilteredSink> filtered_json;
    std::optional<record::FilteredSink> filtered_findings;
    Fanout sinks;
    sinks.add(expectations);
    add_filtered(sinks, findings, std::move(console_filter), filtered_findings);
    if (!flags.records.output.empty()) {
        try {
            file.emplace(flags.records.output);
        } catch (const std::system_error& error) {
            throw UsageError{fmt::format("--output {}: {}; name a file in a folder that exists and "
                                         "may be written",
                                         flags.records.output, error.code().message())};
        }
        json.emplace(flags.records.json(*objects), *file);
        add_filtered(sinks, *json, std::move(filter), filtered_json);
    }
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{.objects = objects.get(),
                                  .messages = (json.has_value() || !flags.records.expect.empty()) &&
                                              !flags.records.no_messages},
                                 maps,
                                 sinks,
                                 numbers};
    captures.read(inspector, flags.records.pseudonym_key);
    const inspect::SessionStats totals = inspector.totals();
    if (json) {
        const inspect::SummaryRecord summary{.head = {.time = captures.last()},
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
    return conclude(
        judge(expectations, fail_on, totals, inspector.sessions_seen(), seconds_since(started)),
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

} // namespace tw
