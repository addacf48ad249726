#pragma once

#include "proxy/web/sockets.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace tw::test {

/// Listens on a free port.
inline std::vector<web::ListeningSocket>
listen_on_any_port(const std::string& address = "127.0.0.1") {
    std::vector<web::ListeningSocket> listening;
    listening.emplace_back(web::HttpAddress{.address = address});
    return listening;
}

/// A client's connection to a server on loopback. It can send any bytes.
class HttpClient {
  public:
    explicit HttpClient(std::uint16_t port, const boost::asio::ip::address_v4& from =
                                                boost::asio::ip::address_v4::loopback())
        : socket_{io_, {from, 0}} {
        socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    }

    /// Returns false if the server has closed the connection.
    bool send(std::string_view bytes) {
        boost::system::error_code error;
        boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()), error);
        return !error;
    }

    void end_sending() {
        boost::system::error_code ignored;
        socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    }

    /// Reads some bytes and returns their number; 0 at the end of the connection.
    std::size_t read_some() {
        std::array<char, 4096> bytes{};
        boost::system::error_code error;
        return socket_.read_some(boost::asio::buffer(bytes), error);
    }

    /// Reads `size` bytes, or all up to the end of the connection.
    std::string read(std::size_t size) {
        std::string bytes(size, '\0');
        boost::system::error_code error;
        bytes.resize(boost::asio::read(socket_, boost::asio::buffer(bytes), error));
        return bytes;
    }

    /// Reads all bytes up to the end of the connection.
    std::string read_all() {
        std::string answer;
        boost::system::error_code error;
        boost::asio::read(socket_, boost::asio::dynamic_buffer(answer), error);
        return answer;
    }

  private:
    boost::asio::io_context io_;
    boost::asio::ip::tcp::socket socket_;
};

/// Sends a request and returns the whole response.
inline std::string send_http_request(std::uint16_t port, std::string_view request) {
    HttpClient client{port};
    client.send(request);
    return client.read_all();
}

inline std::string send_get_request(std::uint16_t port, const std::string& path,
                                    const std::string& headers = "Host: localhost\r\n") {
    return send_http_request(port, "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
}

inline std::string response_body(const std::string& answer) {
    const auto end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
}

inline std::string response_status(const std::string& answer) {
    return answer.substr(0, answer.find("\r\n"));
}

} // namespace tw::test
