#pragma once

#include "proxy/inspect/diagnosis/size_search.h"
#include "proxy/record/records.h"
#include "snapshot/delta.h"
#include "snapshot/history.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// Judges how likely an item's value is by the snapshots before and after it.
namespace tw::inspect {

/// The values of one int of an item in the snapshots before and after the examined one.
struct ValueHistory {
    struct Point {
        snapshot::Tick tick = 0;
        std::int32_t value = 0;
    };

    /// The most points on each side. More points would not help.
    static constexpr std::size_t kMaxPoints = 3;

    snapshot::Tick tick = 0;               ///< tick of the examined snapshot
    std::span<const Point> before{};       ///< newest first; empty: the item did not exist before
    std::span<const Point> after{};        ///< oldest first
    const snapshot::FieldSpec* field{};    ///< the int's field; null if unknown
    double change_rate = 0.5;              ///< how often the int changes, in items of its type
    std::span<const std::int32_t> usual{}; ///< all values seen so far; empty if there are many
    /// If the int is a coordinate, the characters' coordinates on the same axis.
    std::span<const std::int32_t> positions{};
};

/// The field that an int of an item belongs to; null if unknown.
[[nodiscard]] const snapshot::FieldSpec* field_at(const snapshot::ObjectSpec* object,
                                                  std::size_t index);

/// The name of an item's int: "x"; "name[2]" if the field has several ints; "int_4" if it is unknown.
[[nodiscard]] std::string field_name(const snapshot::ObjectSpec* object, std::size_t index);

/// The probability of each value that an int may have, given its values before and after. In this model, a
/// value stays equal, moves smoothly, or jumps.
class ValueProbability {
  public:
    explicit ValueProbability(const ValueHistory& history);

    /// The probability of `value`; never zero.
    [[nodiscard]] double of(std::int32_t value) const;

  private:
    /// A single value that is more likely than its neighbours.
    struct LikelyValue {
        double weight = 0;
        std::int32_t value = 0;
    };

    /// Values around `mean`. The further away they are, the less likely they are.
    struct Bell {
        double weight = 0;
        double mean = 0;
        double scale = 1;
    };

    /// A jump from `from` to any value. Small jumps are more likely than large ones.
    struct Jump {
        double weight = 0;
        std::int32_t from = 0;
    };

    /// Where a value that moves is expected, and how exactly.
    struct Movement {
        double distance = 0; ///< from the value before to the value after
        int equal = 0;       ///< number of neighbouring points with the same value
        int unequal = 0;     ///< number of neighbouring points with different values
        double line = 0;     ///< the value on the straight line between the points
        double line_scale = 1;
        double curve = 0; ///< the value on the curve through more points
        double curve_scale = 1;
    };

    [[nodiscard]] Movement movement() const;
    void weigh_isolated();
    void weigh_at_end(std::span<const ValueHistory::Point> side);
    void weigh_between();

    ValueHistory history_;
    std::array<LikelyValue, 2> masses_{};
    std::array<Bell, 4> bells_{};
    std::array<Jump, 2> jumps_{};
};

/// What is known about a snapshot with a wrong checksum.
struct Mismatch {
    snapshot::Tick tick = 0;
    std::span<const std::byte> body{};
    const snapshot::Delta* delta = nullptr;
    snapshot::SnapshotView base{};
    snapshot::SnapshotView result{}; ///< the snapshot with the wrong checksum
    const snapshot::DeltaWarnings* warnings = nullptr;
    const snapshot::History* right = nullptr; ///< the earlier verified snapshots
    const record::TypeNames* types = nullptr;
    std::int32_t wanted = 0; ///< the server's checksum
    std::int32_t got = 0;    ///< the checksum of `result`
};

/// The values of a delta whose snapshot has a wrong checksum. If exactly one value is wrong, its true value
/// is the received value minus the checksum's error. By the verified snapshots before and after, this
/// class computes for each value how likely it is the wrong one.
class Suspects {
  public:
    /// The most values that are examined; a full snapshot of 64 players has fewer. If a delta has more, none
    /// is examined, because an incomplete list would mislead.
    static constexpr std::size_t kMaxValues = 4096;
    /// The most earlier verified snapshots that are examined.
    static constexpr std::size_t kMaxBefore = 16;

