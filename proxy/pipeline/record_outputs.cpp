#include "proxy/pipeline/record_outputs.h"

#include "proxy/base/log.h"
#include "proxy/record/terminal_text.h"

#include <cstdlib>
#include <system_error>

namespace tw::pipeline {

void log_reopening_error(store::OutputFile& file) {
    if (const int error = file.state.reopening_error.exchange(0); error != 0) {
        log::error("cannot reopen {}: {}; continuing in the file that is already open", file.path(),
                   std::generic_category().message(error));
    }
}

void QueuedOutputFile::log_output_changes() {
    store::OutputFile& file = *target_;
    if (const auto bytes = file.state.cut_off_bytes.exchange(0); bytes != 0) {
        const std::uint64_t units = file.state.num_cut_off_entries.exchange(0);
        log::warn("{} ended in the middle of a record: removed its last {}{}", file.path(),
                  record::count_with_noun(bytes, "byte[s]"),
                  units == 0 ? ""
                             : ", which held at least " +
                                   record::count_with_noun(units, "whole record[s] or packet[s]"));
    }
    if (const auto jump = file.state.clock_jump.exchange(0); jump != 0) {
        log::warn("the clock was set {} by {}; what {} keeps is counted by the time that passed",
                  jump > 0 ? "forward" : "back",
                  record::count_with_noun(static_cast<std::uint64_t>(std::abs(jump)), "second[s]"),
                  file.path());
    }
    log_reopening_error(file);
    const int error = file.error();
    if (error == logged_error_) {
        return;
    }
    logged_error_ = error;
    if (error != 0) {
        log::error("recording to {} stopped: {}; forwarding continues", file.path(),
                   file.error_text());
    } else {
        log::info("recording to {} resumed", file.path());
    }
}

std::uint64_t QueuedOutputFile::write_queued_data() {
    target_->stop_waiting_for_reader();
    queue_.finish_writing();
    log_output_changes();
    return queue_.num_dropped_entries() + target_->num_lost_entries();
}

void RecordOutputs::set_outputs(const BusTarget& bus, QueuedOutputFile* file,
                                std::atomic<std::uint64_t>& progress) {
    file_ = file;
    if (bus.output == nullptr) {
        return;
    }
    bus_.emplace(*bus.output, 0, &progress);
    bus_totals_ = bus.totals;
    if (file != nullptr) {
        bus_and_file_.emplace(file->queue(), bus_->queue());
    }
}

sink::Output* RecordOutputs::line_output() {
    if (bus_and_file_) {
        return &*bus_and_file_;
    }
    if (bus_) {
        return &bus_->queue();
    }
    return file_ == nullptr ? nullptr : &file_->queue();
}

std::optional<record::BusTotals> RecordOutputs::bus_totals() const {
    if (!bus_) {
        return std::nullopt;
    }
    record::BusTotals totals = bus_totals_();
    totals.dropped += bus_->queue().num_dropped_entries();
    return totals;
}

void RecordOutputs::log_bus_connection_changes() {
    if (bus_) {
        bus_->log_output_changes();
    }
}

std::uint64_t RecordOutputs::publish_queued_records() {
    return bus_ ? bus_->write_queued_data() : 0;
}

void FileQueues::create_queues(const Config& config, WorkerOutputs& outputs) {
    constexpr auto kFull = store::FileQueue::FullQueuePolicy::refuse;
    constexpr std::size_t kMost = store::FileQueue::kMaxQueueBytes;
    if (config.demos) {
        outputs.files = &files_.emplace(kFull, kMost, progress_);
    }
    if (config.flight) {
        outputs.flight = &flight_.emplace(kFull, kMost, progress_);
    }
    if (config.page_recordings) {
        outputs.page_recordings =
            &page_.emplace(*config.page_recordings, PageRecordings::kMaxFolderBytes, progress_);
    }
}

void FileQueues::log_recordings_and_errors() {
    while (const auto written = flight_ ? flight_->take_written_path() : std::nullopt) {
        log::info("flight recorder: wrote {}", *written);
    }
    for (auto* const files : {&files_, &flight_}) {
        while (const auto complaint = *files ? (*files)->take_error_text() : std::nullopt) {
            log::error("not written: {}; forwarding continues", *complaint);
        }
    }
    if (page_) {
        page_->stop_if_failed_or_full();
    }
}

std::uint64_t FileQueues::write_queued_demos(const demo::DemoLosses& losses) {
    if (page_) {
        page_->write_queued_data();
    }
    if (!files_) {
        return 0;
    }
    files_->finish_writing();
    log_recordings_and_errors();
    for (const std::string& loss : describe_losses(losses)) {
        log::warn("demos: {}", loss);
    }
    const std::uint64_t missing = losses.num_unwritten_chunks() + files_->num_lost_blocks();
    if (missing != 0) {
        const std::uint64_t blocks = files_->num_lost_blocks();
        log::error("demos are incomplete{}",
                   blocks == 0 ? ""
                               : "; " + record::count_with_noun(blocks, "block[s]") +
                                     " could not be written");
    }
    return missing;
}

void FileQueues::write_flight_recordings(const capture::FlightRecorderCounts& tally) {
    if (!flight_) {
        return;
    }
    flight_->finish_writing();
    log_recordings_and_errors();
    log::info("the flight recorder wrote {}; {} in one that another finding started",
              record::count_with_noun(flight_->num_created_files(), "capture[s]"),
              record::count_with_noun(tally.num_findings_without_file, "finding[s] [is|are]"));
    if (tally.lost + flight_->num_lost_blocks() != 0) {
        log::warn("its captures lack {} and {}", record::count_with_noun(tally.lost, "datagram[s]"),
                  record::count_with_noun(flight_->num_lost_blocks(), "block[s]"));
    }
}

} // namespace tw::pipeline
