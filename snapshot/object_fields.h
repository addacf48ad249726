#pragma once

#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <array>
#include <cstdint>
#include <string_view>

/// The fields of each object of object_table(), in the order of their ints.
namespace tw::snapshot::fields {

constexpr FieldSpec to_field(std::string_view name) {
    return {.name = name, .kind = FieldKind::integer};
}

constexpr FieldSpec to_field(const FieldSpec& field) {
    return field;
}

/// Returns the fields of an object, which are given in the order of their ints. A text stands for
/// an integer field with this name.
template <typename... Fields>
constexpr std::array<FieldSpec, sizeof...(Fields)> layout(const Fields&... fields) {
    std::array<FieldSpec, sizeof...(Fields)> all{to_field(fields)...};
    std::uint8_t offset = 0;
    for (FieldSpec& field : all) {
        field.offset = offset;
        offset = static_cast<std::uint8_t>(offset + field.count);
    }
    return all;
}

constexpr FieldSpec boolean(std::string_view name) {
    return {.name = name, .kind = FieldKind::boolean};
}

constexpr FieldSpec tick(std::string_view name) {
    return {.name = name, .kind = FieldKind::tick};
}

constexpr FieldSpec with_names(std::string_view name, const NameTable& names) {
    return {.name = name, .kind = FieldKind::named, .names = &names};
}

/// Returns a field whose value is a weapon if the int before it is the powerup `weapon` or `ninja`.
constexpr FieldSpec pickup_weapon(std::string_view name) {
    FieldSpec field = with_names(name, names::weapon);
    field.names_when = 1U << 2U | 1U << 3U;
    return field;
}

constexpr FieldSpec text(std::string_view name, std::uint8_t count) {
    return {.name = name, .kind = FieldKind::int_string, .count = count};
}

constexpr FieldSpec int_array(std::string_view name, std::uint8_t count) {
    return {.name = name, .kind = FieldKind::integers, .count = count};
}

template <typename Field>
constexpr FieldSpec with_merge(FieldMerge how, const Field& field) {
    FieldSpec spec = to_field(field);
    spec.merge = how;
    return spec;
}

template <typename Field>
constexpr FieldSpec with_six_relation(RelationToSix what, const Field& field) {
    FieldSpec related = to_field(field);
    related.six_relation = what;
    return related;
}

inline constexpr auto kPlayerInput = layout("direction", "target_x", "target_y", "jump", "fire",
                                            "hook", with_names("player_flags", names::playerflag),
                                            "wanted_weapon", "next_weapon", "prev_weapon");

inline constexpr auto kProjectile =
    layout("x", "y", "vel_x", "vel_y", with_names("type", names::weapon), tick("start_tick"));

inline constexpr auto kLaser = layout("x", "y", with_merge(FieldMerge::varies, "from_x"),
                                      with_merge(FieldMerge::varies, "from_y"),
                                      with_merge(FieldMerge::varies, tick("start_tick")));

inline constexpr auto kPickup =
    layout("x", "y", with_merge(FieldMerge::varies, with_names("type", names::powerup)),
           with_merge(FieldMerge::varies, pickup_weapon("subtype")));

inline constexpr auto kFlag = layout("x", "y", with_names("team", names::team));

inline constexpr auto kGameInfo =
    layout(with_names("game_flags", names::gameflag),
           with_merge(FieldMerge::race_flags, with_names("game_state_flags", names::gamestateflag)),
           tick("round_start_tick"), with_merge(FieldMerge::race_timer, "warmup_timer"),
           "score_limit", "time_limit", "round_num", "round_current");

inline constexpr auto kGameData = layout(
    "teamscore_red", "teamscore_blue", with_names("flag_carrier_red", names::flag_carrier_special),
    with_names("flag_carrier_blue", names::flag_carrier_special));

inline constexpr auto kCharacter =
    layout(tick("tick"), "x", "y", "vel_x", "vel_y", "angle", "direction", "jumped",
           with_merge(FieldMerge::client_id, "hooked_player"),
           with_names("hook_state", names::hook_state), "hook_tick", "hook_x", "hook_y", "hook_dx",
           "hook_dy", with_names("player_flags", names::playerflag),
           with_merge(FieldMerge::own, "health"), with_merge(FieldMerge::own, "armor"),
           with_merge(FieldMerge::own, with_names("ammo_count", names::ammo)),
           with_merge(FieldMerge::varies, with_names("weapon", names::held_weapon)),
           with_names("emote", names::emote), tick("attack_tick"));

inline constexpr auto kPlayerInfo = layout(
    with_merge(FieldMerge::about_viewer, boolean("local")),
    with_merge(FieldMerge::client_id, "client_id"),
    with_merge(FieldMerge::varies, with_names("team", names::team)),
    with_merge(FieldMerge::own_first, "score"), with_merge(FieldMerge::scoreboard, "latency"));

inline constexpr auto kClientInfo =
    layout(text("name", 4), text("clan", 3), "country", text("skin", 6),
           boolean("use_custom_color"), "color_body", "color_feet");

inline constexpr auto kSpectatorInfo =
    layout(with_names("spectator_id", names::spectator_special), "x", "y");

inline constexpr auto kPositionFields = layout("x", "y");

inline constexpr auto kDeath = layout("x", "y", with_merge(FieldMerge::client_id, "client_id"));

inline constexpr auto kSoundGlobal = layout("x", "y", with_names("sound_id", names::sound));

inline constexpr auto kDamageInd = layout("x", "y", "angle");

inline constexpr auto kTest = layout("test");

inline constexpr auto kDdnetCharacter =
    layout(with_names("flags", names::characterflag), tick("freeze_end"), "jumps",
           "tele_checkpoint", with_merge(FieldMerge::untranslated, "strong_weak_id"),
           "jumped_total", tick("ninja_activation_tick"), tick("freeze_start"), "target_x",
           "target_y", "tune_zone_override");

inline constexpr auto kDdnetPlayer =
    layout(with_names("flags", names::explayerflag),
           with_merge(FieldMerge::greatest, with_names("auth_level", names::authed)),
           with_merge(FieldMerge::own_first, "finish_time_seconds"),
           with_merge(FieldMerge::own_first, "finish_time_millis"));

inline constexpr auto kGameInfoEx = layout(with_names("flags", names::gameinfoflag), "version",
                                           with_names("flags2", names::gameinfoflag2),
                                           "min_team_size", "max_team_size", "num_ddrace_teams");

inline constexpr auto kDdraceProjectile =
    layout("x", "y", "angle",
           with_merge(FieldMerge::varies, with_names("data", names::legacyprojectileflag)),
           with_names("type", names::weapon), tick("start_tick"));

inline constexpr auto kDdnetLaser =
    layout("to_x", "to_y", "from_x", "from_y", with_merge(FieldMerge::varies, tick("start_tick")),
           with_merge(FieldMerge::client_id, "owner"), with_names("type", names::lasertype),
           "switch_number", "subtype", with_names("flags", names::laserflag));

inline constexpr auto kDdnetProjectile =
    layout("x", "y", "vel_x", "vel_y", with_names("type", names::weapon), tick("start_tick"),
           with_merge(FieldMerge::client_id, "owner"), "switch_number", "tune_zone",
           with_names("flags", names::projectileflag));

inline constexpr auto kDdnetPickup =
    layout("x", "y", with_merge(FieldMerge::varies, with_names("type", names::powerup)),
           with_merge(FieldMerge::varies, pickup_weapon("subtype")), "switch_number",
           with_names("flags", names::pickupflag));

inline constexpr auto kDdnetSpectatorInfo =
    layout(boolean("has_camera_info"), "zoom", "deadzone", "follow_factor", "spectator_count");

inline constexpr auto kSpectatorCount = layout("num_spectators");

inline constexpr auto kSwitchState =
    layout(with_merge(FieldMerge::varies, "highest_switch_number"),
           with_merge(FieldMerge::varies, int_array("status", 8)),
           with_merge(FieldMerge::varies, int_array("switch_numbers", 4)),
           with_merge(FieldMerge::varies, int_array("end_ticks", 4)));

inline constexpr auto kEntityEx =
    layout("switch_number", "layer", with_names("entity_class", names::entityclass));

inline constexpr auto kMapBestTime = layout("map_best_time_seconds", "map_best_time_millis");

inline constexpr auto kMapSoundWorld = layout("x", "y", "sound_id");

inline constexpr auto kAuthInfo = layout(with_names("auth_level", names::authed));

} // namespace tw::snapshot::fields

