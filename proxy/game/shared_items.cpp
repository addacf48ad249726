#include "proxy/game/shared_items.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace tw::game {

using snapshot::SnapshotView;

namespace {

/// Four numbers that are looked at at once. Written out, because compilers unroll loops of so few before
/// they could see that.
using Four = std::uint32_t __attribute__((vector_size(4 * sizeof(std::uint32_t))));

template <typename Number>
Four load(const Number* from) {
    static_assert(sizeof(Number) == sizeof(std::uint32_t));
    Four four;
    std::memcpy(&four, from, sizeof four);
    return four;
}

bool is_zero(Four four) {
    const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(four);
    return (halves[0] | halves[1]) == 0;
}

/// The first index at which the two differ; `count` where they do not. As bytes, and as much at a time as
/// may be alike: that is many times faster than int by int, and most of it is alike.
std::size_t first_difference(const std::int32_t* left, const std::int32_t* right,
                             std::size_t count) {
    if (count == 0 || std::memcmp(left, right, count * sizeof *left) == 0) {
        return count;
    }
    constexpr std::size_t kBlock = 64;
    std::size_t at = 0;
    while (at + kBlock <= count && std::memcmp(left + at, right + at, kBlock * sizeof *left) == 0) {
        at += kBlock;
    }
    constexpr std::size_t kStep = 8;
    while (at + kStep <= count) {
        const Four first = load(left + at) ^ load(right + at);
        const Four second = load(left + at + kStep / 2) ^ load(right + at + kStep / 2);
        if (!is_zero(first | second)) {
            break;
        }
        at += kStep;
    }
    while (left[at] == right[at]) {
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

/// How many of them have the same keys and sizes in both. Several are looked at as a whole, so that it
/// takes an instruction or two for each.
std::size_t same_run(const Rest& left, const Rest& right) {
    constexpr std::size_t kBlock = 4;
    const std::size_t most = std::min(left.size, right.size);
    const std::uint32_t distance = left.begin - right.begin;
    const auto differences = [&](std::size_t i) {
        return (load(left.keys + i) ^ load(right.keys + i)) |
               ((load(left.ends + i) - load(right.ends + i)) ^ distance);
    };
    std::size_t count = 0;
    while (count + 2 * kBlock <= most &&
           is_zero(differences(count) | differences(count + kBlock))) {
        count += 2 * kBlock;
    }
    if (count + kBlock <= most && is_zero(differences(count))) {
        count += kBlock;
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
    const auto share = [&](std::size_t count) {
        if (count != 0) {
            runs.push_back({place(), index(), static_cast<std::uint32_t>(count)});
            left.drop(count);
            right.drop(count);
        }
    };
    while (right.size != 0) {
        std::size_t behind = 0;
        while (behind < left.size && left.keys[behind] < *right.keys) {
            ++behind;
        }
        if (behind != 0) {
            left.drop(behind);
        }
        std::size_t count = left.size == 0 || *left.keys != *right.keys ? 0 : same_run(left, right);
        if (count == 0) { // not there, or of another size
            others.push_back(index());
            right.drop(1);
            continue;
        }
        // These have the same keys and sizes.
        while (count != 0) {
            const std::size_t num_ints = left.ends[count - 1] - left.begin;
            const std::size_t same = first_difference(base.data().data() + left.begin,
                                                      items.data().data() + right.begin, num_ints);
            if (same == num_ints) {
                share(count);
                break;
            }
            std::size_t alike = 0;
            while (left.ends[alike] - left.begin <= same) {
                ++alike;
            }
            share(alike);
            others.push_back(index());
            left.drop(1);
            right.drop(1);
            count -= alike + 1;
        }
    }
}

} // namespace tw::game
