#pragma once

#include "proxy/record/bus_totals.h"
#include "proxy/sink/output.h"
#include "proxy/sink/units.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tw::sink {

/// Where records or a capture end: a file, a pipe, segments in a folder. One thread writes; what only asks, and
/// what only leaves word, may come from any thread.
class RecordTarget : public Output {
  public:
    using Clock = std::chrono::steady_clock;

    /// What is written there.
    [[nodiscard]] virtual const Units& units() const { return record_lines(); }

    /// To be called from time to time by the thread that writes, also when there is nothing to write.
    virtual void on_time(Clock::time_point /*now*/) {}

    /// So many bytes at a time suit it best. Fewer may wait until on_time is due.
    [[nodiscard]] virtual std::size_t portion() const { return 1; }

    /// False: what was handed over is not written yet, and nothing more is taken; on_time tries again.
    [[nodiscard]] virtual bool ready() const { return true; }

    /// Whether it is written in segments: see cut_due.
    [[nodiscard]] virtual bool segmented() const { return false; }

    /// It is time for the next segment. Who writes calls cut() as soon as what follows can be read
    /// alone.
    [[nodiscard]] virtual bool cut_due(Clock::time_point /*now*/) { return false; }

    /// False: not now; on_time tries again what stood in the way.
    virtual bool cut() { return true; }

    /// Writes what is held back, and gives up what cannot be written. Nothing comes behind it.
    virtual void finish() {}

    /// Goes on in another file, which it takes over, from the next whole unit on: what was wrong with
    /// the one before is forgotten, but not what was lost. Where there are segments, in the next one.
    virtual void go_on_in(int descriptor) = 0;
    /// Cuts off what was never finished. Nobody else may write there any more.
    virtual void go_behind_last_unit() = 0;
    /// From now on nothing is waited for that does not come at once.
    virtual void hurry() = 0;

    /// The file does not stand under its name any more, and go_on_in would help.
    [[nodiscard]] virtual bool moved() const { return false; }

    /// Bytes of something unfinished that were cut off, since the last call.
    [[nodiscard]] virtual std::uint64_t take_cut_bytes() { return 0; }

    /// Seconds by which the wall clock was set while it recorded, since the last call; 0: by hardly any.
    [[nodiscard]] virtual std::int64_t take_clock_jump() { return 0; }

    /// As it was given.
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// errno of the failure, 0 while all is well.
    [[nodiscard]] virtual int error() const = 0;
    /// Records, or packets.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;

    /// What became of records on their way there; nothing: it is no bus.
    [[nodiscard]] virtual std::optional<record::BusTotals> bus_totals() const {
        return std::nullopt;
    }

    [[nodiscard]] bool failed() const { return error() != 0; }
};

} // namespace tw::sink
