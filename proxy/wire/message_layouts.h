#pragma once

#include "proxy/wire/message_builders.h"
#include "snapshot/names.h"

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
