#pragma once

#include "proxy/admin/http_stream.h"
#include "proxy/admin/listening.h"
#include "proxy/relay/keyed_hash.h"

#include <string>

namespace tw::admin {

/// Who is at the other end; all that come by a unix socket are one.
[[nodiscard]] relay::Source peer_of(const HttpStream::socket_type& socket);

/// For people.
[[nodiscard]] std::string peer_name(const HttpStream::socket_type& socket, Way way);

/// What is written is sent at once, not when its reader has acknowledged what was before: that takes
/// 40 ms where a reader says nothing itself.
void send_at_once(HttpStream::socket_type& socket);

} // namespace tw::admin
