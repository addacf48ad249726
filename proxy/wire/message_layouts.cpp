#include "proxy/wire/message_layouts.h"

#include <algorithm>
#include <array>
#include <vector>

namespace tw::wire::table {
namespace {

namespace names = snapshot::names;

constexpr auto kInfo =
    layout(text("version", kSingleLine), optional(secret(text("password", kSingleLine))));

// The messages of the remote console. Its output may contain passwords of the configuration,
// addresses or private messages. Therefore all fields except numbers and command names are secret.
constexpr auto kRconAuthStatus =
    layout(always_shown(integer("authed")), always_shown(optional(integer("receive_commands"))));

constexpr auto kRconAuth = layout(text("name", kSingleLine), text("password", kSingleLine),
                                  always_shown(optional(integer("request_commands"))));

constexpr auto kRequestMapData = layout("chunk");

constexpr auto kUuid = layout(uuid("uuid"));

constexpr auto kItIs = layout(uuid("uuid"), text("name", kSingleLine));

constexpr auto kRconType = layout(always_shown(flags("flags", &names::rcontypeflag)));

constexpr auto kCapabilities = layout("version", flags("flags", &names::servercapflag));

constexpr auto kRequestId = layout(uuid("id"));

constexpr auto kChecksumRequest = layout(uuid("id"), "start", "length");

constexpr auto kChecksumResponse = layout(uuid("id"), sha256("sha256"));

constexpr auto kChecksumError = layout(uuid("id"), "error");

constexpr auto kRedirect = layout("port");

constexpr auto kCount = layout(always_shown(integer("count")));

constexpr auto kMaplistAdd = layout(strings_until_end("names", kSingleLine));

constexpr MessageSpec kSystemMessages[] = {
    system_message(1, "info", c2s, kInfo),
    system_message(2, "map_change", s2c, kMapChange),
    system_message(3, "map_data", s2c, kMapData),
    system_message(4, "con_ready", s2c),
    non_vital(system_message(5, "snap", s2c, kSnap)),
    non_vital(system_message(6, "snap_empty", s2c, kSnapEmpty)),
    non_vital(system_message(7, "snap_single", s2c, kSnapSingle)),
    non_vital(system_message(8, "snap_small", none)),
    non_vital(system_message(9, "input_timing", s2c, kInputTiming)),
    secret(system_message(10, "rcon_auth_status", s2c, kRconAuthStatus)),
    secret(system_message(11, "rcon_line", s2c, kRconLine)),
    secret(non_vital(system_message(12, "unused_12", none))),
    secret(non_vital(system_message(13, "unused_13", none))),
    system_message(14, "ready", c2s),
    system_message(15, "enter_game", c2s),
    non_vital(system_message(16, "input", c2s, kInput)),
    secret(system_message(17, "rcon_cmd", c2s, kRconCmd)),
    secret(system_message(18, "rcon_auth", c2s, kRconAuth)),
    system_message(19, "request_map_data", c2s, kRequestMapData),
    non_vital(system_message(20, "unused_20", none)),
    non_vital(system_message(21, "unused_21", none)),
    non_vital(system_message(22, "ping", both)),
    non_vital(system_message(23, "ping_reply", both)),
    non_vital(system_message(24, "unused_24", none)),
    secret(system_message(25, "rcon_cmd_add", s2c, kRconCmdAdd)),
    secret(system_message(26, "rcon_cmd_rem", s2c, kRconCmdRem)),
    system_message("245e5097-9fe0-39d6-bf7d-9a29e1691e4c", "what-is@ddnet.tw", "what_is", both,
                   kUuid),
    system_message("6954847e-2e87-3603-b562-36da29ed1aca", "it-is@ddnet.tw", "it_is", both, kItIs),
    system_message("416911b5-7973-33bf-8d52-7bf01e519cf0", "i-dont-know@ddnet.tw", "i_dont_know",
                   both, kUuid),
    secret(system_message("12810e1f-a1db-3378-b4fb-164ed6505926", "rcon-type@ddnet.tw", "rcon_type",
                          s2c, kRconType)),
    system_message("f9117b3c-8039-3416-9fc0-aef2bcb75c03", "map-details@ddnet.tw", "map_details",
                   s2c, kMapDetails),
    system_message("f621a5a1-f585-3775-8e73-41beee79f2b2", "capabilities@ddnet.tw", "capabilities",
                   s2c, kCapabilities),
    system_message("8c001304-8461-3e47-8787-f672b3835bd4", "clientver@ddnet.tw", "client_version",
                   c2s, kClientVersion),
    non_vital(system_message("bcb43bf5-427c-36d8-b5b8-7975c8c06aa1", "ping@ddnet.tw", "ping_ex",
                             both, kRequestId)),
    non_vital(system_message("d8295530-14a7-3a0a-b02e-b2cee08d2033", "pong@ddnet.tw", "pong_ex",
                             both, kRequestId)),
    system_message("60a7cef1-2ecc-3ed4-b138-00fd0c8f5994", "checksum-request@ddnet.tw",
                   "checksum_request", s2c, kChecksumRequest),
    system_message("88fc61ec-5a3c-3fc3-8dfa-fd3b715db9e0", "checksum-response@ddnet.tw",
                   "checksum_response", c2s, kChecksumResponse),
    system_message("090960d1-4000-3fd5-9670-4976ae702a6a", "checksum-error@ddnet.tw",
                   "checksum_error", c2s, kChecksumError),
    system_message("4efe406a-7774-33f1-bfde-1806ff6d1528", "redirect@ddnet.org", "redirect", s2c,
                   kRedirect),
    secret(system_message("85f67ffe-f1b1-3af3-98c4-26dbf77111b7", "rcon-cmd-group-start@ddnet.org",
                          "rcon_cmd_group_start", s2c, kCount)),
    secret(system_message("5e02c980-6ca1-3c99-a9af-4650ae956252", "rcon-cmd-group-end@ddnet.org",
                          "rcon_cmd_group_end", s2c)),
    system_message("9a9b28a3-19b0-37d9-b1f4-2cccfba05bac", "map-reload@ddnet.org", "map_reload",
                   s2c),
    system_message("5f4d5db7-3947-3711-b04e-07a1ff23c970", "reconnect@ddnet.org", "reconnect", s2c),
    secret(system_message("ca956101-b034-3339-92ca-aa104b20d770", "sv-maplist-add@ddnet.org",
                          "maplist_add", s2c, kMaplistAdd)),
    secret(system_message("d2fafec0-5cd2-319a-a84d-480f2072dee4", "sv-maplist-start@ddnet.org",
                          "maplist_group_start", s2c, kCount)),
    secret(system_message("43fd0a8b-8b23-350d-b3f6-0de549246a70", "sv-maplist-end@ddnet.org",
                          "maplist_group_end", s2c)),
};

constexpr auto kSvKillMsg =
    layout(client_id("killer"), client_id("victim"),
           ranged_integer("weapon", -3, 5, &names::kill_weapon), "mode_special");

constexpr auto kSvSoundGlobal = layout(ranged_integer("sound_id", 0, 40, &names::sound));

constexpr auto kSvExtraProjectile = layout("num", objects("projectiles", "projectile"));

constexpr auto kSvEmoticon =
    layout(client_id("client_id"), ranged_integer("emoticon", 0, 15, &names::emoticon));

constexpr auto kSvVoteOptionListAdd =
    layout(ranged_integer("num_options", 1, 15), text("description0", kTrimmedLine),
           text("description1", kTrimmedLine), text("description2", kTrimmedLine),
           text("description3", kTrimmedLine), text("description4", kTrimmedLine),
           text("description5", kTrimmedLine), text("description6", kTrimmedLine),
           text("description7", kTrimmedLine), text("description8", kTrimmedLine),
           text("description9", kTrimmedLine), text("description10", kTrimmedLine),
           text("description11", kTrimmedLine), text("description12", kTrimmedLine),
           text("description13", kTrimmedLine), text("description14", kTrimmedLine));

constexpr auto kSvVoteSet = layout(ranged_integer("timeout", 0, INT32_MAX),
                                   text("description", kTrimmedLine), text("reason", kTrimmedLine));

constexpr auto kSvVoteStatus =
    layout(ranged_integer("yes", 0, kMaxClients), ranged_integer("no", 0, kMaxClients),
           ranged_integer("pass", 0, kMaxClients), ranged_integer("total", 0, kMaxClients));

constexpr auto kClSay = layout(boolean("team"), text("message", kSingleLine));

constexpr auto kClSetSpectatorMode =
    layout(ranged_integer("spectator_id", -1, kMaxClientId, &names::spectator_special));

constexpr auto kPlayerInfo =
    layout(text("name", kTrimmedLine), text("clan", kTrimmedLine), "country",
           text("skin", kTrimmedLine), boolean("use_custom_color"), "color_body", "color_feet");

constexpr auto kClCallVote =
    layout(text("type", kTrimmedLine), text("value", kTrimmedLine), text("reason", kTrimmedLine));

constexpr auto kClIsDdnetLegacy = layout(optional(integer("ddnet_version")));

constexpr auto kRaceTime = layout("time", "check", ranged_integer("finish", 0, 1));

constexpr auto kRecord = layout("server_time_best", "player_time_best");

constexpr auto kSvPlayerTime = layout("time", client_id("client_id"));

constexpr auto kTeamsState = layout(integers_until_end("teams", 0, kMaxTeam));

constexpr auto kClShowOthersLegacy = layout(boolean("show"));

constexpr auto kSvMyOwnMessage = layout("test");

constexpr auto kClShowDistance = layout("x", "y");

constexpr auto kClShowOthers = layout(ranged_integer("show", 0, 2));

constexpr auto kClCameraInfo = layout("zoom", "deadzone", "follow_factor");

constexpr auto kSvKillMsgTeam =
    layout(ranged_integer("team", 0, kMaxClientId), ranged_integer("first", -1, kMaxClientId));

constexpr auto kSvYourVote = layout(ranged_integer("voted", -1, 1));

constexpr auto kSvRaceFinish =
    layout(client_id("client_id"), "time", "diff", boolean("record_personal"),
           with_default(boolean("record_server"), 0));

constexpr auto kSvChangeInfoCooldown = layout(tick("wait_until"));

constexpr auto kSvMapSoundGlobal = layout("sound_id");

constexpr auto kSvPreInput =
    layout("direction", "target_x", "target_y", "jump", "fire", "hook", "wanted_weapon",
           "next_weapon", "prev_weapon", client_id("owner"), tick("intended_tick"));

constexpr auto kSvSaveCode =
    layout(ranged_integer("state", 0, 4, &names::savestate), text("error", kTrimmedLine),
           text("save_requester", kTrimmedLine), text("server_name", kTrimmedLine),
           secret(text("generated_code", kTrimmedLine)), secret(text("code", kTrimmedLine)),
           text("team_members", kTrimmedLine));

constexpr auto kClEnableSpectatorCount = layout(boolean("enable"));

constexpr auto kSvMapInfo = layout(text("description", kMultiLine));

constexpr MessageSpec kGameMessages[] = {
    game_message(1, "sv_motd", s2c, kMessage),
    game_message(2, "sv_broadcast", s2c, kMessage),
    game_message(3, "sv_chat", s2c, kSvChat),
    game_message(4, "sv_kill_msg", s2c, kSvKillMsg),
    game_message(5, "sv_sound_global", s2c, kSvSoundGlobal),
    game_message(6, "sv_tune_params", s2c, kSvTuneParams),
    game_message(7, "sv_extra_projectile", s2c, kSvExtraProjectile),
    game_message(8, "sv_ready_to_enter", s2c),
    game_message(9, "sv_weapon_pickup", s2c, kSvWeaponPickup),
    game_message(10, "sv_emoticon", s2c, kSvEmoticon),
    game_message(11, "sv_vote_clear_options", s2c),
    game_message(12, "sv_vote_option_list_add", s2c, kSvVoteOptionListAdd),
    game_message(13, "sv_vote_option_add", s2c, kDescription),
    game_message(14, "sv_vote_option_remove", s2c, kDescription),
    game_message(15, "sv_vote_set", s2c, kSvVoteSet),
    game_message(16, "sv_vote_status", s2c, kSvVoteStatus),
    game_message(17, "cl_say", c2s, kClSay),
    game_message(18, "cl_set_team", c2s, kClSetTeam),
    game_message(19, "cl_set_spectator_mode", c2s, kClSetSpectatorMode),
    game_message(20, "cl_start_info", c2s, kPlayerInfo),
    game_message(21, "cl_change_info", c2s, kPlayerInfo),
    game_message(22, "cl_kill", c2s),
    game_message(23, "cl_emoticon", c2s, kClEmoticon),
    game_message(24, "cl_vote", c2s, kClVote),
    game_message(25, "cl_call_vote", c2s, kClCallVote),
    game_message(26, "cl_is_ddnet_legacy", c2s, kClIsDdnetLegacy),
    game_message(27, "sv_ddrace_time_legacy", s2c, kRaceTime),
    game_message(28, "sv_record_legacy", s2c, kRecord),
    removed_in(13021, game_message(29, "sv_player_time", s2c, kSvPlayerTime)),
    game_message(30, "sv_teams_state_legacy", s2c, kTeamsState),
    game_message(31, "cl_show_others_legacy", c2s, kClShowOthersLegacy),
    game_message("1231e484-f607-3722-a89a-bd85db46f5d2", "my-own-message@heinrich5991.de",
                 "sv_my_own_message", s2c, kSvMyOwnMessage),
    game_message("53bb28af-4252-3ac9-8fd3-6ccbc2a603e3", "show-distance@netmsg.ddnet.tw",
                 "cl_show_distance", c2s, kClShowDistance),
    game_message("7f264cdd-71a2-3962-bbce-0f94bbd81913", "showothers@netmsg.ddnet.tw",
                 "cl_show_others", c2s, kClShowOthers),
    game_message("8c470228-ee11-3808-93b9-c5c87d08b51c", "camera-info@netmsg.ddnet.org",
                 "cl_camera_info", c2s, kClCameraInfo),
    game_message("a091961a-95e8-3744-bb60-5eac9bd563c6", "teamsstate@netmsg.ddnet.tw",
                 "sv_teams_state", s2c, kTeamsState),
    game_message("5dde8b3c-6f6f-37ac-a72a-bb341fe76de5", "ddrace-time@netmsg.ddnet.tw",
                 "sv_ddrace_time", s2c, kRaceTime),
    game_message("804f149f-9b53-3b0a-897f-59663a1c4eb9", "record@netmsg.ddnet.tw", "sv_record", s2c,
                 kRecord),
    game_message("ee610b6f-909f-311e-93f7-11a95f55a086", "killmsgteam@netmsg.ddnet.tw",
                 "sv_kill_msg_team", s2c, kSvKillMsgTeam),
    game_message("bfd7f0fc-16d5-3e10-8015-a78380f13870", "yourvote@netmsg.ddnet.org",
                 "sv_your_vote", s2c, kSvYourVote),
    game_message("c915ba68-0a49-3324-915a-7a6220cecf33", "racefinish@netmsg.ddnet.org",
                 "sv_race_finish", s2c, kSvRaceFinish),
    game_message("90778f65-1b8f-322a-9713-cf741aa44a05", "commandinfo@netmsg.ddnet.org",
                 "sv_command_info", s2c, kSvCommandInfo),
    game_message("eb2e77ce-e9a2-35aa-94be-235f523ac1aa", "commandinfo-remove@netmsg.ddnet.org",
                 "sv_command_info_remove", s2c, kSvCommandInfoRemove),
    game_message("969d127c-b768-390d-8879-6104993769fa",
                 "sv-vote-option-group-start@netmsg.ddnet.org", "sv_vote_option_group_start", s2c),
    game_message("4f096765-39b1-3766-82dc-61b20ccf589a",
                 "sv-vote-option-group-end@netmsg.ddnet.org", "sv_vote_option_group_end", s2c),
    game_message("9e220138-d393-3cb0-90f1-e587c00ab1d0",
                 "sv-commandinfo-group-start@netmsg.ddnet.org", "sv_command_info_group_start", s2c),
    game_message("054125d8-0062-3891-840b-47462285a01f",
                 "sv-commandinfo-group-end@netmsg.ddnet.org", "sv_command_info_group_end", s2c),
    game_message("746cb54c-6b2b-39a7-8cd8-7c7a1c6c3009", "change-info-cooldown@netmsg.ddnet.org",
                 "sv_change_info_cooldown", s2c, kSvChangeInfoCooldown),
    game_message("669c9741-695a-369b-856c-a254f6b7f0cb", "map-sound-global@netmsg.ddnet.org",
                 "sv_map_sound_global", s2c, kSvMapSoundGlobal),
    non_vital(game_message("b5d3a686-ad59-382c-b3de-d9fedc3320ae", "preinput@netmsg.ddnet.org",
                           "sv_pre_input", s2c, kSvPreInput)),
    game_message("dc9edffb-266a-3bd6-b101-a949fa44e16b", "save-code@netmsg.ddnet.org",
                 "sv_save_code", s2c, kSvSaveCode),
    game_message("035206dc-9f8b-315c-9abf-5ab9153a857c", "server-alert@netmsg.ddnet.org",
                 "sv_server_alert", s2c, kMessage),
    secret(game_message("d7c55683-7983-32f0-8d9a-877434ea19d5", "moderator-alert@netmsg.ddnet.org",
                        "sv_moderator_alert", s2c, kMessage)),
    game_message("e19b66e8-0646-351b-aa03-d4aba7b9545f", "enable-spectator-count@netmsg.ddnet.org",
                 "cl_enable_spectator_count", c2s, kClEnableSpectatorCount),
    game_message("da46b81d-a060-30c3-9abb-dd2945e8edb4", "map-info@netmsg.ddnet.org", "sv_map_info",
                 s2c, kSvMapInfo),
};

} // namespace

} // namespace tw::wire::table

