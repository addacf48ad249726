#include "proxy/wire/message_layouts.h"
#include "snapshot/names.h"

namespace tw::wire::table {
namespace {

namespace names = snapshot::names;

constexpr MessageField kInfo[] = {text("version", kOneLine),
                                  optional(secret(text("password", kOneLine)))};

// The remote console. Its output may contain anything, such as passwords of the configuration,
// addresses or private messages. So everything except numbers and command names is secret.
constexpr MessageField kRconAuthStatus[] = {shown(integer("authed")),
                                            shown(optional(integer("receive_commands")))};

constexpr MessageField kRconLine[] = {text("line", kLines)};

constexpr MessageField kRconCmd[] = {text("command", kOneLine)};

constexpr MessageField kRconAuth[] = {text("name", kOneLine), text("password", kOneLine),
                                      shown(optional(integer("request_commands")))};

constexpr MessageField kRequestMapData[] = {integer("chunk")};

constexpr MessageField kRconCmdAdd[] = {shown(text("name", kOneLine)), text("help", kOneLine),
                                        text("params", kOneLine)};

constexpr MessageField kRconCmdRem[] = {shown(text("name", kOneLine))};

constexpr MessageField kUuid[] = {uuid("uuid")};

constexpr MessageField kItIs[] = {uuid("uuid"), text("name", kOneLine)};

constexpr MessageField kRconType[] = {shown(flags("flags", &names::rcontypeflag))};

constexpr MessageField kCapabilities[] = {integer("version"),
                                          flags("flags", &names::servercapflag)};

constexpr MessageField kRequestId[] = {uuid("id")};

constexpr MessageField kChecksumRequest[] = {uuid("id"), integer("start"), integer("length")};

constexpr MessageField kChecksumResponse[] = {uuid("id"), sha256("sha256")};

constexpr MessageField kChecksumError[] = {uuid("id"), integer("error")};

constexpr MessageField kRedirect[] = {integer("port")};

constexpr MessageField kCount[] = {shown(integer("count"))};

constexpr MessageField kMaplistAdd[] = {strings("names", kOneLine)};

constexpr MessageSpec kMessages[] = {
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

} // namespace

std::span<const MessageSpec> system_messages() {
    return kMessages;
}

} // namespace tw::wire::table
