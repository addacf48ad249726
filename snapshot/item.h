#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tw::snapshot {

/// A time of the server, in 1/50 s. Ticks start again at each map change.
using Tick = std::int32_t;

/// The base tick of a full snapshot, which has no base.
inline constexpr Tick kNoBase = -1;

/// Limits of 0.6 snapshots, in vanilla and DDNet.
inline constexpr std::int32_t kMaxItemType = 0x7fff;
inline constexpr std::int32_t kMaxItemId = 0xffff;
inline constexpr std::size_t kMaxItems = 1024;
/// The maximum size of a snapshot. Game programs count 8 bytes, plus 8 for each item (offset and
/// key) and 4 for each int.
inline constexpr std::size_t kMaxSnapshotBytes = 65536;
/// The first type number that stands for a UUID. A descriptor item in the snapshot contains the
/// UUID.
inline constexpr std::uint16_t kFirstUuidType = 0x4000;
/// The type of descriptor items. The id of a descriptor item is a type number; its ints are the
/// UUID of that type.
inline constexpr std::uint16_t kDescriptorType = 0;

/// Identifies an item in a snapshot. Keys are ordered by type, then by id.
struct ItemKey {
    std::uint16_t type = 0;
    std::uint16_t id = 0;

    [[nodiscard]] static constexpr ItemKey from_packed(std::uint32_t packed) {
        return {static_cast<std::uint16_t>(packed >> 16U), static_cast<std::uint16_t>(packed)};
    }

    /// Returns the key as one int, as in messages: type * 65536 + id.
    [[nodiscard]] constexpr std::uint32_t packed() const {
        return static_cast<std::uint32_t>(type) << 16U | id;
    }

    friend constexpr auto operator<=>(const ItemKey&, const ItemKey&) = default;
};

/// Whether two lists of ints are equal. Compares bytes, which is several times as fast as
/// std::equal.
[[nodiscard]] inline bool same_ints(std::span<const std::int32_t> left,
                                    std::span<const std::int32_t> right) {
    return left.size() == right.size() &&
           (left.empty() || std::memcmp(left.data(), right.data(), left.size_bytes()) == 0);
}

/// A view of one item of a snapshot.
struct ItemView {
    ItemKey key;
    std::span<const std::int32_t> data;
};

} // namespace tw::snapshot
