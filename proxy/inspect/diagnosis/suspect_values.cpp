#include "proxy/inspect/diagnosis/suspect_values.h"

#include "proxy/inspect/diagnosis/diagnosis.h"
#include "snapshot/cursor.h"
#include "snapshot/names.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace tw::inspect {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using Points = std::span<const ValueHistory::ValueAtTick>;

namespace {

bool is_valid_field_value(const FieldSpec* field, std::int32_t value) {
    if (field == nullptr) {
        return true;
    }
    if (field->kind == FieldKind::boolean) {
        return value == 0 || value == 1;
    }
    return field->kind != FieldKind::named || field->names == nullptr || field->names->flags ||
           field->names_when != 0 || field->names->find(value).has_value();
}

/// Whether the field describes an event of one tick and is zero at the next tick.
bool is_one_tick_event(const FieldSpec* field) {
    return field != nullptr && field->names == &snapshot::names::seven::coreeventflag;
}

/// Returns the density of Student's t-distribution with two degrees of freedom. This distribution
/// also allows for values far from the mean.
double student_t_density(double distance, double scale) {
    const double z = distance / scale;
    return 1 / (2 * std::sqrt(2.0) * scale * std::pow(1 + z * z / 2, 1.5));
}

/// Returns the probability of a jump by this distance. The probabilities of all distances except
/// zero add up to 1.
double jump_probability(double distance) {
    constexpr double kNormal = 0.31;
    return kNormal / std::pow(1 + std::abs(distance), 1.5);
}

/// Returns the value at `tick` of the polynomial through the points. Precondition: the points have
/// different ticks.
double interpolate(std::initializer_list<ValueHistory::ValueAtTick> points, double tick) {
    double sum = 0;
    for (const ValueHistory::ValueAtTick& point : points) {
        double term = point.value;
        for (const ValueHistory::ValueAtTick& other : points) {
            if (other.tick != point.tick) {
                term *= (tick - other.tick) / (static_cast<double>(point.tick) - other.tick);
            }
        }
        sum += term;
    }
    return sum;
}

/// The number of neighbouring points with equal values, and with different values.
struct NeighbourCounts {
    int num_equal = 0;
    int num_unequal = 0;

    void count_neighbours(Points points) {
        for (std::size_t i = 1; i < points.size(); ++i) {
            ++(points[i - 1].value == points[i].value ? num_equal : num_unequal);
        }
    }
};

/// Returns the share of equal neighbouring points. `prior` is added to both numbers, so that the
/// share is not extreme if there are few points.
double share_of_equal_neighbours(int equal, int unequal, double prior) {
    return (equal + prior) / (equal + unequal + 2 * prior);
}

/// Returns how far the second point is from the line through the first and the third point; nullopt
/// if there are fewer than three points.
std::optional<double> distance_from_line(Points points) {
    if (points.size() < 3) {
        return std::nullopt;
    }
    return std::abs(points[1].value - interpolate({points[0], points[2]}, points[1].tick));
}

double mean_of(std::optional<double> one, std::optional<double> other) {
    return (one.value_or(other.value_or(0)) + other.value_or(one.value_or(0))) / 2;
}

} // namespace

const FieldSpec* find_field_of_int(const snapshot::ObjectSpec* object, std::size_t index) {
    if (object == nullptr) {
        return nullptr;
    }
    const auto found = std::ranges::find_if(object->fields, [index](const FieldSpec& each) {
        return index >= each.offset && index < std::size_t{each.offset} + each.count;
    });
    return found == object->fields.end() ? nullptr : &*found;
}

std::string name_of_int(const snapshot::ObjectSpec* object, std::size_t index) {
    const snapshot::FieldSpec* field = find_field_of_int(object, index);
    if (field == nullptr) {
        return "int_" + std::to_string(index);
    }
    return field->count == 1
               ? std::string{field->name}
               : std::string{field->name} + '[' + std::to_string(index - field->offset) + ']';
}

// All weights here come from measurements of the values in the deltas of real captures. For the
// results, see tests/proxy/inspect/suspect_values_test.cpp.
ValueProbability::ValueProbability(const ValueHistory& history) : value_history_{history} {
    if (history.before.empty() && history.after.empty()) {
        model_item_of_one_snapshot();
        return;
    }
    value_history_.character_coordinates = {};
    if (history.before.empty() || history.after.empty()) {
        model_new_or_removed_item(history.before.empty() ? history.after : history.before);
    } else {
        model_item_seen_before_and_after();
    }
}

