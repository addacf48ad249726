#include "proxy/cli/commands.h"
#include "proxy/cli/conclude.h"
#include "proxy/cli/proxy_flags.h"
#include "proxy/cli/relay_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/relay/relay.h"
#include "proxy/report/stats_report.h"
#include "proxy/run/admin_run.h"
#include "proxy/run/impairment_control.h"
#include "proxy/run/map_folders.h"
#include "proxy/run/worker.h"
#include "proxy/sink/file_output.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::cli {

namespace {

namespace asio = boost::asio;

/// One run of the proxy, from start-up to the last written record.
class ProxyRun {
  public:
    explicit ProxyRun(const ProxyFlags& flags);
    [[nodiscard]] int run();

  private:
    void open_admin();
    void every_second(const boost::system::error_code& error);
    void await_report_signal();
    void show(bool last);
    void check_disk();
    void check_sessions();
    void stop(std::string_view why);
    void show_stats(const record::SessionStats& totals, std::uint32_t sessions) const;
    [[nodiscard]] int finish();

    ProxyFlags flags_;
    report::FailOn fail_on_;
    run::MapFolders maps_;
    std::unique_ptr<snapshot::ObjectSet> objects_;
    std::optional<sink::FileOutput> file_;
    std::optional<sink::QueuedOutput> queue_;
    std::optional<sink::Console> console_;
    std::FILE* console_file_ = stdout;
    std::atomic<std::uint32_t> numbers_{0};
    std::vector<std::unique_ptr<run::Worker>> workers_;
    std::optional<relay::Relay> relay_;
    std::optional<run::ImpairmentControl> impairment_;
    std::optional<admin::Board> board_;
    asio::io_context io_{1};
    std::optional<run::AdminRun> admin_;
    asio::steady_timer timer_{io_};
    asio::steady_timer end_{io_};
    asio::signal_set signals_{io_, SIGINT, SIGTERM};
    asio::signal_set report_signal_{io_, SIGUSR1};
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::time_point shown_;
    /// What is due at the same moment comes after all with no error, and must not wait again.
    bool stopping_ = false;
    bool disk_error_told_ = false;
    std::uint64_t sessions_failed_told_ = 0;
    relay::ClientAddress wanted_address_ = relay::ClientAddress::automatic;
};

record::Timestamp now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

ProxyRun::ProxyRun(const ProxyFlags& flags)
    : flags_{flags}, fail_on_{flags.records.failing()}, maps_{flags.records.map_folders(),
                                                              flags.records.map_cache},
      objects_{flags.records.objects()} {
    const relay::Options options = flags.relay_options();
    wanted_address_ = options.client_address;
    check_summary_file(flags.records.summary);
    flags.records.open_output(file_);
    if (file_) {
        queue_.emplace(*file_);
    }
    // Records on standard output must not be mixed with anything.
    console_file_ = flags.records.output == "-" ? stderr : stdout;
    if (!flags.quiet && !flags.no_inspect) {
        console_.emplace(::isatty(::fileno(console_file_)) == 1);
    }
    if (flags.http.on()) {
        board_.emplace(flags.threads);
    }
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    const run::PipelineOptions pipeline{
        .inspect = {.objects = objects_.get(),
                    .messages = (queue_.has_value() || !flags.records.expect.empty()) &&
                                !flags.records.no_messages},
        .stats = flags.stats,
        .json = flags.records.json(*objects_),
        .records = queue_ ? &*queue_ : nullptr,
        .console = console_ ? &*console_ : nullptr,
        .filter = flags.records.parse_filter("--filter", flags.records.filter, *objects_),
        .console_filter =
            flags.records.parse_filter("--console-filter", flags.records.console_filter, *objects_),
        .expectations = flags.records.expectations(*objects_),
        .ring_bytes = flags.ring_mib * kMiB,
        .board = board_ ? &*board_ : nullptr,
        .pseudonym_key = flags.records.pseudonym_key};
    std::vector<relay::Ring*> rings;
    for (unsigned i = 0; i < flags.threads && !flags.no_inspect; ++i) {
        workers_.push_back(std::make_unique<run::Worker>(pipeline, maps_, numbers_, i));
        rings.push_back(&workers_.back()->ring());
    }
    relay_.emplace(options, rings);
    impairment_.emplace(*relay_, queue_ ? &*queue_ : nullptr, flags_.records.json(*objects_));
    if (flags.http.on()) {
        open_admin();
    }
}

void ProxyRun::open_admin() {
    const admin::AdminOptions options = flags_.http.options();
    try {
        admin_.emplace(options, run::AdminRun::Parts{.io = &io_,
                                                     .relay = &*relay_,
                                                     .impairment = &*impairment_,
                                                     .board = &*board_,
                                                     .file = file_ ? &*file_ : nullptr,
                                                     .queue = queue_ ? &*queue_ : nullptr,
                                                     .output = flags_.records.output,
                                                     .inspecting = !flags_.no_inspect});
    } catch (const std::runtime_error& failure) {
        throw UsageError{fmt::format("--http: {}", failure.what())};
    }
}

int ProxyRun::run() {
    for (const auto& endpoint : relay_->listen_endpoints()) {
        spdlog::info("listening on {}:{}, forwarding to {}", endpoint.address().to_string(),
                     endpoint.port(), relay::to_string(relay_->server_endpoint()));
    }
    spdlog::info(describe_client_address(wanted_address_, relay_->client_address()));
    for (const auto& worker : workers_) {
        worker->start();
    }
    relay_->start();
    if (admin_) {
        admin_->start();
    }
    started_ = shown_ = std::chrono::steady_clock::now();
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (!error) {
            stop(signal == SIGINT ? "interrupted" : "terminated");
        }
    });
    await_report_signal();
    timer_.expires_after(std::chrono::seconds{1});
    timer_.async_wait([this](const auto& error) { every_second(error); });
    if (flags_.duration > 0) {
        const std::chrono::duration<double> wanted{flags_.duration};
        end_.expires_at(started_ +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(wanted));
        end_.async_wait([this](const boost::system::error_code& error) {
            if (!error) {
                stop("the time given with --duration is over");
            }
        });
    }
    io_.run();
    return finish();
}

