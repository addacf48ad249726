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

/// An object with a type number. The names of its fields show where its position (for a laser, the
/// end of its line) and a client id are.
constexpr ObjectSpec numbered(std::uint16_t type, std::string_view name,
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

constexpr ObjectSpec by_uuid(std::string_view name, std::string_view uuid_name,
                             std::string_view uuid, std::uint8_t min_size,
                             std::span<const FieldSpec> fields) {
    ObjectSpec object = numbered(0, name, fields);
    object.uuid = parse_uuid(uuid);
    object.uuid_name = uuid_name;
    object.size = std::max(object.size, min_size); // the fields of one object are not known
    object.min_size = min_size;
    return object;
}

constexpr ObjectSpec event(ObjectSpec object) {
    object.kind = ObjectKind::event;
    return object;
}

/// Marks an object whose position is in hundredths of world units.
constexpr ObjectSpec in_hundredths(ObjectSpec object) {
    object.position->per_unit = 100;
    return object;
}

/// Marks an object whose id is a client id.
constexpr ObjectSpec of_client(ObjectSpec object) {
    object.client = ClientIdSpec{};
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

/// Marks an object whose items lack some values if the server hides their owner from the receiving
/// client. Merging prefers an item with an owner.
constexpr ObjectSpec prefer_known_client(ObjectSpec object) {
    object.merge.prefer_known_client = true;
    return object;
}

/// Marks an object of 0.7 that has a type number.
constexpr ObjectSpec of_seven(ObjectSpec object) {
    object.dialect = Dialect::seven;
    return object;
}

/// Marks a 0.7 object that also exists in 0.6. `six`: its name in 0.6; empty if the name is the
/// same.
constexpr ObjectSpec also_in_six(ObjectSpec object, std::string_view six = {}) {
    object = of_seven(object);
    object.merge.six_name = six.empty() ? object.name : six;
    return object;
}

/// Marks a 0.7 object whose content is part of other objects in 0.6.
constexpr ObjectSpec covered_by_six(ObjectSpec object) {
    object = of_seven(object);
    object.merge.covered_by_six = true;
    return object;
}

// The 0.6 object with type number n is at index n - 1.
constexpr std::array kObjects{
    numbered(1, "player_input", kPlayerInput),
    form_of(ObjectFamily::projectile, 2, numbered(kProjectileType, "projectile", kProjectile)),
    form_of(ObjectFamily::laser, 1, numbered(kLaserType, "laser", kLaser)),
    form_of(ObjectFamily::pickup, 1, numbered(4, "pickup", kPickup)),
    numbered(5, "flag", kFlag),
    numbered(6, "game_info", kGameInfo),
    numbered(7, "game_data", kGameData),
    numbered(8, "character_core", std::span{kCharacter}.first(15)),
    of_client(numbered(kCharacterType, "character", kCharacter)),
    numbered(kPlayerInfoType, "player_info", kPlayerInfo),
    numbered(kClientInfoType, "client_info", kClientInfo),
    per_session(numbered(kSpectatorInfoType, "spectator_info", kSpectatorInfo)),
    event(numbered(13, "common", kPlace)),
    event(numbered(14, "explosion", kPlace)),
    event(numbered(15, "spawn", kPlace)),
    event(numbered(16, "hammer_hit", kPlace)),
    event(numbered(kDeathType, "death", kDeath)),
    event(numbered(18, "sound_global", kSoundGlobal)),
    event(numbered(19, "sound_world", kSoundGlobal)),
    event(numbered(20, "damage_ind", kDamageInd)),
    by_uuid("my_own_object", "my-own-object@heinrich5991.de",
            "0dc77a02-bfee-3a53-ac8e-0bb0241bd722", 1, kTest),
    of_client(by_uuid("ddnet_character", "character@netobj.ddnet.tw",
                      "76ce455b-f9eb-3a48-add7-e04b941d045c", 0, kDdnetCharacter)),
    of_client(by_uuid("ddnet_player", "player@netobj.ddnet.tw",
                      "22ca938d-1380-3e2b-9e7b-d2558ea6be11", 2, kDdnetPlayer)),
    by_uuid("game_info_ex", "gameinfo@netobj.ddnet.tw", "933dea6a-da79-30ea-a98f-8af03689a945", 0,
            kGameInfoEx),
    form_of(ObjectFamily::projectile, 1,
            in_hundredths(by_uuid("ddrace_projectile", "projectile@netobj.ddnet.tw",
                                  "0e6db85c-2b61-386f-bbf2-d0d0471b9272", 6, kDdraceProjectile))),
    form_of(ObjectFamily::laser, 0,
            by_uuid("ddnet_laser", "laser@netobj.ddnet.tw", "29de68a2-6928-31b8-8360-a2307e0d844f",
                    7, kDdnetLaser)),
    form_of(ObjectFamily::projectile, 0,
            prefer_known_client(in_hundredths(
                by_uuid("ddnet_projectile", "ddnet-projectile@netobj.ddnet.tw",
                        "6550fbce-f317-3b31-8ffe-d2b37f3ab40e", 10, kDdnetProjectile)))),
    form_of(ObjectFamily::pickup, 0,
            by_uuid("ddnet_pickup", "pickup@netobj.ddnet.tw",
                    "ea5e4a51-58fb-3684-96e4-e0d267f4ca65", 5, kDdnetPickup)),
    per_session(by_uuid("ddnet_spectator_info", "spectator-info@netobj.ddnet.org",
                        "d13307b2-9a19-37cb-8f8c-07c718521883", 4, kDdnetSpectatorInfo)),
    per_session(by_uuid("spectator_count", "spectator-count@netobj.ddnet.org",
                        "5e5ca96f-c728-30fd-bfb3-155b07692556", 1, kSpectatorCount)),
    event(by_uuid("birthday", "birthday@netevent.ddnet.org", "1fd35746-6263-358c-b4d6-6ef60e0efaaa",
                  2, kPlace)),
    event(by_uuid("finish", "finish@netevent.ddnet.org", "68bf8939-ef55-3878-9082-13527eb0a597", 2,
                  kPlace)),
    by_uuid("my_own_event", "my-own-event@heinrich5991.de", "0c4fd27d-47e3-3871-a226-9f417486a311",
            1, kTest),
    of_client(by_uuid("spec_char", "spec-char@netobj.ddnet.tw",
                      "4b801c74-e24c-3ce0-b92c-b754d02cfc8a", 2, kPlace)),
    by_uuid("switch_state", "switch-state@netobj.ddnet.tw", "ec15e669-ce11-3367-ae8e-b90e5b27b9d5",
            0, kSwitchState),
    by_uuid("entity_ex", "entity-ex@netobj.ddnet.tw", "2de9aec3-32e4-3986-8f7e-e7459da7f535", 3,
            kEntityEx),
    by_uuid("map_best_time", "map-best-time@netobj.ddnet.org",
            "9ebfc6ed-bf50-30ca-988a-0ce8921ad85f", 2, kMapBestTime),
    event(by_uuid("map_sound_world", "map-sound-world@netevent.ddnet.org",
                  "54ecad2e-bfad-3be5-8903-621ba052458e", 3, kMapSoundWorld)),
    // The next two objects are obsolete, but old servers still send them.
    of_client(by_uuid("auth_info", "auth-info@netobj.ddnet.tw",
                      "e525322e-d4d3-3397-9577-3a6b992435fb", 1, kAuthInfo)),
    of_client(by_uuid("character_display_info", "character-display-info@netobj.ddnet.tw",
                      "e7b431e5-dee0-3e5f-9224-2c95efb38878", 5, {})),
    // The objects of 0.7, sorted by type number from 1 on. Types 13 to 15 occur in demos only.
    also_in_six(numbered(1, "player_input", seven::kPlayerInput)),
    also_in_six(form_of(ObjectFamily::projectile, 2, numbered(2, "projectile", kProjectile))),
    also_in_six(form_of(ObjectFamily::laser, 1, numbered(3, "laser", kLaser))),
    also_in_six(form_of(ObjectFamily::pickup, 1, numbered(4, "pickup", seven::kPickup))),
    also_in_six(numbered(5, "flag", kFlag)),
    covered_by_six(numbered(6, "game_data", seven::kGameData)),
    also_in_six(numbered(7, "game_data_team", seven::kGameDataTeam), "game_data"),
    also_in_six(numbered(8, "game_data_flag", seven::kGameDataFlag), "game_data"),
    also_in_six(numbered(9, "character_core", std::span{seven::kCharacter}.first(15))),
    also_in_six(of_client(numbered(kSevenCharacterType, "character", seven::kCharacter))),
    also_in_six(of_client(numbered(kSevenPlayerInfoType, "player_info", seven::kPlayerInfo))),
    also_in_six(per_session(of_client(numbered(12, "spectator_info", seven::kSpectatorInfo)))),
    covered_by_six(of_client(numbered(13, "de_client_info", seven::kDeClientInfo))),
    covered_by_six(numbered(14, "de_game_info", seven::kDeGameInfo)),
    covered_by_six(numbered(15, "de_tune_params", seven::kDeTuneParams)),
    also_in_six(event(numbered(16, "common", kPlace))),
    also_in_six(event(numbered(17, "explosion", kPlace))),
    also_in_six(event(numbered(18, "spawn", kPlace))),
    also_in_six(event(numbered(19, "hammer_hit", kPlace))),
    also_in_six(event(numbered(kSevenDeathType, "death", kDeath))),
    also_in_six(event(numbered(21, "sound_world", kSoundGlobal))),
    also_in_six(event(numbered(22, "damage", seven::kDamage)), "damage_ind"),
    of_client(of_seven(numbered(23, "player_info_race", seven::kPlayerInfoRace))),
    of_seven(numbered(24, "game_data_race", seven::kGameDataRace)),
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
