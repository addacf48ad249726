#pragma once

#include "proxy/base/numbers.h"
#include "proxy/web/http_server.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::web {

/// The access level that a request needs: which clients may send it.
enum class AccessLevel : std::uint8_t {
    health, ///< all clients, also on connections reserved for health checks
    page,   ///< all clients, because the page's files contain no game data
    read,   ///< clients that may change, and clients on loopback; all if network_may_read is true
    change, ///< clients with the token, and clients on the owner's unix socket
};

/// Who may use the page, and under which host names browsers may reach it.
struct AccessOptions {
    std::string token{}; ///< the secret that `read` and `change` need; empty if there is none
    /// True if clients in the network may read without the token, as clients on loopback may.
    bool network_may_read = false;
    std::string token_hint{}; ///< text that says how to get the token; appended to refusals
    /// Accepted host names, in addition to those that refuse_foreign_origin() always accepts.
    std::vector<std::string> hosts{};
    std::string unknown_host_hint{}; ///< how to add a host name, as text; appended to refusals
};

/// Returns the refusal for a request that lacks the access level; nullopt if the request is
/// allowed.
[[nodiscard]] std::optional<Response> refuse_access(const Request& request, AccessLevel level,
                                                    const AccessOptions& options);

/// Returns true if `authorization`, the value of an Authorization header, consists of `Bearer`
/// and this token. The comparison takes the same time for all tokens of the same length, to reveal
/// nothing about the token.
[[nodiscard]] bool authorization_has_token(std::string_view authorization, std::string_view token);

/// Returns the token in a subprotocol `bearer.HEX`; empty without such a subprotocol. A web page
/// has no other way to send a token with a WebSocket request.
[[nodiscard]] std::string token_in_protocols(std::string_view protocols);

/// Returns the refusal for a request that a web page of another site may have caused; nullopt if
/// the request is allowed.
///
/// A page of another origin can make a browser send requests to twscope, but it cannot choose their
/// headers Host (the name that the browser looked up), Origin and Sec-Fetch-Site. With DNS
/// rebinding, the other page's host name resolves to twscope's address. Therefore:
/// - The host must be an address, `localhost`, or one of AccessOptions::hosts. If the request did
///   not come to loopback, a name without a dot is valid, too. Containers and local networks use
///   such names.
/// - A request that changes something or opens a WebSocket must come from the live page, or from no
///   page.
/// - A request with a body needs a content type that no form can send without a preflight request.
/// - A request over a unix socket is allowed, because browsers cannot use unix sockets.
[[nodiscard]] std::optional<Response> refuse_foreign_origin(const Request& request,
                                                            const AccessOptions& options);

/// Returns the raw value after the first `name=` in a query; nullopt if the name is missing.
[[nodiscard]] std::optional<std::string_view> query_value(std::string_view query,
                                                          std::string_view name);

/// Returns the value after the first `name=` in a query, with escapes such as `%20` and `+`
/// decoded; nullopt if the name is missing or an escape is invalid.
[[nodiscard]] std::optional<std::string> query_text(std::string_view query, std::string_view name);

/// Returns the value after the first `name=` in a query as a number; nullopt if the name is
/// missing, or the value is not a number or too large.
template <typename Number>
[[nodiscard]] std::optional<Number> query_number(std::string_view query, std::string_view name) {
    const auto digits = query_value(query, name);
    return digits ? base::parse_number<Number>(*digits) : std::nullopt;
}

} // namespace tw::web
