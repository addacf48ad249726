#pragma once

#include "proxy/wire/message_builders.h"
#include "snapshot/names.h"
#include "snapshot/names_seven.h"

/// The fields of the messages that the program acts on: rows of the message table that bodies.cpp
/// reads into typed values, too. And the fields that stand in no message's row: inside of others,
/// and of control packets.
namespace tw::wire::table {

inline constexpr MessageField kMapChange[] = {text("name", kStrict), integer("crc"),
                                              integer("size")};

inline constexpr MessageField kMapData[] = {integer("last"), integer("crc"), integer("chunk"),
                                            integer("size"), raw("data")};

inline constexpr MessageField kSnap[] = {
    integer("tick"), integer("delta_tick"), integer("num_parts"), integer("part"),
    integer("crc"),  integer("part_size"),  raw("data")};

inline constexpr MessageField kSnapEmpty[] = {integer("tick"), integer("delta_tick")};

inline constexpr MessageField kSnapSingle[] = {integer("tick"), integer("delta_tick"),
                                               integer("crc"), integer("part_size"), raw("data")};

inline constexpr MessageField kInputTiming[] = {integer("input_pred_tick"), integer("time_left")};

inline constexpr MessageField kInput[] = {integer("ack_tick"), integer("intended_tick"),
                                          integer("size"), object("data", "player_input")};

inline constexpr MessageField kMapDetails[] = {text("name", kStrict), sha256("sha256"),
                                               integer("crc"), integer("size"),
                                               optional(text("url", kOneLine))};

inline constexpr MessageField kClientVersion[] = {uuid("connection_id"), integer("ddnet_version"),
                                                  text("version_string", kOneLine)};

inline constexpr MessageField kSvChat[] = {ranged("team", -2, 3, &snapshot::names::chat_team),
                                           ranged("client_id", -1, kMaxClientId),
                                           text("message", kOneLine)};

inline constexpr MessageField kSvCommandInfo[] = {
    text("name", kStrict), text("args_format", kStrict), text("help_text", kStrict)};

inline constexpr MessageField kSvCommandInfoRemove[] = {text("name", kStrict)};

inline constexpr MessageField kSvTuneParams[] = {tuning("ground_control_speed"),
                                                 tuning("ground_control_accel"),
                                                 tuning("ground_friction"),
                                                 tuning("ground_jump_impulse"),
                                                 tuning("air_jump_impulse"),
                                                 tuning("air_control_speed"),
                                                 tuning("air_control_accel"),
                                                 tuning("air_friction"),
                                                 tuning("hook_length"),
                                                 tuning("hook_fire_speed"),
                                                 tuning("hook_drag_accel"),
                                                 tuning("hook_drag_speed"),
                                                 tuning("gravity"),
                                                 tuning("velramp_start"),
                                                 tuning("velramp_range"),
                                                 tuning("velramp_curvature"),
                                                 tuning("gun_curvature"),
                                                 tuning("gun_speed"),
                                                 tuning("gun_lifetime"),
                                                 tuning("shotgun_curvature"),
                                                 tuning("shotgun_speed"),
                                                 tuning("shotgun_speeddiff"),
                                                 tuning("shotgun_lifetime"),
                                                 tuning("grenade_curvature"),
                                                 tuning("grenade_speed"),
                                                 tuning("grenade_lifetime"),
                                                 tuning("laser_reach"),
                                                 tuning("laser_bounce_delay"),
                                                 tuning("laser_bounce_num"),
                                                 tuning("laser_bounce_cost"),
                                                 tuning("laser_damage"),
                                                 tuning("player_collision"),
                                                 tuning("player_hooking"),
                                                 tuning("jetpack_strength"),
                                                 tuning("shotgun_strength"),
                                                 tuning("explosion_strength"),
                                                 tuning("hammer_strength"),
                                                 tuning("hook_duration"),
                                                 tuning("hammer_fire_delay"),
                                                 tuning("gun_fire_delay"),
                                                 tuning("shotgun_fire_delay"),
                                                 tuning("grenade_fire_delay"),
                                                 tuning("laser_fire_delay"),
                                                 tuning("ninja_fire_delay"),
                                                 tuning("hammer_hit_fire_delay"),
                                                 tuning("ground_elasticity_x"),
                                                 tuning("ground_elasticity_y"),
                                                 optional(integers("more"))};

/// Of 0.7 (0.7 sheet, sections 5.2 and 5.3).
inline constexpr std::int64_t kSevenMaxClientId = 63;

inline constexpr MessageField kSevenMapChange[] = {
    text("name", kOneLine),        integer("crc"),        integer("size"),
    integer("chunks_per_request"), integer("chunk_size"), optional(sha256("sha256"))};

inline constexpr MessageField kSevenMapData[] = {
    {.name = "data", .type = FieldType::raw_until_end}};

inline constexpr MessageField kSevenInput[] = {integer("ack_tick"), integer("intended_tick"),
                                               integer("size"), object("data", "player_input"),
                                               optional(integer("ping_correction"))};

inline constexpr MessageField kSevenSvChat[] = {
    ranged("mode", 0, 3, &snapshot::names::seven::chat), ranged("client_id", -1, kSevenMaxClientId),
    ranged("target_id", -1, kSevenMaxClientId), text("message", kStrict)};

inline constexpr MessageField kSvTeam[] = {
    ranged("client_id", -1, kSevenMaxClientId),
    ranged("team", -1, 1, &snapshot::names::team),
    boolean("silent"),
    {.name = "cooldown_tick", .type = FieldType::tick, .min = 0, .max = INT32_MAX}};

/// Of each part of a skin: body, marking, decoration, hands, feet, eyes.
inline constexpr std::uint8_t kSkinParts = 6;
inline constexpr MessageField kSkinPartNames =
    array_of(text("skin_part_names", kStrict), kSkinParts);
inline constexpr MessageField kUseCustomColors = array_of(boolean("use_custom_colors"), kSkinParts);
inline constexpr MessageField kSkinPartColors = array_of(integer("skin_part_colors"), kSkinParts);

inline constexpr MessageField kSvClientInfo[] = {ranged("client_id", 0, kSevenMaxClientId),
                                                 boolean("local"),
                                                 ranged("team", -1, 1, &snapshot::names::team),
                                                 text("name", kStrict),
                                                 text("clan", kStrict),
                                                 integer("country"),
                                                 kSkinPartNames,
                                                 kUseCustomColors,
                                                 kSkinPartColors,
                                                 boolean("silent")};

inline constexpr MessageField kSvClientDrop[] = {ranged("client_id", 0, kSevenMaxClientId),
                                                 text("reason", kStrict), boolean("silent")};

/// What a server of 0.7 tells of itself, to its clients and to who asks.
inline constexpr MessageField kServerInfo[] = {
    text("version", kOneLine),   text("name", kOneLine),
    text("hostname", kOneLine),  text("map", kOneLine),
    text("game_type", kOneLine), flags("flags", &snapshot::names::seven::serverinfoflag),
    ranged("skill_level", 0, 2), integer("num_players"),
    integer("max_players"),      integer("num_clients"),
    integer("max_clients")};

/// A player in a server info answer of 0.7. Kind: bit 0 spectator, bit 1 bot.
inline constexpr MessageField kSevenClient[] = {
    {.name = "name", .type = FieldType::string},     {.name = "clan", .type = FieldType::string},
    {.name = "country", .type = FieldType::integer}, {.name = "score", .type = FieldType::integer},
    {.name = "kind", .type = FieldType::integer},
};

/// A player in a server info answer. The last one only in the extended kinds.
inline constexpr MessageField kClient[] = {
    {.name = "name", .type = FieldType::string},
    {.name = "clan", .type = FieldType::string},
    {.name = "country", .type = FieldType::decimal_string},
    {.name = "score", .type = FieldType::decimal_string},
    {.name = "is_player", .type = FieldType::decimal_string},
    {.name = "reserved", .type = FieldType::string},
};

/// A server in a master's list.
inline constexpr MessageField kAddress{.name = "address", .type = FieldType::raw};
inline constexpr MessageField kPort{
    .name = "port", .type = FieldType::u16_be, .min = 0, .max = 0xffff};

/// Ints of an object beyond those that its description has.
inline constexpr MessageField kSurplus{.name = "more", .type = FieldType::integers_until_end};

/// Of control packets: why a CLOSE came, and the token of any.
inline constexpr MessageField kCloseReason{.name = "reason", .type = FieldType::string};
inline constexpr MessageField kControlToken{.name = "token", .type = FieldType::raw};

} // namespace tw::wire::table
