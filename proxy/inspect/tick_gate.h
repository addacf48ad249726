#pragma once

#include "snapshot/item.h"

#include <cstdint>
#include <optional>

namespace tw::inspect {

enum class TickClass : std::uint8_t {
    follows,   ///< as the clock lets expect
    stray,     ///< far from every tick before it: not to be believed yet
    restarted, ///< the last few agree with each other: the server counts from here now
};

/// Holds the ticks of snapshots against the clock. A client believes any tick, and ignores all
/// older ones from then on: one forged snapshot of the far future and it stands still until the map
/// changes. Whoever looks on must not.
///
/// Units:  time in nanoseconds; ticks are 1/50 s.
class TickGate {
  public:
    /// Ticks a snapshot may be away from what the clock says: what the history reaches back.
    static constexpr std::int64_t kSlack = 250;
    /// Strays in a row that agree before they are believed: a server restarted unseen.
    static constexpr int kAgreeing = 3;

    [[nodiscard]] TickClass take(snapshot::Tick tick, std::int64_t time);

    /// The server may have restarted unseen just now: if the next ticks are far from those before
    /// them, that is why.
    void doubt(std::int64_t time) { doubted_ = time; }

    /// The tick that the last stray was measured against.
    [[nodiscard]] snapshot::Tick expected() const { return last_ ? last_->tick : 0; }

    void reset() { *this = {}; }

  private:
    struct Seen {
        snapshot::Tick tick = 0;
        std::int64_t time = 0;
    };

    [[nodiscard]] static bool fits(const Seen& before, snapshot::Tick tick, std::int64_t time);

    [[nodiscard]] TickClass restart(const Seen& seen);

    std::optional<Seen> last_;  ///< newest tick that is believed
    std::optional<Seen> stray_; ///< newest that is not
    int strays_ = 0;
    std::optional<std::int64_t> doubted_; ///< since when
};

} // namespace tw::inspect
