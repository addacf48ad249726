#pragma once

#include "proxy/inspect/legacy.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// A legacy takes no more bytes than this: of more snapshots the oldest are left out. Usual are some
/// ten thousand.
inline constexpr std::size_t kMaxEncodedLegacy = std::size_t{4} << 20U;

/// Writes a legacy for another observer, of this run or of one in years, on any machine.
///
/// Layout:  varints; texts and data with their length before them. The version, the dialect; the
///          connection's form, token, client version; the map; who plays; parts; then snapshots, the
///          newest first, each as it differs from the one before: the step back in ticks (the first:
///          the tick itself plus one; 0: there are no more), the number of items, and of each the step
///          to its key, then 0 where it is as it was, or one more than its size and its ints, less
///          those that an item of this key and size had.
[[nodiscard]] std::vector<std::byte> encode_legacy(const Legacy& legacy);

/// Nothing for bytes of another version, and for those that no encode_legacy wrote. What it gives is
/// sound, and takes some 16 MiB at most.
[[nodiscard]] std::optional<Legacy> decode_legacy(std::span<const std::byte> bytes);

} // namespace tw::inspect
