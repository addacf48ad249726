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

/// How likely a value of an item is, judged by the snapshots around it.
namespace tw::inspect {

/// One int of an item over time: all that is known beside the snapshot in question.
struct Course {
    struct Point {
        snapshot::Tick tick = 0;
        std::int32_t value = 0;
    };

    /// More points on each side say no more.
    static constexpr std::size_t kMaxPoints = 3;

    snapshot::Tick tick = 0;                   ///< of the snapshot in question
    std::span<const Point> before{};           ///< newest first; empty: the item was not there
    std::span<const Point> after{};            ///< oldest first
    const snapshot::FieldSpec* field{};        ///< null: unknown
    double change_rate = 0.5;                  ///< how often this int changes in items of its type
    std::span<const std::int32_t> usual{};     ///< all values it was seen with, if these are few
    std::span<const std::int32_t> positions{}; ///< of characters; only if the int is a coordinate
};

/// The field that an int of an item belongs to; null if unknown.
[[nodiscard]] const snapshot::FieldSpec* field_at(const snapshot::ObjectSpec* object,
                                                  std::size_t index);

/// An int of an item as its object names it: "x", "name[2]" where a field has several, "int_4" where
/// nobody knows.
[[nodiscard]] std::string field_name(const snapshot::ObjectSpec* object, std::size_t index);

/// The probability of each value on its course: that it stays what it is before or after, that it
/// moves smoothly, or that it jumps.
class Plausibility {
  public:
    explicit Plausibility(const Course& course);

    /// Never zero.
    [[nodiscard]] double of(std::int32_t value) const;

  private:
    /// A value that is likely as such.
    struct Mass {
        double weight = 0;
        std::int32_t value = 0;
    };

    /// Values near one are likely, the farther the less.
    struct Bell {
        double weight = 0;
        double mean = 0;
        double scale = 1;
    };

    /// Any value, small changes before large ones.
    struct Jump {
        double weight = 0;
        std::int32_t from = 0;
    };

    /// Where a value that moves would be, and how exact that is.
    struct Movement {
        double way = 0; ///< from before to after
        int equal = 0;  ///< neighbouring points with the same value
        int unequal = 0;
        double line = 0;
        double line_scale = 1;
        double curve = 0;
        double curve_scale = 1;
    };

    [[nodiscard]] Movement movement() const;
    void stand_alone();
    void stand_beside(std::span<const Course::Point> side);
    void stand_between();

    Course course_;
    std::array<Mass, 2> masses_{};
    std::array<Bell, 4> bells_{};
    std::array<Jump, 2> jumps_{};
};

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
