#pragma once

#include "proxy/pipeline/config.h"
#include "proxy/sink/file_output.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

namespace tw::pipeline {

/// An output of a run, for records or a capture: the file, a queue in front of it, and log messages
/// about both.
class LiveOutput {
  public:
    /// Logs what was cut off the file when it was opened. `makers`, `progress`: see QueuedOutput.
    /// `target` must outlive the object.
    LiveOutput(sink::OutputFile& target, unsigned makers, std::atomic<std::uint64_t>* progress)
        : target_{&target}, queue_{target, makers, progress} {
        check();
    }

    [[nodiscard]] sink::QueuedOutput& queue() { return queue_; }

    [[nodiscard]] const sink::QueuedOutput& queue() const { return queue_; }

    /// Logs when writing fails and when it works again, and what happened to the file. Call it once a
    /// second.
    void check();

    /// Writes all queued data. Returns the number of lost records or packets.
    [[nodiscard]] std::uint64_t finish();

  private:
    sink::OutputFile* target_;
    sink::QueuedOutput queue_;
    int error_ = 0; ///< the last error that was logged
};

/// A message bus that records are published on.
struct BusTarget {
    sink::OutputFile* output = nullptr; ///< null: no bus
    std::function<record::BusTotals()> totals{};
};

/// The outputs of record lines: a bus, a file or both. Each has its own queue, so that neither
/// waits for the other.
class RecordOutputs {
  public:
    /// Sets the outputs. `bus.output` and `file` may be null and must outlive this object.
    void open(const BusTarget& bus, LiveOutput* file, std::atomic<std::uint64_t>& progress);

    /// The output for record lines; null if there is none.
    [[nodiscard]] sink::Output* lines();

    /// The bus's totals; nullopt without a bus. Callable from any thread.
    [[nodiscard]] std::optional<record::BusTotals> bus_totals() const;

    /// Logs the state of the bus. Call it once a second.
    void check();

    /// Publishes all queued records on the bus and returns the number of lost records. Does not
    /// finish the file.
    [[nodiscard]] std::uint64_t finish();

  private:
    LiveOutput* file_ = nullptr;
    std::optional<LiveOutput> bus_;
    std::function<record::BusTotals()> bus_totals_;
    std::optional<sink::TeeOutput> both_;
    std::atomic<std::uint64_t>* progress_ = nullptr;
};

/// The queues of demos, flight recordings and page recordings, and log messages about them.
class WrittenFiles {
  public:
    /// `progress`: counts written bytes.
    explicit WrittenFiles(std::atomic<std::uint64_t>& progress) : progress_{&progress} {}

    /// Opens the queues that `config` needs. Flight recordings have their own queue, so that a
    /// burst of them does not make demos lose data.
    void open(const Config& config, Outputs& outputs);

    [[nodiscard]] PageRecordings* page() { return page_ ? &*page_ : nullptr; }

    [[nodiscard]] sink::FileQueue* flight() { return flight_ ? &*flight_ : nullptr; }

    /// Logs write errors, once per file, and ends recordings that cannot continue. Call it once a
    /// second.
    void log_errors();
    /// Writes the queued data of demos; returns how many pieces of data the demos lack.
    [[nodiscard]] std::uint64_t finish(const sink::DemoLosses& losses);
    void finish_flight(const sink::FlightTally& tally);

  private:
    std::atomic<std::uint64_t>* progress_;
    std::optional<sink::FileQueue> files_;
    std::optional<sink::FileQueue> flight_;
    std::optional<PageRecordings> page_;
};

} // namespace tw::pipeline
