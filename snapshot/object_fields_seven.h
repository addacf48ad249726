#pragma once

#include "snapshot/names_seven.h"
#include "snapshot/object_fields.h"

#include <array>

/// The fields of the objects of Teeworlds 0.7 that are others than those of 0.6: pure data.
/// tests/snapshot/objects_test.cpp holds them equal to the specification.
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
    merge(FieldMerge::varies, in_six(InSix::remade, named("type", 2, names::seven::pickup))),
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
    in_six(InSix::remade, integer("angle", 5)),
    integer("direction", 6),
    integer("jumped", 7),
    merge(FieldMerge::client, integer("hooked_player", 8)),
    named("hook_state", 9, names::hook_state),
    in_six(InSix::remade, integer("hook_tick", 10)),
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
    merge(FieldMerge::own_first, in_six(InSix::another, integer("score", 1))),
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
    in_six(InSix::another, integer("angle", 3)),
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
