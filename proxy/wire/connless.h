#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::wire {

/// Size of ff ff ff ff and the magic, before the fields.
inline constexpr std::size_t kConnlessHeadSize = 8;

/// Describes a connless packet: server info requests and answers, and packets of master servers.
/// They do not affect sessions.
struct ConnlessSpec {
    std::string_view magic; ///< four ASCII characters after ff ff ff ff
    std::string_view name;  ///< such as "info_extended"
    std::span<const MessageField> fields;
};

[[nodiscard]] std::span<const ConnlessSpec> connless_table(Dialect dialect);
/// Finds the description by the payload's magic; null if unknown.
[[nodiscard]] const ConnlessSpec* find_connless(std::span<const std::byte> payload,
                                                Dialect dialect);
/// The version text in a server info; nullopt if the payload is none.
[[nodiscard]] std::optional<std::string_view>
find_server_version(std::span<const std::byte> payload, Dialect dialect);
/// Decodes the fields as decode_fields does, with offsets relative to the end of the magic. Players
/// are a struct array named "clients", servers a struct array of "address" and "port". A text that
/// should be a number stays a text and is marked out of range. `token` of get_info has the 16 bits
/// of an extended header above its own 8.
void decode_connless(const ConnlessSpec& spec, const Packet& packet, DecodedFields& out);

/// A request for server info whose answer is the same for everybody, except for the token.
enum class InfoRequestKind : std::uint8_t {
    plain = 1, ///< answered by one "inf3"
    extended,  ///< answered by one "iext" and any number of "iex+"; by old servers with "inf3"
};

struct InfoRequest {
    InfoRequestKind kind = InfoRequestKind::plain;
    std::uint32_t token = 0; ///< 8 bits, or 24 bits if extended
};

/// Decodes a request for server info; nullopt if it is none, or one that servers interpret
/// differently.
///
/// Source: protocol sheet, section 1.3.
[[nodiscard]] std::optional<InfoRequest> read_info_request(std::span<const std::byte> datagram);

enum class InfoPart : std::uint8_t { first, more };

/// Which part of the answer to `request` the server's datagram is; nullopt if none.
[[nodiscard]] std::optional<InfoPart> read_info_part(std::span<const std::byte> datagram,
                                                     const InfoRequest& request);

/// Rewrites a part of an answer for another request of the same kind. Returns its size; 0 if there
/// is not enough room or `part` is no part of such an answer.
[[nodiscard]] std::size_t write_info_part(std::span<const std::byte> part,
                                          const InfoRequest& request, std::span<std::byte> out);

} // namespace tw::wire
