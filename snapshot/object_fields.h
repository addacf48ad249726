#pragma once

#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <array>
#include <cstdint>
#include <string_view>

/// The fields of each object in the table, in the order of their ints.
namespace tw::snapshot::fields {

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

/// Bit mask of the powerups `weapon` and `ninja`. Only these have a weapon as their subtype.
inline constexpr std::uint32_t kWeaponPowerups = 1U << 2U | 1U << 3U;

constexpr FieldSpec pickup_weapon(std::string_view name, std::uint8_t offset) {
    return {name, FieldKind::named, offset, 1, &names::weapon, kWeaponPowerups};
}

constexpr FieldSpec text(std::string_view name, std::uint8_t offset, std::uint8_t count) {
    return {name, FieldKind::int_string, offset, count, nullptr};
}

constexpr FieldSpec integers(std::string_view name, std::uint8_t offset, std::uint8_t count) {
    return {name, FieldKind::integers, offset, count, nullptr};
}

constexpr FieldSpec merge(FieldMerge how, FieldSpec field) {
    field.merge = how;
    return field;
}

constexpr FieldSpec in_six(RelationToSix what, FieldSpec field) {
    field.in_six = what;
    return field;
}

inline constexpr std::array kPlayerInput{
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

inline constexpr std::array kProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("vel_x", 2),
    integer("vel_y", 3),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
};

inline constexpr std::array kLaser{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::varies, integer("from_x", 2)),
    merge(FieldMerge::varies, integer("from_y", 3)),
    merge(FieldMerge::varies, tick("start_tick", 4)),
};

inline constexpr std::array kPickup{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::varies, named("type", 2, names::powerup)),
    merge(FieldMerge::varies, pickup_weapon("subtype", 3)),
};

inline constexpr std::array kFlag{
    integer("x", 0),
    integer("y", 1),
    named("team", 2, names::team),
};

inline constexpr std::array kGameInfo{
    named("game_flags", 0, names::gameflag),
    merge(FieldMerge::race_flags, named("game_state_flags", 1, names::gamestateflag)),
    tick("round_start_tick", 2),
    merge(FieldMerge::race_timer, integer("warmup_timer", 3)),
    integer("score_limit", 4),
    integer("time_limit", 5),
    integer("round_num", 6),
    integer("round_current", 7),
};

inline constexpr std::array kGameData{
    integer("teamscore_red", 0),
    integer("teamscore_blue", 1),
    named("flag_carrier_red", 2, names::flag_carrier_special),
    named("flag_carrier_blue", 3, names::flag_carrier_special),
};

inline constexpr std::array kCharacter{
    tick("tick", 0),
    integer("x", 1),
    integer("y", 2),
    integer("vel_x", 3),
    integer("vel_y", 4),
    integer("angle", 5),
    integer("direction", 6),
    integer("jumped", 7),
    merge(FieldMerge::client, integer("hooked_player", 8)),
    named("hook_state", 9, names::hook_state),
    integer("hook_tick", 10),
    integer("hook_x", 11),
    integer("hook_y", 12),
    integer("hook_dx", 13),
    integer("hook_dy", 14),
    named("player_flags", 15, names::playerflag),
    merge(FieldMerge::own, integer("health", 16)),
    merge(FieldMerge::own, integer("armor", 17)),
    merge(FieldMerge::own, named("ammo_count", 18, names::ammo)),
    merge(FieldMerge::varies, named("weapon", 19, names::held_weapon)),
    named("emote", 20, names::emote),
    tick("attack_tick", 21),
};

inline constexpr std::array kPlayerInfo{
    merge(FieldMerge::viewer, boolean("local", 0)),
    merge(FieldMerge::client, integer("client_id", 1)),
    merge(FieldMerge::varies, named("team", 2, names::team)),
    merge(FieldMerge::own_first, integer("score", 3)),
    merge(FieldMerge::scoreboard, integer("latency", 4)),
};

inline constexpr std::array kClientInfo{
    text("name", 0, 4),
    text("clan", 4, 3),
    integer("country", 7),
    text("skin", 8, 6),
    boolean("use_custom_color", 14),
    integer("color_body", 15),
    integer("color_feet", 16),
};

