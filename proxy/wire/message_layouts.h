#pragma once

#include "proxy/wire/message_builders.h"

/// The fields of the messages that the program acts on: rows of the message table that bodies.cpp
/// reads into typed values, too.
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

} // namespace tw::wire::table
