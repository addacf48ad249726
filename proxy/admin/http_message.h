#pragma once

#include "proxy/admin/http_request.h"
#include "proxy/admin/http_stream.h"

#include <optional>
#include <string_view>

#include <boost/beast/core/string_type.hpp>
#include <boost/beast/http/field.hpp>

/// What Beast has read of a request, as the server's hosts have it.
namespace tw::admin {

inline constexpr unsigned kHttp11 = 11; ///< as Beast writes versions

[[nodiscard]] std::string_view http_text(boost::beast::string_view text);

/// A header that may stand there once; empty where it does not, or more often.
[[nodiscard]] std::string_view single_field(const HttpMessage& message,
                                            boost::beast::http::field name);

/// What the message itself says. Views live as long as it.
[[nodiscard]] Request request_from(const HttpMessage& message);

/// Whether its peer waits for "100 Continue" before it sends the body, as curl does before long ones.
[[nodiscard]] bool expects_continue(const HttpMessage& message);

/// What to say to a request that could not be read; nothing when nobody would hear it.
[[nodiscard]] std::optional<Response> complaint(const boost::system::error_code& error);

} // namespace tw::admin