void ProxyRun::await_report_signal() {
    report_signal_.async_wait([this](const boost::system::error_code& error, int) {
        if (error || stopping_) {
            return;
        }
        for (const auto& worker : workers_) {
            worker->request_report();
        }
        await_report_signal();
    });
}

void ProxyRun::every_second(const boost::system::error_code& error) {
    if (error || stopping_) {
        return;
    }
    show(false);
    check_disk();
    check_sessions();
    timer_.expires_at(timer_.expiry() + std::chrono::seconds{1});
    timer_.async_wait([this](const auto& next) { every_second(next); });
}

void ProxyRun::show(bool last) {
    if (!console_) {
        return;
    }
    const auto time = std::chrono::steady_clock::now();
    const std::chrono::duration<double> elapsed = time - shown_;
    shown_ = time;
    auto lines = console_->lines(now(), std::max(elapsed.count(), 0.001));
    if (last) {
        lines.pop_back(); // the state of things after all has ended says nothing
    }
    for (const std::string& line : lines) {
        fmt::print(console_file_, "{}\n", line);
    }
    std::fflush(console_file_);
}

void ProxyRun::check_disk() {
    if (file_ && file_->failed() && !disk_error_told_) {
        disk_error_told_ = true;
        spdlog::error("recording to {} stopped: {}; forwarding goes on", flags_.records.output,
                      std::generic_category().message(file_->error()));
    }
}

void ProxyRun::check_sessions() {
    const std::uint64_t failed = relay_->counters().sessions_failed;
    if (failed != sessions_failed_told_) {
        spdlog::warn("{} datagrams of new clients lost, there is no socket for them towards the "
                     "server: {}",
                     failed - sessions_failed_told_, relay_->last_session_error().message());
        sessions_failed_told_ = failed;
    }
}