inline constexpr std::array kSpectatorInfo{
    named("spectator_id", 0, names::spectator_special),
    integer("x", 1),
    integer("y", 2),
};

inline constexpr std::array kPlace{
    integer("x", 0),
    integer("y", 1),
};

inline constexpr std::array kDeath{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::client, integer("client_id", 2)),
};

inline constexpr std::array kSoundGlobal{
    integer("x", 0),
    integer("y", 1),
    named("sound_id", 2, names::sound),
};

inline constexpr std::array kDamageInd{
    integer("x", 0),
    integer("y", 1),
    integer("angle", 2),
};

inline constexpr std::array kTest{
    integer("test", 0),
};

inline constexpr std::array kDdnetCharacter{
    named("flags", 0, names::characterflag),
    tick("freeze_end", 1),
    integer("jumps", 2),
    integer("tele_checkpoint", 3),
    merge(FieldMerge::untranslated, integer("strong_weak_id", 4)),
    integer("jumped_total", 5),
    tick("ninja_activation_tick", 6),
    tick("freeze_start", 7),
    integer("target_x", 8),
    integer("target_y", 9),
    integer("tune_zone_override", 10),
};

inline constexpr std::array kDdnetPlayer{
    named("flags", 0, names::explayerflag),
    merge(FieldMerge::greatest, named("auth_level", 1, names::authed)),
    merge(FieldMerge::own_first, integer("finish_time_seconds", 2)),
    merge(FieldMerge::own_first, integer("finish_time_millis", 3)),
};

inline constexpr std::array kGameInfoEx{
    named("flags", 0, names::gameinfoflag),
    integer("version", 1),
    named("flags2", 2, names::gameinfoflag2),
    integer("min_team_size", 3),
    integer("max_team_size", 4),
    integer("num_ddrace_teams", 5),
};

inline constexpr std::array kDdraceProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("angle", 2),
    merge(FieldMerge::varies, named("data", 3, names::legacyprojectileflag)),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
};

inline constexpr std::array kDdnetLaser{
    integer("to_x", 0),
    integer("to_y", 1),
    integer("from_x", 2),
    integer("from_y", 3),
    merge(FieldMerge::varies, tick("start_tick", 4)),
    merge(FieldMerge::client, integer("owner", 5)),
    named("type", 6, names::lasertype),
    integer("switch_number", 7),
    integer("subtype", 8),
    named("flags", 9, names::laserflag),
};

inline constexpr std::array kDdnetProjectile{
    integer("x", 0),
    integer("y", 1),
    integer("vel_x", 2),
    integer("vel_y", 3),
    named("type", 4, names::weapon),
    tick("start_tick", 5),
    merge(FieldMerge::client, integer("owner", 6)),
    integer("switch_number", 7),
    integer("tune_zone", 8),
    named("flags", 9, names::projectileflag),
};

inline constexpr std::array kDdnetPickup{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::varies, named("type", 2, names::powerup)),
    merge(FieldMerge::varies, pickup_weapon("subtype", 3)),
    integer("switch_number", 4),
    named("flags", 5, names::pickupflag),
};

inline constexpr std::array kDdnetSpectatorInfo{
    boolean("has_camera_info", 0), integer("zoom", 1),
    integer("deadzone", 2),        integer("follow_factor", 3),
    integer("spectator_count", 4),
};

inline constexpr std::array kSpectatorCount{
    integer("num_spectators", 0),
};

inline constexpr std::array kSwitchState{
    merge(FieldMerge::varies, integer("highest_switch_number", 0)),
    merge(FieldMerge::varies, integers("status", 1, 8)),
    merge(FieldMerge::varies, integers("switch_numbers", 9, 4)),
    merge(FieldMerge::varies, integers("end_ticks", 13, 4)),
};

inline constexpr std::array kEntityEx{
    integer("switch_number", 0),
    integer("layer", 1),
    named("entity_class", 2, names::entityclass),
};

inline constexpr std::array kMapBestTime{
    integer("map_best_time_seconds", 0),
    integer("map_best_time_millis", 1),
};

inline constexpr std::array kMapSoundWorld{
    integer("x", 0),
    integer("y", 1),
    integer("sound_id", 2),
};

inline constexpr std::array kAuthInfo{named("auth_level", 0, names::authed)};

} // namespace tw::snapshot::fields

