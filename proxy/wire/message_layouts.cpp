#include "proxy/wire/message_layouts.h"

#include <array>
#include <vector>

namespace tw::wire {
namespace {

/// All integer message ids are less than this: at most 31 in 0.6, at most 39 in 0.7.
constexpr std::size_t kClassicIds = 64;
/// The number of hash slots for UUIDs: a power of two, more than twice the number of UUIDs.
constexpr std::size_t kUuidSlots = 128;

/// Finds message types by id or by UUID.
class MessageIndex {
  public:
    MessageIndex() {
        const auto system = table::system_messages();
        const auto game = table::game_messages();
        const auto seven = table::seven_messages();
        messages_.reserve(system.size() + game.size() + seven.size());
        messages_.insert(messages_.end(), system.begin(), system.end());
        messages_.insert(messages_.end(), game.begin(), game.end());
        messages_.insert(messages_.end(), seven.begin(), seven.end());
        for (const auto& message : messages_) {
            if (message.number != 0) {
                classic_[row(message.system, message.dialect)][message.number % kClassicIds] =
                    &message;
            } else {
                *slot(message.uuid) = &message;
            }
        }
    }

    [[nodiscard]] std::span<const MessageSpec> messages() const { return messages_; }

    [[nodiscard]] const MessageSpec* find(bool system, std::uint16_t number,
                                          snapshot::Dialect dialect) const {
        return number < kClassicIds ? classic_[row(system, dialect)][number] : nullptr;
    }

    [[nodiscard]] const MessageSpec* find(const snapshot::Uuid& uuid) const {
        for (std::size_t at = first_slot(uuid);; at = (at + 1) % kUuidSlots) {
            const MessageSpec* const found = uuids_[at];
            if (found == nullptr || found->uuid == uuid) {
                return found;
            }
        }
    }

  private:
    [[nodiscard]] static std::size_t row(bool system, snapshot::Dialect dialect) {
        return 2 * static_cast<std::size_t>(dialect) + (system ? 1U : 0U);
    }

    /// Returns the slot where the search for a UUID begins. UUIDs are hashes, so each byte is
    /// evenly distributed. Peers cannot slow a search down, because only UUIDs of the table are
    /// stored.
    [[nodiscard]] static std::size_t first_slot(const snapshot::Uuid& uuid) {
        return uuid[0] % kUuidSlots;
    }

    [[nodiscard]] const MessageSpec** slot(const snapshot::Uuid& uuid) {
        std::size_t at = first_slot(uuid);
        while (uuids_[at] != nullptr) {
            at = (at + 1) % kUuidSlots;
        }
        return &uuids_[at];
    }

    std::vector<MessageSpec> messages_;
    std::array<std::array<const MessageSpec*, kClassicIds>, 2 * snapshot::kDialects> classic_{};
    std::array<const MessageSpec*, kUuidSlots> uuids_{};
};

const MessageIndex& index() {
    static const MessageIndex instance;
    return instance;
}

} // namespace

std::span<const MessageSpec> message_table() {
    return index().messages();
}

const MessageSpec* find_message(bool system, std::uint16_t number, snapshot::Dialect dialect) {
    return index().find(system, number, dialect);
}

const MessageSpec* find_message(const snapshot::Uuid& uuid) {
    return index().find(uuid);
}

} // namespace tw::wire

