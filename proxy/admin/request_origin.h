#pragma once

#include "proxy/admin/http_server.h"

#include <optional>
#include <string>
#include <vector>

namespace tw::admin {

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

} // namespace tw::admin
