#pragma once

#include "proxy/wire/message.h"
#include "snapshot/item.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

/// Typed bodies of the messages whose content twscope interprets. The message table describes their
/// layout. The functions do not check whether values make sense. Spans and texts point into the
/// body.
///
/// Errors: the functions return nullopt if the body ends early or contains a wrong length.
///         decode_fields reports the reason and the offset.
namespace tw::wire {

/// The body of a snap, snap_single or snap_empty message. A field that the message does not contain
/// keeps its default value.
struct SnapshotBody {
    std::int32_t tick = 0;
    std::int32_t distance = 0; ///< ticks from the base to `tick`; the message's field delta_tick
    std::int32_t num_parts = 1;
    std::int32_t part = 0;
    std::int32_t crc = 0;
    std::int32_t part_size = 0;
    std::span<const std::byte> data{};
    std::size_t data_offset = 0; ///< offset of `data` in the body, in bytes
};

/// Decodes the body of a snapshot message. Precondition: is_snapshot(id).
[[nodiscard]] std::optional<SnapshotBody> decode_snapshot(MessageId id,
                                                          std::span<const std::byte> body);

using snapshot::Dialect;

struct MapChangeBody {
    std::string_view name{}; ///< the bytes as sent
    std::int32_t crc = 0;
    std::int32_t size = 0;
    std::int32_t chunks_per_request = 0; ///< 0.7 only
    std::int32_t chunk_size = 0;         ///< 0.7 only
    std::span<const std::byte> sha256{}; ///< 0.7 only; empty if the message does not contain a hash
};

[[nodiscard]] std::optional<MapChangeBody> decode_map_change(std::span<const std::byte> body,
                                                             Dialect dialect);

struct MapDetailsBody {
    std::string_view name{}; ///< the bytes as sent
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
    bool numbered = true; ///< false in 0.7, where the message contains `data` and no other field
};

[[nodiscard]] std::optional<MapDataBody> decode_map_data(std::span<const std::byte> body,
                                                         Dialect dialect);

/// The ticks at the start of an input message.
struct InputBody {
    std::int32_t ack_tick = 0;
    std::int32_t intended_tick = 0;
};

[[nodiscard]] std::optional<InputBody> decode_input(std::span<const std::byte> body);

struct InputTimingBody {
    std::int32_t input_pred_tick = 0;
    std::int32_t time_left = 0; ///< milliseconds from arrival to the input's tick; negative: late
};

[[nodiscard]] std::optional<InputTimingBody> decode_input_timing(std::span<const std::byte> body);

struct ClientVersionBody {
    std::span<const std::byte> connection_id{};
    std::int32_t ddnet_version = 0; ///< major * 1000 + minor * 10 + patch
};

[[nodiscard]] std::optional<ClientVersionBody>
decode_client_version(std::span<const std::byte> body);

struct CommandInfoBody {
    std::string_view name{}; ///< this text and the following texts are the bytes as sent
    std::string_view args_format{};
    std::string_view help_text{};
};

[[nodiscard]] std::optional<CommandInfoBody> decode_command_info(std::span<const std::byte> body);

/// Returns the name of the command that an sv_command_info_remove message removes.
[[nodiscard]] std::optional<std::string_view> find_removed_command(std::span<const std::byte> body);

/// Returns the text of an sv_chat message that the server itself writes to all players; nullopt for
/// any other chat line.
[[nodiscard]] std::optional<std::string_view> find_server_chat(std::span<const std::byte> body,
                                                               Dialect dialect);

/// A 0.7 message that describes a player. In 0.6, snapshots describe the players.
struct ClientInfoBody {
    std::int32_t client_id = 0;
    std::int32_t local = 0; ///< not 0: the player is the receiving client itself
    std::int32_t team = 0;
    std::string_view name{}; ///< the bytes as sent
};

[[nodiscard]] std::optional<ClientInfoBody> decode_client_info(std::span<const std::byte> body);

/// A 0.7 message that says that a player changes teams.
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