/// The fields of Teeworlds 0.7 objects that differ from those of 0.6.
/// tests/snapshot/objects_test.cpp compares these fields with the specification.
namespace tw::snapshot::fields::seven {

inline constexpr auto kPlayerInput =
    layout("direction", "target_x", "target_y", "jump", "fire", "hook",
           with_names("player_flags", names::seven::playerflag), "wanted_weapon", "next_weapon",
           "prev_weapon");

inline constexpr auto kPickup = layout(
    "x", "y",
    with_merge(FieldMerge::varies, with_six_relation(RelationToSix::recomputed,
                                                     with_names("type", names::seven::pickup))));

inline constexpr auto kGameData =
    layout(tick("game_start_tick"), with_names("game_state_flags", names::seven::gamestateflag),
           tick("game_state_end_tick"));

inline constexpr auto kGameDataTeam = layout("teamscore_red", "teamscore_blue");

inline constexpr auto kGameDataFlag =
    layout(with_names("flag_carrier_red", names::flag_carrier_special),
           with_names("flag_carrier_blue", names::flag_carrier_special), tick("flag_drop_tick_red"),
           tick("flag_drop_tick_blue"));

inline constexpr auto kCharacter = layout(
    tick("tick"), "x", "y", "vel_x", "vel_y", with_six_relation(RelationToSix::recomputed, "angle"),
    "direction", "jumped", with_merge(FieldMerge::client_id, "hooked_player"),
    with_names("hook_state", names::hook_state),
    with_six_relation(RelationToSix::recomputed, "hook_tick"), "hook_x", "hook_y", "hook_dx",
    "hook_dy", with_merge(FieldMerge::own, "health"), with_merge(FieldMerge::own, "armor"),
    with_merge(FieldMerge::own, with_names("ammo_count", names::ammo)),
    with_merge(FieldMerge::varies, with_names("weapon", names::held_weapon)),
    with_names("emote", names::emote), tick("attack_tick"),
    with_names("triggered_events", names::seven::coreeventflag));

inline constexpr auto kPlayerInfo = layout(
    with_merge(FieldMerge::watched_flag, with_names("player_flags", names::seven::playerflag)),
    with_merge(FieldMerge::own_first, with_six_relation(RelationToSix::other_meaning, "score")),
    with_merge(FieldMerge::scoreboard, "latency"));

inline constexpr auto kSpectatorInfo =
    layout(with_names("spec_mode", names::seven::spec_mode), "spectator_id", "x", "y");

inline constexpr auto kDeClientInfo =
    layout(boolean("local"), with_names("team", names::team), text("name", 4), text("clan", 3),
           "country", int_array("skin_part_names", 36), int_array("use_custom_colors", 6),
           int_array("skin_part_colors", 6));

inline constexpr auto kDeGameInfo =
    layout(with_names("game_flags", names::seven::gameflag), "score_limit", "time_limit",
           "match_num", "match_current");

inline constexpr auto kDeTuneParams = layout(int_array("tune_params", 32));

inline constexpr auto kDamage = layout("x", "y", with_merge(FieldMerge::client_id, "client_id"),
                                       with_six_relation(RelationToSix::other_meaning, "angle"),
                                       "health_amount", "armor_amount", boolean("self"));

inline constexpr auto kPlayerInfoRace =
    layout(with_merge(FieldMerge::varies, tick("race_start_tick")));

inline constexpr auto kGameDataRace =
    layout(with_merge(FieldMerge::varies, "best_time"), "precision",
           with_names("race_flags", names::seven::raceflag));

} // namespace tw::snapshot::fields::seven
