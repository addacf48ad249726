#pragma once

#include "proxy/admin/http_server.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::admin {

/// What may be asked for, and by whom.
enum class Right : std::uint8_t {
    health, ///< by everyone, from the spare seats, too
    page,   ///< by everyone: what holds nothing of the run
    read,   ///< where reading is open; else as `change`
    change, ///< by who has the token, or comes by the owner's unix socket
};

struct AccessOptions {
    std::string token{};       ///< empty: nobody has it
    bool open_reading = false; ///< from the network, too; on loopback it always is
    std::string how{};         ///< how to come by the token, for the refusal
};

/// The refusal of a request that takes a right it does not have; nothing when it may.
[[nodiscard]] std::optional<Response> refuse_access(const Request& request, Right right,
                                                    const AccessOptions& options);

/// Whether an Authorization header's value is `Bearer` and this token. How long it takes says
/// nothing about the token.
[[nodiscard]] bool shows_token(std::string_view authorization, std::string_view token);

} // namespace tw::admin
