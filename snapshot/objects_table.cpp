// The table of objects: pure data.

#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <array>

namespace tw::snapshot {

namespace {

constexpr FieldSpec integer(std::string_view name, std::uint8_t offset) {
    return {name, FieldKind::integer, offset, 1, nullptr};
}

constexpr FieldSpec boolean(std::string_view name, std::uint8_t offset) {
    return {name, FieldKind::boolean, offset, 1, nullptr};
}

constexpr FieldSpec tick(std::string_view name, std::uint8_t offset) {
    return {name, FieldKind::tick, offset, 1, nullptr};
}

constexpr FieldSpec named(std::string_view name, std::uint8_t offset, const NameTable& names) {
    return {name, FieldKind::named, offset, 1, &names};
}

/// Powerups that are a weapon, or ninja: only these have a weapon as subtype.
constexpr std::uint32_t kWeaponPowerups = 1U << 2U | 1U << 3U;

constexpr FieldSpec pickup_weapon(std::string_view name, std::uint8_t offset) {
    return {name, FieldKind::named, offset, 1, &names::weapon, kWeaponPowerups};
}

constexpr FieldSpec text(std::string_view name, std::uint8_t offset, std::uint8_t count) {
    return {name, FieldKind::int_string, offset, count, nullptr};
}

constexpr FieldSpec integers(std::string_view name, std::uint8_t offset, std::uint8_t count) {
    return {name, FieldKind::integers, offset, count, nullptr};
}

constexpr std::array kPlayerInput{
    integer("direction", 0),
    integer("target_x", 1),
    integer("target_y", 2),
    integer("jump", 3),
    integer("fire", 4),
    integer("hook", 5),
    named("player_flags", 6, names::playerflag),
    integer("wanted_weapon", 7),
    integer("next_weapon", 8),
    integer("prev_weapon", 9),
};

constexpr std::array kProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("vel_x", 2),
    integer("vel_y", 3),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
};

constexpr std::array kLaser{
    integer("x", 0),      integer("y", 1),       integer("from_x", 2),
    integer("from_y", 3), tick("start_tick", 4),
};

constexpr std::array kPickup{
    integer("x", 0),
    integer("y", 1),
    named("type", 2, names::powerup),
    pickup_weapon("subtype", 3),
};

constexpr std::array kFlag{
    integer("x", 0),
    integer("y", 1),
    named("team", 2, names::team),
};

constexpr std::array kGameInfo{
    named("game_flags", 0, names::gameflag),
    named("game_state_flags", 1, names::gamestateflag),
    tick("round_start_tick", 2),
    integer("warmup_timer", 3),
    integer("score_limit", 4),
    integer("time_limit", 5),
    integer("round_num", 6),
    integer("round_current", 7),
};

constexpr std::array kGameData{
    integer("teamscore_red", 0),
    integer("teamscore_blue", 1),
    named("flag_carrier_red", 2, names::flag_carrier_special),
    named("flag_carrier_blue", 3, names::flag_carrier_special),
};

constexpr std::array kCharacter{
    tick("tick", 0),
    integer("x", 1),
    integer("y", 2),
    integer("vel_x", 3),
    integer("vel_y", 4),
    integer("angle", 5),
    integer("direction", 6),
    integer("jumped", 7),
    integer("hooked_player", 8),
    named("hook_state", 9, names::hook_state),
    integer("hook_tick", 10),
    integer("hook_x", 11),
    integer("hook_y", 12),
    integer("hook_dx", 13),
    integer("hook_dy", 14),
    named("player_flags", 15, names::playerflag),
    integer("health", 16),
    integer("armor", 17),
    integer("ammo_count", 18),
    named("weapon", 19, names::weapon),
    named("emote", 20, names::emote),
    tick("attack_tick", 21),
};

constexpr std::array kPlayerInfo{
    boolean("local", 0), integer("client_id", 1), named("team", 2, names::team),
    integer("score", 3), integer("latency", 4),
};

constexpr std::array kClientInfo{
    text("name", 0, 4),
    text("clan", 4, 3),
    integer("country", 7),
    text("skin", 8, 6),
    boolean("use_custom_color", 14),
    integer("color_body", 15),
    integer("color_feet", 16),
};

constexpr std::array kSpectatorInfo{
    named("spectator_id", 0, names::spectator_special),
    integer("x", 1),
    integer("y", 2),
};

constexpr std::array kPlace{
    integer("x", 0),
    integer("y", 1),
};

constexpr std::array kDeath{
    integer("x", 0),
    integer("y", 1),
    integer("client_id", 2),
};

constexpr std::array kSoundGlobal{
    integer("x", 0),
    integer("y", 1),
    named("sound_id", 2, names::sound),
};

constexpr std::array kDamageInd{
    integer("x", 0),
    integer("y", 1),
    integer("angle", 2),
};

constexpr std::array kTest{
    integer("test", 0),
};

constexpr std::array kDdnetCharacter{
    named("flags", 0, names::characterflag),
    tick("freeze_end", 1),
    integer("jumps", 2),
    integer("tele_checkpoint", 3),
    integer("strong_weak_id", 4),
    integer("jumped_total", 5),
    tick("ninja_activation_tick", 6),
    tick("freeze_start", 7),
    integer("target_x", 8),
    integer("target_y", 9),
    integer("tune_zone_override", 10),
};

constexpr std::array kDdnetPlayer{
    named("flags", 0, names::explayerflag),
    named("auth_level", 1, names::authed),
    integer("finish_time_seconds", 2),
    integer("finish_time_millis", 3),
};

constexpr std::array kGameInfoEx{
    named("flags", 0, names::gameinfoflag),
    integer("version", 1),
    named("flags2", 2, names::gameinfoflag2),
    integer("min_team_size", 3),
    integer("max_team_size", 4),
};

constexpr std::array kDdraceProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("angle", 2),
    named("data", 3, names::legacyprojectileflag),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
};

