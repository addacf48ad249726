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

/// Limits of a delta's parts. A delta is sent in at most 64 parts of 900 bytes. Only the last part may
/// be shorter.
inline constexpr std::size_t kMaxPartSize = 900;
inline constexpr std::int32_t kMaxParts = 64;
/// Limits of incomplete ticks: their number, and their distance in ticks from the newest tick. Older
/// ticks than the newest one are kept, because bots acknowledge snapshots that are completed late, and
/// servers then use these as bases.
inline constexpr std::size_t kMaxOpenTicks = 8;
inline constexpr Tick kMaxPartAge = 25;

/// One part of a delta, as a snapshot message contains it.
struct Part {
    Tick tick = 0;
    Tick delta_tick = kNoBase; ///< tick of the base, or kNoBase; messages contain the distance
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
    std::int32_t crc = 0;
    std::span<const std::byte> data;
    bool marked = false; ///< any flag of the caller's, returned in AssembledDelta::marked
};

/// A reassembled delta. `body` is valid until the assembler's next call.
struct AssembledDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t crc = 0;
    std::int32_t num_parts = 1;
    std::span<const std::byte> body;
    std::bitset<kMaxParts> marked; ///< the parts whose Part::marked was set
    bool contradicts = false;      ///< a single part, which came after other parts of the same tick
};

enum class PartStatus : std::uint8_t {
    incomplete, ///< the part was stored; other parts of its delta are missing
    complete,   ///< the part was the last one missing: `assembled()` returns the delta
    duplicate,  ///< an identical part arrived before; the part was ignored
    /// The part's tick is more than kMaxPartAge before the newest tick, or older than all open
    /// ticks; the part was ignored.
    too_old,
    /// The part was ignored: num_parts, part or size is invalid, or a part other than the last is
    /// shorter than kMaxPartSize, so that clients would decode old bytes after it.
    out_of_range,
    /// The part contradicts earlier parts of its tick (num_parts, crc, base, content) and replaced
    /// them.
    inconsistent,
};

/// A tick that was abandoned before all its parts arrived.
struct LostDelta {
    Tick tick = 0;
    Tick delta_tick = kNoBase;
    std::int32_t num_parts = 0;
    std::int32_t have = 0;          ///< number of parts that arrived
    std::int32_t first_missing = 0; ///< number of the first missing part
};

/// Reassembles the deltas of several ticks at a time. Parts may come in any order and several times.
/// Memory is bounded: kMaxOpenTicks bodies, each as large as its parts so far.
class PartAssembler {
  public:
    /// Adds a part. A single-part delta is not copied.
    [[nodiscard]] PartStatus add(const Part& part);

    /// The reassembled delta. Precondition: the last `add` returned `complete`.
    [[nodiscard]] const AssembledDelta& assembled() const { return assembled_; }

    /// The incomplete ticks that the last `add` abandoned, because they were too old or another tick
    /// needed their slot. Valid until the next call.
    [[nodiscard]] std::span<const LostDelta> lost() const { return {lost_.data(), num_lost_}; }

    /// Forgets all parts (map change, new connection). Returns the ticks that were incomplete.
    std::span<const LostDelta> reset();

    /// Memory of the bodies, in bytes.
    [[nodiscard]] std::size_t memory_bytes() const;

    /// Calls `use(part)` for each part of incomplete ticks. An assembler to which these are added in
    /// this order has the same state.
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
    /// The parts of one tick. A complete tick keeps its slot until another tick needs it, so that
    /// duplicates are recognised.
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
        /// The part with this number. Precondition: the part was received.
        [[nodiscard]] Part part(std::size_t index) const;
    };

    [[nodiscard]] bool is_too_old(Tick tick) const;
    void abandon(Slot& slot);
    void abandon_old_slots();
    [[nodiscard]] Slot* find_slot(Tick tick);
    [[nodiscard]] Slot* find_slot_for(Tick tick);
    [[nodiscard]] PartStatus add_single(const Part& part);
    [[nodiscard]] PartStatus finish(const Slot& slot);

    std::array<Slot, kMaxOpenTicks> slots_;
    std::array<LostDelta, kMaxOpenTicks> lost_{};
    std::size_t num_lost_ = 0;
    std::optional<Tick> newest_;
    AssembledDelta assembled_;
};

} // namespace tw::snapshot
