// The messages of Teeworlds 0.7, and those that DDNet sends to 0.7 clients and servers.

#include "proxy/wire/message_layouts.h"
#include "snapshot/names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tw::wire::table {
// Constants have the same names here as in message_layouts.cpp. The namespace separates them if a
// build compiles both files together.
namespace seven_rows {
namespace {

namespace names = snapshot::names;
namespace seven = snapshot::names::seven;

constexpr std::int64_t kSevenMaxClients = 64;

constexpr MessageField player_id(std::string_view name) {
    return ranged_integer(name, 0, kSevenMaxClientId);
}

constexpr MessageField player_id_or_none(std::string_view name) {
    return ranged_integer(name, -1, kSevenMaxClientId);
}

constexpr MessageField integer_at_least(std::string_view name, std::int64_t min) {
    return ranged_integer(name, min, INT32_MAX);
}

constexpr auto kInfo =
    layout(text("version", kSingleLine), optional(secret(text("password", kSingleLine))),
           optional(integer("client_version")));

// An enter_game with a chunk number is a request for map data: DDNet's client uses the id of 0.6's
// request_map_data, which is the id of enter_game in 0.7. Servers ignore an enter_game that arrives
// before `ready`.
constexpr auto kEnterGame = layout(optional(integer("chunk")));

constexpr auto kRconAuth = layout(text("password", kSingleLine));
constexpr auto kName = layout(text("name", kSingleLine));

constexpr auto kSvKillMsg =
    layout(ranged_integer("killer", -2, kSevenMaxClientId), player_id("victim"),
           ranged_integer("weapon", -3, 5, &names::kill_weapon), "mode_special");

constexpr std::size_t kLaserDamage = 30;
static_assert(kSvTuneParams[kLaserDamage].name == "laser_damage");

// The tuning parameters of 0.6 without laser_damage. Vanilla's last parameter is player_hooking.
// All parameters after it are DDNet's.
constexpr auto kSevenTuneParams = [] {
    std::array<MessageField, kSvTuneParams.size() - 1> fields;
    const auto rest = std::copy_n(kSvTuneParams.begin(), kLaserDamage, fields.begin());
    std::copy(kSvTuneParams.begin() + kLaserDamage + 1, kSvTuneParams.end(), rest);
    return fields;
}();

constexpr auto kSvEmoticon =
    layout(player_id("client_id"), ranged_integer("emoticon", 0, 15, &names::emoticon));

// DDNet always sends 15 descriptions. Only the first `num_options` of them are valid.
constexpr auto kSvVoteOptionListAdd =
    layout("num_options", array_of(text("descriptions", kTrimmedLine), 0),
           optional(strings_until_end("more", kTrimmedLine)));

constexpr auto kSvVoteSet =
    layout(player_id_or_none("client_id"), ranged_integer("type", 0, 6, &seven::vote),
           ranged_integer("timeout", 0, 60), text("description", kTrimmedLine),
           text("reason", kTrimmedLine));

constexpr auto kSvVoteStatus = layout(
    ranged_integer("yes", 0, kSevenMaxClients), ranged_integer("no", 0, kSevenMaxClients),
    ranged_integer("pass", 0, kSevenMaxClients), ranged_integer("total", 0, kSevenMaxClients));

constexpr auto kSvServerSettings =
    layout(boolean("kick_vote"), ranged_integer("kick_min", 0, kSevenMaxClients),
           boolean("spec_vote"), boolean("team_lock"), boolean("team_balance"),
           ranged_integer("player_slots", 0, kSevenMaxClients));

constexpr auto kSvGameInfo =
    layout(flags("game_flags", &seven::gameflag), integer_at_least("score_limit", 0),
           integer_at_least("time_limit", 0), integer_at_least("match_num", 0),
           integer_at_least("match_current", 0));

constexpr MessageField with_names(MessageField field, const snapshot::NameTable* of) {
    field.names = of;
    return field;
}

// The id determines whether the message has no parameter or one, which is a team or a client id.
constexpr auto kSvGameMsg =
    layout(with_names(integer("id"), &seven::gamemsg), integers_until_end("parameters"));

constexpr auto kDeClientEnter = layout(text("name", kTrimmedLine), player_id_or_none("client_id"),
                                       ranged_integer("team", -1, 1, &names::team));

constexpr auto kDeClientLeave = layout(text("name", kTrimmedLine), player_id_or_none("client_id"),
                                       text("reason", kTrimmedLine));

constexpr auto kClSay = layout(ranged_integer("mode", 0, 3, &seven::chat),
                               player_id_or_none("target"), text("message", kTrimmedLine));

constexpr auto kClSetSpectatorMode =
    layout(ranged_integer("spec_mode", 0, 3, &seven::spec_mode), player_id_or_none("spectator_id"));

constexpr auto kClStartInfo = layout(text("name", kTrimmedLine), text("clan", kTrimmedLine),
                                     "country", kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kClCallVote = layout(text("type", kTrimmedLine), text("value", kTrimmedLine),
                                    text("reason", kTrimmedLine), boolean("force"));

constexpr auto kSvSkinChange =
    layout(player_id("client_id"), kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kClSkinChange = layout(kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kSvRaceFinish =
    layout(player_id("client_id"), integer_at_least("time", -1), "diff", boolean("record_personal"),
           with_default(boolean("record_server"), 0));

constexpr auto kSvCheckpoint = layout("diff");

constexpr auto kClCommand = layout(text("name", kTrimmedLine), text("arguments", kTrimmedLine));

constexpr MessageSpec kMessages[] = {
    system_message(1, "info", c2s, kInfo),
    system_message(2, "map_change", s2c, kSevenMapChange),
    system_message(3, "map_data", s2c, kSevenMapData),
    system_message(4, "server_info", s2c, kServerInfo),
    system_message(5, "con_ready", s2c),
    non_vital(system_message(6, "snap", s2c, kSnap)),
    non_vital(system_message(7, "snap_empty", s2c, kSnapEmpty)),
    non_vital(system_message(8, "snap_single", s2c, kSnapSingle)),
    non_vital(system_message(9, "snap_small", none)),
    non_vital(system_message(10, "input_timing", s2c, kInputTiming)),
    secret(system_message(11, "rcon_auth_on", s2c)),
    secret(system_message(12, "rcon_auth_off", s2c)),
    secret(system_message(13, "rcon_line", s2c, kRconLine)),
    secret(system_message(14, "rcon_cmd_add", s2c, kRconCmdAdd)),
    secret(system_message(15, "rcon_cmd_rem", s2c, kRconCmdRem)),
    secret(non_vital(system_message(16, "unused_16", none))),
    secret(non_vital(system_message(17, "unused_17", none))),
    system_message(18, "ready", c2s),
    system_message(19, "enter_game", c2s, kEnterGame),
    non_vital(system_message(20, "input", c2s, kSevenInput)),
    secret(system_message(21, "rcon_cmd", c2s, kRconCmd)),
    secret(system_message(22, "rcon_auth", c2s, kRconAuth)),
    system_message(23, "request_map_data", c2s),
    non_vital(system_message(24, "unused_24", none)),
    non_vital(system_message(25, "unused_25", none)),
    non_vital(system_message(26, "ping", both)),
    non_vital(system_message(27, "ping_reply", both)),
    non_vital(system_message(28, "unused_28", none)),
    secret(system_message(29, "maplist_entry_add", s2c, kName)),
    secret(system_message(30, "maplist_entry_rem", s2c, kName)),
    game_message(1, "sv_motd", s2c, kMessage),
    game_message(2, "sv_broadcast", s2c, kMessage),
    game_message(3, "sv_chat", s2c, kSevenSvChat),
    game_message(4, "sv_team", s2c, kSvTeam),
    game_message(5, "sv_kill_msg", s2c, kSvKillMsg),
    game_message(6, "sv_tune_params", s2c, kSevenTuneParams),
    game_message(7, "sv_extra_projectile", s2c),
    game_message(8, "sv_ready_to_enter", s2c),
    game_message(9, "sv_weapon_pickup", s2c, kSvWeaponPickup),
    game_message(10, "sv_emoticon", s2c, kSvEmoticon),
    game_message(11, "sv_vote_clear_options", s2c),
    game_message(12, "sv_vote_option_list_add", s2c, kSvVoteOptionListAdd),
    game_message(13, "sv_vote_option_add", s2c, kDescription),
    game_message(14, "sv_vote_option_remove", s2c, kDescription),
    game_message(15, "sv_vote_set", s2c, kSvVoteSet),
    game_message(16, "sv_vote_status", s2c, kSvVoteStatus),
    game_message(17, "sv_server_settings", s2c, kSvServerSettings),
    game_message(18, "sv_client_info", s2c, kSvClientInfo),
    game_message(19, "sv_game_info", s2c, kSvGameInfo),
    game_message(20, "sv_client_drop", s2c, kSvClientDrop),
    game_message(21, "sv_game_msg", s2c, kSvGameMsg),
    game_message(22, "de_client_enter", none, kDeClientEnter),
    game_message(23, "de_client_leave", none, kDeClientLeave),
    game_message(24, "cl_say", c2s, kClSay),
    game_message(25, "cl_set_team", c2s, kClSetTeam),
    game_message(26, "cl_set_spectator_mode", c2s, kClSetSpectatorMode),
    game_message(27, "cl_start_info", c2s, kClStartInfo),
    game_message(28, "cl_kill", c2s),
    game_message(29, "cl_ready_change", c2s),
    game_message(30, "cl_emoticon", c2s, kClEmoticon),
    game_message(31, "cl_vote", c2s, kClVote),
    game_message(32, "cl_call_vote", c2s, kClCallVote),
    game_message(33, "sv_skin_change", s2c, kSvSkinChange),
    game_message(34, "cl_skin_change", c2s, kClSkinChange),
    game_message(35, "sv_race_finish", s2c, kSvRaceFinish),
    game_message(36, "sv_checkpoint", s2c, kSvCheckpoint),
    game_message(37, "sv_command_info", s2c, kSvCommandInfo),
    game_message(38, "sv_command_info_remove", s2c, kSvCommandInfoRemove),
    game_message(39, "cl_command", c2s, kClCommand),
};

} // namespace
} // namespace seven_rows

std::span<const MessageSpec> seven_messages() {
    return seven_rows::kMessages;
}

std::span<const MessageField> seven_tuning_fields(std::span<const std::byte> body) {
    constexpr std::ptrdiff_t kWithDamage = 45;
    constexpr auto kMore = std::byte{0x80}; // set in each byte of a varint except the last byte
    const auto ints = std::count_if(body.begin(), body.end(),
                                    [](std::byte b) { return (b & kMore) == std::byte{}; });
    return ints == kWithDamage ? std::span<const MessageField>{kSvTuneParams}
                               : std::span<const MessageField>{seven_rows::kSevenTuneParams};
}

} // namespace tw::wire::table
