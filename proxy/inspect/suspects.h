#pragma once

#include "proxy/inspect/plausibility.h"
#include "proxy/inspect/size_search.h"
#include "proxy/record/world.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tw::inspect {

/// All that is known when a checksum does not agree.
struct Mismatch {
    snapshot::Tick tick = 0;
    std::span<const std::byte> body{};
    const snapshot::Delta* delta = nullptr;
    snapshot::SnapshotView base{};
    snapshot::SnapshotView result{}; ///< the snapshot that is not right
    const snapshot::DeltaWarnings* warnings = nullptr;
    const snapshot::History* right = nullptr; ///< snapshots that are
    const record::TypeNames* types = nullptr;
    std::int32_t wanted = 0;
    std::int32_t got = 0;
};

/// The values of a delta, one of which may have made the checksums differ: each value's rest of the
/// snapshot being right, it must have been the received one less the difference. Snapshots that are
/// right, before and after, tell how likely that is.
class Suspects {
  public:
    /// Values of a delta that are looked at: a full snapshot of 64 players has fewer. Of a longer
    /// one none is: a part of the suspects is worse than none.
    static constexpr std::size_t kMaxValues = 4096;
    /// Right snapshots before it that are looked at.
    static constexpr std::size_t kMaxBefore = 16;

    /// `budget`: of the traffic's time; where it ends, there are no suspects.
    Suspects(const Mismatch& mismatch, SearchBudget& budget);

    /// A later snapshot is right; `previous` is the last one that was right before it.
    void add_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                   const snapshot::SnapshotView& previous);

    [[nodiscard]] bool empty() const { return values_.empty(); }

    void clear() { values_.clear(); }

    /// Right snapshots since, at most Course::kMaxPoints.
    [[nodiscard]] std::size_t num_after() const { return num_after_; }

    struct Suspect {
        snapshot::ItemKey key{};
        std::uint32_t index = 0;     ///< of the int in its item
        std::uint32_t int_index = 0; ///< of the int in the delta
        std::int32_t got = 0;
        std::int32_t expected = 0; ///< what it must have been
        bool fits_a_bit = false;   ///< one flipped bit makes what came of what must have been sent
        bool is_overlong = false;  ///< encoded in more bytes than any server writes
        double probability = 0;    ///< that it is the wrong one
    };

    /// All, the likeliest first.
    [[nodiscard]] std::vector<Suspect> ranked(const record::TypeNames& types) const;

  private:
    /// One int that the delta set.
    struct Value {
        snapshot::ItemKey key{};
        std::uint32_t index = 0;
        std::uint32_t int_index = 0;
        std::int32_t got = 0;
        std::uint8_t num_before = 0;
        std::uint8_t num_after = 0;
        std::array<std::int32_t, Course::kMaxPoints> before{};
        std::array<std::int32_t, Course::kMaxPoints> after{};
        bool fits_a_bit = false;
        bool is_overlong = false;    ///< in more bytes than any server writes
        bool is_only_change = false; ///< without the error its item would not be in the delta
    };

    /// How one int behaves in items of its type.
    struct Habit {
        static constexpr std::size_t kFew = 8;
        std::uint32_t changes = 0;
        std::vector<std::int32_t> seen; ///< one more than kFew: many
    };

    struct Habits {
        std::uint32_t transitions = 0;
        std::vector<Habit> ints;
    };

    [[nodiscard]] bool collect(const Mismatch& mismatch);
    void add_item(const Mismatch& mismatch, const snapshot::DeltaUpdate& update);
    void mark_overlong(const Mismatch& mismatch);
    [[nodiscard]] bool add_before(const Mismatch& mismatch, SearchBudget& budget);
    void learn_habits(const snapshot::SnapshotView& from, const snapshot::SnapshotView& to);
    void note_positions(const snapshot::SnapshotView& right, snapshot::Dialect dialect);

    /// How likely a value as it came is, and how much likelier what it must have been.
    struct Weight {
        double received = 1;
        double gain = 1;
    };

    [[nodiscard]] Weight weigh(const Value& value, const record::TypeNames& types) const;

    snapshot::Tick tick_ = 0;
    std::int32_t excess_ = 0; ///< received less expected
    bool is_misread_ = false; ///< the delta has more ints than its updates: one bit moved others
    std::array<snapshot::Tick, Course::kMaxPoints> before_ticks_{};
    std::array<snapshot::Tick, Course::kMaxPoints> after_ticks_{};
    std::size_t num_after_ = 0;
    std::vector<Value> values_;
    std::map<std::uint16_t, Habits> habits_;             ///< of the types that the delta updates
    std::array<std::vector<std::int32_t>, 2> positions_; ///< x and y of characters
};

/// Whether one flipped bit, in the int or in its encoding, makes one value of the other. Bits that
/// say how long an encoding is are left out: they change what follows, too.
[[nodiscard]] bool are_one_bit_apart(std::int32_t one, std::int32_t other);

} // namespace tw::inspect
