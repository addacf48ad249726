#include "proxy/wire/bodies.h"

#include "proxy/wire/message_layouts.h"
#include "snapshot/cursor.h"

#include <type_traits>
#include <utility>

namespace tw::wire {

namespace {

using snapshot::Cursor;

constexpr std::size_t kSha256Bytes = 32;

/// Reads one field of a message into a struct member. `kType`: the field's type in the message
/// table. `previous`: the integer field before it, which is the size of raw bytes.
template <FieldType kType, typename T>
void read_field(Cursor& in, T& out, [[maybe_unused]] std::int32_t previous) {
    if constexpr (kType == FieldType::integer || kType == FieldType::boolean) {
        static_assert(std::is_same_v<T, std::int32_t>);
        out = in.var_int();
    } else if constexpr (kType == FieldType::string) {
        static_assert(std::is_same_v<T, std::string_view>);
        out = in.string();
    } else if constexpr (kType == FieldType::raw) {
        static_assert(std::is_same_v<T, std::span<const std::byte>>);
        out = in.raw(previous);
    } else if constexpr (kType == FieldType::uuid) {
        static_assert(std::is_same_v<T, std::span<const std::byte>>);
        out = in.raw(std::tuple_size_v<snapshot::Uuid>);
    } else {
        static_assert(kType == FieldType::sha256 && std::is_same_v<T, std::span<const std::byte>>);
        out = in.raw(kSha256Bytes);
    }
}

/// Reads the first fields of `kFields` into the members `kMembers` of `out`, in order. Returns
/// whether the body contains all these fields, except for optional ones.
template <const auto& kFields, auto... kMembers, typename T>
bool read_fields(Cursor& in, T& out) {
    static_assert(sizeof...(kMembers) <= std::size(kFields));
    [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
        std::int32_t previous = 0;
        const auto one = [&]<std::size_t kField>(auto& member) {
            if (kFields[kField].optional && in.remaining() == 0) {
                return;
            }
            read_field<kFields[kField].type>(in, member, previous);
            if constexpr (kFields[kField].type == FieldType::integer) {
                previous = member;
            }
        };
        (one.template operator()<kIndex>(out.*kMembers), ...);
    }
    (std::make_index_sequence<sizeof...(kMembers)>{});
    return !in.failed();
}

template <const auto& kFields, typename T, auto... kMembers>
std::optional<T> decode_body(std::span<const std::byte> body) {
    Cursor in{body};
    std::optional<T> out{std::in_place};
    if (!read_fields<kFields, kMembers...>(in, *out)) {
        out.reset();
    } else if constexpr (std::is_same_v<T, SnapshotBody>) {
        out->data_offset = in.offset() - out->data.size();
    }
    return out;
}

} // namespace

std::optional<SnapshotBody> decode_snapshot(MessageId id, std::span<const std::byte> body) {
    using Body = SnapshotBody;
    if (id == MessageId::snap) {
        return decode_body<table::kSnap, Body, &Body::tick, &Body::distance, &Body::num_parts,
                           &Body::part, &Body::crc, &Body::part_size, &Body::data>(body);
    }
    if (id == MessageId::snap_single) {
        return decode_body<table::kSnapSingle, Body, &Body::tick, &Body::distance, &Body::crc,
                           &Body::part_size, &Body::data>(body);
    }
    return decode_body<table::kSnapEmpty, Body, &Body::tick, &Body::distance>(body);
}

std::optional<MapChangeBody> decode_map_change(std::span<const std::byte> body, Dialect dialect) {
    using Body = MapChangeBody;
    return dialect == Dialect::seven
               ? decode_body<table::kSevenMapChange, Body, &Body::name, &Body::crc, &Body::size,
                             &Body::chunks_per_request, &Body::chunk_size, &Body::sha256>(body)
               : decode_body<table::kMapChange, Body, &Body::name, &Body::crc, &Body::size>(body);
}

std::optional<MapDetailsBody> decode_map_details(std::span<const std::byte> body) {
    using Body = MapDetailsBody;
    return decode_body<table::kMapDetails, Body, &Body::name, &Body::sha256, &Body::crc,
                       &Body::size>(body);
}

std::optional<MapDataBody> decode_map_data(std::span<const std::byte> body, Dialect dialect) {
    using Body = MapDataBody;
    if (dialect == Dialect::seven) {
        return Body{
            .size = static_cast<std::int32_t>(body.size()), .data = body, .numbered = false};
    }
    return decode_body<table::kMapData, Body, &Body::last, &Body::crc, &Body::chunk, &Body::size,
                       &Body::data>(body);
}

std::optional<InputBody> decode_input(std::span<const std::byte> body) {
    using Body = InputBody;
    return decode_body<table::kInput, Body, &Body::ack_tick, &Body::intended_tick>(body);
}

std::optional<InputTimingBody> decode_input_timing(std::span<const std::byte> body) {
    using Body = InputTimingBody;
    return decode_body<table::kInputTiming, Body, &Body::input_pred_tick, &Body::time_left>(body);
}

std::optional<ClientVersionBody> decode_client_version(std::span<const std::byte> body) {
    using Body = ClientVersionBody;
    return decode_body<table::kClientVersion, Body, &Body::connection_id, &Body::ddnet_version>(
        body);
}

std::optional<CommandInfoBody> decode_command_info(std::span<const std::byte> body) {
    using Body = CommandInfoBody;
    return decode_body<table::kSvCommandInfo, Body, &Body::name, &Body::args_format,
                       &Body::help_text>(body);
}

std::optional<std::string_view> find_removed_command(std::span<const std::byte> body) {
    using Body = CommandInfoBody;
    const auto removed = decode_body<table::kSvCommandInfoRemove, Body, &Body::name>(body);
    return removed ? std::optional{removed->name} : std::nullopt;
}

std::optional<std::string_view> find_server_chat(std::span<const std::byte> body, Dialect dialect) {
    struct Chat {
        std::int32_t audience = 0; ///< the team in 0.6, the chat mode in 0.7
        std::int32_t client_id = 0;
        std::int32_t target_id = 0;
        std::string_view message{};
    };

    const bool seven = dialect == Dialect::seven;
    const auto chat =
        seven
            ? decode_body<table::kSevenSvChat, Chat, &Chat::audience, &Chat::client_id,
                          &Chat::target_id, &Chat::message>(body)
            : decode_body<table::kSvChat, Chat, &Chat::audience, &Chat::client_id, &Chat::message>(
                  body);
    constexpr std::int32_t kServer = -1;
    const std::int32_t everybody = seven ? 1 : 0;
    return chat && chat->audience == everybody && chat->client_id == kServer
               ? std::optional{chat->message}
               : std::nullopt;
}

std::optional<ClientInfoBody> decode_client_info(std::span<const std::byte> body) {
    using Body = ClientInfoBody;
    return decode_body<table::kSvClientInfo, Body, &Body::client_id, &Body::local, &Body::team,
                       &Body::name>(body);
}

std::optional<TeamBody> decode_team(std::span<const std::byte> body) {
    using Body = TeamBody;
    return decode_body<table::kSvTeam, Body, &Body::client_id, &Body::team>(body);
}

std::optional<ClientDropBody> decode_client_drop(std::span<const std::byte> body) {
    using Body = ClientDropBody;
    return decode_body<table::kSvClientDrop, Body, &Body::client_id>(body);
}

} // namespace tw::wire
