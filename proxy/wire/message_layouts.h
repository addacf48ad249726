#pragma once

#include "proxy/wire/message.h"
#include "snapshot/names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

/// Functions and constants that describe messages in the message table.
namespace tw::wire::table {

// How receivers sanitise a string: combinations of the flags in text.h.

/// Control characters become spaces, except CR, LF and TAB.
inline constexpr std::uint8_t kMultiLine = 1;
/// All control characters become spaces.
inline constexpr std::uint8_t kSingleLine = 2;
/// Like kSingleLine, but leading white space is removed, too.
inline constexpr std::uint8_t kTrimmedLine = 6;

inline constexpr std::int64_t kMaxClientId = 127;        ///< DDNet's MAX_CLIENTS - 1
inline constexpr std::int64_t kMaxClients = 128;         ///< DDNet's MAX_CLIENTS
inline constexpr std::int64_t kMaxTeam = kMaxClients;    ///< DDNet's TEAM_SUPER
inline constexpr std::int64_t kMaxGameTick = 0x6fffffff; ///< DDNet's MAX_TICK

constexpr MessageField integer(std::string_view name) {
    return {.name = name};
}

constexpr MessageField to_field(std::string_view name) {
    return integer(name);
}

constexpr MessageField to_field(const MessageField& field) {
    return field;
}

/// Returns an array of the given fields of a message. A text stands for an integer field with this
/// name.
template <typename... Fields>
constexpr std::array<MessageField, sizeof...(Fields)> layout(const Fields&... fields) {
    return {to_field(fields)...};
}

constexpr MessageField ranged_integer(std::string_view name, std::int64_t min, std::int64_t max,
                                      const snapshot::NameTable* names = nullptr) {
    return {.name = name, .type = FieldType::integer, .min = min, .max = max, .names = names};
}

constexpr MessageField flags(std::string_view name, const snapshot::NameTable* names) {
    return {.name = name, .type = FieldType::integer, .names = names};
}

constexpr MessageField client_id(std::string_view name) {
    return ranged_integer(name, 0, kMaxClientId);
}

constexpr MessageField boolean(std::string_view name) {
    return {.name = name, .type = FieldType::boolean, .min = 0, .max = 1};
}

constexpr MessageField tick(std::string_view name, std::int64_t max = kMaxGameTick) {
    return {.name = name, .type = FieldType::tick, .min = 0, .max = max};
}

constexpr MessageField text(std::string_view name, std::uint8_t sanitize = 0) {
    return {.name = name, .type = FieldType::string, .sanitize = sanitize};
}

/// A number as decimal digits, in connless packets of 0.6.
constexpr MessageField decimal(std::string_view name) {
    return {.name = name, .type = FieldType::decimal_string};
}

/// A port or another number of two bytes, in connless packets of 0.6.
constexpr MessageField port(std::string_view name) {
    return {.name = name, .type = FieldType::u16_be, .min = 0, .max = 0xffff};
}

constexpr MessageField uuid(std::string_view name) {
    return {.name = name, .type = FieldType::uuid};
}

constexpr MessageField sha256(std::string_view name) {
    return {.name = name, .type = FieldType::sha256};
}

/// A field of bytes. The integer field before it holds the number of bytes.
constexpr MessageField raw(std::string_view name) {
    return {.name = name, .type = FieldType::raw};
}

/// An array of elements of the given field's type. `count`: see MessageField.
constexpr MessageField array_of(MessageField field, std::uint8_t count) {
    field.element = field.type;
    field.type = FieldType::array;
    field.count = count;
    return field;
}

constexpr MessageField integers_until_end(std::string_view name, std::int64_t min = INT32_MIN,
                                          std::int64_t max = INT32_MAX) {
    return array_of(ranged_integer(name, min, max), MessageField::kUntilEnd);
}

constexpr MessageField strings_until_end(std::string_view name, std::uint8_t sanitize) {
    return array_of(text(name, sanitize), MessageField::kUntilEnd);
}

/// An array of structs with these members, up to the end of the message.
constexpr MessageField structs_until_end(std::string_view name,
                                         std::span<const MessageField> members) {
    return {.name = name,
            .type = FieldType::array,
            .count = MessageField::kUntilEnd,
            .members = members};
}

/// A field with the ints of one object of a snapshot. The field before it holds their size in
/// bytes. `object_name`: the object's name in the object table, which also names the ints.
constexpr MessageField object(std::string_view name, std::string_view object_name) {
    return {.name = name, .type = FieldType::object, .object = object_name};
}

/// A field with an array of objects. The integer field before it holds the number of objects.
constexpr MessageField objects(std::string_view name, std::string_view object_name) {
    return {.name = name, .type = FieldType::objects, .object = object_name};
}

constexpr MessageField optional(MessageField field) {
    field.optional = true;
    return field;
}

constexpr MessageField with_default(MessageField field, std::int32_t value) {
    field.optional = true;
    field.default_value = value;
    return field;
}

constexpr MessageField secret(MessageField field) {
    field.secrecy = Secrecy::secret;
    return field;
}

/// Returns the field, marked as one that may be shown even if its message is secret.
constexpr MessageField always_shown(MessageField field) {
    field.always_shown = true;
    return field;
}

/// The names of the messages in MessageId, except `other`, in the same order.
inline constexpr std::string_view kInterpretedNames[] = {
#define TW_NAME(name) #name,
    TW_INTERPRETED_MESSAGES(TW_NAME)
#undef TW_NAME
};

constexpr MessageId id_of(std::string_view name) {
    const auto* const found = std::ranges::find(kInterpretedNames, name);
    return found == std::end(kInterpretedNames)
               ? MessageId::other
               : static_cast<MessageId>(found - std::begin(kInterpretedNames) + 1);
}

using enum MessageDirection;

/// A vital game message that is identified by an integer id.
constexpr MessageSpec game_message(std::uint16_t number, std::string_view name,
                                   MessageDirection direction,
                                   std::span<const MessageField> fields = {}) {
    return {.id = id_of(name),
            .number = number,
            .direction = direction,
            .vital = true,
            .name = name,
            .fields = fields};
}

/// A vital game message of DDNet or a mod that is identified by a UUID.
constexpr MessageSpec game_message(std::string_view uuid, std::string_view uuid_name,
                                   std::string_view name, MessageDirection direction,
                                   std::span<const MessageField> fields = {}) {
    MessageSpec message = game_message(0, name, direction, fields);
    message.uuid_name = uuid_name;
    message.uuid = snapshot::parse_uuid(uuid);
    return message;
}

constexpr MessageSpec with_system_bit(MessageSpec message) {
    message.system = true;
    return message;
}

/// A vital system message that is identified by an integer id.
constexpr MessageSpec system_message(std::uint16_t number, std::string_view name,
                                     MessageDirection direction,
                                     std::span<const MessageField> fields = {}) {
    return with_system_bit(game_message(number, name, direction, fields));
}

/// A vital system message of DDNet or a mod that is identified by a UUID.
constexpr MessageSpec system_message(std::string_view uuid, std::string_view uuid_name,
                                     std::string_view name, MessageDirection direction,
                                     std::span<const MessageField> fields = {}) {
    return with_system_bit(game_message(uuid, uuid_name, name, direction, fields));
}

/// Marks a message that receivers also accept if it is not vital.
constexpr MessageSpec non_vital(MessageSpec message) {
    message.vital = false;
    return message;
}

/// Marks a message as secret. All its fields are hidden, except those marked with always_shown().
/// This includes fields that newer programs add.
constexpr MessageSpec secret(MessageSpec message) {
    message.secrecy = Secrecy::secret;
    return message;
}

/// Marks a message that DDNet servers from this version on do not send.
constexpr MessageSpec removed_in(std::int32_t version, MessageSpec message) {
    message.removed_in = version;
    return message;
}

/// Returns the messages of 0.7. The other messages are in message_layouts.cpp.
[[nodiscard]] std::span<const MessageSpec> seven_messages();
/// Returns the fields of a 0.7 sv_tune_params with the given body. By mistake, DDNet 16.4 sometimes
/// sends laser_damage, too. The message then has 45 ints.
[[nodiscard]] std::span<const MessageField> seven_tuning_fields(std::span<const std::byte> body);

// The fields of messages that bodies.cpp decodes into typed values, and of structures that occur in
// several messages or in control packets.

inline constexpr auto kMapChange = layout(text("name", kTrimmedLine), "crc", "size");

inline constexpr auto kMapData = layout("last", "crc", "chunk", "size", raw("data"));

inline constexpr auto kSnap =
    layout("tick", "delta_tick", "num_parts", "part", "crc", "part_size", raw("data"));

inline constexpr auto kSnapEmpty = layout("tick", "delta_tick");

inline constexpr auto kSnapSingle = layout("tick", "delta_tick", "crc", "part_size", raw("data"));

inline constexpr auto kInputTiming = layout("input_pred_tick", "time_left");

inline constexpr auto kInput =
    layout("ack_tick", "intended_tick", "size", object("data", "player_input"));

inline constexpr auto kMapDetails = layout(text("name", kTrimmedLine), sha256("sha256"), "crc",
                                           "size", optional(text("url", kSingleLine)));

inline constexpr auto kClientVersion =
    layout(uuid("connection_id"), "ddnet_version", text("version_string", kSingleLine));

inline constexpr auto kSvChat =
    layout(ranged_integer("team", -2, 3, &snapshot::names::chat_team),
           ranged_integer("client_id", -1, kMaxClientId), text("message", kSingleLine));

inline constexpr auto kSvCommandInfo = layout(
    text("name", kTrimmedLine), text("args_format", kTrimmedLine), text("help_text", kTrimmedLine));

inline constexpr auto kSvCommandInfoRemove = layout(text("name", kTrimmedLine));

// Fields that messages of 0.6 and of 0.7 share.

inline constexpr auto kRconLine = layout(text("line", kMultiLine));

inline constexpr auto kRconCmd = layout(text("command", kSingleLine));

inline constexpr auto kRconCmdAdd = layout(always_shown(text("name", kSingleLine)),
                                           text("help", kSingleLine), text("params", kSingleLine));

inline constexpr auto kRconCmdRem = layout(always_shown(text("name", kSingleLine)));

inline constexpr auto kMessage = layout(text("message", kMultiLine));

inline constexpr auto kSvWeaponPickup =
    layout(ranged_integer("weapon", 0, 5, &snapshot::names::weapon));

inline constexpr auto kClSetTeam = layout(ranged_integer("team", -1, 1, &snapshot::names::team));

inline constexpr auto kClEmoticon =
    layout(ranged_integer("emoticon", 0, 15, &snapshot::names::emoticon));

inline constexpr auto kClVote = layout(ranged_integer("vote", -1, 1));

inline constexpr auto kDescription = layout(text("description", kTrimmedLine));

/// The tuning parameters, as integers in hundredths. All are optional, because older
/// versions have fewer of them.
inline constexpr auto kSvTuneParams = [] {
    auto fields = layout(
        "ground_control_speed", "ground_control_accel", "ground_friction", "ground_jump_impulse",
        "air_jump_impulse", "air_control_speed", "air_control_accel", "air_friction", "hook_length",
        "hook_fire_speed", "hook_drag_accel", "hook_drag_speed", "gravity", "velramp_start",
        "velramp_range", "velramp_curvature", "gun_curvature", "gun_speed", "gun_lifetime",
        "shotgun_curvature", "shotgun_speed", "shotgun_speeddiff", "shotgun_lifetime",
        "grenade_curvature", "grenade_speed", "grenade_lifetime", "laser_reach",
        "laser_bounce_delay", "laser_bounce_num", "laser_bounce_cost", "laser_damage",
        "player_collision", "player_hooking", "jetpack_strength", "shotgun_strength",
        "explosion_strength", "hammer_strength", "hook_duration", "hammer_fire_delay",
        "gun_fire_delay", "shotgun_fire_delay", "grenade_fire_delay", "laser_fire_delay",
        "ninja_fire_delay", "hammer_hit_fire_delay", "ground_elasticity_x", "ground_elasticity_y",
        integers_until_end("more"));
    std::ranges::transform(fields, fields.begin(), optional);
    return fields;
}();

/// The largest client id in 0.7's messages.
inline constexpr std::int64_t kSevenMaxClientId = 63;

inline constexpr auto kSevenMapChange =
    layout(text("name", kSingleLine), "crc", "size", "chunks_per_request", "chunk_size",
           optional(sha256("sha256")));

inline constexpr auto kSevenMapData =
    layout(MessageField{.name = "data", .type = FieldType::raw_until_end});

inline constexpr auto kSevenInput =
    layout("ack_tick", "intended_tick", "size", object("data", "player_input"),
           optional(integer("ping_correction")));

inline constexpr auto kSevenSvChat =
    layout(ranged_integer("mode", 0, 3, &snapshot::names::seven::chat),
           ranged_integer("client_id", -1, kSevenMaxClientId),
           ranged_integer("target_id", -1, kSevenMaxClientId), text("message", kTrimmedLine));

inline constexpr auto kSvTeam = layout(ranged_integer("client_id", -1, kSevenMaxClientId),
                                       ranged_integer("team", -1, 1, &snapshot::names::team),
                                       boolean("silent"), tick("cooldown_tick", INT32_MAX));

/// The number of parts of a skin: body, marking, decoration, hands, feet, eyes.
inline constexpr std::uint8_t kSkinParts = 6;
inline constexpr MessageField kSkinPartNames =
    array_of(text("skin_part_names", kTrimmedLine), kSkinParts);
inline constexpr MessageField kUseCustomColors = array_of(boolean("use_custom_colors"), kSkinParts);
inline constexpr MessageField kSkinPartColors = array_of(integer("skin_part_colors"), kSkinParts);

inline constexpr auto kSvClientInfo =
    layout(ranged_integer("client_id", 0, kSevenMaxClientId), boolean("local"),
           ranged_integer("team", -1, 1, &snapshot::names::team), text("name", kTrimmedLine),
           text("clan", kTrimmedLine), "country", kSkinPartNames, kUseCustomColors, kSkinPartColors,
           boolean("silent"));

inline constexpr auto kSvClientDrop = layout(ranged_integer("client_id", 0, kSevenMaxClientId),
                                             text("reason", kTrimmedLine), boolean("silent"));

/// The fields of a 0.7 server info, which servers send to clients and in answers to info requests.
inline constexpr auto kServerInfo = layout(
    text("version", kSingleLine), text("name", kSingleLine), text("hostname", kSingleLine),
    text("map", kSingleLine), text("game_type", kSingleLine),
    flags("flags", &snapshot::names::seven::serverinfoflag), ranged_integer("skill_level", 0, 2),
    "num_players", "max_players", "num_clients", "max_clients");

/// The fields of a player in a 0.7 server info. In `kind`, bit 0 means spectator, bit 1 means bot.
inline constexpr auto kSevenClient = layout(text("name"), text("clan"), "country", "score", "kind");

/// The fields of a player in a 0.6 server info. Only extended server infos contain `reserved`.
inline constexpr auto kClient = layout(text("name"), text("clan"), decimal("country"),
                                       decimal("score"), decimal("is_player"), text("reserved"));

// The fields of a game server in a master server's list.
inline constexpr MessageField kAddress{.name = "address", .type = FieldType::raw};
inline constexpr MessageField kPort = port("port");

/// The surplus ints of an object: those at its end that the object table does not describe.
inline constexpr MessageField kSurplus = integers_until_end("more");

// The fields of control packets: the reason of a CLOSE, and the token.
inline constexpr MessageField kCloseReason{.name = "reason", .type = FieldType::string};
inline constexpr MessageField kControlToken{.name = "token", .type = FieldType::raw};

} // namespace tw::wire::table
