#include "proxy/game/shared_items.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tw::game {

using snapshot::SnapshotView;

namespace {

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
        std::int32_t other = 0;
        for (std::size_t i = 0; i < kStep; ++i) {
            other |= left[at + i] ^ right[at + i];
        }
        if (other != 0) {
            break;
        }
        at += kStep;
    }
    while (left[at] == right[at]) {
        ++at;
    }
    return at;
}

/// How many of the items from here on have the same keys and sizes in both. Blocks are looked at as a
/// whole, so that it takes an instruction or two for each item.
std::size_t same_run(const SnapshotView& left, std::size_t at, const SnapshotView& right,
                     std::size_t item, std::uint32_t distance) {
    constexpr std::size_t kBlock = 16;
    const std::size_t most = std::min(left.size() - at, right.size() - item);
    const std::uint32_t* const left_keys = left.keys().data() + at;
    const std::uint32_t* const right_keys = right.keys().data() + item;
    const std::uint32_t* const left_ends = left.ends().data() + at;
    const std::uint32_t* const right_ends = right.ends().data() + item;
    const auto difference = [&](std::size_t i) {
        return (left_keys[i] ^ right_keys[i]) | ((left_ends[i] - right_ends[i]) ^ distance);
    };
    std::size_t count = 0;
    for (; count + kBlock <= most; count += kBlock) {
        std::uint32_t other = 0;
        for (std::size_t i = 0; i < kBlock; ++i) {
            other |= difference(count + i);
        }
        if (other != 0) {
            break;
        }
    }
    while (count < most && difference(count) == 0) {
        ++count;
    }
    return count;
}

/// Where the ints of an item begin.
std::uint32_t begin_of(const SnapshotView& items, std::size_t item) {
    return item == 0 ? 0 : items.ends()[item - 1];
}

} // namespace

void SharedItems::share(std::size_t at, std::size_t item, std::size_t count) {
    if (count != 0) {
        runs.push_back({.base = static_cast<std::uint32_t>(at),
                        .item = static_cast<std::uint32_t>(item),
                        .count = static_cast<std::uint32_t>(count)});
    }
}

/// These have the same keys and sizes.
void SharedItems::compare(const SnapshotView& base, std::size_t at, const SnapshotView& items,
                          std::size_t item, std::size_t count) {
    const std::uint32_t begin = begin_of(base, at);
    const std::size_t size = base.ends()[at + count - 1] - begin;
    const std::int32_t* const left = base.data().data() + begin;
    const std::int32_t* const right = items.data().data() + begin_of(items, item);
    std::size_t same = 0;  // behind the last one that differed
    std::size_t index = 0; // of the one that differs
    for (std::size_t i = 0;;) {
        i += first_difference(left + i, right + i, size - i);
        if (i == size) {
            return share(at + same, item + same, count - same);
        }
        while (base.ends()[at + index] - begin <= i) {
            ++index;
        }
        share(at + same, item + same, index - same);
        others.push_back(static_cast<std::uint32_t>(item + index));
        i = base.ends()[at + index] - begin;
        same = index + 1;
    }
}

void SharedItems::find(const SnapshotView& base, const SnapshotView& items) {
    runs.clear();
    others.clear();
    const auto base_keys = base.keys();
    const auto keys = items.keys();
    std::size_t at = 0; // in the base
    for (std::size_t i = 0; i < keys.size();) {
        while (at < base_keys.size() && base_keys[at] < keys[i]) {
            ++at;
        }
        if (at == base_keys.size() || base_keys[at] != keys[i]) {
            others.push_back(static_cast<std::uint32_t>(i));
            ++i;
            continue;
        }
        const std::uint32_t distance = begin_of(base, at) - begin_of(items, i);
        std::size_t count = same_run(base, at, items, i, distance);
        if (count == 0) { // of another size
            others.push_back(static_cast<std::uint32_t>(i));
            count = 1;
        } else {
            compare(base, at, items, i, count);
        }
        at += count;
        i += count;
    }
}

} // namespace tw::game
