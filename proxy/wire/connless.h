#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

/// Mark and magic, in front of the fields.
inline constexpr std::size_t kConnlessHeadSize = 8;

/// A connless packet: server info requests and answers, masters' packets. No effect on sessions.
struct ConnlessSpec {
    std::string_view magic; ///< four ASCII characters behind ff ff ff ff
    std::string_view name;  ///< "info_extended"
    std::span<const MessageField> fields;
};

[[nodiscard]] std::span<const ConnlessSpec> connless_table(Dialect dialect);
/// Null when the payload names none that is known.
[[nodiscard]] const ConnlessSpec* find_connless(std::span<const std::byte> payload,
                                                Dialect dialect);
/// The version that a server info tells; nothing where the payload is none.
[[nodiscard]] std::optional<std::string_view>
find_server_version(std::span<const std::byte> payload, Dialect dialect);
/// Values as decode_fields gives them, offsets counting behind the magic; players are a struct
/// array named "clients", servers one of "address" and "port". Text that should be a number and is
/// not stays text and is marked out of range. `token` of get_info has the 16 bits of an extended
/// header above its own 8.
void decode_connless(const ConnlessSpec& spec, const Packet& packet, DecodedFields& out);

/// A request for server info to which a server answers the same to everybody, but for the token.
enum class InfoRequestKind : std::uint8_t {
    plain = 1, ///< the answer is one "inf3"
    extended, ///< the answer is one "iext" and any number of "iex+"; of servers that do not know it, "inf3"
};

struct InfoRequest {
    InfoRequestKind kind = InfoRequestKind::plain;
    std::uint32_t token = 0; ///< 8 bits, or 24 of an extended one
};

/// Nothing: it is no such request, or one that not all servers read alike.
///
/// Source: protocol sheet, section 1.3.
[[nodiscard]] std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram);

enum class InfoPart : std::uint8_t { first, more };

/// Which part of the answer to that request a server's datagram is; nothing: it is none.
[[nodiscard]] std::optional<InfoPart> read_info_part(std::span<const std::byte> datagram,
                                                     const InfoRequest& request);

/// Writes a part of an answer as the server would have written it for another request of that kind. Returns
/// its size; 0: there is not enough room, or it is no part of such an answer.
[[nodiscard]] std::size_t write_info_part(std::span<const std::byte> part,
                                          const InfoRequest& request, std::span<std::byte> out);

} // namespace tw::wire
