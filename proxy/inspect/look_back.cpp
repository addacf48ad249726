#include "proxy/inspect/look_back.h"

#include "proxy/inspect/delta_findings.h"

#include <algorithm>
#include <cmath>

namespace tw::inspect {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using snapshot::ObjectSpec;

namespace {

/// Suspects that are this close to the likeliest are no less likely.
constexpr double kAlike = 1.0;
/// A single suspect must follow so much better to be the one; those that follow no worse without
/// their error than with it are suspects still.
constexpr double kTelling = 0.2;
constexpr double kPossible = -0.5;
constexpr std::size_t kMaxNamed = 8;
/// Ints of one delta that are kept: a full snapshot of 64 players has fewer. A session that never
/// sees a right snapshot again keeps them.
constexpr std::size_t kMaxValues = 4096;

std::int32_t wrapping_minus(std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

const FieldSpec* field_at(const ObjectSpec* object, std::size_t index) {
    if (object == nullptr) {
        return nullptr;
    }
    const auto found =
        std::find_if(object->fields.begin(), object->fields.end(), [index](const FieldSpec& each) {
            return index >= each.offset && index < std::size_t{each.offset} + each.count;
        });
    return found == object->fields.end() ? nullptr : &*found;
}

/// What else is known of a value: where it was before, and where it went.
struct Course {
    std::optional<std::int32_t> before;
    std::optional<std::int32_t> after;
    double share = 0.5; ///< of the time between them
    const FieldSpec* field = nullptr;
};

/// Whether the field can hold the value at all.
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

/// How odd a value is on its course, in bits: the farther from where it should be, measured by how
/// far it moves at all, the odder.
double oddness(const Course& course, std::int32_t value) {
    constexpr double kIllegal = 8;
    constexpr double kUsual = 4096; // most values of an item that is there once are below
    const double at = value;
    double odd = is_legal(course.field, value) ? 0 : kIllegal;
    if (!course.before && !course.after) {
        return odd + std::log2(1 + std::abs(at) / kUsual);
    }
    const double before = course.before.value_or(course.after.value_or(0));
    const double after = course.after.value_or(before);
    const double expected = before + (after - before) * course.share;
    const double reach = 0.5 + std::abs(after - before) / 2;
    odd += std::log2(1 + std::abs(at - expected) / reach);
    return odd;
}

} // namespace

std::string field_name(const ObjectSpec* object, std::size_t index) {
    const FieldSpec* field = field_at(object, index);
    if (field == nullptr) {
        return "int_" + std::to_string(index);
    }
    return field->count == 1
               ? std::string{field->name}
               : std::string{field->name} + '[' + std::to_string(index - field->offset) + ']';
}

void LookBack::on_refused(const Refused& refused) {
    values_.clear();
    tick_ = refused.tick;
    before_tick_ = refused.before_tick;
    excess_ = wrapping_minus(refused.got, refused.wanted);
    wanted_ = refused.wanted;
    got_ = refused.got;
    for (const snapshot::DeltaUpdate& update : refused.delta->updates) {
        const auto item = refused.result.find(update.key);
        if (!item) {
            continue;
        }
        const auto data = refused.result[*item].data;
        const auto old = refused.before.find(update.key);
        const auto before = old ? refused.before[*old].data : std::span<const std::int32_t>{};
        if (values_.size() + data.size() > kMaxValues) {
            values_.clear(); // a part of the suspects is worse than none
            return;
        }
        for (std::uint32_t i = 0; i < data.size(); ++i) {
            values_.push_back(
                {.key = update.key,
                 .index = i,
                 .got = data[i],
                 .before = i < before.size() ? std::optional{before[i]} : std::nullopt});
        }
    }
}

std::vector<LookBack::Suspect> LookBack::suspects(snapshot::Tick tick,
                                                  const snapshot::SnapshotView& right,
                                                  const record::TypeNames& types) const {
    const double share = static_cast<double>(tick_ - before_tick_) /
                         std::max(1.0, static_cast<double>(tick) - before_tick_);
    std::vector<Suspect> all;
    all.reserve(values_.size());
    for (const Value& value : values_) {
        Course course{.before = value.before, .after = {}, .share = share};
        if (const auto item = right.find(value.key);
            item && value.index < right[*item].data.size()) {
            course.after = right[*item].data[value.index];
        }
        course.field = field_at(types.object(value.key.type), value.index);
        const std::int32_t mended = wrapping_minus(value.got, excess_);
        all.push_back({.value = &value,
                       .mended = mended,
                       .gain = oddness(course, value.got) - oddness(course, mended)});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Suspect& a, const Suspect& b) { return a.gain > b.gain; });
    const double least = all.empty() ? 0 : std::max(all.front().gain - kAlike, kPossible);
    all.erase(std::find_if(all.begin(), all.end(),
                           [&](const Suspect& each) { return each.gain < least; }),
              all.end());
    return all;
}

void LookBack::on_right(snapshot::Tick tick, const snapshot::SnapshotView& right,
                        const record::TypeNames& types, Reporter& reporter) {
    if (tick <= tick_) {
        return;
    }
    const auto left = suspects(tick, right, types);
    if (!left.empty()) {
        const auto name_of = [&](const Suspect& suspect) {
            return field_name(types.object(suspect.value->key.type), suspect.value->index);
        };
        const Suspect& likeliest = left.front();
        const bool exact = left.size() == 1 && likeliest.gain >= kTelling;
        std::string others;
        for (std::size_t i = 0; !exact && i < std::min(left.size(), kMaxNamed); ++i) {
            const record::FindingItem item = name_item(types, left[i].value->key);
            others += others.empty() ? "one of: " : ", ";
            others +=
                item.type.empty() ? "type " + std::to_string(item.type_id) : std::string{item.type};
            others += ' ' + std::to_string(item.id) + ' ' + name_of(left[i]) + ' ' +
                      std::to_string(left[i].value->got) + " instead of " +
                      std::to_string(left[i].mended);
        }
        if (left.size() > kMaxNamed) {
            others += ", and " + std::to_string(left.size() - kMaxNamed) + " more";
        }
        const std::string field = name_of(likeliest);
        reporter.finding({.id = record::FindingId::snapshot_explained,
                          .tick = tick_,
                          .item = name_item(types, likeliest.value->key),
                          .field = field,
                          .crc_wanted = wanted_,
                          .crc_got = got_,
                          .value = likeliest.value->got,
                          .expected = likeliest.mended,
                          .name = exact ? "exact" : "ambiguous",
                          .detail = others});
    }
    values_.clear();
}

} // namespace tw::inspect
