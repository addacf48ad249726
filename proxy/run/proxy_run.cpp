#include "proxy/run/proxy_run.h"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace tw::run {

namespace {

/// From now on signals wait for the end of the process: it is near, and its exit code is to say how
/// the run went. While a signal_set is taken down, a signal would end the process by itself.
void hold_signals() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
        sigaddset(&held, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held, nullptr);
}

} // namespace

ProxyRun::ProxyRun(ProxyOptions options)
    : options_{std::move(options)}, maps_{options_.map_folders, options_.map_cache},
      end_signals_{io_, SIGINT, SIGTERM}, report_signal_{io_, SIGUSR1} {
    if (options_.file != nullptr) {
        queue_.emplace(*options_.file);
    }
    if (options_.console != nullptr && options_.inspect) {
        console_.emplace(::isatty(::fileno(options_.console)) == 1);
    }
    const unsigned threads = options_.relay.threads;
    if (options_.page) {
        board_.emplace(threads);
    }
    const PipelineOptions shared = pipeline();
    std::vector<relay::Ring*> rings;
    for (unsigned i = 0; i < threads && options_.inspect; ++i) {
        workers_.push_back(std::make_unique<Worker>(shared, maps_, numbers_, i));
        rings.push_back(&workers_.back()->ring());
    }
    relay_.emplace(options_.relay, rings);
    impairment_.emplace(*relay_, queue_ ? &*queue_ : nullptr, options_.json);
    if (options_.page) {
        open_page();
    }
    for (const auto& endpoint : relay_->listen_endpoints()) {
        spdlog::info("listening on {}, forwarding to {}", relay::to_string(endpoint),
                     relay::to_string(relay_->server_endpoint()));
    }
}

PipelineOptions ProxyRun::pipeline() {
    return {.inspect = {.objects = options_.objects, .messages = options_.messages},
            .stats = options_.ledger,
            .json = options_.json,
            .records = queue_ ? &*queue_ : nullptr,
            .console = console_ ? &*console_ : nullptr,
            .filter = options_.filter,
            .console_filter = options_.console_filter,
            .expectations = options_.expectations,
            .ring_bytes = options_.ring_bytes,
            .board = board_ ? &*board_ : nullptr,
            .pseudonym_key = options_.pseudonym_key};
}

void ProxyRun::open_page() {
    page_.emplace(*options_.page, AdminRun::Parts{.io = &io_,
                                                  .relay = &*relay_,
                                                  .impairment = &*impairment_,
                                                  .board = &*board_,
                                                  .file = options_.file,
                                                  .queue = queue_ ? &*queue_ : nullptr,
                                                  .inspecting = options_.inspect});
}

ProxyResult ProxyRun::run() {
    for (const auto& worker : workers_) {
        worker->start();
    }
    relay_->start();
    if (page_) {
        page_->start();
    }
    running_ = shown_ = Stopwatch{};
    await_end();
    await_report_signal();
    second_timer_.expires_after(std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& error) { every_second(error); });
    io_.run();
    ProxyResult result = finish();
    hold_signals();
    return result;
}

void ProxyRun::await_end() {
    end_signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (!error) {
            stop(signal == SIGINT ? "interrupted" : "terminated");
        }
    });
    if (options_.time_limit) {
        end_timer_.expires_at(
            running_.started() +
            std::chrono::duration_cast<relay::Clock::duration>(options_.time_limit->after));
        end_timer_.async_wait([this](const boost::system::error_code& error) {
            if (!error) {
                stop(options_.time_limit->reason);
            }
        });
    }
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
    server_report_.check(*relay_, console_ ? &*console_ : nullptr, page_ ? &*page_ : nullptr);
    second_timer_.expires_at(second_timer_.expiry() + std::chrono::seconds{1});
    second_timer_.async_wait([this](const auto& next) { every_second(next); });
}

void ProxyRun::show(bool last) {
    if (!console_) {
        return;
    }
    constexpr double kShortest = 0.001; // a rate over no time at all says nothing
    auto lines = console_->lines(relay::now_utc(), std::max(shown_.lap(), kShortest));
    if (last) {
        lines.pop_back(); // the state of things after all has ended says nothing
    }
    for (const std::string& line : lines) {
        fmt::print(options_.console, "{}\n", line);
    }
    std::fflush(options_.console);
}

void ProxyRun::check_disk() {
    if (options_.file != nullptr && options_.file->failed() && !disk_error_reported_) {
        disk_error_reported_ = true;
        spdlog::error("recording to {} stopped: {}; forwarding goes on", options_.file->path(),
                      std::generic_category().message(options_.file->error()));
    }
}

void ProxyRun::check_sessions() {
    const std::uint64_t failed = relay_->counters().sessions_failed;
    if (failed != failed_sessions_reported_) {
        spdlog::warn("{} datagrams of new clients lost: no socket to the server could be opened "
                     "for them: {}",
                     failed - failed_sessions_reported_, relay_->last_session_error().message());
        failed_sessions_reported_ = failed;
    }
}

void ProxyRun::stop(std::string_view why) {
    spdlog::info("stopping: {}", why);
    stopping_ = true;
    end_signals_.cancel();
    report_signal_.cancel();
    second_timer_.cancel();
    end_timer_.cancel();
}

void ProxyRun::write_summary(const ProxyResult& result) {
    sink::JsonLines last{options_.json, *queue_};
    const record::SummaryRecord summary{.head = {.time = relay::now_utc()},
                                        .stats = &result.totals,
                                        .sessions = result.sessions,
                                        .impaired = impaired_totals(relay_->counters())};
    last.on_record(&summary);
    last.flush();
}

ProxyResult ProxyRun::finish() {
    page_.reset(); // before anything it shows goes
    impairment_->finish();
    relay_->stop();
    relay_->join();
    ProxyResult result;
    filter::Expectations expectations{options_.expectations};
    for (const auto& worker : workers_) {
        worker->finish();
        result.totals.merge(worker->totals());
        result.sessions += worker->sessions_seen();
        result.ledger.merge(worker->ledger());
        expectations.merge(worker->expectations());
    }
    result.expectations = expectations.report();
    show(true);
    if (queue_) {
        write_summary(result);
        const std::uint64_t dropped = queue_->dropped_lines();
        queue_.reset();
        check_disk();
        result.lost_records = dropped + options_.file->lost_lines();
        if (result.lost_records != 0) {
            spdlog::error("{} records could not be written", result.lost_records);
        }
    }
    const relay::Counters counters = relay_->counters();
    spdlog::info(
        "{} sessions, {} datagrams to the server, {} to clients, {} snapshots, {} verified",
        counters.sessions_opened, counters.directions[0].datagrams,
        counters.directions[1].datagrams, result.totals.snapshots, result.totals.verified);
    result.duration = running_.elapsed();
    return result;
}

} // namespace tw::run
