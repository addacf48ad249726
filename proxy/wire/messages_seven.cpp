// The messages of Teeworlds 0.7, and those that DDNet sends to 0.7 clients and servers.

#include "proxy/wire/message_layouts.h"
#include "snapshot/names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tw::wire::table {
namespace {

namespace names = snapshot::names;
namespace seven = snapshot::names::seven;

constexpr std::int64_t kSevenMaxClients = 64;

constexpr MessageField player(std::string_view name) {
    return ranged(name, 0, kSevenMaxClientId);
}

constexpr MessageField player_or_none(std::string_view name) {
    return ranged(name, -1, kSevenMaxClientId);
}

constexpr MessageField at_least(std::string_view name, std::int64_t min) {
    return ranged(name, min, INT32_MAX);
}

constexpr auto kInfo =
    layout(text("version", kOneLine), optional(secret(text("password", kOneLine))),
           optional(integer("client_version")));

// An enter_game with a chunk number is a request for map data: DDNet's client sends the id that
// request_map_data has in 0.6, which in 0.7 is the id of enter_game. Servers ignore an enter_game
// that comes before `ready`.
constexpr auto kEnterGame = layout(optional(integer("chunk")));

constexpr auto kRconAuth = layout(text("password", kOneLine));
constexpr auto kName = layout(text("name", kOneLine));

constexpr auto kSvKillMsg = layout(ranged("killer", -2, kSevenMaxClientId), player("victim"),
                                   ranged("weapon", -3, 5, &names::kill_weapon), "mode_special");

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
    layout(player("client_id"), ranged("emoticon", 0, 15, &names::emoticon));

// DDNet always sends 15 descriptions. Only the first `num_options` of them are valid.
constexpr auto kSvVoteOptionListAdd =
    layout("num_options", array_of(text("descriptions", kStrict), 0),
           optional(strings_until_end("more", kStrict)));

constexpr auto kSvVoteSet =
    layout(player_or_none("client_id"), ranged("type", 0, 6, &seven::vote),
           ranged("timeout", 0, 60), text("description", kStrict), text("reason", kStrict));

constexpr auto kSvVoteStatus =
    layout(ranged("yes", 0, kSevenMaxClients), ranged("no", 0, kSevenMaxClients),
           ranged("pass", 0, kSevenMaxClients), ranged("total", 0, kSevenMaxClients));

constexpr auto kSvServerSettings = layout(
    boolean("kick_vote"), ranged("kick_min", 0, kSevenMaxClients), boolean("spec_vote"),
    boolean("team_lock"), boolean("team_balance"), ranged("player_slots", 0, kSevenMaxClients));

constexpr auto kSvGameInfo =
    layout(flags("game_flags", &seven::gameflag), at_least("score_limit", 0),
           at_least("time_limit", 0), at_least("match_num", 0), at_least("match_current", 0));

constexpr MessageField with_names(MessageField field, const snapshot::NameTable* of) {
    field.names = of;
    return field;
}

// The id determines whether the message has no parameter or one, which is a team or a client id.
constexpr auto kSvGameMsg =
    layout(with_names(integer("id"), &seven::gamemsg), integers_until_end("parameters"));

constexpr auto kDeClientEnter =
    layout(text("name", kStrict), player_or_none("client_id"), ranged("team", -1, 1, &names::team));

constexpr auto kDeClientLeave =
    layout(text("name", kStrict), player_or_none("client_id"), text("reason", kStrict));

constexpr auto kClSay =
    layout(ranged("mode", 0, 3, &seven::chat), player_or_none("target"), text("message", kStrict));

constexpr auto kClSetSpectatorMode =
    layout(ranged("spec_mode", 0, 3, &seven::spec_mode), player_or_none("spectator_id"));

constexpr auto kClStartInfo = layout(text("name", kStrict), text("clan", kStrict), "country",
                                     kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kClCallVote = layout(text("type", kStrict), text("value", kStrict),
                                    text("reason", kStrict), boolean("force"));

constexpr auto kSvSkinChange =
    layout(player("client_id"), kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kClSkinChange = layout(kSkinPartNames, kUseCustomColors, kSkinPartColors);

constexpr auto kSvRaceFinish =
    layout(player("client_id"), at_least("time", -1), "diff", boolean("record_personal"),
           with_default(boolean("record_server"), 0));

constexpr auto kSvCheckpoint = layout("diff");

constexpr auto kClCommand = layout(text("name", kStrict), text("arguments", kStrict));

constexpr MessageSpec kMessages[] = {
    system(1, "info", c2s, kInfo),
    system(2, "map_change", s2c, kSevenMapChange),
    system(3, "map_data", s2c, kSevenMapData),
    system(4, "server_info", s2c, kServerInfo),
    system(5, "con_ready", s2c),
    non_vital(system(6, "snap", s2c, kSnap)),
    non_vital(system(7, "snap_empty", s2c, kSnapEmpty)),
    non_vital(system(8, "snap_single", s2c, kSnapSingle)),
    non_vital(system(9, "snap_small", none)),
    non_vital(system(10, "input_timing", s2c, kInputTiming)),
    secret(system(11, "rcon_auth_on", s2c)),
    secret(system(12, "rcon_auth_off", s2c)),
    secret(system(13, "rcon_line", s2c, kRconLine)),
    secret(system(14, "rcon_cmd_add", s2c, kRconCmdAdd)),
    secret(system(15, "rcon_cmd_rem", s2c, kRconCmdRem)),
    secret(non_vital(system(16, "unused_16", none))),
    secret(non_vital(system(17, "unused_17", none))),
    system(18, "ready", c2s),
    system(19, "enter_game", c2s, kEnterGame),
    non_vital(system(20, "input", c2s, kSevenInput)),
    secret(system(21, "rcon_cmd", c2s, kRconCmd)),
    secret(system(22, "rcon_auth", c2s, kRconAuth)),
    system(23, "request_map_data", c2s),
    non_vital(system(24, "unused_24", none)),
    non_vital(system(25, "unused_25", none)),
    non_vital(system(26, "ping", both)),
    non_vital(system(27, "ping_reply", both)),
    non_vital(system(28, "unused_28", none)),
    secret(system(29, "maplist_entry_add", s2c, kName)),
    secret(system(30, "maplist_entry_rem", s2c, kName)),
    game(1, "sv_motd", s2c, kMessage),
    game(2, "sv_broadcast", s2c, kMessage),
    game(3, "sv_chat", s2c, kSevenSvChat),
    game(4, "sv_team", s2c, kSvTeam),
    game(5, "sv_kill_msg", s2c, kSvKillMsg),
    game(6, "sv_tune_params", s2c, kSevenTuneParams),
    game(7, "sv_extra_projectile", s2c),
    game(8, "sv_ready_to_enter", s2c),
    game(9, "sv_weapon_pickup", s2c, kSvWeaponPickup),
    game(10, "sv_emoticon", s2c, kSvEmoticon),
    game(11, "sv_vote_clear_options", s2c),
    game(12, "sv_vote_option_list_add", s2c, kSvVoteOptionListAdd),
    game(13, "sv_vote_option_add", s2c, kDescription),
    game(14, "sv_vote_option_remove", s2c, kDescription),
    game(15, "sv_vote_set", s2c, kSvVoteSet),
    game(16, "sv_vote_status", s2c, kSvVoteStatus),
    game(17, "sv_server_settings", s2c, kSvServerSettings),
    game(18, "sv_client_info", s2c, kSvClientInfo),
    game(19, "sv_game_info", s2c, kSvGameInfo),
    game(20, "sv_client_drop", s2c, kSvClientDrop),
    game(21, "sv_game_msg", s2c, kSvGameMsg),
    game(22, "de_client_enter", none, kDeClientEnter),
    game(23, "de_client_leave", none, kDeClientLeave),
    game(24, "cl_say", c2s, kClSay),
    game(25, "cl_set_team", c2s, kClSetTeam),
    game(26, "cl_set_spectator_mode", c2s, kClSetSpectatorMode),
    game(27, "cl_start_info", c2s, kClStartInfo),
    game(28, "cl_kill", c2s),
    game(29, "cl_ready_change", c2s),
    game(30, "cl_emoticon", c2s, kClEmoticon),
    game(31, "cl_vote", c2s, kClVote),
    game(32, "cl_call_vote", c2s, kClCallVote),
    game(33, "sv_skin_change", s2c, kSvSkinChange),
    game(34, "cl_skin_change", c2s, kClSkinChange),
    game(35, "sv_race_finish", s2c, kSvRaceFinish),
    game(36, "sv_checkpoint", s2c, kSvCheckpoint),
    game(37, "sv_command_info", s2c, kSvCommandInfo),
    game(38, "sv_command_info_remove", s2c, kSvCommandInfoRemove),
    game(39, "cl_command", c2s, kClCommand),
};

} // namespace

std::span<const MessageSpec> seven_messages() {
    return kMessages;
}

std::span<const MessageField> seven_tuning_fields(std::span<const std::byte> body) {
    constexpr std::ptrdiff_t kWithDamage = 45;
    constexpr auto kMore = std::byte{0x80}; // set in each byte of a varint except the last byte
    const auto ints = std::count_if(body.begin(), body.end(),
                                    [](std::byte b) { return (b & kMore) == std::byte{}; });
    return ints == kWithDamage ? std::span<const MessageField>{kSvTuneParams}
                               : std::span<const MessageField>{kSevenTuneParams};
}

} // namespace tw::wire::table
