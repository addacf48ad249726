#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

/// Number of bytes before the fields in a connless payload: ff ff ff ff, and four characters that
/// name the kind of the packet (the magic).
inline constexpr std::size_t kConnlessPrefixSize = 8;

/// Describes one kind of connless packet, such as a request for server info. Connless packets do
/// not affect sessions.
struct ConnlessSpec {
    std::string_view magic; ///< the four ASCII characters after ff ff ff ff
    std::string_view name;  ///< twscope's name of the packet, such as "info_extended"
    std::span<const MessageField> fields;
};

[[nodiscard]] std::span<const ConnlessSpec> connless_table(Dialect dialect);
/// Finds the description of a packet by the magic in its payload; null if the magic is unknown.
[[nodiscard]] const ConnlessSpec* find_connless(std::span<const std::byte> payload,
                                                Dialect dialect);
/// Returns the server's version from a server info; nullopt if the payload is not a server info.
[[nodiscard]] std::optional<std::string_view>
find_server_version(std::span<const std::byte> payload, Dialect dialect);
/// Like decode_fields, but for the fields of a connless packet. Offsets are relative to the end of
/// the magic. Each player is an object in the array "clients"; each server is an object with the
/// fields "address" and "port". If a decimal number is malformed, its value is the received text,
/// marked out of range.
void decode_connless(const ConnlessSpec& spec, const Packet& packet, DecodedFields& out);

/// The kinds of requests for server info. All clients get the same answer, except for the token.
enum class InfoRequestKind : std::uint8_t {
    plain = 1, ///< servers answer with one "inf3"
    extended,  ///< servers answer with one "iext" and 0 or more "iex+"; old servers with one "inf3"
};

struct InfoRequest {
    InfoRequestKind kind = InfoRequestKind::plain;
    std::uint32_t token = 0; ///< 8 bits, or 24 bits if extended
};

/// Decodes a request for server info. Returns nullopt if the datagram is not such a request, or if
/// different servers interpret it in different ways.
///
/// Source: DDNet's CServer::SendServerInfo and browser requests (engine/shared/masterserver.h).
[[nodiscard]] std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram);

/// The parts of a server info, which can be too large for one datagram.
enum class InfoPart : std::uint8_t { first, more };

/// Returns which part of the answer to `request` the datagram is; nullopt if the datagram does not
/// belong to that answer.
[[nodiscard]] std::optional<InfoPart> classify_info_part(std::span<const std::byte> datagram,
                                                         const InfoRequest& request);

/// Copies a part of an answer to `out` and replaces its token by that of `request`. Returns the
/// number of bytes written; 0 if `out` is too small or `part` does not answer this kind of request.
[[nodiscard]] std::size_t write_info_part(std::span<const std::byte> part,
                                          const InfoRequest& request, std::span<std::byte> out);

} // namespace tw::wire
