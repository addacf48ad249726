#pragma once

#include "proxy/replay/client_script.h"
#include "proxy/wire/message.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// What a client says by itself, in either dialect: what is captured of it is for another server.
namespace tw::replay {

using Bytes = std::vector<std::byte>;

/// The beginning of a message that both dialects have.
[[nodiscard]] Bytes begin_message(wire::MessageId id, wire::Dialect dialect);

/// Who it is, and the password.
[[nodiscard]] Bytes info_message(const ClientScript& script, std::string_view password);
/// The captured one, or that of somebody without a name of their own.
[[nodiscard]] Bytes start_info_message(const ClientScript& script);

/// The ints of an input in which nothing is pressed, with their size.
[[nodiscard]] Bytes nothing_pressed();

[[nodiscard]] Bytes ping_message(wire::Dialect dialect);
[[nodiscard]] Bytes ping_reply_message(wire::Dialect dialect);
[[nodiscard]] bool is_ping(const wire::MessageHead& head);
[[nodiscard]] bool is_ping_reply(const wire::MessageHead& head);

} // namespace tw::replay
