#include "tests/support/random_world.h"

#include "snapshot/objects.h"

#include <array>
#include <iterator>
#include <utility>
#include <vector>

namespace tw::test {

namespace {

constexpr std::uint16_t kUuidTypes = 4;

std::size_t size_of(snapshot::ItemKey key) {
    if (key.type == snapshot::kDescriptorType) {
        return 4;
    }
    constexpr std::size_t kSizes = 12;
    const std::size_t agreed = snapshot::agreed_size(key.type, snapshot::kAgreedSizes);
    return agreed != 0 ? agreed : (key.type + std::size_t{key.id}) % kSizes;
}

} // namespace

snapshot::ItemKey RandomWorld::random_key() {
    constexpr std::size_t kIds = 400;
    constexpr std::uint16_t kAgreedTypes = 20;
    const auto number = [this](std::size_t first, std::size_t count) {
        return static_cast<std::uint16_t>(first + choose_(count));
    };
    switch (choose_(8)) {
    case 0: // names a type
        return {snapshot::kDescriptorType, number(snapshot::kFirstUuidType, kUuidTypes)};
    case 1:
        return {number(snapshot::kFirstUuidType, kUuidTypes), number(0, kIds)};
    case 2: // a type without an agreed size
        return {number(kAgreedTypes + 1, 100), number(0, kIds)};
    case 3: // the limits of a key
        return {number(snapshot::kMaxItemType - 1, 2), number(snapshot::kMaxItemId - 1, 2)};
    default:
        return {number(1, kAgreedTypes), number(0, kIds)};
    }
}

std::int32_t RandomWorld::random_value() {
    constexpr std::size_t kSmall = 2000;
    constexpr std::size_t kHalf = std::size_t{1} << 16U;
    if (choose_(4) != 0) {
        return static_cast<std::int32_t>(choose_(kSmall)) - static_cast<std::int32_t>(kSmall / 2);
    }
    return static_cast<std::int32_t>(choose_(kHalf) << 16U | choose_(kHalf));
}

void RandomWorld::change_one_item() {
    const snapshot::ItemKey key = random_key();
    const auto there = items_.find(key);
    if (there == items_.end()) {
        const std::size_t size = size_of(key);
        if (items_.size() == snapshot::kMaxItems || num_ints_ + size > kMaxInts) {
            return;
        }
        std::vector<std::int32_t> data(size);
        for (std::int32_t& value : data) {
            value = random_value();
        }
        num_ints_ += size;
        items_.emplace(key, std::move(data));
    } else if (choose_(3) == 0) {
        num_ints_ -= there->second.size();
        items_.erase(there);
    } else if (!there->second.empty()) {
        there->second[choose_(there->second.size())] = random_value();
    }
}

void RandomWorld::step() {
    constexpr std::array<std::size_t, 8> kChanges{0, 1, 2, 5, 10, 20, 60, 900};
    for (std::size_t left = kChanges.at(choose_(choose_(4) == 0 ? 8 : 6)); left > 0; --left) {
        change_one_item();
    }
    // Changes existing items.
    for (std::size_t left = items_.empty() ? 0 : choose_(12); left > 0; --left) {
        const auto at =
            std::next(items_.begin(), static_cast<std::ptrdiff_t>(choose_(items_.size())));
        if (!at->second.empty()) {
            at->second[choose_(at->second.size())] = random_value();
        }
    }
}

} // namespace tw::test
