#pragma once

#include "proxy/inspect/diagnosis/size_search.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "snapshot/delta.h"
#include "snapshot/error.h"
#include "snapshot/history.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"
#include "snapshot/parts.h"
#include "snapshot/snapshot.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

/// Estimates how likely a value of an item is, based on the snapshots before and after.
namespace tw::inspect {

/// The values of one int of an item in the snapshots before and after the examined snapshot.
struct ValueHistory {
    struct ValueAtTick {
        snapshot::Tick tick = 0;
        std::int32_t value = 0;
    };

    /// The most points in `before`, and in `after`. More points do not improve the result.
    static constexpr std::size_t kMaxPoints = 3;

    snapshot::Tick tick = 0;
    std::span<const ValueAtTick> before{}; ///< earlier values, newest first; empty for a new item
    std::span<const ValueAtTick> after{};  ///< later values, oldest first
    const snapshot::FieldSpec* field{};    ///< the int's field; null if unknown
    double change_rate = 0.5;              ///< probability that the next snapshot changes the int
    /// All values that the int has had so far; empty if there are too many.
    std::span<const std::int32_t> usual_values{};
    /// If the int is a coordinate, the characters' coordinates on the same axis.
    std::span<const std::int32_t> character_coordinates{};
};

/// Returns the field to which an item's int belongs; null if unknown.
[[nodiscard]] const snapshot::FieldSpec* find_field_of_int(const snapshot::ObjectSpec* object,
                                                           std::size_t index);

/// Returns the name of an item's int: "x"; "name[2]" if the field has several ints; "int_4" if the
/// field is unknown.
[[nodiscard]] std::string name_of_int(const snapshot::ObjectSpec* object, std::size_t index);

/// Computes the probability of each value of an int, given its values in the snapshots before and
/// after. In this model, a value stays equal, moves smoothly, or jumps.
class ValueProbability {
  public:
    explicit ValueProbability(const ValueHistory& history);

    /// Returns the probability of `value`, which is never zero.
    [[nodiscard]] double probability_of(std::int32_t value) const;

  private:
    /// A single value that is more likely than its neighbours.
    struct LikelyValue {
        double weight = 0;
        std::int32_t value = 0;
    };

    /// A bell-shaped distribution around `mean`.
    struct BellCurve {
        double weight = 0;
        double mean = 0;
        double scale = 1;
    };

    /// A jump from `from` to any value. Small jumps are more likely than large ones.
    struct Jump {
        double weight = 0;
        std::int32_t from = 0;
    };

    /// The value at which a moving int is expected, and how exact that expectation is.
    struct ExpectedMovement {
        double distance = 0;   ///< distance from the value before to the value after
        int num_equal = 0;     ///< number of times that two points in a row have the same value
        int num_unequal = 0;   ///< number of times that two points in a row have different values
        double line_value = 0; ///< the value on a straight line between the values before and after
        double line_scale = 1;
        double curve_value = 0; ///< the value on a curve through two values before and two after
        double curve_scale = 1;
    };

    [[nodiscard]] ExpectedMovement estimate_movement() const;
    void model_item_of_one_snapshot();
    void model_new_or_removed_item(std::span<const ValueHistory::ValueAtTick> side);
    void model_item_seen_before_and_after();

    ValueHistory value_history_;
    std::array<LikelyValue, 2> likely_values_{};
    std::array<BellCurve, 4> bell_curves_{};
    std::array<Jump, 2> jumps_{};
};

/// A snapshot rebuilt from a delta and its base. The views are valid until the history changes.
struct RebuiltSnapshot {
    DeltaOutcome outcome = DeltaOutcome::accepted; ///< never too_old
    snapshot::Delta delta; ///< the decoded delta; not set if the base is unknown
    snapshot::SnapshotView base{};
    /// The rebuilt snapshot, in the history's memory; empty if it could not be rebuilt.
    snapshot::SnapshotView result{};
    std::int32_t crc = 0;          ///< checksum of `result`
    snapshot::DecodeError error{}; ///< set if `outcome` is undecodable
    snapshot::DeltaWarnings warnings{};
};

/// A snapshot with a wrong checksum.
struct CrcMismatch {
    const snapshot::AssembledDelta& delta; ///< contains the server's checksum
    const RebuiltSnapshot& rebuilt;
    const snapshot::History& verified; ///< the earlier verified snapshots
    const record::ItemTypes& types;
};

/// Computes for each value of a delta how likely it made the snapshot's checksum wrong. If exactly
/// one value is wrong, its true value is the received value minus the error of the checksum. The
/// verified snapshots before and after show whether that value is likely.
class SuspectValues {
  public:
    /// The most values that are examined; a full snapshot of 64 players has fewer. If a delta has
    /// more values, none is examined, because an incomplete list would mislead.
    static constexpr std::size_t kMaxValues = 4096;
    /// The most earlier verified snapshots that are examined.
    static constexpr std::size_t kMaxEarlierSnapshots = 16;