    /// Examines the values of the delta. `budget`: limits the work. If it is used up, there are no suspects.
    Suspects(const Mismatch& mismatch, SearchBudget& budget);

    /// Adds a later verified snapshot. `previous`: the last verified snapshot before it.
    void add_verified(snapshot::Tick tick, const snapshot::SnapshotView& right,
                      const snapshot::SnapshotView& previous);

    [[nodiscard]] bool empty() const { return values_.empty(); }

    void clear() { values_.clear(); }

    /// The number of later verified snapshots that were added, at most ValueHistory::kMaxPoints.
    [[nodiscard]] std::size_t num_after() const { return num_after_; }

    struct Suspect {
        snapshot::ItemKey key{};
        std::uint32_t index = 0;     ///< index of the int in its item
        std::uint32_t int_index = 0; ///< index of the int in the delta
        std::int32_t got = 0;        ///< the received value
        std::int32_t expected = 0;   ///< the value with which the checksum would be right
        bool fits_a_bit = false;     ///< `got` and `expected` differ by one flipped bit
        bool is_overlong = false;    ///< encoded in more bytes than necessary, as no server does
        double probability = 0;      ///< probability that this value is the wrong one
    };

    /// All suspects, most likely first.
    [[nodiscard]] std::vector<Suspect> ranked(const record::TypeNames& types) const;

  private:
    /// One int that the delta set.
    struct DeltaValue {
        snapshot::ItemKey key{};
        std::uint32_t index = 0;
        std::uint32_t int_index = 0;
        std::int32_t got = 0;
        std::uint8_t num_before = 0;
        std::uint8_t num_after = 0;
        std::array<std::int32_t, ValueHistory::kMaxPoints> before{};
        std::array<std::int32_t, ValueHistory::kMaxPoints> after{};
        bool fits_a_bit = false;
        bool is_overlong = false;    ///< encoded in more bytes than necessary, as no server does
        bool is_only_change = false; ///< with the expected value, the delta would not need the item
    };

    /// How one int behaves in items of its type.
    struct IntHabit {
        static constexpr std::size_t kFewValues = 8;
        std::uint32_t changes = 0;
        /// Different values; kFewValues + 1 of them stand for "many".
        std::vector<std::int32_t> seen;
    };

    struct TypeHabits {
        std::uint32_t transitions = 0;
        std::vector<IntHabit> ints;
    };

    [[nodiscard]] bool collect(const Mismatch& mismatch);
    void add_item(const Mismatch& mismatch, const snapshot::DeltaUpdate& update);
    void mark_overlong(const Mismatch& mismatch);
    [[nodiscard]] bool add_before(const Mismatch& mismatch, SearchBudget& budget);
    void learn_habits(const snapshot::SnapshotView& from, const snapshot::SnapshotView& to);
    void note_positions(const snapshot::SnapshotView& right, snapshot::Dialect dialect);

    /// How likely the received value is, and how much more likely the expected value is.
    struct Likelihood {
        double received = 1;
        double gain = 1;
    };

    [[nodiscard]] Likelihood likelihood_of(const DeltaValue& value,
                                           const record::TypeNames& types) const;

    snapshot::Tick tick_ = 0;
    /// The checksum's error: that of the rebuilt snapshot minus the server's.
    std::int32_t excess_ = 0;
    bool is_misread_ = false; ///< the delta has surplus ints, so a flipped bit has moved later ints
    std::array<snapshot::Tick, ValueHistory::kMaxPoints> before_ticks_{};
    std::array<snapshot::Tick, ValueHistory::kMaxPoints> after_ticks_{};
    std::size_t num_after_ = 0;
    std::vector<DeltaValue> values_;
    std::map<std::uint16_t, TypeHabits> habits_;         ///< of the types in the delta, by type
    std::array<std::vector<std::int32_t>, 2> positions_; ///< the characters' x and y
};

/// Whether one flipped bit turns one value into the other, in the int or in its varint encoding. The bits of
/// a varint that tell its length do not count, because flipping one would change the next ints, too.
[[nodiscard]] bool are_one_bit_apart(std::int32_t one, std::int32_t other);

} // namespace tw::inspect
