#pragma once

#include "proxy/wire/message.h"

#include <cstddef>
#include <span>

namespace tw::wire {

/// Whether a chat line of a client runs a command that carries a code, a password or a private
/// message ("/timeout", "/w", "/login", ...), however it is spelt: DDNet ignores case, skips white
/// space and runs several commands in one line with ';' between them.
[[nodiscard]] bool is_secret_chat(std::span<const std::byte> message);

/// Marks the texts and bytes that must not be shown: of a secret message (the remote console) all
/// but what the message table says may be shown; such chat lines, whispers (sv_chat of team 2 and
/// 3, chat of mode 3 in 0.7, and the server's lines that old clients get instead), what such
/// commands of 0.7's cl_command are given, and lines in which the server tells somebody a code.
/// Secret fields of other messages are marked as they are decoded.
void mark_secrets(const MessageSpec& spec, DecodedFields& fields);

} // namespace tw::wire
