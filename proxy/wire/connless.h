#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

/// Bytes of a connless payload before its fields: ff ff ff ff and the magic.
inline constexpr std::size_t kConnlessHeadSize = 8;

/// Describes a kind of connless packet: a server info request or answer, or a packet from or to a
/// master server. Connless packets do not affect sessions.
struct ConnlessSpec {
    std::string_view magic; ///< four ASCII characters after ff ff ff ff
    std::string_view name;  ///< twscope's name of the packet, such as "info_extended"
    std::span<const MessageField> fields;
};

[[nodiscard]] std::span<const ConnlessSpec> connless_table(Dialect dialect);
/// Finds the description of a packet by the magic in its payload; null if unknown.
[[nodiscard]] const ConnlessSpec* find_connless(std::span<const std::byte> payload,
                                                Dialect dialect);
/// The version text in a server info; nullopt if the payload is not a server info.
[[nodiscard]] std::optional<std::string_view>
find_server_version(std::span<const std::byte> payload, Dialect dialect);
/// Decodes the fields as decode_fields does. Offsets are relative to the end of the magic. Players are
/// a struct array named "clients", servers a struct array of "address" and "port". A text in place of
/// a number stays a text and is marked out of range. Bits 0 to 7 of the field `token` of get_info come
/// from the payload, bits 8 to 23 from an extended header.
void decode_connless(const ConnlessSpec& spec, const Packet& packet, DecodedFields& out);

/// The kind of an info request whose answer is the same for all clients, except for the token.
enum class InfoRequestKind : std::uint8_t {
    plain = 1, ///< servers answer with one "inf3"
    extended,  ///< servers answer with one "iext" and any number of "iex+"; old ones with "inf3"
};

struct InfoRequest {
    InfoRequestKind kind = InfoRequestKind::plain;
    std::uint32_t token = 0; ///< 8 bits, or 24 bits if extended
};

/// Decodes a request for server info. nullopt if the datagram is not such a request, or if servers
/// interpret it in different ways.
///
/// Source: DDNet's CServer::SendServerInfo and browser requests (engine/shared/masterserver.h).
[[nodiscard]] std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram);

enum class InfoPart : std::uint8_t { first, more };

/// Which part of the answer to `request` a server's datagram is; nullopt if it is not a part of it.
[[nodiscard]] std::optional<InfoPart> read_info_part(std::span<const std::byte> datagram,
                                                     const InfoRequest& request);

/// Writes a part of an answer to `out`, with the token of another request of the same kind. Returns the
/// number of bytes written; 0 if `out` is too small or `part` is not part of such an answer.
[[nodiscard]] std::size_t write_info_part(std::span<const std::byte> part,
                                          const InfoRequest& request, std::span<std::byte> out);

} // namespace tw::wire
