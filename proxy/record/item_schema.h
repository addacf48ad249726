#pragma once

#include "proxy/record/client_ids.h"
#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/record/schema.h"
#include "snapshot/item.h"
#include "snapshot/objects.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::record {

// The keys of an element of `items`, and of the element's position (key `at`). The texts of the
// keys are computed at compile time, because most of the output consists of items.

/// Returns a pointer to the tile; null if the tile is air.
template <typename Tile>
constexpr const Tile* tile_unless_air(const Tile& tile) {
    return tile.index == map::kTileAir ? nullptr : &tile;
}

inline constexpr auto kFrontSchema =
    schema(key("type", "The tile's name.",
               [](const map::Location& at) { return map::tile_name(map::Layer::front, at.front); }),
           key("index", "The tile's number in the layer.", &map::Location::front));

template <map::Layer kLayer, typename Tile>
inline constexpr auto kNumberedTileSchema =
    schema(key("type", "The tile's name.",
               [](const Tile& tile) { return map::tile_name(kLayer, tile.index); }),
           key("index", "The tile's number in the layer.", &Tile::index),
           key("number", "Which teleporter, switch or tune zone.", &Tile::number));

inline constexpr auto kSpeedupSchema =
    schema(key("force", "How strongly it pushes.", &map::SpeedupTile::force),
           key("max_speed", "The speed it pushes up to.", &map::SpeedupTile::max_speed),
           key("angle", "Where it pushes, in degrees.", &map::SpeedupTile::angle));

inline constexpr auto kSwitchSchema =
    schema(inlined(kNumberedTileSchema<map::Layer::switch_, map::SwitchTile>,
                   [](const map::SwitchTile& tile) { return &tile; }),
           key("delay", "Seconds, of a timed switch.", &map::SwitchTile::delay));

inline constexpr auto kPlaceSchema = schema(
    key("x", "In world units, 32 per tile.", [](const map::Location& at) { return at.position.x; }),
    key("y", "In world units, downwards.", [](const map::Location& at) { return at.position.y; }),
    key("tile", "The tile, `[x, y]`; `tile.x` and `tile.y` in filters.",
        [](const map::Location& at) {
            return NumberPair{at.tile.x, at.tile.y};
        }),
    key("game", "The name of the tile in the game layer; empty if unknown.",
        [](const map::Location& at) { return map::tile_name(map::Layer::game, at.game); }),
    key("index", "That tile's number.", &map::Location::game),
    object("front", "In the front layer, where it is not air there.", kFrontSchema,
           [](const map::Location& at) { return at.front == map::kTileAir ? nullptr : &at; }),
    object("tele", "In the tele layer, where it is not air there.",
           kNumberedTileSchema<map::Layer::tele, map::TeleTile>,
           [](const map::Location& at) { return tile_unless_air(at.tele); }),
    object("speedup", "In the speedup layer, where it is not air there.", kSpeedupSchema,
           [](const map::Location& at) { return tile_unless_air(at.speedup); }),
    object("switch", "In the switch layer, where it is not air there.", kSwitchSchema,
           [](const map::Location& at) { return tile_unless_air(at.switch_); }),
    object("tune", "In the tune layer, where it is not air there.",
           kNumberedTileSchema<map::Layer::tune, map::TuneTile>,
           [](const map::Location& at) { return tile_unless_air(at.tune); }));

/// Returns the name of an item's type; empty if the type is unknown.
constexpr std::string_view type_name(std::uint16_t type, const snapshot::ObjectSpec* object) {
    if (object != nullptr) {
        return object->name;
    }
    return type == snapshot::kDescriptorType ? "descriptor" : "";
}

/// Returns the UUID of an item's type; nullopt if the type has no UUID or the UUID is unknown.
inline std::optional<snapshot::Uuid>
type_uuid(std::uint16_t type, const snapshot::ObjectSpec* object, const ItemTypes* types) {
    if (object != nullptr) {
        return object->type == 0 ? std::optional{object->uuid} : std::nullopt;
    }
    const auto* entry = types == nullptr ? nullptr : types->find(type);
    return entry == nullptr ? std::nullopt : std::optional{entry->uuid};
}

/// Returns who assigned an item's client id, which is the item's id or one of its fields. Returns
/// IdKind::server for an item without a client id, and for a snapshot that is not a world.
inline IdKind id_kind(const SnapshotRecord& record, const snapshot::ObjectSpec* object,
                      const snapshot::ItemView& item) {
    if (object == nullptr || record.sightings == nullptr || record.sightings->id_kinds.empty()) {
        return IdKind::server;
    }
    const auto client = has_client_id(*object, item.key)
                            ? std::optional{item.key.id}
                            : snapshot::client_of(*object, item.key, item.data);
    return client ? record.sightings->id_kind(*client) : IdKind::server;
}

inline constexpr auto kItemType =
    key("type",
        "`character`, `player_info`, …; `descriptor` for the items that name UUID types; empty if "
        "unknown.",
        [](const RecordItem& i) { return type_name(i.item.key.type, i.object); });
inline constexpr auto kItemUuid = key("uuid", "Of types with a UUID.", [](const RecordItem& i) {
    return type_uuid(i.item.key.type, i.object, i.record->types);
});
inline constexpr auto kItemTypeId = key(
    "type_id", "As on the wire. Numbers of UUID types are valid only within one server process.",
    [](const RecordItem& i) { return i.item.key.type; });
inline constexpr auto kItemId =
    key("id", "As on the wire.", [](const RecordItem& i) { return i.item.key.id; });
inline constexpr auto kItemFields = key(
    "fields", "Named, in order; an older server may send fewer. Text packed into ints is unpacked.",
    kGetFromItemWriter);
inline constexpr auto kItemNames =
    key("names", "Names of enum values and flag bits, under the same keys.", kGetFromItemWriter);
inline constexpr auto kItemPlayer = key(
    "player",
    "Of what belongs to a client (`character`, `player_info`, `ddnet_character`, a `death`, a shot "
    "with an `owner`, …): that player's name, if the snapshot, or in 0.7 an earlier message, "
    "contains it.",
    [](const RecordItem& i) -> std::optional<PackedText> {
        if (i.object == nullptr) {
            return std::nullopt;
        }
        const auto client = snapshot::client_of(*i.object, i.item.key, i.item.data);
        return client ? player_name(*i.record, *client) : std::nullopt;
    });
inline constexpr auto kItemIdKind = key(
    "id_kind",
    "In a `world`, of what belongs to a client whose number at the server is not known: `views` if "
    "the number is the one that the clients' views have, `twscope` if it is made up.",
    [](const RecordItem& i) -> std::optional<EnumWord<kIdKinds>> {
        const IdKind kind = id_kind(*i.record, i.object, i.item);
        return kind == IdKind::server ? std::nullopt
                                      : std::optional{EnumWord<kIdKinds>{id_kind_name(kind)}};
    });
inline constexpr auto kItemSeenBy =
    key("seen_by", "In a `world`: the sessions that saw it.", kGetFromItemWriter);
inline constexpr auto kItemAt = key("at", "Its position.", kGetFromItemWriter);
inline constexpr auto kItemData = key(
    "data",
    "The raw ints: with `--items raw`, and always where the type is unknown or longer than known.",
    kGetFromItemWriter);

inline constexpr auto kItemSchema =
    schema(kItemType, kItemUuid, kItemTypeId, kItemId, kItemFields, kItemNames, kItemPlayer,
           kItemIdKind, kItemSeenBy, kItemAt, kItemData);

} // namespace tw::record
