#pragma once

#include "proxy/web/http_server.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tw::web {

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

/// By which names the page goes.
struct OriginOptions {
    std::vector<std::string> hosts{}; ///< names it goes by, beside those that are always right
    std::string unknown_host_hint{};  ///< how to make another name known, for the refusal
};

/// The refusal of a request that some web page elsewhere may have made a browser send; nothing when
/// the request is fine.
///
/// A page of another origin can send requests here, but not choose their Host (it names what the
/// browser looked up), Origin or Sec-Fetch-Site. With DNS rebinding that page's own name leads
/// here, so a name is right only when it is an address, `localhost`, one of `hosts`, or, for what
/// did not come to loopback, a name without a dot, as containers and local networks have them.
/// What changes something has to come from our own page or from no page at all, and must have a
/// content type that no form can send without asking first. No browser comes by a unix socket.
[[nodiscard]] std::optional<Response> refuse_foreign_origin(const Request& request,
                                                            const OriginOptions& options);

/// The same for a WebSocket: no web page elsewhere may open one, whatever it asks for.
[[nodiscard]] std::optional<Response> refuse_foreign_socket(const Request& request,
                                                            const OriginOptions& options);

/// What stands behind the first `name=` of a query, as it stands there; nothing when there is none.
[[nodiscard]] std::optional<std::string_view> value_in(std::string_view query,
                                                       std::string_view name);

/// The same with `%20` and `+` read; nothing when it is not written as it has to be.
[[nodiscard]] std::optional<std::string> text_in(std::string_view query, std::string_view name);

/// The number there; nothing when it is none, or too large.
template <typename Number>
[[nodiscard]] std::optional<Number> number_in(std::string_view query, std::string_view name) {
    const auto digits = value_in(query, name);
    if (!digits) {
        return std::nullopt;
    }
    Number number{};
    const char* const end = digits->data() + digits->size();
    const auto read = std::from_chars(digits->data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
}

} // namespace tw::web
