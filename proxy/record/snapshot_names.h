#pragma once

#include "proxy/record/player_name.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"

#include <cstdint>
#include <optional>

/// What depends on the dialect a snapshot is of.
namespace tw::record {

[[nodiscard]] inline snapshot::Dialect dialect_of(const SnapshotRecord& record) {
    return record.types == nullptr ? snapshot::Dialect::six : record.types->dialect();
}

/// The name of the player with this client id: from the snapshot in 0.6, from the messages before
/// it in 0.7. Nothing when neither tells it.
[[nodiscard]] inline std::optional<PackedText> player_name(const SnapshotRecord& record,
                                                           std::uint16_t client) {
    return record.roster != nullptr ? record.roster->name(client)
                                    : player_name(record.items, client);
}

} // namespace tw::record
