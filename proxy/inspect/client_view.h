#pragma once

#include "proxy/inspect/cadence.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/item.h"

#include <cstdint>
#include <optional>

namespace tw::inspect {

/// What the player saw: since when the client has had nothing new to show, and why. A client shows
/// the newest snapshot that it could use; what it acknowledges says which one that was, whatever we
/// made of it.
class ClientView {
  public:
    /// From here on a stall is told; shorter ones are only counted.
    static constexpr record::Timestamp kStall = 250'000'000;

    struct Usable {
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// A snapshot that clients can use. `cadence`: of all of them.
    void on_usable(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        if (shown_ && snapshot.tick - shown_->tick == step_ && refused_ == 0 && errors_ == 0 &&
            time - shown_->time <= overdue()) [[likely]] {
            shown_ = Shown{.tick = snapshot.tick, .time = time};
            return;
        }
        take(snapshot, cadence, reporter);
    }

    /// One came that cannot be used.
    void on_refused(snapshot::Tick tick, record::FindingId why);
    /// The client acknowledged this tick, −1: it asks for a full snapshot.
    void on_ack(snapshot::Tick tick, const Cadence& cadence, Reporter& reporter);

    /// The connection is over: what it still waited for counts.
    void finish(Reporter& reporter);

    /// Another map, or copies were lost: what was shown is not known.
    void restart() { *this = {}; }

  private:
    struct Shown {
        snapshot::Tick tick = 0;
        record::Timestamp time = 0;
    };

    static constexpr record::Timestamp kTick = 20'000'000;

    /// Half a step behind its time, a snapshot is overdue.
    [[nodiscard]] record::Timestamp overdue() const { return step_ * kTick * 3 / 2; }

    void take(const Usable& snapshot, const Cadence& cadence, Reporter& reporter);
    /// It stood still until now; `usable`: what ended that.
    void count_freeze(record::Timestamp frozen, const std::optional<Usable>& usable,
                      Reporter& reporter);

    std::optional<Shown> shown_;                      ///< the newest that the client could use
    snapshot::Tick step_ = 2;                         ///< from one snapshot to the next, mostly
    std::uint64_t refused_ = 0;                       ///< since then
    snapshot::Tick refused_tick_ = snapshot::kNoBase; ///< the newest of them
    record::FindingId why_ = record::FindingId::count;
    std::uint32_t errors_ =
        0; ///< as DDNet's client counts: up by a wrong checksum, down by a right
    std::uint32_t errors_at_reset_ = 0;
    bool gave_up_ = false; ///< acknowledged nothing since then
    snapshot::Tick acked_ = snapshot::kNoBase;
    record::Timestamp alive_ = 0; ///< its last input
};

} // namespace tw::inspect