/// Sets the distribution of values for an item that only this snapshot contains, such as an event.
void ValueProbability::model_item_of_one_snapshot() {
    constexpr double kUsual = 4096; // most coordinates, ids and kinds are smaller
    bell_curves_[0] = {.weight = value_history_.character_coordinates.empty() ? 1 : 0.5,
                       .mean = 0,
                       .scale = kUsual};
}

/// Sets the distribution of values for an item that is new, or missing in the next snapshot.
/// `side`: the int's later or earlier values.
void ValueProbability::model_new_or_removed_item(Points side) {
    NeighbourCounts steps;
    steps.count_neighbours(side);
    const ValueHistory::ValueAtTick& next = side.front();
    const double stays =
        std::clamp(share_of_equal_neighbours(steps.num_equal, steps.num_unequal, 0.5), 0.05, 0.95);
    double mean = next.value;
    double scale = 8;
    if (side.size() > 1) {
        mean = interpolate({side[0], side[1]}, value_history_.tick);
        scale = 0.5 + std::abs(mean - next.value) / 2;
    }
    likely_values_[0] = {.weight = stays, .value = next.value};
    bell_curves_[0] = {.weight = (1 - stays) / 2, .mean = mean, .scale = scale};
    jumps_[0] = {.weight = (1 - stays) / 2, .from = next.value};
}

ValueProbability::ExpectedMovement ValueProbability::estimate_movement() const {
    const ValueHistory::ValueAtTick& before = value_history_.before.front();
    const ValueHistory::ValueAtTick& after = value_history_.after.front();
    ExpectedMovement movement{.distance =
                                  std::abs(static_cast<double>(after.value) - before.value)};
    NeighbourCounts steps;
    steps.count_neighbours(value_history_.before);
    steps.count_neighbours(value_history_.after);
    movement.num_equal = steps.num_equal;
    movement.num_unequal = steps.num_unequal;

    // Assumes that the straight line misses this value by as much as it misses the neighbours.
    const auto bend_before = distance_from_line(value_history_.before);
    const auto bend_after = distance_from_line(value_history_.after);
    const bool measured = movement.num_equal == 0 && (bend_before || bend_after);
    movement.line_value = interpolate({before, after}, value_history_.tick);
    movement.line_scale =
        0.5 + (measured ? mean_of(bend_before, bend_after) * 0.8 : movement.distance / 4);
    // Assumes that the curve is less accurate the further it is from the line.
    movement.curve_value = movement.line_value;
    movement.curve_scale = movement.line_scale;
    if (value_history_.before.size() > 1 && value_history_.after.size() > 1 &&
        movement.num_equal < 2) {
        movement.curve_value =
            interpolate({value_history_.before[1], before, after, value_history_.after[1]},
                        value_history_.tick);
        movement.curve_scale = 0.5 + std::abs(movement.curve_value - movement.line_value) / 2 +
                               (movement.num_equal == 0 ? 0 : movement.distance / 8);
    }
    return movement;
}

/// Sets the distribution of values for an item that the snapshots before and after contain.
void ValueProbability::model_item_seen_before_and_after() {
    const ExpectedMovement movement = this->estimate_movement();
    const std::int32_t before = value_history_.before.front().value;
    const std::int32_t after = value_history_.after.front().value;
    double changes = 0;
    if (before == after) {
        changes = std::min(0.5, value_history_.change_rate / 30 + 2e-5);
        if (is_one_tick_event(value_history_.field)) {
            changes = 0.1;
        } else if (movement.num_unequal > movement.num_equal) {
            changes = std::max(changes, movement.num_equal == 0 ? 0.3 : 0.05);
        }
        likely_values_[0] = {.weight = 1 - changes, .value = before};
    } else {
        const double stays = std::clamp(
            share_of_equal_neighbours(movement.num_equal, movement.num_unequal, 0.1), 0.05, 0.95);
        changes = 1 - stays;
        likely_values_[0] = {.weight = stays * 0.35, .value = before};
        likely_values_[1] = {.weight = stays * 0.65, .value = after};
    }
    // If the int sometimes keeps its value, small changes are more likely than smooth movement.
    const bool near_ends = before != after && movement.num_equal != 0;
    const double smooth = before == after ? 0.2 : near_ends ? 0.25 : 0.4;
    const double near_before = near_ends ? 0.1 : 0;
    const double near_after = near_ends ? 0.2 : 0;
    const auto add_bell = [&](std::size_t at, double weight, double mean, double scale) {
        bell_curves_[at] = {.weight = changes * weight, .mean = mean, .scale = scale};
    };
    add_bell(0, smooth, movement.line_value, movement.line_scale);
    add_bell(1, smooth, movement.curve_value, movement.curve_scale);
    add_bell(2, near_before, before, 1 + movement.distance / 32);
    add_bell(3, near_after, after, 1 + movement.distance / 32);
    const double jumps = changes * (1 - 2 * smooth - near_before - near_after);
    jumps_[0] = {.weight = jumps / 2, .from = before};
    jumps_[1] = {.weight = jumps / 2, .from = after};
}