namespace tw::wire {
namespace {

/// All integer message ids are less than this: at most 31 in 0.6, at most 39 in 0.7.
constexpr std::size_t kNumClassicIds = 64;

/// Finds message types by id or by UUID.
class MessageIndex {
  public:
    MessageIndex() {
        using namespace table;
        messages_.assign(std::begin(kSystemMessages), std::end(kSystemMessages));
        messages_.insert(messages_.end(), std::begin(kGameMessages), std::end(kGameMessages));
        for (const MessageSpec& message : seven_messages()) {
            messages_.push_back(message);
            messages_.back().dialect = snapshot::Dialect::seven;
        }
        for (const auto& message : messages_) {
            if (message.number != 0) {
                classic_[row_index(message.system, message.dialect)]
                        [message.number % kNumClassicIds] = &message;
            } else {
                with_uuid_.push_back(&message);
            }
        }
        std::ranges::sort(with_uuid_, {}, &MessageSpec::uuid);
    }

    [[nodiscard]] std::span<const MessageSpec> messages() const { return messages_; }

    [[nodiscard]] const MessageSpec* find(bool system, std::uint16_t number,
                                          snapshot::Dialect dialect) const {
        return number < kNumClassicIds ? classic_[row_index(system, dialect)][number] : nullptr;
    }

    [[nodiscard]] const MessageSpec* find(const snapshot::Uuid& uuid) const {
        const auto found = std::ranges::lower_bound(with_uuid_, uuid, {}, &MessageSpec::uuid);
        return found != with_uuid_.end() && (*found)->uuid == uuid ? *found : nullptr;
    }

  private:
    [[nodiscard]] static std::size_t row_index(bool system, snapshot::Dialect dialect) {
        return 2 * static_cast<std::size_t>(dialect) + (system ? 1U : 0U);
    }

    std::vector<MessageSpec> messages_;
    std::array<std::array<const MessageSpec*, kNumClassicIds>, 2 * snapshot::kDialects> classic_{};
    std::vector<const MessageSpec*> with_uuid_; ///< sorted by UUID
};

const MessageIndex& message_index() {
    static const MessageIndex instance;
    return instance;
}

} // namespace

std::span<const MessageSpec> message_table() {
    return message_index().messages();
}

const MessageSpec* find_message(bool system, std::uint16_t number, snapshot::Dialect dialect) {
    return message_index().find(system, number, dialect);
}

const MessageSpec* find_message(const snapshot::Uuid& uuid) {
    return message_index().find(uuid);
}

} // namespace tw::wire
