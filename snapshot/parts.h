#pragma once

#include "snapshot/item.h"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::snapshot {

/// A delta travels in parts of 900 bytes, the last one shorter; at most 64 of them.
inline constexpr std::size_t kMaxPartSize = 900;
inline constexpr std::int32_t kMaxParts = 64;
/// Ticks that may be incomplete at the same time, and how far behind the newest they may be: bots
/// acknowledge snapshots that complete late, and servers then build on them.
inline constexpr std::size_t kMaxOpenTicks = 8;
inline constexpr Tick kMaxPartAge = 25;

/// One part as a snapshot message carries it.
struct Part {
    Tick tick = 0;
    Tick delta_tick = kNoBase; ///< tick of the base, kNoBase: none (NOT the distance on the wire)
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
    std::int32_t crc = 0;
    std::span<const std::byte> data;
    bool marked = false; ///< the caller's own mark; comes back with the delta
};

/// All parts of a tick, reassembled. `body` is valid until the next call.
struct AssembledDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t crc = 0;
    std::int32_t num_parts = 1;
    std::span<const std::byte> body;
    std::bitset<kMaxParts> marked; ///< the parts that were
    bool contradicts = false;      ///< it came in one part where others of its tick had come
};

enum class PartStatus : std::uint8_t {
    incomplete,   ///< stored; more parts are missing
    complete,     ///< the last missing one: `assembled()` holds the delta
    duplicate,    ///< this part was there already with the same content; ignored
    too_old,      ///< more than kMaxPartAge behind the newest tick, or older than every open one;
                  ///< ignored
    out_of_range, ///< num_parts, part or size outside the limits, or a part shorter than
                  ///< kMaxPartSize that is not the last (clients would decode leftovers behind it);
                  ///< ignored
    inconsistent, ///< contradicts earlier parts of its tick (num_parts, crc, base, content); it
                  ///< replaces them
};

/// A tick that was given up before all its parts came.
struct LostDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t num_parts = 0;
    std::int32_t have = 0;
    std::int32_t first_missing = 0; ///< the lowest part that did not come
};

/// Reassembles parts, several ticks at a time, any order, duplicates included. Memory is bounded:
/// kMaxOpenTicks bodies, each as large as the parts seen so far need.
class PartAssembler {
  public:
    /// Single-part deltas pass straight through without a copy.
    [[nodiscard]] PartStatus add(const Part& part);

    /// Precondition: the last `add` returned `complete`.
    [[nodiscard]] const AssembledDelta& assembled() const { return assembled_; }

    /// Ticks given up during the last `add` (too old, or pushed out); valid until the next call.
    [[nodiscard]] std::span<const LostDelta> lost() const { return {lost_.data(), num_lost_}; }

    /// Forgets everything (map change, new connection); returns what was incomplete.
    std::span<const LostDelta> reset();

    /// What the bodies take.
    [[nodiscard]] std::size_t memory_bytes() const;

    /// `use(part)` for every part of ticks that are not complete: given to another one in this order
    /// they make it wait for the same.
    template <typename Use>
    void for_each_open(Use&& use) const {
        for (const Slot& slot : slots_) {
            for (std::size_t i = 0; slot.state == Slot::State::open && i < kMaxParts; ++i) {
                if (slot.have[i]) {
                    use(slot.part(i));
                }
            }
        }
    }

  private:
    /// The parts of one tick. A complete one stays until its place is needed, to know duplicates.
    struct Slot {
        enum class State : std::uint8_t { unused, open, complete };
        State state = State::unused;
        Tick tick = 0;
        Tick delta_tick = kNoBase;
        std::int32_t crc = 0;
        std::int32_t num_parts = 0;
        std::size_t last_size = 0;
        std::bitset<kMaxParts> have;
        std::bitset<kMaxParts> marked;
        std::vector<std::byte> body;

        [[nodiscard]] bool agrees_with(const Part& part) const;
        [[nodiscard]] bool holds(const Part& part) const;
        void restart(const Part& part);
        void insert(const Part& part);
        /// Precondition: it is there.
        [[nodiscard]] Part part(std::size_t index) const;
    };

    [[nodiscard]] bool is_too_old(Tick tick) const;
    void give_up(Slot& slot);
    void give_up_old();
    [[nodiscard]] Slot* find_slot(Tick tick);
    [[nodiscard]] Slot* free_slot(Tick tick);
    [[nodiscard]] PartStatus add_single(const Part& part);
    [[nodiscard]] PartStatus finish(const Slot& slot);

    std::array<Slot, kMaxOpenTicks> slots_;
    std::array<LostDelta, kMaxOpenTicks> lost_{};
    std::size_t num_lost_ = 0;
    std::optional<Tick> newest_;
    AssembledDelta assembled_;
};

} // namespace tw::snapshot
