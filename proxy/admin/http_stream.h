#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace tw::admin {

/// What connections are made of: of ports and unix sockets alike.
using HttpStream = boost::beast::basic_stream<boost::asio::generic::stream_protocol,
                                              boost::asio::io_context::executor_type>;
using HttpMessage = boost::beast::http::request<boost::beast::http::string_body>;

} // namespace tw::admin