    /// A value is reported as the cause only if the probability of any other cause is lower than
    /// this.
    static constexpr double kMaxDoubt = 0.01;
    /// If the probability of any other cause is lower than this, the reported value is called
    /// exact, otherwise likely. The limit is low, because the probabilities wrongly treat values as
    /// independent. In a test, wrong values were reported at computed probabilities down to 4e-6.
    static constexpr double kMaxExactDoubt = 1e-7;

    /// Examines the values of the delta. If `budget` is used up, the list of suspects is empty.
    /// `mismatch.types` must outlive this object.
    SuspectValues(const CrcMismatch& mismatch, SearchBudget& budget);

    /// Called when a verified snapshot arrived. Once the wrong value is clear, or kMaxPoints
    /// verified snapshots arrived, reports the result and removes all suspects. `previous`: the
    /// verified snapshot before `verified`, or empty.
    void on_verified_snapshot(snapshot::Tick tick, const snapshot::SnapshotView& verified,
                              const snapshot::SnapshotView& previous, Reporter& reporter);
    /// Reports what was found out about the wrong value. Called when no more verified snapshots
    /// will arrive.
    void report_result(Reporter& reporter);

    [[nodiscard]] bool empty() const { return delta_values_.empty(); }

    struct Suspect {
        snapshot::ItemKey key{};
        std::uint32_t index_in_item = 0;
        std::uint32_t index_in_delta = 0;
        std::int32_t received = 0;
        std::int32_t expected = 0; ///< the value with which the checksum would be right
        bool differs_by_one_bit = false;
        bool is_overlong_varint = false; ///< the encoding of the value is longer than necessary
        double probability = 0;          ///< probability that this value is the wrong one
    };

    /// Returns all suspects, most likely first.
    [[nodiscard]] std::vector<Suspect> rank_suspects() const;

  private:
    /// A suspect, with its values in the verified snapshots before and after.
    struct DeltaValue {
        Suspect suspect{}; ///< its probability is not set
        std::uint8_t num_before = 0;
        std::uint8_t num_after = 0;
        std::array<std::int32_t, ValueHistory::kMaxPoints> before{};
        std::array<std::int32_t, ValueHistory::kMaxPoints> after{};
        bool is_only_change = false; ///< with the expected value, the item would be unchanged
    };

    /// How often one int of a type changes, and which values it has.
    struct IntStatistics {
        static constexpr std::size_t kMaxSeenValues = 8;
        std::uint32_t num_changes = 0;
        /// The different values so far, at most kMaxSeenValues + 1.
        std::vector<std::int32_t> seen_values;
    };

    struct TypeStatistics {
        std::uint32_t num_transitions = 0;
        std::vector<IntStatistics> ints;
    };

    [[nodiscard]] bool collect_values(const CrcMismatch& mismatch);
    void add_item_values(const CrcMismatch& mismatch, const snapshot::DeltaUpdate& update);
    void mark_overlong_varint(const CrcMismatch& mismatch);
    [[nodiscard]] bool add_earlier_snapshots(const CrcMismatch& mismatch, SearchBudget& budget);
    void add_verified_snapshot(snapshot::Tick tick, const snapshot::SnapshotView& right,
                               const snapshot::SnapshotView& previous);
    void add_to_statistics(const snapshot::SnapshotView& from, const snapshot::SnapshotView& to);
    void store_character_positions(const snapshot::SnapshotView& right, snapshot::Dialect dialect);

    struct Likelihood {
        double received = 1; ///< probability of the received value
        double gain = 1;     ///< probability of the expected value, as a multiple of `received`
    };

    [[nodiscard]] Likelihood likelihood_of(const DeltaValue& value) const;

    void report_wrong_value(const std::vector<Suspect>& ranked, Reporter& reporter) const;

    const record::ItemTypes* types_;
    snapshot::Tick tick_;
    std::int32_t wanted_crc_;
    std::int32_t got_crc_;
    std::vector<std::byte> delta_body_;
    /// The error of the checksum: the rebuilt snapshot's checksum minus the server's.
    std::int32_t checksum_error_;
    /// True if the delta has surplus ints. A flipped bit may then have split an int into two, so
    /// that all later ints are misread.
    bool may_be_misread_ = false;
    std::array<snapshot::Tick, ValueHistory::kMaxPoints> before_ticks_{};
    std::array<snapshot::Tick, ValueHistory::kMaxPoints> after_ticks_{};
    std::size_t num_after_ = 0;
    std::vector<DeltaValue> delta_values_;
    /// The statistics of the types in the delta, by type.
    std::map<std::uint16_t, TypeStatistics> type_statistics_;
    /// The x coordinates and the y coordinates of the characters.
    std::array<std::vector<std::int32_t>, 2> character_coordinates_;
};

/// Whether one flipped bit turns one value into the other, in the int or in its varint encoding.
/// Length bits of a varint are ignored: a flipped length bit would also change the next ints.
[[nodiscard]] bool differ_by_one_bit(std::int32_t one, std::int32_t other);

} // namespace tw::inspect
