#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace tw::snapshot {

/// The server's time, in 1/50 s. It starts again at each map change.
using Tick = std::int32_t;

/// The base tick of a full snapshot, which has no base.
inline constexpr Tick kNoBase = -1;

/// Limits of 0.6 snapshots, in vanilla and DDNet.
inline constexpr std::int32_t kMaxItemType = 0x7fff;
inline constexpr std::int32_t kMaxItemId = 0xffff;
inline constexpr std::size_t kMaxItems = 1024;
/// Limit of a snapshot's size. The reference counts 8 bytes, plus for each item 4 (offset), 4 (key) and
/// 4 for each int.
inline constexpr std::size_t kMaxSnapshotBytes = 65536;
/// A type from this number on stands for a UUID, which a descriptor item defines.
inline constexpr std::uint16_t kFirstUuidType = 0x4000;
/// Type of the descriptor items. A descriptor item defines the UUID of the type that is its id.
inline constexpr std::uint16_t kDescriptorType = 0;

/// Identifies an item in a snapshot. Ordered by type, then id.
struct ItemKey {
    std::uint16_t type = 0;
    std::uint16_t id = 0;

    [[nodiscard]] static constexpr ItemKey from_packed(std::uint32_t packed) {
        return {static_cast<std::uint16_t>(packed >> 16U), static_cast<std::uint16_t>(packed)};
    }

    /// The key as messages contain it: type * 65536 + id.
    [[nodiscard]] constexpr std::uint32_t packed() const {
        return static_cast<std::uint32_t>(type) << 16U | id;
    }

    friend constexpr auto operator<=>(const ItemKey&, const ItemKey&) = default;
};

/// Whether the ints are equal. Compares bytes, which is several times as fast as comparing ints.
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
