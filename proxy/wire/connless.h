#pragma once

#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"

#include <cstddef>
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

} // namespace tw::wire
