#pragma once

#include "proxy/record/records.h"

#include <optional>
#include <string>

namespace tw::record {

/// The tee of the player a snapshot was made for.
struct LocalPlayer {
    std::string name;  ///< bytes as the server sent them; "#3" when it told no name
    std::string place; ///< "(50,32) air", "x=1600 y=1024" without a map, "not in the game"
};

/// Nothing when the snapshot does not say who receives it, or was not rebuilt.
[[nodiscard]] std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record);

} // namespace tw::record
