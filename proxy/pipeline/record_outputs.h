#pragma once

#include "proxy/pipeline/page_recordings.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/flight_recorder.h"
#include "proxy/sink/output.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace tw::pipeline {

/// Says in the log what becomes of the file of records: once when it cannot be written, once when it
/// can be written again.
class DiskReport {
  public:
    /// From time to time, and at the end.
    void check(sink::OutputFile& file);

  private:
    int error_ = 0; ///< as last said
};

/// Where a run writes as long as it goes on, records or a capture: the target, a queue before it, and
/// what has to be said about them.
class LiveOutput {
  public:
    /// `makers`, `progress`: as of QueuedOutput. `target` has to outlive it.
    LiveOutput(sink::OutputFile& target, unsigned makers, std::atomic<std::uint64_t>* progress)
        : target_{&target}, queue_{target, makers, progress} {}

    [[nodiscard]] sink::OutputFile& target() { return *target_; }

    [[nodiscard]] const sink::OutputFile& target() const { return *target_; }

    [[nodiscard]] sink::QueuedOutput& queue() { return queue_; }

    [[nodiscard]] const sink::QueuedOutput& queue() const { return queue_; }

    /// Goes on in a file that was opened elsewhere; negative: where there are segments, in the next.
    void switch_to(int descriptor);

    /// Once a second: says in the log what became of it. True: its file is gone, and it wants another.
    [[nodiscard]] bool check();

    /// Writes what is left. Returns how much is missing: records, or packets.
    [[nodiscard]] std::uint64_t finish();

  private:
    sink::OutputFile* target_;
    sink::QueuedOutput queue_;
    DiskReport report_;
};

/// A bus as a place for the lines of a run, beside a file or alone; each is behind a queue of its own,
/// so that neither waits for the other.
class RecordOutputs {
  public:
    /// Null: there is none; both have to outlive it.
    void open(sink::OutputFile* bus, LiveOutput* file, std::atomic<std::uint64_t>& progress);

    /// What records are written to; null: nowhere.
    [[nodiscard]] sink::Output* lines();

    /// What became of records on their way to the bus; nothing: there is none. From any thread.
    [[nodiscard]] std::optional<record::BusTotals> bus_totals() const;

    /// Once a second: says in the log what became of the bus.
    void check();

    /// Publishes what is left; the file is finished elsewhere. Returns how many records are missing.
    [[nodiscard]] std::uint64_t finish();

  private:
    LiveOutput* file_ = nullptr;
    std::optional<LiveOutput> bus_;
    std::optional<sink::TeeOutput> both_;
    std::atomic<std::uint64_t>* progress_ = nullptr;
};

/// The queues of what a run writes for other programs, and what has to be said about them.
class WrittenFiles {
  public:
    /// `progress` counts bytes written.
    explicit WrittenFiles(std::atomic<std::uint64_t>& progress) : progress_{&progress} {}

    void open_files(bool wanted) { open(files_, wanted); }

    /// Of its own: a burst of it must not cost demos.
    void open_flight(bool wanted) { open(flight_, wanted); }

    /// Of what is recorded from the page, by so many workers; nothing: it records nothing.
    void open_page(const std::optional<PageRecordingOptions>& options, unsigned workers) {
        if (options) {
            page_.emplace(*options, workers, PageRecordings::kMaxFolderBytes, progress_);
        }
    }

    [[nodiscard]] PageRecordings* page() { return page_ ? &*page_ : nullptr; }

    /// Of demos; null: there are none.
    [[nodiscard]] sink::FileQueue* files() { return files_ ? &*files_ : nullptr; }

    [[nodiscard]] sink::FileQueue* flight() { return flight_ ? &*flight_ : nullptr; }

    /// Once a second: says what could not be written, each file once, and ends what cannot go on.
    void print_error();
    /// Writes what is left of demos; returns how much is missing in them.
    [[nodiscard]] std::uint64_t finish(const sink::DemoLosses& losses);
    void finish_flight(const sink::FlightTally& tally);

  private:
    void open(std::optional<sink::FileQueue>& queue, bool wanted) {
        if (wanted) {
            queue.emplace(sink::FileQueue::Full::refuse, sink::FileQueue::kMaxQueueBytes,
                          progress_);
        }
    }

    std::atomic<std::uint64_t>* progress_;
    std::optional<sink::FileQueue> files_;
    std::optional<sink::FileQueue> flight_;
    std::optional<PageRecordings> page_;
};

} // namespace tw::pipeline
