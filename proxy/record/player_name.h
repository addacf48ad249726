#pragma once

#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::record {

/// Ints at the front of a client_info that hold the player's name.
inline constexpr std::size_t kPlayerNameInts = 4;

/// Text as servers pack it in ints.
struct PackedText {
    std::span<const std::int32_t> ints; ///< at most snapshot::kMaxStringInts
};

/// The name in a client_info; of a shorter one what is there.
[[nodiscard]] constexpr PackedText name_in(std::span<const std::int32_t> client_info) {
    return {client_info.first(client_info.size() < kPlayerNameInts ? client_info.size()
                                                                   : kPlayerNameInts)};
}

/// The name of the player with this client id; nothing when the snapshot does not tell it.
[[nodiscard]] inline std::optional<PackedText> player_name(const snapshot::SnapshotView& items,
                                                           std::uint16_t client) {
    const auto info = items.find({snapshot::kClientInfoType, client});
    return info ? std::optional{name_in(items[*info].data)} : std::nullopt;
}

} // namespace tw::record
