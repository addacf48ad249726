#include "proxy/game/shared_items.h"

#include "proxy/game/four_numbers.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tw::game {

using snapshot::SnapshotView;

namespace {

/// The first index at which the two differ; `count` where they do not.
std::size_t first_difference(const std::int32_t* left, const std::int32_t* right,
                             std::size_t count) {
    std::size_t at = 0;
    for (; at + 4 * kFour <= count; at += 4 * kFour) {
        if (const std::uint32_t same = same_of_sixteen(left + at, right + at);
            same != kAllOfSixteen) {
            return at + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    for (; at + kFour <= count; at += kFour) {
        if (const std::uint32_t same = same_of_four(left + at, right + at); same != kAllOfFour) {
            return at + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    while (at < count && left[at] == right[at]) {
        ++at;
    }
    return at;
}

/// Items of one snapshot from one of them on.
struct Rest {
    const std::uint32_t* keys = nullptr;
    const std::uint32_t* ends = nullptr;
    std::size_t size = 0;
    std::uint32_t begin = 0; ///< of the ints of the first one

    explicit Rest(const SnapshotView& items)
        : keys{items.keys().data()}, ends{items.ends().data()}, size{items.size()} {}

    void drop(std::size_t count) {
        begin = ends[count - 1];
        keys += count;
        ends += count;
        size -= count;
    }
};

/// How many items have the same keys and sizes.
std::size_t same_run(const Rest& left, const Rest& right) {
    const std::size_t most = std::min(left.size, right.size);
    const std::uint32_t distance = left.begin - right.begin;
    std::size_t count = 0;
    for (; count + kFour <= most; count += kFour) {
        const std::uint32_t same = same_of_four(left.keys + count, right.keys + count) &
                                   apart_of_four(left.ends + count, right.ends + count, distance);
        if (same != kAllOfFour) {
            return count + static_cast<std::size_t>(std::countr_one(same));
        }
    }
    while (count < most && left.keys[count] == right.keys[count] &&
           left.ends[count] - right.ends[count] == distance) {
        ++count;
    }
    return count;
}

} // namespace

void SharedItems::find(const SnapshotView& base, std::size_t number, const SnapshotView& items) {
    others.clear();
    Rest left{base};
    Rest right{items};
    const auto place = [&] { return BasePlace::make(number, base.size() - left.size); };
    const auto index = [&] { return static_cast<std::uint32_t>(items.size() - right.size); };
    while (right.size != 0) {
        while (left.size != 0 && *left.keys < *right.keys) {
            left.drop(1);
        }
        std::size_t count = same_run(left, right);
        if (count == 0) { // not there, or of another size
            others.push_back(index());
            right.drop(1);
        }
        // These have the same keys and sizes.
        while (count != 0) {
            const std::size_t num_ints = left.ends[count - 1] - left.begin;
            const std::size_t same = first_difference(base.data().data() + left.begin,
                                                      items.data().data() + right.begin, num_ints);
            std::size_t alike = same == num_ints ? count : 0;
            if (alike != count) {
                while (left.ends[alike] - left.begin <= same) {
                    ++alike;
                }
            }
            if (alike != 0) {
                runs.push_back({place(), index(), static_cast<std::uint32_t>(alike)});
                left.drop(alike);
                right.drop(alike);
                count -= alike;
            }
            if (count != 0) {
                others.push_back(index());
                left.drop(1);
                right.drop(1);
                --count;
            }
        }
    }
}

} // namespace tw::game
