#pragma once

#include "proxy/admin/http_stream.h"
#include "proxy/admin/served_file.h"

#include <chrono>
#include <functional>
#include <memory>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>

namespace tw::admin {

/// Sends a file piece by piece, however large it is; each piece has to be taken within `patience`.
/// `done` is called in any case, and keeps alive what `stream` is of. One that was cut off meanwhile
/// ends early, which whoever reads it sees by its length.
void send_file(HttpStream& stream, const boost::beast::http::response_header<>& head,
               std::shared_ptr<const ServedFile> file, std::chrono::milliseconds patience,
               std::function<void()> done);

} // namespace tw::admin
