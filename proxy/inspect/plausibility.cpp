#include "proxy/inspect/plausibility.h"

#include "snapshot/names_seven.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tw::inspect {

using snapshot::FieldKind;
using snapshot::FieldSpec;
using Points = std::span<const Course::Point>;

namespace {

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

/// A field that tells what happened at this tick, and is zero at the next.
bool is_momentary(const FieldSpec* field) {
    return field != nullptr && field->names == &snapshot::names::seven::coreeventflag;
}

/// Student's distribution with two degrees of freedom: far from the mean it stays possible.
double bell(double distance, double scale) {
    const double z = distance / scale;
    return 1 / (2 * std::sqrt(2.0) * scale * std::pow(1 + z * z / 2, 1.5));
}

/// Over all distances but zero, these add up to one.
double jump(double distance) {
    constexpr double kNormal = 0.31;
    return kNormal / std::pow(1 + std::abs(distance), 1.5);
}

/// The polynomial through the points, at a tick. Precondition: their ticks differ.
double interpolate(std::initializer_list<Course::Point> points, double tick) {
    double sum = 0;
    for (const Course::Point& point : points) {
        double term = point.value;
        for (const Course::Point& other : points) {
            if (other.tick != point.tick) {
                term *= (tick - other.tick) / (static_cast<double>(point.tick) - other.tick);
            }
        }
        sum += term;
    }
    return sum;
}

/// How often neighbouring points are equal, and how often not.
struct Steps {
    int equal = 0;
    int unequal = 0;

    void count(Points points) {
        for (std::size_t i = 1; i < points.size(); ++i) {
            ++(points[i - 1].value == points[i].value ? equal : unequal);
        }
    }
};

/// `prior`: equal and unequal ones that are counted before any is known.
double share_equal(int equal, int unequal, double prior) {
    return (equal + prior) / (equal + unequal + 2 * prior);
}

/// How far the middle of three points is from the line through the others.
std::optional<double> bend(Points points) {
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

// The weights were measured over all values of real captures that a delta had set
// (tests/proxy/inspect/flipped_bits_test.cpp shows what comes of them).
Plausibility::Plausibility(const Course& course) : course_{course} {
    if (course.before.empty() && course.after.empty()) {
        stand_alone();
        return;
    }
    course_.positions = {};
    if (course.before.empty() || course.after.empty()) {
        stand_beside(course.before.empty() ? course.after : course.before);
    } else {
        stand_between();
    }
}

/// An item of this snapshot only: an event.
void Plausibility::stand_alone() {
    constexpr double kUsual = 4096; // coordinates, ids and kinds are mostly below
    bells_[0] = {.weight = course_.positions.empty() ? 1 : 0.5, .mean = 0, .scale = kUsual};
}

/// An item that is new, or gone in the next snapshot.
void Plausibility::stand_beside(Points side) {
    Steps steps;
    steps.count(side);
    const Course::Point& next = side.front();
    const double stays = std::clamp(share_equal(steps.equal, steps.unequal, 0.5), 0.05, 0.95);
    double mean = next.value;
    double scale = 8;
    if (side.size() > 1) {
        mean = interpolate({side[0], side[1]}, course_.tick);
        scale = 0.5 + std::abs(mean - next.value) / 2;
    }
    masses_[0] = {.weight = stays, .value = next.value};
    bells_[0] = {.weight = (1 - stays) / 2, .mean = mean, .scale = scale};
    jumps_[0] = {.weight = (1 - stays) / 2, .from = next.value};
}

Plausibility::Movement Plausibility::movement() const {
    const Course::Point& before = course_.before.front();
    const Course::Point& after = course_.after.front();
    Movement movement{.way = std::abs(static_cast<double>(after.value) - before.value)};
    Steps steps;
    steps.count(course_.before);
    steps.count(course_.after);
    movement.equal = steps.equal;
    movement.unequal = steps.unequal;

    // The straight line, as exact as it was for the points beside it.
    const auto bend_before = bend(course_.before);
    const auto bend_after = bend(course_.after);
    const bool measured = movement.equal == 0 && (bend_before || bend_after);
    movement.line = interpolate({before, after}, course_.tick);
    movement.line_scale =
        0.5 + (measured ? mean_of(bend_before, bend_after) * 0.8 : movement.way / 4);
    // The curve, as exact as it is close to the line.
    movement.curve = movement.line;
    movement.curve_scale = movement.line_scale;
    if (course_.before.size() > 1 && course_.after.size() > 1 && movement.equal < 2) {
        movement.curve =
            interpolate({course_.before[1], before, after, course_.after[1]}, course_.tick);
        movement.curve_scale = 0.5 + std::abs(movement.curve - movement.line) / 2 +
                               (movement.equal == 0 ? 0 : movement.way / 8);
    }
    return movement;
}

/// An item that is there before and after.
void Plausibility::stand_between() {
    const Movement movement = this->movement();
    const std::int32_t before = course_.before.front().value;
    const std::int32_t after = course_.after.front().value;
    double changes = 0;
    if (before == after) {
        changes = std::min(0.5, course_.change_rate / 30 + 2e-5);
        if (is_momentary(course_.field)) {
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
    // What moves in steps is often close to one end.
    const bool near_ends = before != after && movement.equal != 0;
    const double smooth = before == after ? 0.2 : near_ends ? 0.25 : 0.4;
    const double near_before = near_ends ? 0.1 : 0;
    const double near_after = near_ends ? 0.2 : 0;
    const auto add_bell = [&](std::size_t at, double weight, double mean, double scale) {
        bells_[at] = {.weight = changes * weight, .mean = mean, .scale = scale};
    };
    add_bell(0, smooth, movement.line, movement.line_scale);
    add_bell(1, smooth, movement.curve, movement.curve_scale);
    add_bell(2, near_before, before, 1 + movement.way / 32);
    add_bell(3, near_after, after, 1 + movement.way / 32);
    const double jumps = changes * (1 - 2 * smooth - near_before - near_after);
    jumps_[0] = {.weight = jumps / 2, .from = before};
    jumps_[1] = {.weight = jumps / 2, .from = after};
}

double Plausibility::of(std::int32_t value) const {
    constexpr double kIllegal = 1.0 / 256;
    constexpr double kLeast = 1e-30;
    constexpr double kNearCharacter = 24; // world units
    const double at = value;
    double sum = 0;
    for (const Mass& mass : masses_) {
        sum += mass.value == value ? mass.weight : 0;
    }
    for (const Bell& each : bells_) {
        sum += each.weight == 0 ? 0 : each.weight * bell(at - each.mean, each.scale);
    }
    double jumped = 0;
    double jumps = 0;
    for (const Jump& each : jumps_) {
        jumped += each.weight == 0 ? 0 : each.weight * jump(at - each.from);
        jumps += each.weight;
    }
    if (!course_.usual.empty()) {
        const bool is_usual =
            std::find(course_.usual.begin(), course_.usual.end(), value) != course_.usual.end();
        jumped =
            jumped / 2 + (is_usual ? jumps / 2 / static_cast<double>(course_.usual.size()) : 0);
    }
    sum += jumped;
    for (const std::int32_t each : course_.positions) {
        sum +=
            0.5 * bell(at - each, kNearCharacter) / static_cast<double>(course_.positions.size());
    }
    return std::max(kLeast, is_legal(course_.field, value) ? sum : sum * kIllegal);
}

} // namespace tw::inspect