double ValueProbability::probability_of(std::int32_t value) const {
    constexpr double kIllegal = 1.0 / 256;
    constexpr double kLeast = 1e-30;
    constexpr double kNearCharacter = 24; // world units
    const double at = value;
    double sum = 0;
    for (const LikelyValue& mass : likely_values_) {
        sum += mass.value == value ? mass.weight : 0;
    }
    for (const BellCurve& each : bell_curves_) {
        sum += each.weight == 0 ? 0 : each.weight * student_t_density(at - each.mean, each.scale);
    }
    double jumped = 0;
    double jumps = 0;
    for (const Jump& each : jumps_) {
        jumped += each.weight == 0 ? 0 : each.weight * jump_probability(at - each.from);
        jumps += each.weight;
    }
    if (!value_history_.usual_values.empty()) {
        const bool is_usual = std::ranges::find(value_history_.usual_values, value) !=
                              value_history_.usual_values.end();
        jumped =
            jumped / 2 +
            (is_usual ? jumps / 2 / static_cast<double>(value_history_.usual_values.size()) : 0);
    }
    sum += jumped;
    for (const std::int32_t each : value_history_.character_coordinates) {
        sum += 0.5 * student_t_density(at - each, kNearCharacter) /
               static_cast<double>(value_history_.character_coordinates.size());
    }
    return std::max(kLeast,
                    is_valid_field_value(value_history_.field, value) ? sum : sum * kIllegal);
}

using snapshot::DeltaUpdate;
using snapshot::ItemKey;
using snapshot::SnapshotView;