namespace tw::wire::table {
namespace {

namespace names = snapshot::names;

constexpr MessageField kInfo[] = {text("version", kOneLine),
                                  optional(secret(text("password", kOneLine)))};

// The messages of the remote console. Its output may contain passwords of the configuration,
// addresses or private messages. Therefore all fields except numbers and command names are secret.
constexpr MessageField kRconAuthStatus[] = {always_shown(integer("authed")),
                                            always_shown(optional(integer("receive_commands")))};

constexpr MessageField kRconLine[] = {text("line", kLines)};

constexpr MessageField kRconCmd[] = {text("command", kOneLine)};

constexpr MessageField kRconAuth[] = {text("name", kOneLine), text("password", kOneLine),
                                      always_shown(optional(integer("request_commands")))};

constexpr MessageField kRequestMapData[] = {integer("chunk")};

constexpr MessageField kRconCmdAdd[] = {always_shown(text("name", kOneLine)),
                                        text("help", kOneLine), text("params", kOneLine)};

constexpr MessageField kRconCmdRem[] = {always_shown(text("name", kOneLine))};

constexpr MessageField kUuid[] = {uuid("uuid")};

constexpr MessageField kItIs[] = {uuid("uuid"), text("name", kOneLine)};

constexpr MessageField kRconType[] = {always_shown(flags("flags", &names::rcontypeflag))};

constexpr MessageField kCapabilities[] = {integer("version"),
                                          flags("flags", &names::servercapflag)};

constexpr MessageField kRequestId[] = {uuid("id")};

constexpr MessageField kChecksumRequest[] = {uuid("id"), integer("start"), integer("length")};

constexpr MessageField kChecksumResponse[] = {uuid("id"), sha256("sha256")};

constexpr MessageField kChecksumError[] = {uuid("id"), integer("error")};

constexpr MessageField kRedirect[] = {integer("port")};

constexpr MessageField kCount[] = {always_shown(integer("count"))};

constexpr MessageField kMaplistAdd[] = {strings("names", kOneLine)};

constexpr MessageSpec kSystemMessages[] = {
    classic(Kind::system, 1, "info", MessageDirection::c2s, Vital::yes, kInfo, MessageId::info),
    classic(Kind::system, 2, "map_change", MessageDirection::s2c, Vital::yes, kMapChange,
            MessageId::map_change),
    classic(Kind::system, 3, "map_data", MessageDirection::s2c, Vital::yes, kMapData,
            MessageId::map_data),
    classic(Kind::system, 4, "con_ready", MessageDirection::s2c, Vital::yes, kNoFields,
            MessageId::con_ready),
    classic(Kind::system, 5, "snap", MessageDirection::s2c, Vital::no, kSnap, MessageId::snap),
    classic(Kind::system, 6, "snap_empty", MessageDirection::s2c, Vital::no, kSnapEmpty,
            MessageId::snap_empty),
    classic(Kind::system, 7, "snap_single", MessageDirection::s2c, Vital::no, kSnapSingle,
            MessageId::snap_single),
    classic(Kind::system, 8, "snap_small", MessageDirection::none, Vital::no),
    classic(Kind::system, 9, "input_timing", MessageDirection::s2c, Vital::no, kInputTiming,
            MessageId::input_timing),
    secret(classic(Kind::system, 10, "rcon_auth_status", MessageDirection::s2c, Vital::yes,
                   kRconAuthStatus)),
    secret(classic(Kind::system, 11, "rcon_line", MessageDirection::s2c, Vital::yes, kRconLine)),
    secret(classic(Kind::system, 12, "unused_12", MessageDirection::none, Vital::no)),
    secret(classic(Kind::system, 13, "unused_13", MessageDirection::none, Vital::no)),
    classic(Kind::system, 14, "ready", MessageDirection::c2s, Vital::yes, kNoFields,
            MessageId::ready),
    classic(Kind::system, 15, "enter_game", MessageDirection::c2s, Vital::yes, kNoFields,
            MessageId::enter_game),
    classic(Kind::system, 16, "input", MessageDirection::c2s, Vital::no, kInput, MessageId::input),
    secret(classic(Kind::system, 17, "rcon_cmd", MessageDirection::c2s, Vital::yes, kRconCmd,
                   MessageId::rcon_cmd)),
    secret(classic(Kind::system, 18, "rcon_auth", MessageDirection::c2s, Vital::yes, kRconAuth,
                   MessageId::rcon_auth)),
    classic(Kind::system, 19, "request_map_data", MessageDirection::c2s, Vital::yes,
            kRequestMapData, MessageId::request_map_data),
    classic(Kind::system, 20, "unused_20", MessageDirection::none, Vital::no),
    classic(Kind::system, 21, "unused_21", MessageDirection::none, Vital::no),
    classic(Kind::system, 22, "ping", MessageDirection::both, Vital::no),
    classic(Kind::system, 23, "ping_reply", MessageDirection::both, Vital::no),
    classic(Kind::system, 24, "unused_24", MessageDirection::none, Vital::no),
    secret(
        classic(Kind::system, 25, "rcon_cmd_add", MessageDirection::s2c, Vital::yes, kRconCmdAdd)),
    secret(
        classic(Kind::system, 26, "rcon_cmd_rem", MessageDirection::s2c, Vital::yes, kRconCmdRem)),
    extended(Kind::system, parse_uuid("245e5097-9fe0-39d6-bf7d-9a29e1691e4c"), "what-is@ddnet.tw",
             "what_is", MessageDirection::both, Vital::yes, kUuid),
    extended(Kind::system, parse_uuid("6954847e-2e87-3603-b562-36da29ed1aca"), "it-is@ddnet.tw",
             "it_is", MessageDirection::both, Vital::yes, kItIs),
    extended(Kind::system, parse_uuid("416911b5-7973-33bf-8d52-7bf01e519cf0"),
             "i-dont-know@ddnet.tw", "i_dont_know", MessageDirection::both, Vital::yes, kUuid),
    secret(extended(Kind::system, parse_uuid("12810e1f-a1db-3378-b4fb-164ed6505926"),
                    "rcon-type@ddnet.tw", "rcon_type", MessageDirection::s2c, Vital::yes,
                    kRconType)),
    extended(Kind::system, parse_uuid("f9117b3c-8039-3416-9fc0-aef2bcb75c03"),
             "map-details@ddnet.tw", "map_details", MessageDirection::s2c, Vital::yes, kMapDetails,
             MessageId::map_details),
    extended(Kind::system, parse_uuid("f621a5a1-f585-3775-8e73-41beee79f2b2"),
             "capabilities@ddnet.tw", "capabilities", MessageDirection::s2c, Vital::yes,
             kCapabilities, MessageId::capabilities),
    extended(Kind::system, parse_uuid("8c001304-8461-3e47-8787-f672b3835bd4"), "clientver@ddnet.tw",
             "client_version", MessageDirection::c2s, Vital::yes, kClientVersion,
             MessageId::client_version),
    extended(Kind::system, parse_uuid("bcb43bf5-427c-36d8-b5b8-7975c8c06aa1"), "ping@ddnet.tw",
             "ping_ex", MessageDirection::both, Vital::no, kRequestId),
    extended(Kind::system, parse_uuid("d8295530-14a7-3a0a-b02e-b2cee08d2033"), "pong@ddnet.tw",
             "pong_ex", MessageDirection::both, Vital::no, kRequestId),
    extended(Kind::system, parse_uuid("60a7cef1-2ecc-3ed4-b138-00fd0c8f5994"),
             "checksum-request@ddnet.tw", "checksum_request", MessageDirection::s2c, Vital::yes,
             kChecksumRequest),
    extended(Kind::system, parse_uuid("88fc61ec-5a3c-3fc3-8dfa-fd3b715db9e0"),
             "checksum-response@ddnet.tw", "checksum_response", MessageDirection::c2s, Vital::yes,
             kChecksumResponse),
    extended(Kind::system, parse_uuid("090960d1-4000-3fd5-9670-4976ae702a6a"),
             "checksum-error@ddnet.tw", "checksum_error", MessageDirection::c2s, Vital::yes,
             kChecksumError),
    extended(Kind::system, parse_uuid("4efe406a-7774-33f1-bfde-1806ff6d1528"), "redirect@ddnet.org",
             "redirect", MessageDirection::s2c, Vital::yes, kRedirect),
    secret(extended(Kind::system, parse_uuid("85f67ffe-f1b1-3af3-98c4-26dbf77111b7"),
                    "rcon-cmd-group-start@ddnet.org", "rcon_cmd_group_start", MessageDirection::s2c,
                    Vital::yes, kCount)),
    secret(extended(Kind::system, parse_uuid("5e02c980-6ca1-3c99-a9af-4650ae956252"),
                    "rcon-cmd-group-end@ddnet.org", "rcon_cmd_group_end", MessageDirection::s2c,
                    Vital::yes)),
    extended(Kind::system, parse_uuid("9a9b28a3-19b0-37d9-b1f4-2cccfba05bac"),
             "map-reload@ddnet.org", "map_reload", MessageDirection::s2c, Vital::yes),
    extended(Kind::system, parse_uuid("5f4d5db7-3947-3711-b04e-07a1ff23c970"),
             "reconnect@ddnet.org", "reconnect", MessageDirection::s2c, Vital::yes),
    secret(extended(Kind::system, parse_uuid("ca956101-b034-3339-92ca-aa104b20d770"),
                    "sv-maplist-add@ddnet.org", "maplist_add", MessageDirection::s2c, Vital::yes,
                    kMaplistAdd)),
    secret(extended(Kind::system, parse_uuid("d2fafec0-5cd2-319a-a84d-480f2072dee4"),
                    "sv-maplist-start@ddnet.org", "maplist_group_start", MessageDirection::s2c,
                    Vital::yes, kCount)),
    secret(extended(Kind::system, parse_uuid("43fd0a8b-8b23-350d-b3f6-0de549246a70"),
                    "sv-maplist-end@ddnet.org", "maplist_group_end", MessageDirection::s2c,
                    Vital::yes)),
};

constexpr MessageField kMessage[] = {text("message", kLines)};

constexpr MessageField kSvKillMsg[] = {client_id("killer"), client_id("victim"),
                                       ranged("weapon", -3, 5, &names::kill_weapon),
                                       integer("mode_special")};

constexpr MessageField kSvSoundGlobal[] = {ranged("sound_id", 0, 40, &names::sound)};

constexpr MessageField kSvExtraProjectile[] = {integer("num"),
                                               objects("projectiles", "projectile")};

constexpr MessageField kSvWeaponPickup[] = {ranged("weapon", 0, 5, &names::weapon)};

constexpr MessageField kSvEmoticon[] = {client_id("client_id"),
                                        ranged("emoticon", 0, 15, &names::emoticon)};

constexpr MessageField kSvVoteOptionListAdd[] = {
    ranged("num_options", 1, 15),   text("description0", kStrict),  text("description1", kStrict),
    text("description2", kStrict),  text("description3", kStrict),  text("description4", kStrict),
    text("description5", kStrict),  text("description6", kStrict),  text("description7", kStrict),
    text("description8", kStrict),  text("description9", kStrict),  text("description10", kStrict),
    text("description11", kStrict), text("description12", kStrict), text("description13", kStrict),
    text("description14", kStrict)};

constexpr MessageField kSvVoteOptionAdd[] = {text("description", kStrict)};

constexpr MessageField kSvVoteSet[] = {ranged("timeout", 0, INT32_MAX),
                                       text("description", kStrict), text("reason", kStrict)};

constexpr MessageField kSvVoteStatus[] = {
    ranged("yes", 0, kMaxClients), ranged("no", 0, kMaxClients), ranged("pass", 0, kMaxClients),
    ranged("total", 0, kMaxClients)};

constexpr MessageField kClSay[] = {boolean("team"), text("message", kOneLine)};

constexpr MessageField kClSetTeam[] = {ranged("team", -1, 1, &names::team)};

constexpr MessageField kClSetSpectatorMode[] = {
    ranged("spectator_id", -1, kMaxClientId, &names::spectator_special)};

constexpr MessageField kPlayerInfo[] = {
    text("name", kStrict),       text("clan", kStrict), integer("country"),   text("skin", kStrict),
    boolean("use_custom_color"), integer("color_body"), integer("color_feet")};

constexpr MessageField kClEmoticon[] = {ranged("emoticon", 0, 15, &names::emoticon)};

constexpr MessageField kClVote[] = {ranged("vote", -1, 1)};

constexpr MessageField kClCallVote[] = {text("type", kStrict), text("value", kStrict),
                                        text("reason", kStrict)};

constexpr MessageField kClIsDdnetLegacy[] = {optional(integer("ddnet_version"))};

constexpr MessageField kRaceTime[] = {integer("time"), integer("check"), ranged("finish", 0, 1)};

constexpr MessageField kRecord[] = {integer("server_time_best"), integer("player_time_best")};

constexpr MessageField kSvPlayerTime[] = {integer("time"), client_id("client_id")};

constexpr MessageField kTeamsState[] = {integers("teams", 0, kMaxTeam)};

constexpr MessageField kClShowOthersLegacy[] = {boolean("show")};

constexpr MessageField kSvMyOwnMessage[] = {integer("test")};

constexpr MessageField kClShowDistance[] = {integer("x"), integer("y")};

constexpr MessageField kClShowOthers[] = {ranged("show", 0, 2)};

constexpr MessageField kClCameraInfo[] = {integer("zoom"), integer("deadzone"),
                                          integer("follow_factor")};

constexpr MessageField kSvKillMsgTeam[] = {ranged("team", 0, kMaxClientId),
                                           ranged("first", -1, kMaxClientId)};

constexpr MessageField kSvYourVote[] = {ranged("voted", -1, 1)};

constexpr MessageField kSvRaceFinish[] = {client_id("client_id"), integer("time"), integer("diff"),
                                          boolean("record_personal"),
                                          defaulted(boolean("record_server"), 0)};

constexpr MessageField kSvChangeInfoCooldown[] = {tick("wait_until")};

constexpr MessageField kSvMapSoundGlobal[] = {integer("sound_id")};

constexpr MessageField kSvPreInput[] = {
    integer("direction"),   integer("target_x"), integer("target_y"),      integer("jump"),
    integer("fire"),        integer("hook"),     integer("wanted_weapon"), integer("next_weapon"),
    integer("prev_weapon"), client_id("owner"),  tick("intended_tick")};

constexpr MessageField kSvSaveCode[] = {ranged("state", 0, 4, &names::savestate),
                                        text("error", kStrict),
                                        text("save_requester", kStrict),
                                        text("server_name", kStrict),
                                        secret(text("generated_code", kStrict)),
                                        secret(text("code", kStrict)),
                                        text("team_members", kStrict)};

constexpr MessageField kClEnableSpectatorCount[] = {boolean("enable")};

constexpr MessageField kSvMapInfo[] = {text("description", kLines)};

constexpr MessageSpec kGameMessages[] = {
    classic(Kind::game, 1, "sv_motd", MessageDirection::s2c, Vital::yes, kMessage),
    classic(Kind::game, 2, "sv_broadcast", MessageDirection::s2c, Vital::yes, kMessage),
    classic(Kind::game, 3, "sv_chat", MessageDirection::s2c, Vital::yes, kSvChat,
            MessageId::sv_chat),
    classic(Kind::game, 4, "sv_kill_msg", MessageDirection::s2c, Vital::yes, kSvKillMsg),
    classic(Kind::game, 5, "sv_sound_global", MessageDirection::s2c, Vital::yes, kSvSoundGlobal),
    classic(Kind::game, 6, "sv_tune_params", MessageDirection::s2c, Vital::yes, kSvTuneParams,
            MessageId::sv_tune_params),
    classic(Kind::game, 7, "sv_extra_projectile", MessageDirection::s2c, Vital::yes,
            kSvExtraProjectile),
    classic(Kind::game, 8, "sv_ready_to_enter", MessageDirection::s2c, Vital::yes, kNoFields,
            MessageId::sv_ready_to_enter),
    classic(Kind::game, 9, "sv_weapon_pickup", MessageDirection::s2c, Vital::yes, kSvWeaponPickup),
    classic(Kind::game, 10, "sv_emoticon", MessageDirection::s2c, Vital::yes, kSvEmoticon),
    classic(Kind::game, 11, "sv_vote_clear_options", MessageDirection::s2c, Vital::yes),
    classic(Kind::game, 12, "sv_vote_option_list_add", MessageDirection::s2c, Vital::yes,
            kSvVoteOptionListAdd),
    classic(Kind::game, 13, "sv_vote_option_add", MessageDirection::s2c, Vital::yes,
            kSvVoteOptionAdd),
    classic(Kind::game, 14, "sv_vote_option_remove", MessageDirection::s2c, Vital::yes,
            kSvVoteOptionAdd),
    classic(Kind::game, 15, "sv_vote_set", MessageDirection::s2c, Vital::yes, kSvVoteSet),
    classic(Kind::game, 16, "sv_vote_status", MessageDirection::s2c, Vital::yes, kSvVoteStatus),
    classic(Kind::game, 17, "cl_say", MessageDirection::c2s, Vital::yes, kClSay, MessageId::cl_say),
    classic(Kind::game, 18, "cl_set_team", MessageDirection::c2s, Vital::yes, kClSetTeam),
    classic(Kind::game, 19, "cl_set_spectator_mode", MessageDirection::c2s, Vital::yes,
            kClSetSpectatorMode),
    classic(Kind::game, 20, "cl_start_info", MessageDirection::c2s, Vital::yes, kPlayerInfo,
            MessageId::cl_start_info),
    classic(Kind::game, 21, "cl_change_info", MessageDirection::c2s, Vital::yes, kPlayerInfo),
    classic(Kind::game, 22, "cl_kill", MessageDirection::c2s, Vital::yes),
    classic(Kind::game, 23, "cl_emoticon", MessageDirection::c2s, Vital::yes, kClEmoticon),
    classic(Kind::game, 24, "cl_vote", MessageDirection::c2s, Vital::yes, kClVote),
    classic(Kind::game, 25, "cl_call_vote", MessageDirection::c2s, Vital::yes, kClCallVote),
    classic(Kind::game, 26, "cl_is_ddnet_legacy", MessageDirection::c2s, Vital::yes,
            kClIsDdnetLegacy),
    classic(Kind::game, 27, "sv_ddrace_time_legacy", MessageDirection::s2c, Vital::yes, kRaceTime),
    classic(Kind::game, 28, "sv_record_legacy", MessageDirection::s2c, Vital::yes, kRecord),
    removed_in(13021, classic(Kind::game, 29, "sv_player_time", MessageDirection::s2c, Vital::yes,
                              kSvPlayerTime)),
    classic(Kind::game, 30, "sv_teams_state_legacy", MessageDirection::s2c, Vital::yes,
            kTeamsState),
    classic(Kind::game, 31, "cl_show_others_legacy", MessageDirection::c2s, Vital::yes,
            kClShowOthersLegacy),
    extended(Kind::game, parse_uuid("1231e484-f607-3722-a89a-bd85db46f5d2"),
             "my-own-message@heinrich5991.de", "sv_my_own_message", MessageDirection::s2c,
             Vital::yes, kSvMyOwnMessage),
    extended(Kind::game, parse_uuid("53bb28af-4252-3ac9-8fd3-6ccbc2a603e3"),
             "show-distance@netmsg.ddnet.tw", "cl_show_distance", MessageDirection::c2s, Vital::yes,
             kClShowDistance),
    extended(Kind::game, parse_uuid("7f264cdd-71a2-3962-bbce-0f94bbd81913"),
             "showothers@netmsg.ddnet.tw", "cl_show_others", MessageDirection::c2s, Vital::yes,
             kClShowOthers),
    extended(Kind::game, parse_uuid("8c470228-ee11-3808-93b9-c5c87d08b51c"),
             "camera-info@netmsg.ddnet.org", "cl_camera_info", MessageDirection::c2s, Vital::yes,
             kClCameraInfo),
    extended(Kind::game, parse_uuid("a091961a-95e8-3744-bb60-5eac9bd563c6"),
             "teamsstate@netmsg.ddnet.tw", "sv_teams_state", MessageDirection::s2c, Vital::yes,
             kTeamsState),
    extended(Kind::game, parse_uuid("5dde8b3c-6f6f-37ac-a72a-bb341fe76de5"),
             "ddrace-time@netmsg.ddnet.tw", "sv_ddrace_time", MessageDirection::s2c, Vital::yes,
             kRaceTime),
    extended(Kind::game, parse_uuid("804f149f-9b53-3b0a-897f-59663a1c4eb9"),
             "record@netmsg.ddnet.tw", "sv_record", MessageDirection::s2c, Vital::yes, kRecord),
    extended(Kind::game, parse_uuid("ee610b6f-909f-311e-93f7-11a95f55a086"),
             "killmsgteam@netmsg.ddnet.tw", "sv_kill_msg_team", MessageDirection::s2c, Vital::yes,
             kSvKillMsgTeam),
    extended(Kind::game, parse_uuid("bfd7f0fc-16d5-3e10-8015-a78380f13870"),
             "yourvote@netmsg.ddnet.org", "sv_your_vote", MessageDirection::s2c, Vital::yes,
             kSvYourVote),
    extended(Kind::game, parse_uuid("c915ba68-0a49-3324-915a-7a6220cecf33"),
             "racefinish@netmsg.ddnet.org", "sv_race_finish", MessageDirection::s2c, Vital::yes,
             kSvRaceFinish),
    extended(Kind::game, parse_uuid("90778f65-1b8f-322a-9713-cf741aa44a05"),
             "commandinfo@netmsg.ddnet.org", "sv_command_info", MessageDirection::s2c, Vital::yes,
             kSvCommandInfo),
    extended(Kind::game, parse_uuid("eb2e77ce-e9a2-35aa-94be-235f523ac1aa"),
             "commandinfo-remove@netmsg.ddnet.org", "sv_command_info_remove", MessageDirection::s2c,
             Vital::yes, kSvCommandInfoRemove),
    extended(Kind::game, parse_uuid("969d127c-b768-390d-8879-6104993769fa"),
             "sv-vote-option-group-start@netmsg.ddnet.org", "sv_vote_option_group_start",
             MessageDirection::s2c, Vital::yes),
    extended(Kind::game, parse_uuid("4f096765-39b1-3766-82dc-61b20ccf589a"),
             "sv-vote-option-group-end@netmsg.ddnet.org", "sv_vote_option_group_end",
             MessageDirection::s2c, Vital::yes),
    extended(Kind::game, parse_uuid("9e220138-d393-3cb0-90f1-e587c00ab1d0"),
             "sv-commandinfo-group-start@netmsg.ddnet.org", "sv_command_info_group_start",
             MessageDirection::s2c, Vital::yes),
    extended(Kind::game, parse_uuid("054125d8-0062-3891-840b-47462285a01f"),
             "sv-commandinfo-group-end@netmsg.ddnet.org", "sv_command_info_group_end",
             MessageDirection::s2c, Vital::yes),
    extended(Kind::game, parse_uuid("746cb54c-6b2b-39a7-8cd8-7c7a1c6c3009"),
             "change-info-cooldown@netmsg.ddnet.org", "sv_change_info_cooldown",
             MessageDirection::s2c, Vital::yes, kSvChangeInfoCooldown),
    extended(Kind::game, parse_uuid("669c9741-695a-369b-856c-a254f6b7f0cb"),
             "map-sound-global@netmsg.ddnet.org", "sv_map_sound_global", MessageDirection::s2c,
             Vital::yes, kSvMapSoundGlobal),
    extended(Kind::game, parse_uuid("b5d3a686-ad59-382c-b3de-d9fedc3320ae"),
             "preinput@netmsg.ddnet.org", "sv_pre_input", MessageDirection::s2c, Vital::no,
             kSvPreInput),
    extended(Kind::game, parse_uuid("dc9edffb-266a-3bd6-b101-a949fa44e16b"),
             "save-code@netmsg.ddnet.org", "sv_save_code", MessageDirection::s2c, Vital::yes,
             kSvSaveCode),
    extended(Kind::game, parse_uuid("035206dc-9f8b-315c-9abf-5ab9153a857c"),
             "server-alert@netmsg.ddnet.org", "sv_server_alert", MessageDirection::s2c, Vital::yes,
             kMessage),
    secret(extended(Kind::game, parse_uuid("d7c55683-7983-32f0-8d9a-877434ea19d5"),
                    "moderator-alert@netmsg.ddnet.org", "sv_moderator_alert", MessageDirection::s2c,
                    Vital::yes, kMessage)),
    extended(Kind::game, parse_uuid("e19b66e8-0646-351b-aa03-d4aba7b9545f"),
             "enable-spectator-count@netmsg.ddnet.org", "cl_enable_spectator_count",
             MessageDirection::c2s, Vital::yes, kClEnableSpectatorCount),
    extended(Kind::game, parse_uuid("da46b81d-a060-30c3-9abb-dd2945e8edb4"),
             "map-info@netmsg.ddnet.org", "sv_map_info", MessageDirection::s2c, Vital::yes,
             kSvMapInfo),
};

} // namespace

std::span<const MessageSpec> game_messages() {
    return kGameMessages;
}

std::span<const MessageSpec> system_messages() {
    return kSystemMessages;
}

} // namespace tw::wire::table
