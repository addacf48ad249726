#pragma once

#include "proxy/wire/chat_commands.h"
#include "proxy/wire/message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tw::wire {

/// What stands for a text or bytes that must not be shown.
inline constexpr std::string_view kRedacted = "[redacted]";

/// Of a string that is marked secret: its first bytes, which may be shown. Their number stands in the
/// value's integer.
[[nodiscard]] inline std::string_view shown_part(const FieldValue& value) {
    const auto size = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::int64_t>(value.integer, 0)), value.bytes.size());
    return {reinterpret_cast<const char*>(value.bytes.data()), size};
}

/// Marks the texts and bytes that must not be shown: of a secret message (the remote console) all
/// but what the message table says may be shown; the arguments of chat commands that are not known to
/// be harmless, in chat, in 0.7's cl_command and in lines that a server passes on; whispers (sv_chat of
/// team 2 and 3, chat of mode 3 in 0.7, and the server's lines that old clients get instead), and lines
/// in which the server tells a player a code. Secret fields of other messages are marked as they are
/// decoded.
void mark_secrets(const MessageSpec& spec, DecodedFields& fields, const ShownCommands& shown = {});

/// As decode_fields in message.h, with chat commands whose arguments are no secret.
void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const ShownCommands& shown);

} // namespace tw::wire
