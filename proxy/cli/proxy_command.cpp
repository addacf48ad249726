#include "proxy/cli/commands.h"
#include "proxy/cli/conclude.h"
#include "proxy/cli/output_file.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/report/stats_report.h"
#include "proxy/run/proxy_run.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace tw::cli {

namespace {

/// What people read; records on standard output must not be mixed with anything.
std::FILE* console_of(const ProxyFlags& flags) {
    return flags.records.output == "-" ? stderr : stdout;
}

run::ProxyOptions run_options(const ProxyFlags& flags, relay::Options relay,
                              const snapshot::ObjectSet& objects, sink::FileOutput* file) {
    const RecordFlags& records = flags.records;
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    run::ProxyOptions options{
        .relay = std::move(relay),
        .objects = &objects,
        .map_folders = records.map_folders(),
        .map_cache = records.map_cache,
        .inspect = !flags.no_inspect,
        .messages = records.wants_messages(),
        .ledger = flags.stats,
        .ring_bytes = flags.ring_mib * kMiB,
        .file = file,
        .json = records.json(objects),
        .console = flags.quiet ? nullptr : console_of(flags),
        .filter = records.parse_filter("--filter", records.filter, objects),
        .console_filter = records.parse_filter("--console-filter", records.console_filter, objects),
        .expectations = records.expectations(objects),
        .pseudonym_key = records.pseudonym_key};
    if (flags.http.on()) {
        options.page = flags.http.options();
    }
    if (flags.duration > 0) {
        options.time_limit = {.after = std::chrono::duration<double>{flags.duration},
                              .reason = "the time given with --duration is over"};
    }
    return options;
}

std::unique_ptr<run::ProxyRun> open_run(run::ProxyOptions options) {
    try {
        return std::make_unique<run::ProxyRun>(std::move(options));
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    } catch (const admin::ListenError& error) {
        throw UsageError{fmt::format("--http: {}", error.what())};
    }
}

void print_stats(const ProxyFlags& flags, const run::ProxyResult& result) {
    fmt::print(console_of(flags), "{}",
               report::stats_table({.captures = {"this run"},
                                    .sessions = result.sessions,
                                    .duration_ns = result.duration.count(),
                                    .totals = &result.totals,
                                    .ledger = &result.ledger}));
}

int run_proxy(const ProxyFlags& flags) {
    const report::FailOn fail_on = flags.records.failing();
    const auto objects = flags.records.objects();
    const relay::Options relay = flags.relay_options();
    std::optional<sink::FileOutput> summary;
    open_output_file("--summary", flags.records.summary, summary);
    std::optional<sink::FileOutput> file;
    open_output_file("--output", flags.records.output, file);
    const auto run = open_run(run_options(flags, relay, *objects, file ? &*file : nullptr));
    spdlog::info(describe_client_address(relay.client_address, run->client_address()));
    try {
        const run::ProxyResult result = run->run();
        if (flags.stats) {
            print_stats(flags, result);
        }
        auto checks = fail_on.checks(result.totals, "--fail-on");
        report::add_checks(checks, result.expectations, "--expect");
        const std::chrono::duration<double> seconds = result.duration;
        const int code = conclude(
            report::outcome_of(std::move(checks), result.totals, result.sessions, seconds.count()),
            summary);
        return code == 0 && result.lost_records != 0 ? kExitFailed : code;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
}

int print_routes(const ProxyFlags& flags) {
    const relay::Options options = flags.relay_options();
    try {
        const auto server = relay::resolve_server(options.server_host, options.server_port);
        fmt::print("{}", transparent_routes(server, relay::is_own_address(server), options.listen));
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
    return 0;
}

int run_command(const ProxyFlags& flags) {
    std::signal(SIGUSR1, SIG_IGN); // who asks for totals before there are any
    if (flags.server.empty()) {
        throw UsageError{
            "proxy needs the game server: -s HOST:PORT, for example -s 127.0.0.1:8304"};
    }
    auto logger = spdlog::stderr_color_mt("twscope");
    logger->set_pattern("%H:%M:%S %^%l%$ %v");
    logger->set_level(spdlog::level::from_str(flags.log_level));
    spdlog::set_default_logger(std::move(logger));
    return flags.relay.print_routes ? print_routes(flags) : run_proxy(flags);
}

} // namespace

Action add_proxy_command(CLI::App& app) {
    CLI::App* command = app.add_subcommand(
        "proxy", "Stand between clients and a server: forward everything, record what happens");
    auto flags = std::make_shared<ProxyFlags>();
    auto settings = std::make_shared<Settings>(*command);
    flags->add_to(*command);
    return [flags, settings] {
        settings->complete();
        return run_command(*flags);
    };
}

} // namespace tw::cli
