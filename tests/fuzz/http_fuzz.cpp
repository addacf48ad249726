#include "proxy/web/access.h"
#include "proxy/web/http_server.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

/// Sends the input to the live page's server. The first byte gives the number of pieces in which the rest
/// is sent, and the options that check its origin. The response must be valid HTTP or empty, and the
/// requests passed to handlers must obey the limits.
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using namespace tw::web;
using tw::fuzz::demand;

void check_request(const Request& request) {
    demand(!request.method.empty() && request.body.size() <= kMaxBodyBytes);
    demand(request.method.size() + request.path.size() + request.host.size() +
               request.origin.size() + request.fetch_site.size() + request.content_type.size() +
               request.authorization.size() <=
           kMaxHeaderBytes);
    demand(request.path.find('?') == std::string_view::npos);
    demand(request.host.find_first_of("\r\n") == std::string_view::npos);
}

/// Checks access and origin as the page does before it looks up the path.
Response answer_fuzzed_request(Request request) {
    check_request(request);
    request.connection_origin =
        request.path.size() % 2 == 0 ? ConnectionOrigin::loopback : ConnectionOrigin::network;
    auto refusal =
        refuse_foreign_origin(request, {.hosts = {"twscope.example"}, .unknown_host_hint = "ask"});
    if (!refusal) {
        refusal = refuse_access(request, AccessLevel::change, {.token = "token"});
        demand(refusal.has_value() || authorization_has_token(request.authorization, "token"));
    }
    if (refusal) {
        demand(refusal->status >= 400 && refusal->body.ends_with('\n'));
        return *std::move(refusal);
    }
    return {.body = std::string{request.body}};
}

class FuzzedHttpServer {
  public:
    FuzzedHttpServer()
        : http_{make_listening_sockets(),
                {.answer_request = [](const Request& request, const Respond& respond) {
                    respond(answer_fuzzed_request(request));
                }}} {
        http_.start();
    }

    [[nodiscard]] std::uint16_t port() const { return http_.port(); }

  private:
    static std::vector<ListeningSocket> make_listening_sockets() {
        std::vector<ListeningSocket> sockets;
        sockets.emplace_back(HttpAddress{.address = "0.0.0.0"});
        return sockets;
    }

    HttpServer http_;
};

/// Returns another loopback address for every connection, so that the limits of one peer do not apply.
asio::ip::address_v4 next_client_address() {
    constexpr std::uint32_t kLoopback = 0x7f'00'00'00;
    constexpr std::uint32_t kAddresses = 0xff'ff'fe;
    static std::uint32_t count = 0;
    return asio::ip::address_v4{kLoopback + 1 + count++ % kAddresses};
}

std::string send_request(std::uint16_t port, std::span<const std::byte> request,
                         std::size_t pieces) {
    asio::io_context io;
    Tcp::socket socket{io, Tcp::endpoint{next_client_address(), 0}};
    socket.connect({asio::ip::address_v4::loopback(), port});
    socket.set_option(Tcp::no_delay{true});
    boost::system::error_code error;
    const std::size_t size = request.size() / pieces + 1;
    while (!request.empty() && !error) {
        const auto piece = request.first(std::min(size, request.size()));
        asio::write(socket, asio::buffer(piece.data(), piece.size()), error);
        request = request.subspan(piece.size());
    }
    socket.shutdown(Tcp::socket::shutdown_send, error);
    std::string answer;
    asio::read(socket, asio::dynamic_buffer(answer), error);
    return answer;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const FuzzedHttpServer server;
    tw::fuzz::Input in{data, size};
    const std::size_t pieces = 1 + in.below(4);
    const std::string answer = send_request(server.port(), in.take_bytes(size), pieces);
    demand(answer.empty() || answer.starts_with("HTTP/1.1 "));
    return 0;
}
