#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/record/schema.h"
#include "snapshot/item.h"
#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::record {

/// Returns whether the id in an item's key is a client id.
[[nodiscard]] inline bool has_client_id(const snapshot::ObjectSpec& object, snapshot::ItemKey key) {
    return (object.client && !object.client->field) || key.type == snapshot::kPlayerInfoType ||
           key.type == snapshot::kClientInfoType;
}

/// Returns whether a message field with the given name holds a client id.
[[nodiscard]] inline bool is_client_id_field(std::string_view field) {
    constexpr std::array<std::string_view, 4> kFields{"client_id", "killer", "victim", "first"};
    return std::ranges::find(kFields, field) != kFields.end();
}

/// Which client ids in items renumber_clients() replaces.
enum class ClientIdScope : std::uint8_t {
    /// Only client ids that servers translate for each client: all except those of flag carriers
    /// and spectated players.
    translated,
    all,
};

/// Returns the index of the int whose low byte holds the owner's client id in a projectile of an
/// older format; nullopt for any other item. Bit 8 of this int means "no owner".
[[nodiscard]] inline std::optional<std::size_t>
find_packed_owner(const snapshot::ObjectSpec& object, std::span<const std::int32_t> data) {
    constexpr std::size_t kData = 3;
    constexpr std::uint8_t kHundredths = 100;
    const bool is_older =
        object.merge.family == snapshot::ObjectFamily::projectile && object.merge.form != 0;
    const auto position = is_older ? snapshot::position_of(object, data) : std::nullopt;
    return position && position->per_unit == kHundredths && data.size() > kData
               ? std::optional{kData}
               : std::nullopt;
}

/// Returns the int found by find_packed_owner() with its client id `id` replaced by `to(id)`, or by
/// "no owner" if `to(id)` is nullopt.
template <typename To>
[[nodiscard]] std::int32_t renumber_packed_owner(std::int32_t data, const To& to) {
    constexpr std::uint32_t kIdBits = 0xff;
    constexpr std::uint32_t kNobody = 0x100;
    const auto bits = static_cast<std::uint32_t>(data);
    if ((bits & kNobody) != 0) {
        return data;
    }
    const std::optional<std::uint16_t> id = to(static_cast<std::int32_t>(bits & kIdBits));
    const std::uint32_t owner = id && *id <= kIdBits ? std::uint32_t{*id} : kNobody;
    return static_cast<std::int32_t>((bits & ~kIdBits) | owner);
}

/// Replaces each client id `id` of an item by `to(id)`. If `to(id)` is nullopt, the field becomes
/// -1, which means no client, an unknown flag carrier, or a spectator's free view. Returns false if
/// `to` returns nullopt for the client id in the item's key.
template <typename To>
[[nodiscard]] bool renumber_clients(const snapshot::ObjectSpec& object, snapshot::ItemKey& key,
                                    std::span<std::int32_t> data, ClientIdScope scope,
                                    const To& to) {
    if (has_client_id(object, key)) {
        const std::optional<std::uint16_t> id = to(std::int32_t{key.id});
        if (!id) {
            return false;
        }
        key.id = *id;
    }
    if (const auto owner = find_packed_owner(object, data)) {
        data[*owner] = renumber_packed_owner(data[*owner], to);
    }
    for (const snapshot::FieldSpec& field : object.fields) {
        if (field.offset >= data.size()) {
            continue;
        }
        std::int32_t& value = data[field.offset];
        const bool may_name = field.names == &snapshot::names::flag_carrier_special ||
                              field.names == &snapshot::names::spectator_special;
        if (field.merge == snapshot::FieldMerge::client ||
            (may_name && value >= 0 && scope == ClientIdScope::all)) {
            const std::optional<std::uint16_t> id = to(value);
            value = id ? std::int32_t{*id} : -1;
        }
    }
    return true;
}

// The keys of an element of a record's `items`, and of its position (key `at`). The texts of the
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
    schema(merged(kNumberedTileSchema<map::Layer::switch_, map::SwitchTile>,
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

/// An item that is written as an element of a record's `items`.
struct RecordItem {
    const SnapshotRecord* record;
    snapshot::ItemView item;
    const snapshot::ObjectSpec* object; ///< null if the type is unknown
};

/// Returns the name of an item's type; empty if the type is unknown.
constexpr std::string_view type_name(std::uint16_t type, const snapshot::ObjectSpec* object) {
    if (object != nullptr) {
        return object->name;
    }
    return type == snapshot::kDescriptorType ? "descriptor" : "";
}

/// Returns the UUID of an item's type; nullopt if the type has no UUID or the UUID is unknown.
inline std::optional<snapshot::Uuid>
type_uuid(std::uint16_t type, const snapshot::ObjectSpec* object, const TypeNames* types) {
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
    kWrittenWithItems);
inline constexpr auto kItemNames =
    key("names", "Names of enum values and flag bits, under the same keys.", kWrittenWithItems);
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
    key("seen_by", "In a `world`: the sessions that saw it.", kWrittenWithItems);
inline constexpr auto kItemAt = key("at", "Its position.", kWrittenWithItems);
inline constexpr auto kItemData = key(
    "data",
    "The raw ints: with `--items raw`, and always where the type is unknown or longer than known.",
    kWrittenWithItems);

inline constexpr auto kItemSchema =
    schema(kItemType, kItemUuid, kItemTypeId, kItemId, kItemFields, kItemNames, kItemPlayer,
           kItemIdKind, kItemSeenBy, kItemAt, kItemData);

} // namespace tw::record