constexpr std::array kDdnetLaser{
    integer("to_x", 0),
    integer("to_y", 1),
    integer("from_x", 2),
    integer("from_y", 3),
    tick("start_tick", 4),
    integer("owner", 5),
    named("type", 6, names::lasertype),
    integer("switch_number", 7),
    integer("subtype", 8),
    named("flags", 9, names::laserflag),
};

constexpr std::array kDdnetProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("vel_x", 2),
    integer("vel_y", 3),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
    integer("owner", 6),
    integer("switch_number", 7),
    integer("tune_zone", 8),
    named("flags", 9, names::projectileflag),
};

constexpr std::array kDdnetPickup{
    integer("x", 0),
    integer("y", 1),
    named("type", 2, names::powerup),
    pickup_weapon("subtype", 3),
    integer("switch_number", 4),
    named("flags", 5, names::pickupflag),
};

constexpr std::array kDdnetSpectatorInfo{
    boolean("has_camera_info", 0), integer("zoom", 1),
    integer("deadzone", 2),        integer("follow_factor", 3),
    integer("spectator_count", 4),
};

constexpr std::array kSpectatorCount{
    integer("num_spectators", 0),
};

constexpr std::array kSwitchState{
    integer("highest_switch_number", 0),
    integers("status", 1, 8),
    integers("switch_numbers", 9, 4),
    integers("end_ticks", 13, 4),
};

constexpr std::array kEntityEx{
    integer("switch_number", 0),
    integer("layer", 1),
    named("entity_class", 2, names::entityclass),
};

constexpr std::array kMapBestTime{
    integer("map_best_time_seconds", 0),
    integer("map_best_time_millis", 1),
};

constexpr std::array kMapSoundWorld{
    integer("x", 0),
    integer("y", 1),
    integer("sound_id", 2),
};

constexpr std::array kAuthInfo{named("auth_level", 0, names::authed)};

