#include "proxy/base/clock.h"
#include "proxy/bus/collector.h"
#include "proxy/bus/subjects.h"
#include "proxy/cli/commands.h"
#include "proxy/cli/help.h"
#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/log.h"
#include "proxy/cli/objects_file.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/publish_flags.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/process/fleet_page.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/output.h"
#include "proxy/wire/message.h"

#include <csignal>
#include <tuple>

namespace tw::cli {

namespace {

struct CollectFlags {
    BusAccessFlags access;
    bus::CollectOptions collector{.consumer = "collect"};
    RecordFlags records; ///< collect has only some of these flags
    double duration = 0;
    std::string log_level = "info";
    HttpFlags http;    ///< for the page that shows all servers
    std::string state; ///< state folder; empty for the default of state_folder()
    std::vector<std::string> server_pages; ///< [NAME=]URL

    void add_to(Command& command);
    void check() const;
};

process::ServerPageUrls parse_server_pages(const std::vector<std::string>& server_pages) {
    const auto is_address = [](std::string_view text) {
        return text.starts_with("http://") || text.starts_with("https://");
    };
    process::ServerPageUrls pages;
    for (const std::string& each : server_pages) {
        if (is_address(each)) {
            pages.pattern = each;
            continue;
        }
        const auto equals = each.find('=');
        const std::string name = each.substr(0, equals);
        const std::string url = equals == std::string::npos ? "" : each.substr(equals + 1);
        if (!bus::is_subject_token(name) || !is_address(url)) {
            throw usage_error("--http-server-page {0}: expected a URL like "
                              "http://{{server}}.example.org:{1}/, or NAME=http://example.org:{1}/",
                              each, kSuggestedHttpPort);
        }
        pages.urls_by_server[name] = url;
    }
    return pages;
}

/// A record output that also shows the records on the page of all servers, if there is one.
struct PageRecordOutput final : CollectedRecordOutput {
    using CollectedRecordOutput::CollectedRecordOutput;

    void on_batch_confirmed(const std::vector<bus::CollectedRecord>& records) override {
        for (const bus::CollectedRecord& record : records) {
            // Publishers may use any name. Invalid names must not get into keys and addresses.
            const std::string_view server =
                bus::is_subject_token(record.server) ? std::string_view{record.server} : "other";
            if (page) {
                page->add_record_line({.server = server, .run = record.run}, record.line);
            }
        }
        if (page) {
            page->flush_to_page();
        }
    }

    void set_delay_reason(const std::string& reason) override {
        if (page) {
            page->set_delay_reason(reason);
        }
    }

