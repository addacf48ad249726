#include "proxy/bus/bus_output.h"

#include "proxy/base/clock.h"
#include "proxy/bus/subjects.h"
#include "proxy/record/json.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"

#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

namespace tw::bus {

namespace {

constexpr std::chrono::milliseconds kLook{2};
constexpr std::chrono::seconds kMend{1};

std::string path_of(const PublishOptions& options) {
    return options.access.urls.empty() ? std::string{}
                                       : url_without_password(options.access.urls.front());
}

/// Returns the lines without repeated lines, which the stream already contains. `kept`: memory for
/// the result.
std::string_view without_repetitions(std::string_view block, std::string& kept) {
    if (block.find(record::kRepeatedEnd) == std::string_view::npos) {
        return block;
    }
    kept.clear();
    while (!block.empty()) {
        const std::size_t end = block.find('\n');
        const std::string_view line = block.substr(0, end);
        if (!record::is_repeated(line)) {
            kept.append(line).push_back('\n');
        }
        block.remove_prefix(end == std::string_view::npos ? block.size() : end + 1);
    }
    return kept;
}

} // namespace

BusOutput::BusOutput(const PublishOptions& options, BusTimeouts timeouts)
    : OutputFile{path_of(options)}, spool_{options.spool.string()}, timeouts_{timeouts},
      lossless_until_{base::now_utc()}, work_{std::make_shared<SharedState>()} {
    Publisher::FindLeftover leftovers;
    const std::string run = make_run_id();
    if (options.spool.empty()) {
        work_->store = std::make_unique<MemoryBacklog>(run, options.server);
    } else {
        SpoolFolder& folder = work_->folder.emplace(options.spool, options.spool_bytes);
        folder.report_unpublished(options.stream);
        work_->store = std::make_unique<Spool>(folder, run, options.server, options.stream);
        leftovers = [&folder, run, stream = options.stream] {
            return Spool::take_over_next(folder, run, stream);
        };
    }
    store_ = work_->store.get();
    publisher_ = &work_->publisher.emplace(options, *store_, std::move(leftovers));
}

BusOutput::~BusOutput() {
    finish();
}

void BusOutput::write(std::string_view block) {
    append(without_repetitions(block, kept_));
    update_state();
}

void BusOutput::append(std::string_view lines) {
    const auto begun = Clock::now();
    if (holds_) { // held_ contains lines of an earlier call and cannot store more
        store_->retry_writing();
        if (!append_held_lines()) {
            drop_lines(lines);
            return;
        }
    }
    while (!store_->has_room() || !store_->append(lines)) {
        publisher_->wake_thread(work_);
        if (store_->has_failed_permanently()) {
            drop_lines(lines);
            return;
        }
        if (Clock::now() - begun >= timeouts_.write) {
            held_ = lines; // the lines are appended when they fit
            held_lines_ = sink::count_lines(lines);
            holds_ = true;
            return;
        }
        std::this_thread::sleep_for(kLook);
        store_->retry_writing();
    }
    publisher_->wake_thread(work_);
}

/// Counts lines as dropped. Also drops the lines in held_ if no line can be appended any more.
void BusOutput::drop_lines(std::string_view lines) {
    refused_ += sink::count_lines(lines);
    if (holds_ && store_->has_failed_permanently()) {
        refused_ += held_lines_.exchange(0);
        holds_ = false;
    }
}

/// Appends the lines in held_. Returns false if they do not fit yet.
bool BusOutput::append_held_lines() {
    if (holds_ && store_->has_room() && store_->append(held_)) {
        holds_ = false;
        held_lines_ = 0;
    }
    return !holds_;
}

void BusOutput::on_time(Clock::time_point now) {
    if (now - looked_ >= kMend) {
        looked_ = now;
        store_->retry_writing();
        if (append_held_lines()) {
            report_loss();
        }
    }
    publisher_->wake_thread(work_);
    update_state();
}

/// Appends a record about dropped lines.
void BusOutput::report_loss() {
    const std::uint64_t lost = store_->unreported_losses();
    if (lost == 0) {
        // As long as the line with the previous report is not published, it may be dropped, too.
        lossless_until_ = store_->last_settled() < reported_in_ ? lossless_until_ : base::now_utc();
        return;
    }
    const record::LossRecord record{.head = {.time = base::now_utc()},
                                    .lost = lost,
                                    .since = lossless_until_,
                                    .cause = "disk_full"};
    sink::TextOutput text;
    sink::JsonLines line{{}, text};
    line.on_record(&record);
    line.flush();
    if (store_->append(text.text)) {
        store_->mark_losses_reported(lost);
        reported_in_ = store_->last_line();
        spdlog::error("the spool {} is full: {} of its oldest records were dropped, {} in all",
                      spool_, store_->dropped_lines() - logged_, store_->dropped_lines());
        logged_ = store_->dropped_lines();
    }
}

void BusOutput::finish() {
    if (std::exchange(finished_, true)) {
        return;
    }
    if (holds_ && !store_->append(held_)) {
        refused_ += sink::count_lines(held_);
    }
    held_lines_ = 0;
    report_loss(); // on_time() is not called when a file of records is published
    publisher_->finish(timeouts_.finish);
    const std::uint64_t waiting = store_->waiting_lines();
    if (!store_->is_persistent()) {
        refused_ += waiting;
    } else if (waiting != 0) {
        spdlog::warn("{} records remain in the spool {}: the next run there publishes them",
                     waiting, spool_);
    }
    update_state();
}

std::uint64_t BusOutput::count_lost() const {
    const std::uint64_t damaged = work_->folder ? work_->folder->damaged_lines() : 0;
    return refused_ + store_->dropped_lines() + damaged + publisher_->totals().refused;
}

/// Updates the state that other threads read. Lines that wait to be published are no error.
void BusOutput::update_state() {
    error_ = store_->error();
    lost_ = count_lost();
}

record::BusTotals BusOutput::totals() const {
    const PublishTotals& totals = publisher_->totals();
    const std::uint64_t connections = totals.connections;
    return {.published = totals.published,
            .acknowledged = totals.acknowledged,
            .dropped = count_lost(),
            .waiting = store_->waiting_lines() + held_lines_,
            .waiting_bytes = store_->waiting_bytes(),
            .reconnects = connections == 0 ? 0 : connections - 1,
            .connected = totals.connected ? 1U : 0U};
}

} // namespace tw::bus
