// The peer of a connection, and Nagle's algorithm.
// Covers: proxy/web/http_stream.cpp

#include "proxy/web/http_stream.h"

#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <doctest/doctest.h>

using namespace tw;
namespace asio = boost::asio;
using Socket = web::HttpStream::socket_type;

TEST_CASE("a TCP connection sends without delay, and its peer has an address") {
    asio::io_context io;
    asio::ip::tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
    asio::ip::tcp::socket client{io};
    client.connect(acceptor.local_endpoint());
    auto accepted = acceptor.accept(io);
    Socket socket{io.get_executor(), {AF_INET, 0}, accepted.release()};
    web::disable_nagle(socket);
    asio::ip::tcp::no_delay option;
    socket.get_option(option);
    CHECK(option.value());
    CHECK(web::peer_name(socket, web::ConnectionOrigin::loopback) ==
          "127.0.0.1:" + std::to_string(client.local_endpoint().port()));
    CHECK(web::peer_of(socket) == web::peer_of(socket));
}

TEST_CASE("all clients on unix sockets count as one peer, and disable_nagle() does nothing there") {
    asio::io_context io;
    asio::local::stream_protocol::socket one{io};
    asio::local::stream_protocol::socket other{io};
    asio::local::connect_pair(one, other);
    Socket left{io.get_executor(), {AF_UNIX, 0}, one.release()};
    Socket right{io.get_executor(), {AF_UNIX, 0}, other.release()};
    web::disable_nagle(left);
    CHECK(web::peer_name(left, web::ConnectionOrigin::owner) == "the unix socket");
    CHECK(web::peer_of(left) == web::peer_of(right));
}