    std::unique_ptr<process::FleetPage> page;
};

volatile std::sig_atomic_t stop_wanted = 0;

constexpr const char* kAboutCollect =
    "Of collectors with the same --bus-consumer, one works and the others wait to take over: each "
    "record is handled once, even if one is killed. See docs/fleet.md.";

void CollectFlags::add_to(Command& command) {
    access.add_to(command, "Bus to collect records from");
    command.add("--nats-consumer", &collector.consumer, "NAME", {}).replacement = "--bus-consumer";
    command.add("--bus-consumer", &collector.consumer, "NAME",
                "Name under which the bus remembers the position; a new name starts at the "
                "oldest record");
    command.add("-o,--output", &records.output, "FILE",
                "Write records to a file, to standard output (-), or to a folder with one file "
                "per server and hour; compressed in a folder, or if the name ends in .zst");
    command.add("--filter", &records.filter, "EXPRESSION",
                "Only matching records, for example 'finding and severity >= error' "
                "(proxy/filter/FILTERS.md)");
    add_objects_flag(command, records.maps_and_objects.objects_file,
                     ", whose fields filters can name");
    records.add_check_flags(command);
    command.add_switch("--until-end", collector.stops_at_end,
                       "Exit once all available records have been handled");
    add_duration_flag(command, duration);
    http.add_access_flags(
        command,
        "Serve a page of all servers, /healthz, /readyz, /metrics and /api/state at this address");
    command.add("--http-server-page", &server_pages, "[NAME=]URL",
                fmt::format("Link to each server's own page, with {{server}} for its name: "
                            "http://{{server}}.example.org:{}/; NAME=URL sets that of one server "
                            "(repeatable)",
                            kSuggestedHttpPort));
    command.dependent_flags.push_back({{"--http-server-page"}, {"--http"}});
    add_state_flag(command, state, "the page's token");
    add_log_level_flag(command, log_level);
}

void CollectFlags::check() const {
    std::ignore = http.page_addresses();
    std::ignore = parse_server_pages(server_pages);
    if (!access.is_enabled()) {
        throw UsageError{
            "collect needs the bus: --bus URL, for example --bus nats://127.0.0.1:4222"};
    }
    check_bus_name("--bus-consumer", collector.consumer);
    if (records.output.empty() && records.expect.empty() && records.fail_on.empty() &&
        !http.is_enabled()) {
        throw UsageError{
            "collect has nothing to do: give -o FOLDER, --http PORT, --expect or --fail-on"};
    }
}

/// Opens the page of all servers of a stream; returns null if the flags request no page. `mod` has
/// to outlive the page.
/// Errors: relay::RetryableStartError for an address that may become available; UsageError.
std::unique_ptr<process::FleetPage> open_page(const CollectFlags& flags, const std::string& stream,
                                              const wire::ModDescription& mod) {
    if (!flags.http.is_enabled()) {
        return nullptr;
    }
    return std::make_unique<process::FleetPage>(
        process::PageOptions{.listening = flags.http.open_page_sockets(),
                             .access = flags.http.access,
                             .token = flags.http.read_token(state_folder(flags.state)),
                             .is_log_on_terminal = log_stream().is_terminal()},
        process::FleetPage::Stream{.name = stream, .pages = parse_server_pages(flags.server_pages)},
        mod);
}

int run_collect(const CollectFlags& flags) {
    flags.check();
    bus::CollectOptions options = flags.collector;
    options.access = flags.access.bus_access();
    options.stream = flags.access.stream_name();
    open_log(flags.log_level);
    const RecordFlags& records = flags.records;
    const auto mod = records.maps_and_objects.read_mod_description();
    RecordLineChecks checks{records.parse_expectations(records.expect, *mod)};
    const analyze::FindingsToFailOn fail_on = records.findings_to_fail_on();
    auto filter = records.parse_filter("--filter", records.filter, *mod);
    check_distinct_files({records.maps_and_objects.objects_file},
                         {{"--output", records.output}, {"--summary", records.summary}});
    check_replaceable("--summary", records.summary, FileType::summary);
    const auto summary = open_output_file("--summary", records.summary);
    PageRecordOutput output{records.output, std::move(filter), checks};
    output.page = open_page(flags, options.stream, *mod);
    bus::Collector collector{options, output};
    for (const int signal : {SIGINT, SIGTERM}) {
        std::signal(signal, [](int) { stop_wanted = 1; });
    }
    const base::Stopwatch running;
    if (output.page) {
        output.page->start();
    }
    const auto collected = collector.collect([&] {
        if (output.page) {
            output.page->flush_to_page();
        }
        return stop_wanted != 0 || output.is_reader_gone() ||
               (flags.duration > 0 && running.seconds() >= flags.duration);
    });
    if (!collected.has_ever_connected) {
        sink::print_error(
            "{}; nothing was checked",
            collected.lacks_stream
                ? fmt::format(
                      "the bus has no stream {}: publish first, or name the stream in --bus "
                      "URL/STREAM",
                      options.stream)
                : "the bus could not be reached");
        return kExitRetryable;
    }
    const bool written = output.finish_stream();
    const bool has_stopped_early = options.stops_at_end && !collected.has_reached_end;
    const std::uint64_t missed = options.stops_at_end ? collected.missed_records : 0;
    if (has_stopped_early) {
        sink::print_error("--until-end: stopped before all records were handled");
    }
    if (missed != 0) {
        sink::print_error("--until-end: {} missing",
                          record::count_with_noun(missed, "record[s] [is|are]"));
    }
    const int code = report_result(checks.outcome(fail_on, running.seconds()), summary.get());
    return code == 0 && (!written || has_stopped_early || missed != 0) ? kExitFailed : code;
}

} // namespace

void add_collect_command(Command& command) {
    command.about = "Collect and check the records of many servers from NATS JetStream";
    command.footer = kAboutCollect;
    add_settings_and_action(command, run_collect).add_to(command);
}

} // namespace tw::cli
