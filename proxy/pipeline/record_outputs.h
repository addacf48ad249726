#pragma once

#include "proxy/pipeline/config.h"
#include "proxy/store/file_output.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

namespace tw::pipeline {

/// Logs an error if reopening the file has failed since the last call.
void log_reopening_error(store::OutputFile& file);

/// An output file for records or a capture, with its queue. Logs the state of both.
class QueuedOutputFile {
  public:
    /// Logs how many bytes were cut off the file when it was opened. `num_producers`, `progress`:
    /// see QueuedOutput. `target` must outlive this object.
    QueuedOutputFile(store::OutputFile& target, unsigned num_producers,
                     std::atomic<std::uint64_t>* progress)
        : target_{&target}, queue_{target, num_producers, progress} {
        log_output_changes();
    }

    [[nodiscard]] store::QueuedOutput& queue() { return queue_; }

    [[nodiscard]] const store::QueuedOutput& queue() const { return queue_; }

    /// Logs when writing fails or works again, and when the clock jumps. Call this function once a
    /// second.
    void log_output_changes();

    /// Writes all queued data. Returns the number of lost records or packets.
    [[nodiscard]] std::uint64_t write_queued_data();

  private:
    store::OutputFile* target_;
    store::QueuedOutput queue_;
    int logged_error_ = 0; ///< errno that was logged last; 0 if writing worked then
};

/// A message bus on which records are published.
struct BusTarget {
    store::OutputFile* output = nullptr; ///< null: no bus
    std::function<record::BusTotals()> totals{};
};

/// The outputs of the records' JSON lines: a bus, a file or both. Bus and file have separate
/// queues, so that neither waits for the other.
class RecordOutputs {
  public:
    /// Sets the outputs, which must outlive this object. `bus.output` and `file` may be null.
    void set_outputs(const BusTarget& bus, QueuedOutputFile* file,
                     std::atomic<std::uint64_t>& progress);

    /// Returns the output for the records' JSON lines; null without bus and file.
    [[nodiscard]] sink::Output* line_output();

    /// Returns the totals of the bus; nullopt without a bus. Callable from any thread.
    [[nodiscard]] std::optional<record::BusTotals> bus_totals() const;

    /// Logs changes of the bus's state. Call this function once a second.
    void log_bus_connection_changes();

    /// Publishes all queued records on the bus. Returns the number of lost records. Does not write
    /// the queued records of the file.
    [[nodiscard]] std::uint64_t publish_queued_records();

  private:
    QueuedOutputFile* file_ = nullptr;
    std::optional<QueuedOutputFile> bus_;
    std::function<record::BusTotals()> bus_totals_;
    std::optional<sink::DuplicatingOutput> bus_and_file_;
};

/// The queues through which demos, flight recordings and page recordings are written. Logs their
/// errors, and each flight recording.
class FileQueues {
  public:
    /// `progress`: counts the bytes written.
    explicit FileQueues(std::atomic<std::uint64_t>& progress) : progress_{&progress} {}

    /// Creates the queues that `config` needs. Flight recordings have their own queue, because a
    /// burst of them would make demos lose data.
    void create_queues(const Config& config, WorkerOutputs& outputs);

    [[nodiscard]] PageRecordings* page_recordings() { return page_ ? &*page_ : nullptr; }

    [[nodiscard]] store::FileQueue* flight_recorder_queue() {
        return flight_ ? &*flight_ : nullptr;
    }

    /// Logs flight recordings and write errors, once per file, and stops page recordings after an
    /// error. Call this function once a second.
    void log_recordings_and_errors();
    /// Writes the queued data of demos. Returns the number of records missing in demos.
    [[nodiscard]] std::uint64_t write_queued_demos(const demo::DemoLosses& losses);
    /// Writes the queued flight recordings, and logs their number and losses.
    void write_flight_recordings(const capture::FlightRecorderCounts& tally);

  private:
    std::atomic<std::uint64_t>* progress_;
    std::optional<store::FileQueue> files_;
    std::optional<store::FileQueue> flight_;
    std::optional<PageRecordings> page_;
};

} // namespace tw::pipeline
