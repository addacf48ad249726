#pragma once

#include "proxy/inspect/tick_gate.h"
#include "proxy/record/records.h"
#include "snapshot/history.h"
#include "snapshot/parts.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tw::inspect {

/// Knows snapshots of the map before for what they are. They may come until the client enters the game
/// on the new one, or a second longer than the change where it does so at once: any client can.
/// Source: protocol sheet, item 4 of section 10.
class OldMap {
  public:
    void leave(snapshot::Tick newest, record::Timestamp now) {
        constexpr record::Timestamp kUnderWay = 1'000'000'000;
        constexpr record::Timestamp kLoading = 10'000'000'000;
        left_ = Left{.newest = newest, .at_least_until = now + kUnderWay, .until = now + kLoading};
    }

    void enter_game(record::Timestamp now) {
        if (left_) {
            left_->until = std::min(left_->until, std::max(now, left_->at_least_until));
        }
    }

    void forget() { left_.reset(); }

    /// `history`: of the new map.
    [[nodiscard]] bool has(const snapshot::Part& part, const snapshot::History& history,
                           record::Timestamp now) const {
        if (!left_ || now >= left_->until) {
            return false;
        }
        const std::int64_t behind = std::int64_t{left_->newest} - part.tick;
        if (behind > TickGate::kSlack || behind < -TickGate::kSlack) {
            return false;
        }
        // Ticks begin again with the map; those of the first second are far below any other.
        return part.delta_tick == snapshot::kNoBase ? part.tick > TickGate::kSlack
                                                    : !history.contains(part.delta_tick);
    }

  private:
    struct Left {
        snapshot::Tick newest = 0;
        record::Timestamp at_least_until = 0;
        record::Timestamp until = 0;
    };

    std::optional<Left> left_;
};

} // namespace tw::inspect