void ProxyRun::stop(std::string_view why) {
    spdlog::info("stopping: {}", why);
    stopping_ = true;
    signals_.cancel();
    report_signal_.cancel();
    timer_.cancel();
    end_.cancel();
}

void ProxyRun::show_stats(const record::SessionStats& totals, std::uint32_t sessions) const {
    record::Ledger ledger;
    for (const auto& worker : workers_) {
        ledger.merge(worker->ledger());
    }
    const auto elapsed = std::chrono::steady_clock::now() - started_;
    fmt::print(
        console_file_, "{}",
        report::stats_table(
            {.captures = {"this run"},
             .sessions = sessions,
             .duration_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count(),
             .totals = &totals,
             .ledger = &ledger}));
}

int ProxyRun::finish() {
    admin_.reset(); // before anything it shows goes
    impairment_->finish();
    relay_->stop();
    relay_->join();
    record::SessionStats totals;
    std::uint32_t sessions = 0;
    for (const auto& worker : workers_) {
        worker->finish();
        totals.merge(worker->totals());
        sessions += worker->sessions_seen();
    }
    show(true);
    std::uint64_t lost = 0;
    if (queue_) {
        sink::JsonLines last{flags_.records.json(*objects_), *queue_};
        const record::SummaryRecord summary{.head = {.time = now()},
                                            .stats = &totals,
                                            .sessions = sessions,
                                            .impaired = run::impaired_totals(relay_->counters())};
        last.on_record(&summary);
        last.flush();
        const std::uint64_t dropped = queue_->dropped_lines();
        queue_.reset();
        check_disk();
        lost = dropped + file_->lost_lines();
        if (lost != 0) {
            spdlog::error("{} records could not be written", lost);
        }
    }
    if (flags_.stats) {
        show_stats(totals, sessions);
    }
    const relay::Counters counters = relay_->counters();
    spdlog::info(
        "{} sessions, {} datagrams to the server, {} to clients, {} snapshots, {} verified",
        counters.sessions_opened, counters.directions[0].datagrams,
        counters.directions[1].datagrams, totals.snapshots, totals.verified);
    filter::Expectations expectations{flags_.records.expectations(*objects_)};
    for (const auto& worker : workers_) {
        expectations.merge(worker->expectations());
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
    const int code = conclude(report::outcome_of(fail_on_.checks(totals), expectations, totals,
                                                 sessions, elapsed.count()),
                              flags_.records.summary);
    return code == 0 && lost != 0 ? kExitFailed : code;
}

/// From now on signals wait for the end of the process: it is near, and its exit code shall tell
/// how the run went. While a signal_set is taken down, a signal would end the process by itself.
void hold_signals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
        sigaddset(&held, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

int run_proxy(const ProxyFlags& flags) {
    std::signal(SIGUSR1, SIG_IGN); // who asks for totals before there are any
    if (flags.server.empty()) {
        throw UsageError{
            "proxy needs the game server: -s HOST:PORT, for example -s 127.0.0.1:8304"};
    }
    auto logger = spdlog::stderr_color_mt("twscope");
    logger->set_pattern("%H:%M:%S %^%l%$ %v");
    logger->set_level(spdlog::level::from_str(flags.log_level));
    spdlog::set_default_logger(std::move(logger));
    std::unique_ptr<ProxyRun> run;
    try {
        if (flags.relay.print_routes) {
            const relay::Options options = flags.relay_options();
            const auto server = relay::resolve_server(options.server_host, options.server_port);
            fmt::print("{}",
                       transparent_routes(server, relay::is_own_address(server), options.listen));
            return 0;
        }
        run = std::make_unique<ProxyRun>(flags);
    } catch (const relay::StartError& error) {
        throw UsageError{error.what()};
    }
    try {
        const int code = run->run();
        hold_signals();
        return code;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return kExitFailed;
    }
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
        return run_proxy(*flags);
    };
}

} // namespace tw::cli
