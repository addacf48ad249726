#pragma once

#include "proxy/admin/http_stream.h"
#include "proxy/admin/web_socket.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tw::admin {

/// The name of what we speak over a WebSocket; a page asks for it as a subprotocol.
inline constexpr const char* kLiveProtocol = "twscope.live.1";

/// Takes the stream over and answers the request to upgrade it. It lives for as long as its peer does,
/// or shows a sign of life every half minute. `on_open`: it can be used from now on; not called when
/// the upgrade fails.
void accept_web_socket(HttpStream stream, HttpMessage request,
                       std::function<void(const std::shared_ptr<WebSocket>&)> on_open);

/// Whether one of the subprotocols that a request lists is this one. A peer that asked for none must not
/// be answered with one.
[[nodiscard]] bool asks_for_protocol(std::string_view protocols, std::string_view name);

/// The token that a page sends as a subprotocol `bearer.HEX`, for want of another way; empty: none.
[[nodiscard]] std::string token_in_protocols(std::string_view protocols);

} // namespace tw::admin
