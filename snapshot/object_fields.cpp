// The table of objects. Their fields are in object_fields.h.

#include "snapshot/object_fields.h"

#include <algorithm>
#include <initializer_list>

namespace tw::snapshot {

namespace {

using namespace fields;

/// Returns the offset of the first field with one of these names.
constexpr std::optional<std::uint8_t> offset_of(std::span<const FieldSpec> fields,
                                                std::initializer_list<std::string_view> names) {
    for (const FieldSpec& field : fields) {
        if (std::ranges::find(names, field.name) != names.end()) {
            return field.offset;
        }
    }
    return std::nullopt;
}

/// Returns an object with a type number. Finds its position (for a laser, the end of its line) and
/// its client id by the names of the fields.
constexpr ObjectSpec object_with_number(std::uint16_t type, std::string_view name,
                                        std::span<const FieldSpec> fields) {
    const int size = fields.empty() ? 0 : fields.back().offset + fields.back().count;
    const auto x = offset_of(fields, {"x", "to_x"});
    const auto client = offset_of(fields, {"client_id", "owner"});
    ObjectSpec object{.type = type, .name = name, .fields = fields};
    object.size = static_cast<std::uint8_t>(size);
    object.min_size = object.size;
    if (x && name != "sound_global") { // a global sound has no usable position
        object.position = PositionSpec{*x, static_cast<std::uint8_t>(*x + 1)};
    }
    if (client) {
        object.client = ClientIdSpec{client};
    }
    return object;
}

constexpr ObjectSpec object_with_uuid(std::string_view name, std::string_view uuid_name,
                                      std::string_view uuid, std::uint8_t min_size,
                                      std::span<const FieldSpec> fields) {
    ObjectSpec object = object_with_number(0, name, fields);
    object.uuid = parse_uuid(uuid);
    object.uuid_name = uuid_name;
    object.size = std::max(object.size, min_size); // one object has no known fields
    object.min_size = min_size;
    return object;
}

constexpr ObjectSpec as_event(ObjectSpec object) {
    object.kind = ObjectKind::event;
    return object;
}

/// Marks an object whose position is in hundredths of world units.
constexpr ObjectSpec with_hundredths_position(ObjectSpec object) {
    object.position->per_unit = 100;
    return object;
}

/// Marks an object whose item ids are client ids.
constexpr ObjectSpec with_client_as_id(ObjectSpec object) {
    object.client = ClientIdSpec{};
    return object;
}

/// Marks an object that describes the receiving client.
constexpr ObjectSpec as_per_session(ObjectSpec object) {
    object.merge.per_session = true;
    return object;
}

constexpr ObjectSpec as_variant_of(ObjectFamily family, std::uint8_t variant, ObjectSpec object) {
    object.merge.family = family;
    object.merge.variant = variant;
    return object;
}

/// Marks an object whose items lack some values if the server hides their owner from the receiving
/// client. Merging prefers an item with an owner.
constexpr ObjectSpec with_known_client_preferred(ObjectSpec object) {
    object.merge.prefer_known_client = true;
    return object;
}

/// Marks an object of 0.7 that has a type number.
constexpr ObjectSpec with_seven_dialect(ObjectSpec object) {
    object.dialect = Dialect::seven;
    return object;
}

/// Marks a 0.7 object that also exists in 0.6. `six`: the object's name in 0.6; empty if it is the
/// same as in 0.7.
constexpr ObjectSpec with_six_counterpart(ObjectSpec object, std::string_view six = {}) {
    object = with_seven_dialect(object);
    object.merge.six_name = six.empty() ? object.name : six;
    return object;
}

/// Marks a 0.7 object whose content is part of other objects in 0.6.
constexpr ObjectSpec as_covered_by_six(ObjectSpec object) {
    object = with_seven_dialect(object);
    object.merge.covered_by_six = true;
    return object;
}

// The 0.6 object with type number n is at index n - 1.
constexpr std::array kObjects{
    object_with_number(1, "player_input", kPlayerInput),
    as_variant_of(ObjectFamily::projectile, 2,
                  object_with_number(kProjectileType, "projectile", kProjectile)),
    as_variant_of(ObjectFamily::laser, 1, object_with_number(kLaserType, "laser", kLaser)),
    as_variant_of(ObjectFamily::pickup, 1, object_with_number(4, "pickup", kPickup)),
    object_with_number(5, "flag", kFlag),
    object_with_number(6, "game_info", kGameInfo),
    object_with_number(7, "game_data", kGameData),
    object_with_number(8, "character_core", std::span{kCharacter}.first(15)),
    with_client_as_id(object_with_number(kCharacterType, "character", kCharacter)),
    object_with_number(kPlayerInfoType, "player_info", kPlayerInfo),
    object_with_number(kClientInfoType, "client_info", kClientInfo),
    as_per_session(object_with_number(kSpectatorInfoType, "spectator_info", kSpectatorInfo)),
    as_event(object_with_number(13, "common", kPositionFields)),
    as_event(object_with_number(14, "explosion", kPositionFields)),
    as_event(object_with_number(15, "spawn", kPositionFields)),
    as_event(object_with_number(16, "hammer_hit", kPositionFields)),
    as_event(object_with_number(kDeathType, "death", kDeath)),
    as_event(object_with_number(18, "sound_global", kSoundGlobal)),
    as_event(object_with_number(19, "sound_world", kSoundGlobal)),
    as_event(object_with_number(20, "damage_ind", kDamageInd)),
    object_with_uuid("my_own_object", "my-own-object@heinrich5991.de",
                     "0dc77a02-bfee-3a53-ac8e-0bb0241bd722", 1, kTest),
    with_client_as_id(object_with_uuid("ddnet_character", "character@netobj.ddnet.tw",
                                       "76ce455b-f9eb-3a48-add7-e04b941d045c", 0, kDdnetCharacter)),
    with_client_as_id(object_with_uuid("ddnet_player", "player@netobj.ddnet.tw",
                                       "22ca938d-1380-3e2b-9e7b-d2558ea6be11", 2, kDdnetPlayer)),
    object_with_uuid("game_info_ex", "gameinfo@netobj.ddnet.tw",
                     "933dea6a-da79-30ea-a98f-8af03689a945", 0, kGameInfoEx),
    as_variant_of(ObjectFamily::projectile, 1,
                  with_hundredths_position(object_with_uuid(
                      "ddrace_projectile", "projectile@netobj.ddnet.tw",
                      "0e6db85c-2b61-386f-bbf2-d0d0471b9272", 6, kDdraceProjectile))),
    as_variant_of(ObjectFamily::laser, 0,
                  object_with_uuid("ddnet_laser", "laser@netobj.ddnet.tw",
                                   "29de68a2-6928-31b8-8360-a2307e0d844f", 7, kDdnetLaser)),
    as_variant_of(ObjectFamily::projectile, 0,
                  with_known_client_preferred(with_hundredths_position(object_with_uuid(
                      "ddnet_projectile", "ddnet-projectile@netobj.ddnet.tw",
                      "6550fbce-f317-3b31-8ffe-d2b37f3ab40e", 10, kDdnetProjectile)))),
    as_variant_of(ObjectFamily::pickup, 0,
                  object_with_uuid("ddnet_pickup", "pickup@netobj.ddnet.tw",
                                   "ea5e4a51-58fb-3684-96e4-e0d267f4ca65", 5, kDdnetPickup)),
    as_per_session(object_with_uuid("ddnet_spectator_info", "spectator-info@netobj.ddnet.org",
                                    "d13307b2-9a19-37cb-8f8c-07c718521883", 4,
                                    kDdnetSpectatorInfo)),
    as_per_session(object_with_uuid("spectator_count", "spectator-count@netobj.ddnet.org",
                                    "5e5ca96f-c728-30fd-bfb3-155b07692556", 1, kSpectatorCount)),
    as_event(object_with_uuid("birthday", "birthday@netevent.ddnet.org",
                              "1fd35746-6263-358c-b4d6-6ef60e0efaaa", 2, kPositionFields)),
    as_event(object_with_uuid("finish", "finish@netevent.ddnet.org",
                              "68bf8939-ef55-3878-9082-13527eb0a597", 2, kPositionFields)),
    object_with_uuid("my_own_event", "my-own-event@heinrich5991.de",
                     "0c4fd27d-47e3-3871-a226-9f417486a311", 1, kTest),
    with_client_as_id(object_with_uuid("spec_char", "spec-char@netobj.ddnet.tw",
                                       "4b801c74-e24c-3ce0-b92c-b754d02cfc8a", 2, kPositionFields)),
    object_with_uuid("switch_state", "switch-state@netobj.ddnet.tw",
                     "ec15e669-ce11-3367-ae8e-b90e5b27b9d5", 0, kSwitchState),
    object_with_uuid("entity_ex", "entity-ex@netobj.ddnet.tw",
                     "2de9aec3-32e4-3986-8f7e-e7459da7f535", 3, kEntityEx),
    object_with_uuid("map_best_time", "map-best-time@netobj.ddnet.org",
                     "9ebfc6ed-bf50-30ca-988a-0ce8921ad85f", 2, kMapBestTime),
    as_event(object_with_uuid("map_sound_world", "map-sound-world@netevent.ddnet.org",
                              "54ecad2e-bfad-3be5-8903-621ba052458e", 3, kMapSoundWorld)),
    // The next two objects are obsolete, but old servers still send them.
    with_client_as_id(object_with_uuid("auth_info", "auth-info@netobj.ddnet.tw",
                                       "e525322e-d4d3-3397-9577-3a6b992435fb", 1, kAuthInfo)),
    with_client_as_id(object_with_uuid("character_display_info",
                                       "character-display-info@netobj.ddnet.tw",
                                       "e7b431e5-dee0-3e5f-9224-2c95efb38878", 5, {})),
    // The objects of 0.7, sorted by type number from 1 on. Types 13 to 15 occur in demos only.
    with_six_counterpart(object_with_number(1, "player_input", seven::kPlayerInput)),
    with_six_counterpart(as_variant_of(ObjectFamily::projectile, 2,
                                       object_with_number(2, "projectile", kProjectile))),
    with_six_counterpart(
        as_variant_of(ObjectFamily::laser, 1, object_with_number(3, "laser", kLaser))),
    with_six_counterpart(
        as_variant_of(ObjectFamily::pickup, 1, object_with_number(4, "pickup", seven::kPickup))),
    with_six_counterpart(object_with_number(5, "flag", kFlag)),
    as_covered_by_six(object_with_number(6, "game_data", seven::kGameData)),
    with_six_counterpart(object_with_number(7, "game_data_team", seven::kGameDataTeam),
                         "game_data"),
    with_six_counterpart(object_with_number(8, "game_data_flag", seven::kGameDataFlag),
                         "game_data"),
    with_six_counterpart(
        object_with_number(9, "character_core", std::span{seven::kCharacter}.first(15))),
    with_six_counterpart(
        with_client_as_id(object_with_number(kSevenCharacterType, "character", seven::kCharacter))),
    with_six_counterpart(with_client_as_id(
        object_with_number(kSevenPlayerInfoType, "player_info", seven::kPlayerInfo))),
    with_six_counterpart(as_per_session(
        with_client_as_id(object_with_number(12, "spectator_info", seven::kSpectatorInfo)))),
    as_covered_by_six(
        with_client_as_id(object_with_number(13, "de_client_info", seven::kDeClientInfo))),
    as_covered_by_six(object_with_number(14, "de_game_info", seven::kDeGameInfo)),
    as_covered_by_six(object_with_number(15, "de_tune_params", seven::kDeTuneParams)),
    with_six_counterpart(as_event(object_with_number(16, "common", kPositionFields))),
    with_six_counterpart(as_event(object_with_number(17, "explosion", kPositionFields))),
    with_six_counterpart(as_event(object_with_number(18, "spawn", kPositionFields))),
    with_six_counterpart(as_event(object_with_number(19, "hammer_hit", kPositionFields))),
    with_six_counterpart(as_event(object_with_number(kSevenDeathType, "death", kDeath))),
    with_six_counterpart(as_event(object_with_number(21, "sound_world", kSoundGlobal))),
    with_six_counterpart(as_event(object_with_number(22, "damage", seven::kDamage)), "damage_ind"),
    with_client_as_id(
        with_seven_dialect(object_with_number(23, "player_info_race", seven::kPlayerInfoRace))),
    with_seven_dialect(
        object_with_number(kSevenGameDataRaceType, "game_data_race", seven::kGameDataRace)),
};

constexpr bool agrees_with_sizes() {
    for (std::uint16_t type = 1; kAgreedSizes[type] != 0; ++type) {
        const ObjectSpec& object = kObjects[type - 1U];
        if (object.type != type || object.size != agreed_size(type, kAgreedSizes)) {
            return false;
        }
    }
    constexpr std::uint16_t kSevenTypes = 24;
    for (std::uint16_t type = 1; type <= kSevenTypes; ++type) {
        const ObjectSpec& object = kObjects[kObjects.size() - kSevenTypes + type - 1U];
        const std::size_t agreed = agreed_size(type, kSevenAgreedSizes);
        if (object.dialect != Dialect::seven || object.type != type ||
            (agreed != 0 && object.size != agreed)) {
            return false;
        }
    }
    return true;
}

static_assert(agrees_with_sizes());

} // namespace

std::span<const ObjectSpec> object_table() {
    return kObjects;
}

} // namespace tw::snapshot
