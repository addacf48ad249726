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

// A delta is sent in at most kMaxParts parts of kMaxPartSize bytes. Only the last part may be
// shorter.
inline constexpr std::size_t kMaxPartSize = 900;
inline constexpr std::int32_t kMaxParts = 64;
// PartAssembler stores up to kMaxOpenTicks incomplete ticks, at most kMaxPartAge ticks older than
// the newest tick. Older ticks are needed because bots acknowledge snapshots that are completed
// late, and servers then use these snapshots as bases.
inline constexpr std::size_t kMaxOpenTicks = 8;
inline constexpr Tick kMaxPartAge = 25;

/// One part of a delta. A snapshot message contains one part.
struct Part {
    Tick tick = 0;
    /// The tick of the base, or kNoBase. Messages contain `tick` minus `delta_tick`.
    Tick delta_tick = kNoBase;
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
    std::int32_t crc = 0;
    std::span<const std::byte> data;
    bool marked = false; ///< a flag that the caller defines, returned in AssembledDelta::marked
};

/// A reassembled delta. `body` is valid until the next non-const call of the assembler.
struct AssembledDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t crc = 0;
    std::int32_t num_parts = 1;
    std::span<const std::byte> body;
    std::bitset<kMaxParts> marked; ///< bit i is set if Part::marked of part i was set
    /// The delta has a single part, but earlier parts of this tick belonged to a delta of several
    /// parts.
    bool contradicts_earlier_parts = false;
};

enum class PartStatus : std::uint8_t {
    incomplete, ///< the part was stored; other parts of its delta are missing
    complete,   ///< all parts of the delta have arrived: `assembled()` returns the delta
    duplicate,  ///< the part was ignored, because an identical part arrived before
    /// The part was ignored: its tick is more than kMaxPartAge before the newest tick, or older
    /// than all incomplete ticks while no slot is free.
    too_old,
    /// The part was ignored: num_parts, part or size is invalid, or a part that is not the last one
    /// is shorter than kMaxPartSize. (Clients accept a short part and decode stale bytes after it.)
    out_of_range,
    /// The part was stored and replaced all earlier parts of its tick, because it contradicts them
    /// (num_parts, crc, base or content).
    inconsistent,
};

/// A tick that was abandoned before all its parts arrived.
struct LostDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t num_parts = 0;
    std::int32_t num_received = 0;  ///< number of parts that arrived
    std::int32_t first_missing = 0; ///< number of the first missing part
};

/// Reassembles the deltas of several ticks at a time. Parts may arrive in any order and several
/// times. Stores at most kMaxOpenTicks bodies, each as large as the parts that arrived.
class PartAssembler {
  public:
    /// Adds a part. If the delta has only this part, the part's data is not copied.
    [[nodiscard]] PartStatus add(const Part& part);

    /// Returns the reassembled delta. Precondition: the last call of `add` returned `complete`.
    [[nodiscard]] const AssembledDelta& assembled() const { return assembled_; }

    /// Returns the incomplete ticks that the last call of `add` abandoned, because they were too
    /// old or another tick needed their slot. The result is valid until the next call of `add` or
    /// `reset`.
    [[nodiscard]] std::span<const LostDelta> lost() const { return {lost_.data(), num_lost_}; }

    /// Removes all parts, for a map change or a new connection. Returns the ticks that were
    /// incomplete.
    std::span<const LostDelta> reset();

    /// Returns the size of the memory for all bodies, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const;

    /// Calls `visit(part)` for each stored part of an incomplete tick. An assembler to which these
    /// parts are added in the same order has the same incomplete ticks.
    template <typename Visit>
    void for_each_part_of_incomplete_tick(Visit&& visit) const {
        for (const Slot& slot : slots_) {
            for (std::size_t i = 0; slot.state == Slot::State::open && i < kMaxParts; ++i) {
                if (slot.received[i]) {
                    visit(slot.part(i));
                }
            }
        }
    }

  private:
    /// The parts of one tick. To recognise duplicates, a complete tick keeps its slot until another
    /// tick needs the slot.
    struct Slot {
        enum class State : std::uint8_t { unused, open, complete };
        State state = State::unused;
        Tick tick = 0;
        Tick delta_tick = kNoBase;
        std::int32_t crc = 0;
        std::int32_t num_parts = 0;
        std::size_t last_part_size = 0;
        std::bitset<kMaxParts> received;
        std::bitset<kMaxParts> marked;
        std::vector<std::byte> body;

        [[nodiscard]] bool agrees_with(const Part& part) const;
        [[nodiscard]] bool contains_same_part(const Part& part) const;
        void restart(const Part& part);
        void insert(const Part& part);
        /// Returns the part with the given number. Precondition: the part was received.
        [[nodiscard]] Part part(std::size_t index) const;
    };

    [[nodiscard]] bool is_too_old(Tick tick) const;
    void abandon(Slot& slot);
    void abandon_old_slots();
    [[nodiscard]] Slot* find_slot(Tick tick);
    [[nodiscard]] Slot* choose_slot_for(Tick tick);
    [[nodiscard]] PartStatus add_single(const Part& part);
    [[nodiscard]] PartStatus finish_delta(const Slot& slot);

    std::array<Slot, kMaxOpenTicks> slots_;
    std::array<LostDelta, kMaxOpenTicks> lost_{};
    std::size_t num_lost_ = 0;
    std::optional<Tick> newest_;
    AssembledDelta assembled_;
};

} // namespace tw::snapshot
