#include "proxy/game/lasers.h"

#include <cstddef>

namespace tw::game {

using snapshot::Family;
using snapshot::ObjectSpec;

namespace {

using Ints = std::span<const std::int32_t>;

/// Ints of a ddnet_laser.
constexpr std::size_t kLaserOwner = 5;
constexpr std::size_t kKind = 6;

constexpr std::int32_t kDoor = 2;
constexpr std::int32_t kLight = 3;
constexpr std::int32_t kDragger = 4;

/// Two ends of x and y, in either form of a laser.
constexpr std::size_t kEnds = 4;

bool is_of_kind(const ObjectSpec& object, Ints data, std::int32_t kind) {
    return object.merge.family == Family::laser && object.merge.form == 0 && data.size() > kKind &&
           data[kKind] == kind;
}

} // namespace

bool is_door(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDoor);
}

bool is_dragger(const ObjectSpec& object, Ints data) {
    return is_of_kind(object, data, kDragger);
}

bool is_beam(const ObjectSpec& object, Ints data) {
    return is_dragger(object, data) && data[kLaserOwner] >= 0;
}

bool may_be_switched(const ObjectSpec& object, Ints data) {
    const bool is_old_form =
        object.merge.family == Family::laser && object.merge.form != 0 && data.size() >= kEnds;
    return is_old_form || is_of_kind(object, data, kLight);
}

bool is_dark(Ints laser) {
    return laser[0] == laser[2] && laser[1] == laser[3];
}

bool is_same_end(Ints laser, Ints other) {
    return laser[0] == other[0] && laser[1] == other[1];
}

} // namespace tw::game