/// The fields of Teeworlds 0.7 objects that differ from those of 0.6.
/// tests/snapshot/objects_test.cpp compares these fields with the specification.
namespace tw::snapshot::fields::seven {

inline constexpr std::array kPlayerInput{
    integer("direction", 0),
    integer("target_x", 1),
    integer("target_y", 2),
    integer("jump", 3),
    integer("fire", 4),
    integer("hook", 5),
    named("player_flags", 6, names::seven::playerflag),
    integer("wanted_weapon", 7),
    integer("next_weapon", 8),
    integer("prev_weapon", 9),
};

inline constexpr std::array kPickup{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::varies,
          in_six(RelationToSix::remade, named("type", 2, names::seven::pickup))),
};

inline constexpr std::array kGameData{
    tick("game_start_tick", 0),
    named("game_state_flags", 1, names::seven::gamestateflag),
    tick("game_state_end_tick", 2),
};

inline constexpr std::array kGameDataTeam{
    integer("teamscore_red", 0),
    integer("teamscore_blue", 1),
};

inline constexpr std::array kGameDataFlag{
    named("flag_carrier_red", 0, names::flag_carrier_special),
    named("flag_carrier_blue", 1, names::flag_carrier_special),
    tick("flag_drop_tick_red", 2),
    tick("flag_drop_tick_blue", 3),
};

inline constexpr std::array kCharacter{
    tick("tick", 0),
    integer("x", 1),
    integer("y", 2),
    integer("vel_x", 3),
    integer("vel_y", 4),
    in_six(RelationToSix::remade, integer("angle", 5)),
    integer("direction", 6),
    integer("jumped", 7),
    merge(FieldMerge::client, integer("hooked_player", 8)),
    named("hook_state", 9, names::hook_state),
    in_six(RelationToSix::remade, integer("hook_tick", 10)),
    integer("hook_x", 11),
    integer("hook_y", 12),
    integer("hook_dx", 13),
    integer("hook_dy", 14),
    merge(FieldMerge::own, integer("health", 15)),
    merge(FieldMerge::own, integer("armor", 16)),
    merge(FieldMerge::own, named("ammo_count", 17, names::ammo)),
    merge(FieldMerge::varies, named("weapon", 18, names::held_weapon)),
    named("emote", 19, names::emote),
    tick("attack_tick", 20),
    named("triggered_events", 21, names::seven::coreeventflag),
};

inline constexpr std::array kPlayerInfo{
    merge(FieldMerge::watched_flag, named("player_flags", 0, names::seven::playerflag)),
    merge(FieldMerge::own_first, in_six(RelationToSix::another, integer("score", 1))),
    merge(FieldMerge::scoreboard, integer("latency", 2)),
};

inline constexpr std::array kSpectatorInfo{
    named("spec_mode", 0, names::seven::spec_mode),
    integer("spectator_id", 1),
    integer("x", 2),
    integer("y", 3),
};

inline constexpr std::array kDeClientInfo{
    boolean("local", 0),
    named("team", 1, names::team),
    text("name", 2, 4),
    text("clan", 6, 3),
    integer("country", 9),
    integers("skin_part_names", 10, 36),
    integers("use_custom_colors", 46, 6),
    integers("skin_part_colors", 52, 6),
};

inline constexpr std::array kDeGameInfo{
    named("game_flags", 0, names::seven::gameflag),
    integer("score_limit", 1),
    integer("time_limit", 2),
    integer("match_num", 3),
    integer("match_current", 4),
};

inline constexpr std::array kDeTuneParams{
    integers("tune_params", 0, 32),
};

inline constexpr std::array kDamage{
    integer("x", 0),
    integer("y", 1),
    merge(FieldMerge::client, integer("client_id", 2)),
    in_six(RelationToSix::another, integer("angle", 3)),
    integer("health_amount", 4),
    integer("armor_amount", 5),
    boolean("self", 6),
};

inline constexpr std::array kPlayerInfoRace{
    merge(FieldMerge::varies, tick("race_start_tick", 0)),
};

inline constexpr std::array kGameDataRace{
    merge(FieldMerge::varies, integer("best_time", 0)),
    integer("precision", 1),
    named("race_flags", 2, names::seven::raceflag),
};

} // namespace tw::snapshot::fields::seven