constexpr int hex_digit(char c) {
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

// "76ce455b-f9eb-3a48-add7-e04b941d045c"
consteval Uuid uuid(std::string_view text) {
    Uuid bytes{};
    std::size_t digits = 0;
    for (const char c : text) {
        if (c != '-') {
            auto& byte = bytes[digits / 2];
            byte = static_cast<std::uint8_t>(byte * 16 + hex_digit(c));
            ++digits;
        }
    }
    return bytes;
}

constexpr auto kObject = ObjectKind::object;
constexpr auto kEvent = ObjectKind::event;
constexpr std::optional<PositionSpec> kNowhere;
constexpr std::optional<PositionSpec> kFirstInts{PositionSpec{0, 1, 1}};
constexpr std::optional<PositionSpec> kSecondInts{PositionSpec{1, 2, 1}};
constexpr std::optional<PositionSpec> kHundredths{PositionSpec{0, 1, 100}};

/// An int of this name says which client an object belongs to.
constexpr std::optional<ClientSpec> client_field(std::span<const FieldSpec> fields) {
    for (const FieldSpec& field : fields) {
        if (field.name == "client_id" || field.name == "owner") {
            return ClientSpec{field.offset};
        }
    }
    return std::nullopt;
}

/// An object whose id is that of a client.
constexpr ObjectSpec of_client(ObjectSpec object) {
    object.client = ClientSpec{};
    return object;
}

constexpr ObjectSpec numbered(std::uint16_t type, std::string_view name, ObjectKind kind,
                              std::span<const FieldSpec> fields,
                              std::optional<PositionSpec> position) {
    const auto size = static_cast<std::uint8_t>(fields.back().offset + fields.back().count);
    return {type, {}, name, {}, kind, size, size, fields, position, client_field(fields)};
}

constexpr ObjectSpec extended(std::string_view name, std::string_view uuid_name, const Uuid& id,
                              ObjectKind kind, std::uint8_t size, std::uint8_t min_size,
                              std::span<const FieldSpec> fields,
                              std::optional<PositionSpec> position) {
    return {0, id, name, uuid_name, kind, size, min_size, fields, position, client_field(fields)};
}

// Numbered types stand at index type - 1. A global sound carries a position that means nothing.
constexpr std::array kObjects{
    numbered(1, "player_input", kObject, kPlayerInput, kNowhere),
    numbered(2, "projectile", kObject, kProjectile, kFirstInts),
    numbered(3, "laser", kObject, kLaser, kFirstInts),
    numbered(4, "pickup", kObject, kPickup, kFirstInts),
    numbered(5, "flag", kObject, kFlag, kFirstInts),
    numbered(6, "game_info", kObject, kGameInfo, kNowhere),
    numbered(7, "game_data", kObject, kGameData, kNowhere),
    numbered(8, "character_core", kObject, std::span{kCharacter}.first(15), kSecondInts),
    of_client(numbered(9, "character", kObject, kCharacter, kSecondInts)),
    numbered(10, "player_info", kObject, kPlayerInfo, kNowhere),
    numbered(11, "client_info", kObject, kClientInfo, kNowhere),
    numbered(12, "spectator_info", kObject, kSpectatorInfo, kSecondInts),
    numbered(13, "common", kEvent, kPlace, kFirstInts),
    numbered(14, "explosion", kEvent, kPlace, kFirstInts),
    numbered(15, "spawn", kEvent, kPlace, kFirstInts),
    numbered(16, "hammer_hit", kEvent, kPlace, kFirstInts),
    numbered(17, "death", kEvent, kDeath, kFirstInts),
    numbered(18, "sound_global", kEvent, kSoundGlobal, kNowhere),
    numbered(19, "sound_world", kEvent, kSoundGlobal, kFirstInts),
    numbered(20, "damage_ind", kEvent, kDamageInd, kFirstInts),
    extended("my_own_object", "my-own-object@heinrich5991.de",
             uuid("0dc77a02-bfee-3a53-ac8e-0bb0241bd722"), kObject, 1, 1, kTest, kNowhere),
    of_client(extended("ddnet_character", "character@netobj.ddnet.tw",
                       uuid("76ce455b-f9eb-3a48-add7-e04b941d045c"), kObject, 11, 0,
                       kDdnetCharacter, kNowhere)),
    of_client(extended("ddnet_player", "player@netobj.ddnet.tw",
                       uuid("22ca938d-1380-3e2b-9e7b-d2558ea6be11"), kObject, 4, 2, kDdnetPlayer,
                       kNowhere)),
    extended("game_info_ex", "gameinfo@netobj.ddnet.tw",
             uuid("933dea6a-da79-30ea-a98f-8af03689a945"), kObject, 5, 0, kGameInfoEx, kNowhere),
    extended("ddrace_projectile", "projectile@netobj.ddnet.tw",
             uuid("0e6db85c-2b61-386f-bbf2-d0d0471b9272"), kObject, 6, 6, kDdraceProjectile,
             kHundredths),
    extended("ddnet_laser", "laser@netobj.ddnet.tw", uuid("29de68a2-6928-31b8-8360-a2307e0d844f"),
             kObject, 10, 7, kDdnetLaser, kFirstInts),
    extended("ddnet_projectile", "ddnet-projectile@netobj.ddnet.tw",
             uuid("6550fbce-f317-3b31-8ffe-d2b37f3ab40e"), kObject, 10, 10, kDdnetProjectile,
             kHundredths),
    extended("ddnet_pickup", "pickup@netobj.ddnet.tw", uuid("ea5e4a51-58fb-3684-96e4-e0d267f4ca65"),
             kObject, 6, 5, kDdnetPickup, kFirstInts),
    extended("ddnet_spectator_info", "spectator-info@netobj.ddnet.org",
             uuid("d13307b2-9a19-37cb-8f8c-07c718521883"), kObject, 5, 4, kDdnetSpectatorInfo,
             kNowhere),
    extended("spectator_count", "spectator-count@netobj.ddnet.org",
             uuid("5e5ca96f-c728-30fd-bfb3-155b07692556"), kObject, 1, 1, kSpectatorCount,
             kNowhere),
    extended("birthday", "birthday@netevent.ddnet.org",
             uuid("1fd35746-6263-358c-b4d6-6ef60e0efaaa"), kEvent, 2, 2, kPlace, kFirstInts),
    extended("finish", "finish@netevent.ddnet.org", uuid("68bf8939-ef55-3878-9082-13527eb0a597"),
             kEvent, 2, 2, kPlace, kFirstInts),
    extended("my_own_event", "my-own-event@heinrich5991.de",
             uuid("0c4fd27d-47e3-3871-a226-9f417486a311"), kObject, 1, 1, kTest, kNowhere),
    of_client(extended("spec_char", "spec-char@netobj.ddnet.tw",
                       uuid("4b801c74-e24c-3ce0-b92c-b754d02cfc8a"), kObject, 2, 2, kPlace,
                       kFirstInts)),
    extended("switch_state", "switch-state@netobj.ddnet.tw",
             uuid("ec15e669-ce11-3367-ae8e-b90e5b27b9d5"), kObject, 17, 0, kSwitchState, kNowhere),
    extended("entity_ex", "entity-ex@netobj.ddnet.tw", uuid("2de9aec3-32e4-3986-8f7e-e7459da7f535"),
             kObject, 3, 3, kEntityEx, kNowhere),
    extended("map_best_time", "map-best-time@netobj.ddnet.org",
             uuid("9ebfc6ed-bf50-30ca-988a-0ce8921ad85f"), kObject, 2, 2, kMapBestTime, kNowhere),
    extended("map_sound_world", "map-sound-world@netevent.ddnet.org",
             uuid("54ecad2e-bfad-3be5-8903-621ba052458e"), kEvent, 3, 3, kMapSoundWorld,
             kFirstInts),
    // Retired, but old servers still send them.
    of_client(extended("auth_info", "auth-info@netobj.ddnet.tw",
                       uuid("e525322e-d4d3-3397-9577-3a6b992435fb"), kObject, 1, 1, kAuthInfo,
                       kNowhere)),
    of_client(extended("character_display_info", "character-display-info@netobj.ddnet.tw",
                       uuid("e7b431e5-dee0-3e5f-9224-2c95efb38878"), kObject, 5, 5, {}, kNowhere)),
};

constexpr bool agrees_with_sizes() {
    for (std::uint16_t type = 1; kAgreedSizes[type] != 0; ++type) {
        const ObjectSpec& object = kObjects[type - 1U];
        if (object.type != type || object.size != agreed_size(type)) {
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
