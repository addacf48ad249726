#pragma once

#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

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

} // namespace tw::inspect
