#pragma once

#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tw::game {

/// How a message of this name is told apart from what is for one player alone.
enum class Audience : std::uint8_t {
    everybody, ///< the server sends it to all who play
    two,       ///< to all or to one, and nothing in it says which: what two were told was for all
    chat,      ///< what a player says to all is for everybody, what the server says is as `two`
};

/// Messages that are the same for everybody; all others are about one player, one team or one client.
/// Null: this is one of those.
[[nodiscard]] const Audience* find_audience(std::string_view message);

/// The server's id of a view's client; nothing: nobody's.
using ClientNumber = std::function<std::optional<std::uint16_t>(std::int32_t client)>;

/// A message as it stands in a world.
struct Said {
    const wire::MessageSpec* spec = nullptr;
    std::vector<std::byte> bytes; ///< equal where the same was said
    bool for_two = false;         ///< nobody knows whom it is for until a second session was told
};

/// Reads a message that a session was sent. `world`: the dialect that its world is told in. `number`:
/// null: the session's client ids are the server's. Nothing: it is not for everybody, it is malformed,
/// `world` has no such message, or it is of a client that nobody knows.
[[nodiscard]] std::optional<Said> read_said(std::span<const std::byte> payload,
                                            snapshot::Dialect dialect, snapshot::Dialect world,
                                            const ClientNumber& number);

} // namespace tw::game
