#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

/// What an entry of a timer wheel has as its member `timer`.
template <typename Entry>
struct WheelLink {
    Entry* previous = nullptr;
    Entry* next = nullptr;
    std::size_t slot = 0;
    bool waiting = false;
};

/// Entries that are to be looked at some ticks from now. Adding and removing take constant time,
/// and a round looks at so many of those that are due and leaves the rest for the next one, so that
/// many that are due at once hold nothing up. Owns nothing, allocates nothing.
template <typename Entry>
class TimerWheel {
  public:
    /// The farthest that an entry can wait.
    static constexpr std::uint64_t kTicks = 512;

    explicit TimerWheel(std::uint64_t now) : next_tick_{now} {}

    /// Precondition: the entry does not wait. It is due in at least one tick.
    void add(Entry& entry, std::uint64_t ticks) noexcept {
        const std::uint64_t wait = std::clamp<std::uint64_t>(ticks, 1, kTicks - 1);
        WheelLink<Entry>& link = entry.timer;
        link.slot = static_cast<std::size_t>((next_tick_ + wait) % kTicks);
        link.previous = nullptr;
        link.next = slots_[link.slot];
        if (link.next != nullptr) {
            link.next->timer.previous = &entry;
        }
        slots_[link.slot] = &entry;
        link.waiting = true;
    }

    void remove(Entry& entry) noexcept {
        WheelLink<Entry>& link = entry.timer;
        if (!link.waiting) {
            return;
        }
        (link.previous == nullptr ? slots_[link.slot] : link.previous->timer.next) = link.next;
        if (link.next != nullptr) {
            link.next->timer.previous = link.previous;
        }
        link = {};
    }

    /// Takes out what is due at tick `now` or before, `max` entries at most, and shows each to
    /// `visit(Entry&)`, which may add it again. Returns whether all that was due has been seen.
    template <typename Visit>
    bool advance(std::uint64_t now, std::size_t max, Visit&& visit) {
        for (; next_tick_ <= now; ++next_tick_) {
            const auto slot = static_cast<std::size_t>(next_tick_ % kTicks);
            while (slots_[slot] != nullptr) {
                if (max-- == 0) {
                    return false;
                }
                Entry& entry = *slots_[slot];
                remove(entry);
                visit(entry);
            }
        }
        return true;
    }

  private:
    std::array<Entry*, kTicks> slots_{};
    std::uint64_t next_tick_; ///< everything before it has been seen
};

} // namespace tw::relay
