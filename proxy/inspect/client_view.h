#pragma once

#include "proxy/inspect/cadence.h"
#include "proxy/inspect/reporter.h"
#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::inspect {

/// What the player saw: since when the client has had nothing new to show, and why. A client shows
/// the newest snapshot that it could use; what its inputs acknowledge says which one that was,
/// whatever we made of it, and whatever became of it on the way from here to the client.
///
/// What DDNet's clients and 0.6 do: ticks older than the newest of which a part came are ignored;
/// a wrong checksum drops the snapshot, and after more than 10 of them the client acknowledges -1;
/// without its base it does so at once.
/// Source: protocol sheet, sections 6.2 and 6.7.
class ClientView {
  public:
    /// From here on a stall is reported; shorter ones are only counted.
    static constexpr record::Timestamp kStall = 250'000'000;

    struct Usable {
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// What the head of an input says.
    struct Input {
        snapshot::Tick acked = snapshot::kNoBase; ///< −1: it asks for a full snapshot
        snapshot::Tick intended = 0;              ///< by the client's clock
    };

    /// A part of this tick came.
    void on_part(snapshot::Tick tick) {
        if (tick > newest_) {
            newest_ = tick;
        }
    }

    /// A snapshot that clients can use. `cadence`: of all of them.
    void on_usable(const Usable& snapshot, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        if (shown_ && snapshot.tick - shown_->tick == step_ && snapshot.tick >= newest_ &&
            refused_ == 0 && errors_ == 0 && time - shown_->time <= overdue()) [[likely]] {
            shown_ = Shown{.tick = snapshot.tick, .time = time};
            return;
        }
        follow(snapshot, cadence, reporter);
    }

    /// One came that cannot be used.
    void on_refused(const Usable& snapshot, record::FindingId why, const Reporter& reporter);

    /// The client says what it shows.
    void on_input(const Input& input, const Cadence& cadence, Reporter& reporter) {
        const record::Timestamp time = reporter.head().time;
        alive_ = time;
        if (input.acked == run_.tick && !asks_ && input.acked != snapshot::kNoBase) {
            run_.last = time;
            run_.last_intended = input.intended;
            return;
        }
        if (shown_ && input.acked > run_.tick && input.acked <= shown_->tick && refused_ == 0 &&
            !asks_ && run_.last - run_.first < kStall) [[likely]] {
            run_ = Run::begin(input, time);
            return;
        }
        follow(input, cadence, reporter);
    }

    /// The client told its version, as DDNet counts them.
    void on_version(std::int32_t version) { version_ = version; }

    [[nodiscard]] std::optional<std::int32_t> version() const { return version_; }

    /// The connection is over: what it still waited for counts.
    void finish(Reporter& reporter);

    /// Another map, or copies were lost: what was shown is not known.
    void restart() {
        const auto version = version_;
        *this = {};
        version_ = version;
    }

    /// Another connection.
    void reset() { *this = {}; }

  private:
    struct Shown {
        snapshot::Tick tick = 0;
        record::Timestamp time = 0;
    };

    struct Refused {
        Usable snapshot;
        record::Timestamp time = 0; ///< 0: none
    };

    /// Inputs in a row that acknowledge one tick.
    struct Run {
        snapshot::Tick tick = snapshot::kNoBase;
        record::Timestamp first = 0; ///< when they came
        record::Timestamp last = 0;
        snapshot::Tick first_intended = 0;
        snapshot::Tick last_intended = 0;
        bool asked = false; ///< acknowledged nothing in between

        [[nodiscard]] static Run begin(const Input& input, record::Timestamp time) {
            return {.tick = input.acked,
                    .first = time,
                    .last = time,
                    .first_intended = input.intended,
                    .last_intended = input.intended};
        }
    };

    /// A time without anything new to show.
    struct Freeze {
        record::Timestamp time = 0;
        snapshot::Tick since = 0; ///< what was shown
        std::optional<Usable> end{};
        std::uint64_t refused = 0;
        std::string_view why;
        std::string asked; ///< how the client asked for a full snapshot
    };

    /// Of a freeze: what was shown, and for how long.
    struct Counted {
        snapshot::Tick since = snapshot::kNoBase;
        record::Timestamp time = 0;
    };

    static constexpr record::Timestamp kTick = 20'000'000;
    /// Refused snapshots whose arrival is remembered: their acknowledgements come a round trip
    /// later.
    static constexpr std::size_t kArrivals = 16;
    /// Freezes that an acknowledgement may yet be about.
    static constexpr std::size_t kCounted = 4;

    /// Half a step behind its time, a snapshot is overdue.
    [[nodiscard]] record::Timestamp overdue() const { return step_ * kTick * 3 / 2; }

    void follow(const Usable& snapshot, const Cadence& cadence, Reporter& reporter);
    void follow(const Input& input, const Cadence& cadence, Reporter& reporter);
    /// It has something new to show.
    void take(const Usable& snapshot, record::Timestamp time, const Cadence& cadence,
              Reporter& reporter);
    /// It stood still until now; `usable`: what ended that.
    void count_freeze(record::Timestamp frozen, const std::optional<Usable>& usable,
                      Reporter& reporter);
    /// The inputs that acknowledge one tick are over.
    void end_run(std::optional<snapshot::Tick> next, record::Timestamp end, Reporter& reporter);
    void tell(const Freeze& freeze, Reporter& reporter);
    /// It acknowledges a snapshot that was refused here.
    void take_refused(snapshot::Tick tick, const Cadence& cadence, Reporter& reporter);

    std::optional<Shown> shown_;                      ///< the newest that the client could use
    snapshot::Tick step_ = 2;                         ///< from one snapshot to the next, mostly
    snapshot::Tick newest_ = snapshot::kNoBase;       ///< of which a part came
    std::uint64_t refused_ = 0;                       ///< since `shown_`
    snapshot::Tick refused_tick_ = snapshot::kNoBase; ///< the newest of them
    std::array<Refused, kArrivals> arrivals_{};       ///< of them, in a ring
    std::size_t num_arrivals_ = 0;
    record::FindingId why_ = record::FindingId::count;
    /// As DDNet's client counts: up by a wrong checksum, down by a right one.
    std::uint32_t errors_ = 0;
    std::uint32_t errors_at_reset_ = 0;
    bool gave_up_ = false; ///< acknowledged nothing since then
    bool asks_ = false;    ///< its last input acknowledged nothing
    Run run_;
    std::array<Counted, kCounted> counted_{}; ///< in a ring
    std::size_t num_counted_ = 0;
    record::Timestamp alive_ = 0; ///< its last input
    std::optional<std::int32_t> version_;
};

} // namespace tw::inspect