namespace {

std::int32_t wrapping_minus(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// The probability of damage other than one flipped bit, relative to that of one flipped bit.
constexpr double kOtherDamageProbability = 1.0 / 1024;
/// The probability that a delta contains an unchanged item, relative to a changed item. Servers
/// leave out unchanged items.
constexpr double kUnchangedItemProbability = 1.0 / 4096;
/// A value in an overlong encoding is this many times as likely to be damaged as another value,
/// because no server writes this encoding.
constexpr double kOverlongVarintFactor = 1 << 20U;
/// The probability of any other cause, as a share of the probability that one value is wrong.
constexpr double kOtherCauseShare = 0.25;

/// A value with a lower probability must be damaged. If there are more than kMaxImplausibleValues
/// such values, the delta may have been read at wrong positions, so a single wrong value is less
/// likely.
constexpr double kImplausibleProbability = 1e-8;
constexpr std::size_t kMaxImplausibleValues = 2;

/// Returns the probability of this error of the checksum if no single value is the cause. Small
/// errors are more likely.
double probability_of_checksum_error(std::int32_t excess) {
    return 0.31 / std::pow(1 + std::abs(static_cast<double>(excess)), 1.5);
}

template <typename Use>
void for_each_item_change(const SnapshotView& from, const SnapshotView& to, std::uint16_t type,
                          const Use& use) {
    for_each_item_of_type(to, type, [&](const snapshot::ItemView& item) {
        const auto old = from.find(item.key);
        use(old ? from[*old].data : std::span<const std::int32_t>{}, item.data);
    });
}

} // namespace

bool differ_by_one_bit(std::int32_t one, std::int32_t other) {
    const auto difference = static_cast<std::uint32_t>(one) ^ static_cast<std::uint32_t>(other);
    // A varint stores a negative value inverted, so a flipped sign bit inverts all bits.
    return std::has_single_bit(difference) || difference == UINT32_MAX;
}

SuspectValues::SuspectValues(const CrcMismatch& mismatch, SearchBudget& budget)
    : types_{&mismatch.types}, tick_{mismatch.delta.tick}, wanted_crc_{mismatch.delta.crc},
      got_crc_{mismatch.rebuilt.crc}, delta_body_{mismatch.delta.body.begin(),
                                                  mismatch.delta.body.end()},
      checksum_error_{wrapping_minus(got_crc_, wanted_crc_)} {
    if (!collect_values(mismatch) || !add_earlier_snapshots(mismatch, budget)) {
        delta_values_.clear();
    }
}

bool SuspectValues::collect_values(const CrcMismatch& mismatch) {
    std::size_t count = 0;
    for (const DeltaUpdate& update : mismatch.rebuilt.delta.updates) {
        count += update.size;
    }
    if (count > kMaxValues) {
        return false;
    }
    delta_values_.reserve(count);
    for (const DeltaUpdate& update : mismatch.rebuilt.delta.updates) {
        add_item_values(mismatch, update);
    }
    mark_overlong_varint(mismatch);
    may_be_misread_ = mismatch.rebuilt.delta.surplus_ints != 0;
    return true;
}

void SuspectValues::add_item_values(const CrcMismatch& mismatch, const DeltaUpdate& update) {
    const SnapshotView& result = mismatch.rebuilt.result;
    const auto item = result.find(update.key);
    if (!item || result[*item].data.size() < update.size) {
        return;
    }
    const auto data = result[*item].data;
    const auto ints = std::span{mismatch.rebuilt.delta.ints}.subspan(update.begin, update.size);
    const auto changes = std::ranges::count_if(ints, [](std::int32_t each) { return each != 0; });
    const bool is_new = !mismatch.rebuilt.base.find(update.key);
    for (std::uint32_t i = 0; i < update.size; ++i) {
        const std::int32_t sent = wrapping_minus(ints[i], checksum_error_);
        delta_values_.push_back(
            {.suspect = {.key = update.key,
                         .index_in_item = i,
                         .index_in_delta = update.begin + i,
                         .received = data[i],
                         .expected = wrapping_minus(data[i], checksum_error_),
                         .differs_by_one_bit = differ_by_one_bit(ints[i], sent)},
             .is_only_change = !is_new && sent == 0 && changes == (ints[i] == 0 ? 0 : 1)});
    }
    type_statistics_[update.key.type].ints.resize(
        std::max(type_statistics_[update.key.type].ints.size(), std::size_t{update.size}));
}

/// If exactly one value of the delta has an overlong encoding, marks that value: damage has set its
/// last byte to zero. Several such values show a server that always writes this encoding.
void SuspectValues::mark_overlong_varint(const CrcMismatch& mismatch) {
    snapshot::IntOffsets offsets{mismatch.delta.body};
    Suspect* overlong = nullptr;
    std::size_t count = 0;
    for (DeltaValue& each : delta_values_) {
        Suspect& value = each.suspect;
        const std::size_t begin = offsets.byte_offset(value.index_in_delta);
        const std::size_t size = offsets.byte_offset(value.index_in_delta + 1) - begin;
        if (size > snapshot::varint_size(mismatch.rebuilt.delta.ints[value.index_in_delta])) {
            overlong = &value;
            ++count;
        }
    }
    if (count == 1) {
        overlong->is_overlong_varint = overlong->differs_by_one_bit;
    }
}

bool SuspectValues::add_earlier_snapshots(const CrcMismatch& mismatch, SearchBudget& budget) {
    std::vector<std::pair<snapshot::Tick, SnapshotView>> before;
    mismatch.verified.for_each_from(0, [&](snapshot::Tick tick, const SnapshotView& right) {
        if (tick < tick_) {
            before.emplace_back(tick, right);
        }
    });
    std::ranges::reverse(before);
    before.resize(std::min(before.size(), kMaxEarlierSnapshots));
    const auto cost =
        std::accumulate(before.begin(), before.end(), delta_values_.size(),
                        [](std::size_t sum, const auto& each) { return sum + each.second.size(); });
    if (!budget.spend_items(static_cast<std::int64_t>(cost))) {
        return false;
    }
    for (std::size_t i = before.size(); i-- > 1;) {
        add_to_statistics(before[i].second, before[i - 1].second);
    }
    for (std::size_t i = 0; i < std::min(before.size(), before_ticks_.size()); ++i) {
        const auto& [tick, right] = before[i];
        before_ticks_[i] = tick;
        for (DeltaValue& value : delta_values_) {
            const auto [key, index] = std::pair{value.suspect.key, value.suspect.index_in_item};
            const auto item = right.find(key);
            if (value.num_before == i && item && index < right[*item].data.size()) {
                value.before[value.num_before++] = right[*item].data[index];
            }
        }
    }
    if (!before.empty()) {
        store_character_positions(before.front().second, types_->dialect());
    }
    return true;
}

void SuspectValues::add_to_statistics(const SnapshotView& from, const SnapshotView& to) {
    for (auto& [type, statistics] : type_statistics_) {
        for_each_item_change(from, to, type, [&, &known = statistics](auto old, auto now) {
            known.num_transitions += old.empty() ? 0U : 1U;
            for (std::size_t i = 0; i < std::min(now.size(), known.ints.size()); ++i) {
                IntStatistics& int_statistics = known.ints[i];
                int_statistics.num_changes += i < old.size() && old[i] != now[i] ? 1U : 0U;
                if (int_statistics.seen_values.size() <= IntStatistics::kMaxSeenValues &&
                    std::ranges::find(int_statistics.seen_values, now[i]) ==
                        int_statistics.seen_values.end()) {
                    int_statistics.seen_values.push_back(now[i]);
                }
            }
        });
    }
}

/// Stores the positions of characters, because most events happen where a character is.
void SuspectValues::store_character_positions(const SnapshotView& right,
                                              snapshot::Dialect dialect) {
    constexpr std::size_t kMaxPositions = 64;
    const std::uint16_t type = snapshot::character_type(dialect);
    const snapshot::ObjectSpec* object = snapshot::find_object(type, dialect);
    for_each_item_of_type(right, type, [&](const snapshot::ItemView& item) {
        const auto position =
            object == nullptr ? std::nullopt : snapshot::position_of(*object, item.data);
        if (position && character_coordinates_[0].size() < kMaxPositions) {
            character_coordinates_[0].push_back(item.data[position->x]);
            character_coordinates_[1].push_back(item.data[position->y]);
        }
    });
}

void SuspectValues::add_verified_snapshot(snapshot::Tick tick, const SnapshotView& right,
                                          const SnapshotView& previous) {
    add_to_statistics(previous, right);
    for (DeltaValue& value : delta_values_) {
        const auto [key, index] = std::pair{value.suspect.key, value.suspect.index_in_item};
        const auto item = right.find(key);
        if (value.num_after == num_after_ && item && index < right[*item].data.size()) {
            value.after[value.num_after++] = right[*item].data[index];
        }
    }
    after_ticks_[num_after_++] = tick;
}

SuspectValues::Likelihood SuspectValues::likelihood_of(const DeltaValue& value) const {
    std::array<ValueHistory::ValueAtTick, ValueHistory::kMaxPoints> before{};
    std::array<ValueHistory::ValueAtTick, ValueHistory::kMaxPoints> after{};
    for (std::size_t i = 0; i < before.size(); ++i) {
        before[i] = {.tick = before_ticks_[i], .value = value.before[i]};
        after[i] = {.tick = after_ticks_[i], .value = value.after[i]};
    }
    const Suspect& suspect = value.suspect;
    const snapshot::ObjectSpec* object = types_->object(suspect.key.type);
    const TypeStatistics& statistics = type_statistics_.at(suspect.key.type);
    const IntStatistics& int_statistics = statistics.ints[suspect.index_in_item];
    ValueHistory history{.tick = tick_,
                         .before = std::span{before}.first(value.num_before),
                         .after = std::span{after}.first(value.num_after),
                         .field = find_field_of_int(object, suspect.index_in_item),
                         .change_rate = (int_statistics.num_changes + 0.5) /
                                        (statistics.num_transitions + 2.0)};
    if (int_statistics.seen_values.size() <= IntStatistics::kMaxSeenValues) {
        history.usual_values = int_statistics.seen_values;
    }
    if (object != nullptr && object->position && object->position->per_unit == 1) {
        history.character_coordinates =
            suspect.index_in_item == object->position->x   ? character_coordinates_[0]
            : suspect.index_in_item == object->position->y ? character_coordinates_[1]
                                                           : std::span<const std::int32_t>{};
    }
    const ValueProbability plausibility{history};
    const double received = plausibility.probability_of(suspect.received);
    return {.received = received,
            .gain = plausibility.probability_of(suspect.expected) / received *
                    (suspect.differs_by_one_bit ? 1 : kOtherDamageProbability) *
                    (value.is_only_change ? kUnchangedItemProbability : 1) *
                    (suspect.is_overlong_varint ? kOverlongVarintFactor : 1)};
}

std::vector<SuspectValues::Suspect> SuspectValues::rank_suspects() const {
    std::vector<Suspect> all;
    all.reserve(delta_values_.size());
    double sum = kOtherCauseShare * static_cast<double>(delta_values_.size()) *
                 probability_of_checksum_error(checksum_error_);
    std::size_t absurd = 0;
    for (const DeltaValue& value : delta_values_) {
        const Likelihood weight = likelihood_of(value);
        absurd += weight.received < kImplausibleProbability ? 1U : 0U;
        all.push_back(value.suspect);
        all.back().probability = weight.gain;
        sum += weight.gain;
    }
    if (may_be_misread_ || absurd > kMaxImplausibleValues) {
        sum *= 2; // a single value is then the cause with a probability of at most 0.5
    }
    for (Suspect& each : all) {
        each.probability /= sum;
    }
    std::ranges::stable_sort(all, std::greater{}, &Suspect::probability);
    return all;
}

namespace {

/// Returns the probability that the most likely value is not the only cause.
double doubt_of_likeliest(const std::vector<SuspectValues::Suspect>& ranked) {
    return 1 - ranked.front().probability;
}

/// Returns how many of the most likely values are needed so that all other values together have at
/// most the share `doubt` of the total probability.
std::size_t count_candidates(const std::vector<SuspectValues::Suspect>& ranked, double doubt) {
    const double sum =
        std::accumulate(ranked.begin(), ranked.end(), 0.0,
                        [](double before, const auto& each) { return before + each.probability; });
    double rest = 0;
    std::size_t count = ranked.size();
    while (count > 1 && rest + ranked[count - 1].probability <= doubt * sum) {
        rest += ranked[--count].probability;
    }
    return count;
}

bool is_likeliest_certain(const std::vector<SuspectValues::Suspect>& ranked) {
    return !ranked.empty() && doubt_of_likeliest(ranked) < SuspectValues::kMaxDoubt;
}

} // namespace

void SuspectValues::on_verified_snapshot(snapshot::Tick tick,
                                         const snapshot::SnapshotView& verified,
                                         const snapshot::SnapshotView& previous,
                                         Reporter& reporter) {
    if (tick <= tick_ || delta_values_.empty()) {
        return;
    }
    add_verified_snapshot(tick, verified, previous);
    const auto ranked = rank_suspects();
    if (is_likeliest_certain(ranked) || num_after_ == ValueHistory::kMaxPoints) {
        report_wrong_value(ranked, reporter);
        delta_values_.clear();
    }
}

void SuspectValues::report_result(Reporter& reporter) {
    if (!delta_values_.empty() && num_after_ != 0) {
        report_wrong_value(rank_suspects(), reporter);
    }
    delta_values_.clear();
}

void SuspectValues::report_wrong_value(const std::vector<Suspect>& ranked,
                                       Reporter& reporter) const {
    record::FindingRecord finding{.id = record::FindingId::snapshot_explained,
                                  .tick = tick_,
                                  .crc_wanted = wanted_crc_,
                                  .crc_got = got_crc_,
                                  .name = "ambiguous"};
    const Suspect& wrong = ranked.front();
    const bool is_known = is_likeliest_certain(ranked);
    const bool is_exact = is_known && doubt_of_likeliest(ranked) < kMaxExactDoubt;
    const std::string field = name_of_int(types_->object(wrong.key.type), wrong.index_in_item);
    if (is_known) {
        finding.item = make_finding_item(*types_, wrong.key);
        finding.field = field;
        finding.value = wrong.received;
        finding.expected = wrong.expected;
        finding.name = is_exact ? "exact" : "likely";
    }
    const std::size_t count = count_candidates(ranked, is_known ? kMaxExactDoubt : kMaxDoubt);
    const auto candidates = make_named_cause_candidates(std::span{ranked}.first(count), *types_);
    if (!is_exact) {
        finding.candidates = record::CauseCandidateSummary{count, candidates.listed};
        finding.detail = is_known ? "the snapshots before and after make it unlikely that another "
                                    "candidate, or several values, are wrong"
                                  : "any of the candidates explains the difference, or several "
                                    "values are wrong";
    }
    add_position_of_int(finding, delta_body_, wrong.index_in_delta);
    reporter.report_finding(finding);
}

} // namespace tw::inspect
