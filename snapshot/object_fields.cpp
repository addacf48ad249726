// The table of objects. Their fields are in object_fields.h.

#include "snapshot/object_fields.h"

namespace tw::snapshot {

namespace {

using namespace fields;

constexpr auto kObject = ObjectKind::object;
constexpr auto kEvent = ObjectKind::event;
constexpr std::optional<PositionSpec> kNowhere;
constexpr std::optional<PositionSpec> kFirstInts{PositionSpec{0, 1, 1}};
constexpr std::optional<PositionSpec> kSecondInts{PositionSpec{1, 2, 1}};
constexpr std::optional<PositionSpec> kThirdInts{PositionSpec{2, 3, 1}};
constexpr std::optional<PositionSpec> kHundredths{PositionSpec{0, 1, 100}};

/// Returns the field whose name says that it contains a client id; nullopt if no field does.
constexpr std::optional<ClientSpec> client_field(std::span<const FieldSpec> fields) {
    for (const FieldSpec& field : fields) {
        if (field.name == "client_id" || field.name == "owner") {
            return ClientSpec{field.offset};
        }
    }
    return std::nullopt;
}

/// Marks an object whose id is a client id.
constexpr ObjectSpec of_client(ObjectSpec object) {
    object.client = ClientSpec{};
    return object;
}

/// Marks an object that describes the client that receives it.
constexpr ObjectSpec per_session(ObjectSpec object) {
    object.merge.per_session = true;
    return object;
}

constexpr ObjectSpec form_of(ObjectFamily family, std::uint8_t form, ObjectSpec object) {
    object.merge.family = family;
    object.merge.form = form;
    return object;
}

/// Marks an object whose items lack some values in the snapshots of clients that do not know the
/// owner of the item.
constexpr ObjectSpec prefer_known_client(ObjectSpec object) {
    object.merge.whole = true;
    return object;
}

constexpr ObjectSpec numbered(std::uint16_t type, std::string_view name, ObjectKind kind,
                              std::span<const FieldSpec> fields,
                              std::optional<PositionSpec> position) {
    const auto size = static_cast<std::uint8_t>(fields.back().offset + fields.back().count);
    return {type, {}, name, {}, kind, size, size, fields, position, client_field(fields)};
}

/// Marks an object of 0.7 that has a type number.
constexpr ObjectSpec of_seven(ObjectSpec object) {
    object.dialect = Dialect::seven;
    return object;
}

/// Marks a 0.7 object that also exists in 0.6. `six`: its name in 0.6; empty if the name is the
/// same.
constexpr ObjectSpec in_both(ObjectSpec object, std::string_view six = {}) {
    object = of_seven(object);
    object.merge.six = six.empty() ? object.name : six;
    return object;
}

/// Marks a 0.7 object whose content is part of other objects in 0.6.
constexpr ObjectSpec left_to_six(ObjectSpec object) {
    object.merge.six_tells = true;
    return object;
}

constexpr ObjectSpec by_uuid(std::string_view name, std::string_view uuid_name,
                             std::string_view uuid, ObjectKind kind, std::uint8_t size,
                             std::uint8_t min_size, std::span<const FieldSpec> fields,
                             std::optional<PositionSpec> position) {
    return {0,    parse_uuid(uuid), name,   uuid_name, kind,
            size, min_size,         fields, position,  client_field(fields)};
}

// The 0.6 object with type number n is at index n - 1. A global sound has no usable position.
constexpr std::array kObjects{
    numbered(1, "player_input", kObject, kPlayerInput, kNowhere),
    form_of(ObjectFamily::projectile, 2,
            numbered(kProjectileType, "projectile", kObject, kProjectile, kFirstInts)),
    form_of(ObjectFamily::laser, 1, numbered(kLaserType, "laser", kObject, kLaser, kFirstInts)),
    form_of(ObjectFamily::pickup, 1, numbered(4, "pickup", kObject, kPickup, kFirstInts)),
    numbered(5, "flag", kObject, kFlag, kFirstInts),
    numbered(6, "game_info", kObject, kGameInfo, kNowhere),
    numbered(7, "game_data", kObject, kGameData, kNowhere),
    numbered(8, "character_core", kObject, std::span{kCharacter}.first(15), kSecondInts),
    of_client(numbered(kCharacterType, "character", kObject, kCharacter, kSecondInts)),
    numbered(kPlayerInfoType, "player_info", kObject, kPlayerInfo, kNowhere),
    numbered(kClientInfoType, "client_info", kObject, kClientInfo, kNowhere),
    per_session(
        numbered(kSpectatorInfoType, "spectator_info", kObject, kSpectatorInfo, kSecondInts)),
    numbered(13, "common", kEvent, kPlace, kFirstInts),
    numbered(14, "explosion", kEvent, kPlace, kFirstInts),
    numbered(15, "spawn", kEvent, kPlace, kFirstInts),
    numbered(16, "hammer_hit", kEvent, kPlace, kFirstInts),
    numbered(kDeathType, "death", kEvent, kDeath, kFirstInts),
    numbered(18, "sound_global", kEvent, kSoundGlobal, kNowhere),
    numbered(19, "sound_world", kEvent, kSoundGlobal, kFirstInts),
    numbered(20, "damage_ind", kEvent, kDamageInd, kFirstInts),
    by_uuid("my_own_object", "my-own-object@heinrich5991.de",
            "0dc77a02-bfee-3a53-ac8e-0bb0241bd722", kObject, 1, 1, kTest, kNowhere),
    of_client(by_uuid("ddnet_character", "character@netobj.ddnet.tw",
                      "76ce455b-f9eb-3a48-add7-e04b941d045c", kObject, 11, 0, kDdnetCharacter,
                      kNowhere)),
    of_client(by_uuid("ddnet_player", "player@netobj.ddnet.tw",
                      "22ca938d-1380-3e2b-9e7b-d2558ea6be11", kObject, 4, 2, kDdnetPlayer,
                      kNowhere)),
    by_uuid("game_info_ex", "gameinfo@netobj.ddnet.tw", "933dea6a-da79-30ea-a98f-8af03689a945",
            kObject, 6, 0, kGameInfoEx, kNowhere),
    form_of(ObjectFamily::projectile, 1,
            by_uuid("ddrace_projectile", "projectile@netobj.ddnet.tw",
                    "0e6db85c-2b61-386f-bbf2-d0d0471b9272", kObject, 6, 6, kDdraceProjectile,
                    kHundredths)),
    form_of(ObjectFamily::laser, 0,
            by_uuid("ddnet_laser", "laser@netobj.ddnet.tw", "29de68a2-6928-31b8-8360-a2307e0d844f",
                    kObject, 10, 7, kDdnetLaser, kFirstInts)),
    form_of(ObjectFamily::projectile, 0,
            prefer_known_client(by_uuid("ddnet_projectile", "ddnet-projectile@netobj.ddnet.tw",
                                        "6550fbce-f317-3b31-8ffe-d2b37f3ab40e", kObject, 10, 10,
                                        kDdnetProjectile, kHundredths))),
    form_of(ObjectFamily::pickup, 0,
            by_uuid("ddnet_pickup", "pickup@netobj.ddnet.tw",
                    "ea5e4a51-58fb-3684-96e4-e0d267f4ca65", kObject, 6, 5, kDdnetPickup,
                    kFirstInts)),
    per_session(by_uuid("ddnet_spectator_info", "spectator-info@netobj.ddnet.org",
                        "d13307b2-9a19-37cb-8f8c-07c718521883", kObject, 5, 4, kDdnetSpectatorInfo,
                        kNowhere)),
    per_session(by_uuid("spectator_count", "spectator-count@netobj.ddnet.org",
                        "5e5ca96f-c728-30fd-bfb3-155b07692556", kObject, 1, 1, kSpectatorCount,
                        kNowhere)),
    by_uuid("birthday", "birthday@netevent.ddnet.org", "1fd35746-6263-358c-b4d6-6ef60e0efaaa",
            kEvent, 2, 2, kPlace, kFirstInts),
    by_uuid("finish", "finish@netevent.ddnet.org", "68bf8939-ef55-3878-9082-13527eb0a597", kEvent,
            2, 2, kPlace, kFirstInts),
    by_uuid("my_own_event", "my-own-event@heinrich5991.de", "0c4fd27d-47e3-3871-a226-9f417486a311",
            kObject, 1, 1, kTest, kNowhere),
    of_client(by_uuid("spec_char", "spec-char@netobj.ddnet.tw",
                      "4b801c74-e24c-3ce0-b92c-b754d02cfc8a", kObject, 2, 2, kPlace, kFirstInts)),
    by_uuid("switch_state", "switch-state@netobj.ddnet.tw", "ec15e669-ce11-3367-ae8e-b90e5b27b9d5",
            kObject, 17, 0, kSwitchState, kNowhere),
    by_uuid("entity_ex", "entity-ex@netobj.ddnet.tw", "2de9aec3-32e4-3986-8f7e-e7459da7f535",
            kObject, 3, 3, kEntityEx, kNowhere),
    by_uuid("map_best_time", "map-best-time@netobj.ddnet.org",
            "9ebfc6ed-bf50-30ca-988a-0ce8921ad85f", kObject, 2, 2, kMapBestTime, kNowhere),
    by_uuid("map_sound_world", "map-sound-world@netevent.ddnet.org",
            "54ecad2e-bfad-3be5-8903-621ba052458e", kEvent, 3, 3, kMapSoundWorld, kFirstInts),
    // The next two objects are obsolete, but old servers still send them.
    of_client(by_uuid("auth_info", "auth-info@netobj.ddnet.tw",
                      "e525322e-d4d3-3397-9577-3a6b992435fb", kObject, 1, 1, kAuthInfo, kNowhere)),
    of_client(by_uuid("character_display_info", "character-display-info@netobj.ddnet.tw",
                      "e7b431e5-dee0-3e5f-9224-2c95efb38878", kObject, 5, 5, {}, kNowhere)),
    // The objects of 0.7, sorted by type number from 1 on. Types 13 to 15 occur in demos only.
    in_both(numbered(1, "player_input", kObject, seven::kPlayerInput, kNowhere)),
    in_both(form_of(ObjectFamily::projectile, 2,
                    numbered(2, "projectile", kObject, kProjectile, kFirstInts))),
    in_both(form_of(ObjectFamily::laser, 1, numbered(3, "laser", kObject, kLaser, kFirstInts))),
    in_both(form_of(ObjectFamily::pickup, 1,
                    numbered(4, "pickup", kObject, seven::kPickup, kFirstInts))),
    in_both(numbered(5, "flag", kObject, kFlag, kFirstInts)),
    left_to_six(of_seven(numbered(6, "game_data", kObject, seven::kGameData, kNowhere))),
    in_both(numbered(7, "game_data_team", kObject, seven::kGameDataTeam, kNowhere), "game_data"),
    in_both(numbered(8, "game_data_flag", kObject, seven::kGameDataFlag, kNowhere), "game_data"),
    in_both(numbered(9, "character_core", kObject, std::span{seven::kCharacter}.first(15),
                     kSecondInts)),
    in_both(of_client(
        numbered(kSevenCharacterType, "character", kObject, seven::kCharacter, kSecondInts))),
    in_both(of_client(
        numbered(kSevenPlayerInfoType, "player_info", kObject, seven::kPlayerInfo, kNowhere))),
    in_both(per_session(
        of_client(numbered(12, "spectator_info", kObject, seven::kSpectatorInfo, kThirdInts)))),
    left_to_six(of_client(
        of_seven(numbered(13, "de_client_info", kObject, seven::kDeClientInfo, kNowhere)))),
    left_to_six(of_seven(numbered(14, "de_game_info", kObject, seven::kDeGameInfo, kNowhere))),
    left_to_six(of_seven(numbered(15, "de_tune_params", kObject, seven::kDeTuneParams, kNowhere))),
    in_both(numbered(16, "common", kEvent, kPlace, kFirstInts)),
    in_both(numbered(17, "explosion", kEvent, kPlace, kFirstInts)),
    in_both(numbered(18, "spawn", kEvent, kPlace, kFirstInts)),
    in_both(numbered(19, "hammer_hit", kEvent, kPlace, kFirstInts)),
    in_both(numbered(kSevenDeathType, "death", kEvent, kDeath, kFirstInts)),
    in_both(numbered(21, "sound_world", kEvent, kSoundGlobal, kFirstInts)),
    in_both(numbered(22, "damage", kEvent, seven::kDamage, kFirstInts), "damage_ind"),
    of_client(
        of_seven(numbered(23, "player_info_race", kObject, seven::kPlayerInfoRace, kNowhere))),
    of_seven(numbered(24, "game_data_race", kObject, seven::kGameDataRace, kNowhere)),
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
