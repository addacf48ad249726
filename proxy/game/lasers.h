#pragma once

#include "snapshot/objects.h"

#include <cstdint>
#include <span>

/// What a laser is, in either form of its object (views sheet, sections 4 and 5). The older form does not
/// say its kind.
namespace tw::game {

[[nodiscard]] bool is_door(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// A dragger, with a beam or without.
[[nodiscard]] bool is_dragger(const snapshot::ObjectSpec& object,
                              std::span<const std::int32_t> data);

/// A beam of a dragger, whose id may be another in each view.
[[nodiscard]] bool is_beam(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data);

/// Whether one view may show it dark and another one not.
[[nodiscard]] bool may_be_switched(const snapshot::ObjectSpec& object,
                                   std::span<const std::int32_t> data);

/// Lights and doors that a team has switched off end where they begin. Precondition: may_be_switched.
[[nodiscard]] bool is_dark(std::span<const std::int32_t> laser);

/// Precondition: both are doors.
[[nodiscard]] bool is_same_end(std::span<const std::int32_t> laser,
                               std::span<const std::int32_t> other);

} // namespace tw::game
