#pragma once

#include "proxy/run/disk_report.h"
#include "proxy/sink/queued_output.h"
#include "proxy/sink/record_target.h"

#include <atomic>
#include <cstdint>

namespace tw::run {

/// Where a run writes as long as it goes on, records or a capture: the target, a queue before it, and
/// what has to be said about them.
class LiveOutput {
  public:
    /// `makers`, `progress`: as of QueuedOutput. `target` has to outlive it.
    LiveOutput(sink::RecordTarget& target, unsigned makers, std::atomic<std::uint64_t>* progress)
        : target_{&target}, queue_{target, makers, progress} {}

    [[nodiscard]] sink::RecordTarget& target() { return *target_; }

    [[nodiscard]] const sink::RecordTarget& target() const { return *target_; }

    [[nodiscard]] sink::QueuedOutput& queue() { return queue_; }

    [[nodiscard]] const sink::QueuedOutput& queue() const { return queue_; }

    /// Goes on in a file that was opened elsewhere; negative: where there are segments, in the next.
    void go_on_in(int descriptor);

    /// Once a second: says in the log what became of it. True: its file is gone, and it wants another.
    [[nodiscard]] bool check();

    /// Writes what is left. Returns how much is missing: records, or packets.
    [[nodiscard]] std::uint64_t finish();

  private:
    sink::RecordTarget* target_;
    sink::QueuedOutput queue_;
    DiskReport report_;
};

} // namespace tw::run
