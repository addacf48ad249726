#include "proxy/inspect/diagnosis/suspects.h"

#include "proxy/inspect/diagnosis/diagnosis.h"
#include "snapshot/cursor.h"
#include "snapshot/names.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace tw::inspect {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using Points = std::span<const ValueHistory::Point>;

namespace {

bool is_legal(const FieldSpec* field, std::int32_t value) {
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
bool is_momentary(const FieldSpec* field) {
    return field != nullptr && field->names == &snapshot::names::seven::coreeventflag;
}

/// Returns the density of Student's t-distribution with two degrees of freedom. This distribution
/// also allows for values far from the mean.
double bell_density(double distance, double scale) {
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
double interpolate(std::initializer_list<ValueHistory::Point> points, double tick) {
    double sum = 0;
    for (const ValueHistory::Point& point : points) {
        double term = point.value;
        for (const ValueHistory::Point& other : points) {
            if (other.tick != point.tick) {
                term *= (tick - other.tick) / (static_cast<double>(point.tick) - other.tick);
            }
        }
        sum += term;
    }
    return sum;
}

/// The number of neighbouring points with equal values, and with different values.
struct Steps {
    int equal = 0;
    int unequal = 0;

    void count(Points points) {
        for (std::size_t i = 1; i < points.size(); ++i) {
            ++(points[i - 1].value == points[i].value ? equal : unequal);
        }
    }
};

/// Returns the share of equal neighbouring points. `prior` is added to both numbers, so that the
/// share is not extreme if there are few points.
double share_equal(int equal, int unequal, double prior) {
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

const FieldSpec* field_at(const snapshot::ObjectSpec* object, std::size_t index) {
    if (object == nullptr) {
        return nullptr;
    }
    const auto found =
        std::find_if(object->fields.begin(), object->fields.end(), [index](const FieldSpec& each) {
            return index >= each.offset && index < std::size_t{each.offset} + each.count;
        });
    return found == object->fields.end() ? nullptr : &*found;
}

std::string field_name(const snapshot::ObjectSpec* object, std::size_t index) {
    const snapshot::FieldSpec* field = field_at(object, index);
    if (field == nullptr) {
        return "int_" + std::to_string(index);
    }
    return field->count == 1
               ? std::string{field->name}
               : std::string{field->name} + '[' + std::to_string(index - field->offset) + ']';
}

// All weights here come from measurements of the values in the deltas of real captures. For the
// results, see tests/proxy/inspect/suspects_test.cpp.
ValueProbability::ValueProbability(const ValueHistory& history) : history_{history} {
    if (history.before.empty() && history.after.empty()) {
        model_item_of_one_snapshot();
        return;
    }
    history_.positions = {};
    if (history.before.empty() || history.after.empty()) {
        model_new_or_removed_item(history.before.empty() ? history.after : history.before);
    } else {
        model_item_seen_before_and_after();
    }
}

/// Sets the distribution of values for an item of only this snapshot, such as an event.
void ValueProbability::model_item_of_one_snapshot() {
    constexpr double kUsual = 4096; // most coordinates, ids and kinds are smaller
    bells_[0] = {.weight = history_.positions.empty() ? 1 : 0.5, .mean = 0, .scale = kUsual};
}

/// Sets the distribution of values for an item that is new, or missing in the next snapshot.
void ValueProbability::model_new_or_removed_item(Points side) {
    Steps steps;
    steps.count(side);
    const ValueHistory::Point& next = side.front();
    const double stays = std::clamp(share_equal(steps.equal, steps.unequal, 0.5), 0.05, 0.95);
    double mean = next.value;
    double scale = 8;
    if (side.size() > 1) {
        mean = interpolate({side[0], side[1]}, history_.tick);
        scale = 0.5 + std::abs(mean - next.value) / 2;
    }
    masses_[0] = {.weight = stays, .value = next.value};
    bells_[0] = {.weight = (1 - stays) / 2, .mean = mean, .scale = scale};
    jumps_[0] = {.weight = (1 - stays) / 2, .from = next.value};
}

ValueProbability::Movement ValueProbability::estimate_movement() const {
    const ValueHistory::Point& before = history_.before.front();
    const ValueHistory::Point& after = history_.after.front();
    Movement movement{.distance = std::abs(static_cast<double>(after.value) - before.value)};
    Steps steps;
    steps.count(history_.before);
    steps.count(history_.after);
    movement.equal = steps.equal;
    movement.unequal = steps.unequal;

    // Assumes that the straight line misses this value by as much as it misses the neighbours.
    const auto bend_before = distance_from_line(history_.before);
    const auto bend_after = distance_from_line(history_.after);
    const bool measured = movement.equal == 0 && (bend_before || bend_after);
    movement.line = interpolate({before, after}, history_.tick);
    movement.line_scale =
        0.5 + (measured ? mean_of(bend_before, bend_after) * 0.8 : movement.distance / 4);
    // Assumes that the curve is less accurate the further it is from the line.
    movement.curve = movement.line;
    movement.curve_scale = movement.line_scale;
    if (history_.before.size() > 1 && history_.after.size() > 1 && movement.equal < 2) {
        movement.curve =
            interpolate({history_.before[1], before, after, history_.after[1]}, history_.tick);
        movement.curve_scale = 0.5 + std::abs(movement.curve - movement.line) / 2 +
                               (movement.equal == 0 ? 0 : movement.distance / 8);
    }
    return movement;
}

/// Sets the distribution of values for an item that the snapshots before and after contain.
void ValueProbability::model_item_seen_before_and_after() {
    const Movement movement = this->estimate_movement();
    const std::int32_t before = history_.before.front().value;
    const std::int32_t after = history_.after.front().value;
    double changes = 0;
    if (before == after) {
        changes = std::min(0.5, history_.change_rate / 30 + 2e-5);
        if (is_momentary(history_.field)) {
            changes = 0.1;
        } else if (movement.unequal > movement.equal) {
            changes = std::max(changes, movement.equal == 0 ? 0.3 : 0.05);
        }
        masses_[0] = {.weight = 1 - changes, .value = before};
    } else {
        const double stays =
            std::clamp(share_equal(movement.equal, movement.unequal, 0.1), 0.05, 0.95);
        changes = 1 - stays;
        masses_[0] = {.weight = stays * 0.35, .value = before};
        masses_[1] = {.weight = stays * 0.65, .value = after};
    }
    // If the int sometimes keeps its value, small changes are more likely than smooth movement.
    const bool near_ends = before != after && movement.equal != 0;
    const double smooth = before == after ? 0.2 : near_ends ? 0.25 : 0.4;
    const double near_before = near_ends ? 0.1 : 0;
    const double near_after = near_ends ? 0.2 : 0;
    const auto add_bell = [&](std::size_t at, double weight, double mean, double scale) {
        bells_[at] = {.weight = changes * weight, .mean = mean, .scale = scale};
    };
    add_bell(0, smooth, movement.line, movement.line_scale);
    add_bell(1, smooth, movement.curve, movement.curve_scale);
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
    for (const LikelyValue& mass : masses_) {
        sum += mass.value == value ? mass.weight : 0;
    }
    for (const BellCurve& each : bells_) {
        sum += each.weight == 0 ? 0 : each.weight * bell_density(at - each.mean, each.scale);
    }
    double jumped = 0;
    double jumps = 0;
    for (const Jump& each : jumps_) {
        jumped += each.weight == 0 ? 0 : each.weight * jump_probability(at - each.from);
        jumps += each.weight;
    }
    if (!history_.usual.empty()) {
        const bool is_usual =
            std::find(history_.usual.begin(), history_.usual.end(), value) != history_.usual.end();
        jumped =
            jumped / 2 + (is_usual ? jumps / 2 / static_cast<double>(history_.usual.size()) : 0);
    }
    sum += jumped;
    for (const std::int32_t each : history_.positions) {
        sum += 0.5 * bell_density(at - each, kNearCharacter) /
               static_cast<double>(history_.positions.size());
    }
    return std::max(kLeast, is_legal(history_.field, value) ? sum : sum * kIllegal);
}

using snapshot::DeltaUpdate;
using snapshot::ItemKey;
using snapshot::SnapshotView;

namespace {

std::int32_t wrapping_minus(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// The probability of other damage, relative to one flipped bit.
constexpr double kOtherDamage = 1.0 / 1024;
/// The probability that a delta contains an unchanged item, relative to a changed item. Servers
/// leave out unchanged items.
constexpr double kUnchangedItem = 1.0 / 4096;
/// A value in an overlong encoding is this many times as likely to be damaged as another value,
/// because no server writes this encoding.
constexpr double kOverlong = 1 << 20U;
/// The probability of any other cause, as a share of the probability that one value is wrong.
constexpr double kSomethingElse = 0.25;

/// A value with a lower probability must be damaged. If there are more than kMaxAbsurd such values,
/// the cause is not one flipped value: the delta was read at wrong positions.
constexpr double kAbsurdProbability = 1e-8;
constexpr std::size_t kMaxAbsurd = 2;

/// Returns the probability of this error of the checksum if no single value is the cause. Small
/// errors are more likely.
double probability_of_excess(std::int32_t excess) {
    return 0.31 / std::pow(1 + std::abs(static_cast<double>(excess)), 1.5);
}

template <typename Use>
void for_each_change(const SnapshotView& from, const SnapshotView& to, std::uint16_t type,
                     const Use& use) {
    for (std::size_t i = to.lower_bound({type, 0}); i < to.size() && to[i].key.type == type; ++i) {
        const auto old = from.find(to[i].key);
        use(old ? from[*old].data : std::span<const std::int32_t>{}, to[i].data);
    }
}

} // namespace

bool are_one_bit_apart(std::int32_t one, std::int32_t other) {
    const auto difference = static_cast<std::uint32_t>(one) ^ static_cast<std::uint32_t>(other);
    // A varint stores a negative value inverted, so a flipped sign bit inverts all bits.
    return std::has_single_bit(difference) || difference == UINT32_MAX;
}

SuspectValues::SuspectValues(const CrcMismatch& mismatch, SearchBudget& budget)
    : types_{&mismatch.types}, tick_{mismatch.delta.tick}, wanted_{mismatch.delta.crc},
      got_{mismatch.rebuilt.crc}, body_{mismatch.delta.body.begin(), mismatch.delta.body.end()},
      excess_{wrapping_minus(got_, wanted_)} {
    if (!collect_values(mismatch) || !add_earlier_snapshots(mismatch, budget)) {
        values_.clear();
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
    values_.reserve(count);
    for (const DeltaUpdate& update : mismatch.rebuilt.delta.updates) {
        add_item_values(mismatch, update);
    }
    mark_overlong_varint(mismatch);
    is_misread_ = mismatch.rebuilt.delta.surplus_ints != 0;
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
    const auto changes =
        std::count_if(ints.begin(), ints.end(), [](std::int32_t each) { return each != 0; });
    const bool is_new = !mismatch.rebuilt.base.find(update.key);
    for (std::uint32_t i = 0; i < update.size; ++i) {
        const std::int32_t sent = wrapping_minus(ints[i], excess_);
        values_.push_back(
            {.suspect = {.key = update.key,
                         .index = i,
                         .int_index = update.begin + i,
                         .got = data[i],
                         .expected = wrapping_minus(data[i], excess_),
                         .fits_a_bit = are_one_bit_apart(ints[i], sent)},
             .is_only_change = !is_new && sent == 0 && changes == (ints[i] == 0 ? 0 : 1)});
    }
    statistics_[update.key.type].ints.resize(
        std::max(statistics_[update.key.type].ints.size(), std::size_t{update.size}));
}

/// If exactly one value of the delta has an overlong encoding, marks that value: damage has set its
/// last byte to zero. Several such values show a server that always writes this encoding.
void SuspectValues::mark_overlong_varint(const CrcMismatch& mismatch) {
    snapshot::IntOffsets offsets{mismatch.delta.body};
    Suspect* overlong = nullptr;
    std::size_t count = 0;
    for (DeltaValue& each : values_) {
        Suspect& value = each.suspect;
        const std::size_t begin = offsets.byte_offset(value.int_index);
        const std::size_t size = offsets.byte_offset(value.int_index + 1) - begin;
        if (size > snapshot::varint_size(mismatch.rebuilt.delta.ints[value.int_index])) {
            overlong = &value;
            ++count;
        }
    }
    if (count == 1) {
        overlong->is_overlong_varint = overlong->fits_a_bit;
    }
}

bool SuspectValues::add_earlier_snapshots(const CrcMismatch& mismatch, SearchBudget& budget) {
    std::vector<std::pair<snapshot::Tick, SnapshotView>> before;
    mismatch.right.for_each_from(0, [&](snapshot::Tick tick, const SnapshotView& right) {
        if (tick < tick_) {
            before.emplace_back(tick, right);
        }
    });
    std::reverse(before.begin(), before.end());
    before.resize(std::min(before.size(), kMaxEarlierSnapshots));
    const auto cost =
        std::accumulate(before.begin(), before.end(), values_.size(),
                        [](std::size_t sum, const auto& each) { return sum + each.second.size(); });
    if (!budget.spend(static_cast<std::int64_t>(cost))) {
        return false;
    }
    for (std::size_t i = before.size(); i-- > 1;) {
        add_to_statistics(before[i].second, before[i - 1].second);
    }
    for (std::size_t i = 0; i < std::min(before.size(), before_ticks_.size()); ++i) {
        const auto& [tick, right] = before[i];
        before_ticks_[i] = tick;
        for (DeltaValue& value : values_) {
            const auto [key, index] = std::pair{value.suspect.key, value.suspect.index};
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
    for (auto& [type, statistics] : statistics_) {
        for_each_change(from, to, type, [&, &known = statistics](auto old, auto now) {
            known.transitions += old.empty() ? 0U : 1U;
            for (std::size_t i = 0; i < std::min(now.size(), known.ints.size()); ++i) {
                IntStatistics& int_statistics = known.ints[i];
                int_statistics.changes += i < old.size() && old[i] != now[i] ? 1U : 0U;
                if (int_statistics.seen.size() <= IntStatistics::kFewValues &&
                    std::find(int_statistics.seen.begin(), int_statistics.seen.end(), now[i]) ==
                        int_statistics.seen.end()) {
                    int_statistics.seen.push_back(now[i]);
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
    for_each_change(right, right, type, [&](auto /*old*/, auto data) {
        const auto position =
            object == nullptr ? std::nullopt : snapshot::position_of(*object, data);
        if (position && positions_[0].size() < kMaxPositions) {
            positions_[0].push_back(data[position->x]);
            positions_[1].push_back(data[position->y]);
        }
    });
}

void SuspectValues::add_verified_snapshot(snapshot::Tick tick, const SnapshotView& right,
                                          const SnapshotView& previous) {
    add_to_statistics(previous, right);
    for (DeltaValue& value : values_) {
        const auto [key, index] = std::pair{value.suspect.key, value.suspect.index};
        const auto item = right.find(key);
        if (value.num_after == num_after_ && item && index < right[*item].data.size()) {
            value.after[value.num_after++] = right[*item].data[index];
        }
    }
    after_ticks_[num_after_++] = tick;
}

SuspectValues::Likelihood SuspectValues::likelihood_of(const DeltaValue& value) const {
    std::array<ValueHistory::Point, ValueHistory::kMaxPoints> before{};
    std::array<ValueHistory::Point, ValueHistory::kMaxPoints> after{};
    for (std::size_t i = 0; i < before.size(); ++i) {
        before[i] = {.tick = before_ticks_[i], .value = value.before[i]};
        after[i] = {.tick = after_ticks_[i], .value = value.after[i]};
    }
    const Suspect& suspect = value.suspect;
    const snapshot::ObjectSpec* object = types_->object(suspect.key.type);
    const TypeStatistics& statistics = statistics_.at(suspect.key.type);
    const IntStatistics& int_statistics = statistics.ints[suspect.index];
    ValueHistory history{.tick = tick_,
                         .before = std::span{before}.first(value.num_before),
                         .after = std::span{after}.first(value.num_after),
                         .field = field_at(object, suspect.index),
                         .change_rate =
                             (int_statistics.changes + 0.5) / (statistics.transitions + 2.0)};
    if (int_statistics.seen.size() <= IntStatistics::kFewValues) {
        history.usual = int_statistics.seen;
    }
    if (object != nullptr && object->position && object->position->per_unit == 1) {
        history.positions = suspect.index == object->position->x ? positions_[0]
                            : suspect.index == object->position->y
                                ? positions_[1]
                                : std::span<const std::int32_t>{};
    }
    const ValueProbability plausibility{history};
    const double received = plausibility.probability_of(suspect.got);
    return {.received = received,
            .gain = plausibility.probability_of(suspect.expected) / received *
                    (suspect.fits_a_bit ? 1 : kOtherDamage) *
                    (value.is_only_change ? kUnchangedItem : 1) *
                    (suspect.is_overlong_varint ? kOverlong : 1)};
}

std::vector<SuspectValues::Suspect> SuspectValues::rank_suspects() const {
    std::vector<Suspect> all;
    all.reserve(values_.size());
    double sum =
        kSomethingElse * static_cast<double>(values_.size()) * probability_of_excess(excess_);
    std::size_t absurd = 0;
    for (const DeltaValue& value : values_) {
        const Likelihood weight = likelihood_of(value);
        absurd += weight.received < kAbsurdProbability ? 1U : 0U;
        all.push_back(value.suspect);
        all.back().probability = weight.gain;
        sum += weight.gain;
    }
    if (is_misread_ || absurd > kMaxAbsurd) {
        sum *= 2; // with a probability of 0.5, no single value is the cause
    }
    for (Suspect& each : all) {
        each.probability /= sum;
    }
    std::stable_sort(all.begin(), all.end(), [](const Suspect& a, const Suspect& b) {
        return a.probability > b.probability;
    });
    return all;
}

namespace {

/// Returns the probability that the most likely value is not the only cause.
double doubt_of_first(const std::vector<SuspectValues::Suspect>& ranked) {
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

bool is_first_certain(const std::vector<SuspectValues::Suspect>& ranked) {
    return !ranked.empty() && doubt_of_first(ranked) < SuspectValues::kMaxDoubt;
}

} // namespace

void SuspectValues::on_verified(snapshot::Tick tick, const snapshot::SnapshotView& verified,
                                const snapshot::SnapshotView& previous, Reporter& reporter) {
    if (tick <= tick_ || values_.empty()) {
        return;
    }
    add_verified_snapshot(tick, verified, previous);
    const auto ranked = rank_suspects();
    if (is_first_certain(ranked) || num_after_ == ValueHistory::kMaxPoints) {
        report_wrong_value(ranked, reporter);
        values_.clear();
    }
}

void SuspectValues::report_result(Reporter& reporter) {
    if (!values_.empty() && num_after_ != 0) {
        report_wrong_value(rank_suspects(), reporter);
    }
    values_.clear();
}

void SuspectValues::report_wrong_value(const std::vector<Suspect>& ranked,
                                       Reporter& reporter) const {
    record::FindingRecord finding{.id = record::FindingId::snapshot_explained,
                                  .tick = tick_,
                                  .crc_wanted = wanted_,
                                  .crc_got = got_,
                                  .name = "ambiguous"};
    const Suspect& wrong = ranked.front();
    const bool is_known = is_first_certain(ranked);
    const bool is_exact = is_known && doubt_of_first(ranked) < kMaxExactDoubt;
    const std::string field = field_name(types_->object(wrong.key.type), wrong.index);
    if (is_known) {
        finding.item = make_finding_item(*types_, wrong.key);
        finding.field = field;
        finding.value = wrong.got;
        finding.expected = wrong.expected;
        finding.name = is_exact ? "exact" : "likely";
    }
    const std::size_t count = count_candidates(ranked, is_known ? kMaxExactDoubt : kMaxDoubt);
    const auto candidates = make_named_cause_candidates(std::span{ranked}.first(count), *types_);
    if (!is_exact) {
        finding.candidates = record::CauseCandidateSummary{count, candidates.list};
        finding.detail = is_known ? "the snapshots before and after make it unlikely that another "
                                    "candidate, or several values, are wrong"
                                  : "any of the candidates explains the difference, or several "
                                    "values are wrong";
    }
    add_int_position(finding, body_, wrong.int_index);
    reporter.report_finding(finding);
}

} // namespace tw::inspect
