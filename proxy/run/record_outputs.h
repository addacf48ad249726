#pragma once

#include "proxy/run/live_output.h"
#include "proxy/sink/record_target.h"
#include "proxy/sink/tee_output.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace tw::run {

/// A bus as a place for the lines of a run, beside a file or alone; each is behind a queue of its own,
/// so that neither waits for the other.
class RecordOutputs {
  public:
    /// Null: there is none; both have to outlive it.
    void open(sink::RecordTarget* bus, LiveOutput* file, std::atomic<std::uint64_t>& progress);

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

} // namespace tw::run
