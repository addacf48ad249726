#pragma once

#include "proxy/game/difference.h"
#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace tw::game {

/// Tells of a difference between views when it begins, not with every tick.
class DifferenceLog {
  public:
    /// Another run of the server: items begin anew.
    void reset() { open_.clear(); }

    /// True for what was not there a moment ago.
    [[nodiscard]] bool begins(const Difference& difference, snapshot::Tick tick);

  private:
    /// One that was not seen for so many ticks is over.
    static constexpr snapshot::Tick kOver = 250;
    /// More at one time are one fault: they are not told of each.
    static constexpr std::size_t kMaxOpen = 256;

    /// By item and field.
    std::map<std::pair<std::uint32_t, std::uint8_t>, snapshot::Tick> open_;
};

} // namespace tw::game
