#pragma once

#include "proxy/wire/message.h"
#include "snapshot/item.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// The bodies of the messages that the program acts on, as typed values. Their layout is that of
/// the message table; nothing here checks what the values mean. Spans and texts point into the
/// body.
///
/// Errors: nothing when the body ends too early or a length in it is wrong. decode_fields says
/// where
///         and why.
namespace tw::wire {

/// snap, snap_single and snap_empty: what a form lacks keeps its value here.
struct SnapshotBody {
    std::int32_t tick = 0;
    std::int32_t distance = 0; ///< on the wire called delta_tick: ticks back to the base
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
    std::int32_t crc = 0;
    std::int32_t part_size = 0;
    std::span<const std::byte> data{};
    std::size_t data_offset = 0; ///< bytes of the body before `data`
};

/// Precondition: is_snapshot(id).
[[nodiscard]] std::optional<SnapshotBody> decode_snapshot(MessageId id,
                                                          std::span<const std::byte> body);

using snapshot::Dialect;

struct MapChangeBody {
    std::string_view name{}; ///< bytes as they stand
    std::int32_t crc = 0;
    std::int32_t size = 0;
    std::int32_t chunks_per_request = 0; ///< this and what follows: of 0.7
    std::int32_t chunk_size = 0;
    std::span<const std::byte> sha256{}; ///< empty: it ends before
};

[[nodiscard]] std::optional<MapChangeBody> decode_map_change(std::span<const std::byte> body,
                                                             Dialect dialect);

struct MapDetailsBody {
    std::string_view name{}; ///< bytes as they stand
    std::span<const std::byte> sha256{};
    std::int32_t crc = 0;
    std::int32_t size = 0;
};

[[nodiscard]] std::optional<MapDetailsBody> decode_map_details(std::span<const std::byte> body);

struct MapDataBody {
    std::int32_t last = 0;
    std::int32_t crc = 0;
    std::int32_t chunk = 0;
    std::int32_t size = 0;
    std::span<const std::byte> data{};
    bool numbered = true; ///< false in 0.7: there is nothing but data, and it is what comes next
};

[[nodiscard]] std::optional<MapDataBody> decode_map_data(std::span<const std::byte> body,
                                                         Dialect dialect);

/// The ticks of an input; what the player pressed follows.
struct InputBody {
    std::int32_t ack_tick = 0;
    std::int32_t intended_tick = 0;
};

[[nodiscard]] std::optional<InputBody> decode_input(std::span<const std::byte> body);

struct InputTimingBody {
    std::int32_t input_pred_tick = 0;
    std::int32_t time_left = 0; ///< milliseconds
};

[[nodiscard]] std::optional<InputTimingBody> decode_input_timing(std::span<const std::byte> body);

struct ClientVersionBody {
    std::span<const std::byte> connection_id{};
    std::int32_t ddnet_version = 0; ///< major * 1000 + minor * 10 + patch
};

[[nodiscard]] std::optional<ClientVersionBody>
decode_client_version(std::span<const std::byte> body);

struct CommandInfoBody {
    std::string_view name{}; ///< this and the others: bytes as they stand
    std::string_view args_format{};
    std::string_view help_text{};
};

[[nodiscard]] std::optional<CommandInfoBody> decode_command_info(std::span<const std::byte> body);

/// Of an sv_command_info_remove: the command's name.
[[nodiscard]] std::optional<std::string_view> find_removed_command(std::span<const std::byte> body);

/// Of an sv_chat: what the server itself says to everybody. Nothing: it is another's line.
[[nodiscard]] std::optional<std::string_view> find_server_line(std::span<const std::byte> body,
                                                               Dialect dialect);

/// What 0.7 tells of a player by messages, not in snapshots.
struct ClientInfoBody {
    std::int32_t client_id = 0;
    std::int32_t local = 0; ///< not 0: the receiver's own
    std::int32_t team = 0;
    std::string_view name{}; ///< bytes as they stand
};

[[nodiscard]] std::optional<ClientInfoBody> decode_client_info(std::span<const std::byte> body);

struct TeamBody {
    std::int32_t client_id = 0;
    std::int32_t team = 0;
};

[[nodiscard]] std::optional<TeamBody> decode_team(std::span<const std::byte> body);

struct ClientDropBody {
    std::int32_t client_id = 0;
};

[[nodiscard]] std::optional<ClientDropBody> decode_client_drop(std::span<const std::byte> body);

} // namespace tw::wire
