#include "proxy/record/local_player.h"

#include "proxy/record/roster.h"
#include "proxy/record/snapshot_names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tw::record {

namespace {

using snapshot::kPlayerInfoType;

std::string name_of(const SnapshotRecord& record, std::uint16_t client) {
    const auto name = player_name(record, client);
    if (!name) {
        return fmt::format("#{}", client);
    }
    std::array<char, 4 * kPlayerNameInts> text{};
    return {text.data(), snapshot::decode_int_string(name->ints, text)};
}

/// The client id of the receiver's own tee: the player_info that says "local".
std::optional<std::uint16_t> own_client(const snapshot::SnapshotView& items) {
    const auto keys = items.keys();
    const auto first = std::lower_bound(keys.begin(), keys.end(), kPlayerInfoType << 16U);
    for (auto at = first; at != keys.end() && *at >> 16U == kPlayerInfoType; ++at) {
        const auto item = items[static_cast<std::size_t>(at - keys.begin())];
        if (!item.data.empty() && item.data.front() != 0) {
            return item.key.id;
        }
    }
    return std::nullopt;
}

std::string place_of(const record::SnapshotRecord& record, std::uint16_t client) {
    const snapshot::Dialect dialect = dialect_of(record);
    const std::uint16_t type = snapshot::character_type(dialect);
    const auto character = record.items.find({type, client});
    const snapshot::ObjectSpec* spec =
        record.types == nullptr ? snapshot::find_object(type, dialect) : record.types->object(type);
    if (!character || spec == nullptr) {
        return "not in the game";
    }
    const auto data = record.items[*character].data;
    if (record.world != nullptr) {
        if (const auto place = record.world->place(*spec, data)) {
            return fmt::format("({},{}) {}", place->tile_x, place->tile_y, place->game);
        }
    }
    const auto position = record::world_position(*spec, data);
    return position ? fmt::format("x={} y={}", position->x, position->y) : "";
}

} // namespace

std::optional<LocalPlayer> local_player(const record::SnapshotRecord& record) {
    if (!record.rebuilt) {
        return std::nullopt;
    }
    const auto client = record.roster != nullptr ? record.roster->own() : own_client(record.items);
    if (!client) {
        return std::nullopt;
    }
    return LocalPlayer{.name = name_of(record, *client), .place = place_of(record, *client)};
}

} // namespace tw::record
