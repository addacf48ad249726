#include "proxy/bus/bus_output.h"

#include "proxy/base/clock.h"
#include "proxy/base/log.h"
#include "proxy/bus/subjects.h"
#include "proxy/record/json.h"
#include "proxy/record/records.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/json_lines.h"

#include <thread>
#include <utility>

namespace tw::bus {

namespace {

constexpr std::chrono::milliseconds kPollInterval{2};
constexpr std::chrono::seconds kMaintenanceInterval{1};

/// Returns the lines without repeated lines, which the stream already contains. The result may
/// refer to `new_lines`.
std::string_view remove_repeated_lines(std::string_view block, std::string& new_lines) {
    if (block.find(record::kRepeatedEnd) == std::string_view::npos) {
        return block;
    }
    new_lines.clear();
    while (!block.empty()) {
        const std::size_t end = block.find('\n');
        const std::string_view line = block.substr(0, end);
        if (!record::is_repeated_record(line)) {
            new_lines.append(line).push_back('\n');
        }
        block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
    }
    return new_lines;
}

} // namespace

BusOutput::BusOutput(const PublishOptions& options, BusTimeouts timeouts)
    : OutputFile{options.access.urls.empty() ? ""
                                             : url_without_password(options.access.urls.front())},
      spool_path_{options.spool.string()}, timeouts_{timeouts}, lossless_until_{base::now_utc()},
      publisher_{std::make_shared<Publisher>(options)}, backlog_{&publisher_->backlog()} {}

BusOutput::~BusOutput() {
    finish_writing();
}

void BusOutput::write(std::string_view block) {
    const std::string_view lines = remove_repeated_lines(block, new_lines_);
    backlog_->retry_writing();
    for (const auto until = Clock::now() + timeouts_.write;
         !backlog_->has_room() && Clock::now() < until;) {
        publisher_->wake_thread();
        std::this_thread::sleep_for(kPollInterval);
        backlog_->retry_writing();
    }
    if (backlog_->has_room()) {
        backlog_->append_lines(lines);
    } else {
        refused_lines_ += sink::count_lines(lines);
    }
    publisher_->wake_thread();
    update_shared_counters();
}

void BusOutput::do_due_work(Clock::time_point now) {
    if (now - last_maintenance_ >= kMaintenanceInterval) {
        last_maintenance_ = now;
        backlog_->retry_writing();
        append_loss_record();
        count_waiting_lines();
    }
    publisher_->wake_thread();
    update_shared_counters();
}

/// Appends a record with the number of dropped lines that no earlier record reports.
void BusOutput::append_loss_record() {
    if (publisher_->spool_folder() == nullptr || !backlog_->has_room()) {
        return;
    }
    // Forgets reports that were dropped from the spool. Their losses are then reported again.
    const Backlog::Status status = backlog_->status();
    std::uint64_t reported = 0;
    std::erase_if(loss_reports_, [&](const LossReport& report) {
        return report.line > status.last_settled_line && report.line <= status.last_dropped_line;
    });
    for (const LossReport& report : loss_reports_) {
        reported += report.lost;
    }
    const std::uint64_t dropped = publisher_->spool_folder()->dropped_lines();
    const std::uint64_t lost = dropped - reported;
    if (lost == 0) {
        // An unpublished report may be dropped. The next report must then include its losses.
        lossless_until_ =
            !loss_reports_.empty() && status.last_settled_line < loss_reports_.back().line
                ? lossless_until_
                : base::now_utc();
        return;
    }
    const record::LossRecord record{.head = {.time = base::now_utc()},
                                    .lost = lost,
                                    .since = lossless_until_,
                                    .cause = "disk_full"};
    backlog_->append_lines(sink::json_line(&record));
    loss_reports_.push_back({.line = backlog_->status().last_line, .lost = lost});
    log::error("the spool {} is full: {} dropped, {} in all", spool_path_,
               record::count_with_noun(dropped - logged_dropped_lines_,
                                       "of its oldest records [was|were]"),
               dropped);
    logged_dropped_lines_ = dropped;
}

void BusOutput::finish_writing() {
    if (std::exchange(is_finished_, true)) {
        return;
    }
    backlog_->retry_writing();
    append_loss_record(); // do_due_work() is not called when a file is published
    publisher_->finish_publishing(timeouts_.finish_writing);
    const std::uint64_t unsaved = backlog_->status().unsaved_lines;
    const std::uint64_t waiting = count_waiting_lines();
    refused_lines_ += unsaved;
    if (waiting > unsaved) {
        log::warn("{} in the spool {}: the next run there publishes them",
                  record::count_with_noun(waiting - unsaved, "record[ remains|s remain]"),
                  spool_path_);
    }
    update_shared_counters();
}

std::uint64_t BusOutput::count_waiting_lines() {
    const LineTotals waiting = backlog_->count_waiting_lines();
    waiting_bytes_ = waiting.bytes;
    return waiting_lines_ = waiting.lines;
}

std::uint64_t BusOutput::total_lost_lines() const {
    return refused_lines_ + backlog_->status().lost_lines + publisher_->totals().refused;
}

/// Updates the error and the number of lost lines, which other threads read.
void BusOutput::update_shared_counters() {
    state.error = backlog_->status().error;
    state.lost_entries = total_lost_lines();
}

record::BusTotals BusOutput::totals() const {
    const PublishTotals& totals = publisher_->totals();
    const std::uint64_t connections = totals.connections;
    return {.published = totals.published,
            .acknowledged = totals.acknowledged,
            .dropped = total_lost_lines(),
            .waiting = waiting_lines_,
            .waiting_bytes = waiting_bytes_,
            .reconnects = connections == 0 ? 0 : connections - 1,
            .connected = totals.connected ? 1U : 0U};
}

} // namespace tw::bus
