// Covers: proxy/process/server_probe.cpp
#include "proxy/process/server_probe.h"
#include "proxy/wire/packet.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <doctest/doctest.h>

using namespace tw;
using process::AnswersWanted;

namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;
using Endpoints = std::vector<Udp::endpoint>;

/// The deadline where no answer is expected.
constexpr std::chrono::milliseconds kShort{200};
/// A deadline that no machine exceeds.
constexpr std::chrono::seconds kPatience{20};

std::vector<std::byte> info(int token) {
    const std::string text = "inf3" + std::to_string(token) + '\0' + "0.6.4" + '\0';
    std::vector<std::byte> payload(4, std::byte{0xff});
    for (const char character : text) {
        payload.push_back(static_cast<std::byte>(character));
    }
    return wire::encode_connless(payload);
}

/// A server on a port chosen by the system, on a thread of its own. With `answers` false it ignores
/// all requests.
class Server {
  public:
    explicit Server(const char* address, bool answers = true)
        : socket_{io_, {asio::ip::make_address(address), 0}} {
        if (answers) {
            receive();
            thread_ = std::thread{[this] { io_.run(); }};
        }
    }

    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    Server(Server&&) = delete;
    Server& operator=(Server&&) = delete;

    ~Server() {
        io_.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    [[nodiscard]] Udp::endpoint endpoint() const { return socket_.local_endpoint(); }

  private:
    void receive() {
        socket_.async_receive_from(
            asio::buffer(buffer_), from_,
            [this](const boost::system::error_code& error, std::size_t size) {
                if (!error && size != 0) {
                    boost::system::error_code ignored;
                    socket_.send_to(asio::buffer(info(std::to_integer<int>(buffer_[size - 1]))),
                                    from_, 0, ignored);
                }
                receive();
            });
    }

    asio::io_context io_;
    Udp::socket socket_;
    Udp::endpoint from_;
    std::array<std::byte, 1024> buffer_{};
    std::thread thread_;
};

bool has_v6() {
    asio::io_context io;
    boost::system::error_code error;
    Udp::socket socket{io, Udp::v6()};
    socket.bind({asio::ip::address_v6::loopback(), 0}, error);
    return !error;
}

} // namespace

TEST_CASE("resolving a name gives the addresses that answer") {
    const Server first{"127.0.0.1"};
    const Server second{"127.0.0.2"};
    const Server silent{"127.0.0.3", false};
    const Udp::endpoint nobody{asio::ip::make_address("127.0.0.4"), second.endpoint().port()};
    const auto all = [](const Endpoints& addresses, std::chrono::milliseconds deadline) {
        return process::find_answering(addresses, AnswersWanted::all, deadline);
    };
    CHECK(all({first.endpoint(), second.endpoint()}, kPatience) ==
          Endpoints{first.endpoint(), second.endpoint()});
    CHECK(all({silent.endpoint(), second.endpoint()}, kShort) == Endpoints{second.endpoint()});
    CHECK(all({nobody, second.endpoint()}, kShort) == Endpoints{second.endpoint()});
    CHECK(process::find_answering({silent.endpoint(), nobody, second.endpoint()},
                                  AnswersWanted::one, kPatience) == Endpoints{second.endpoint()});
}

TEST_CASE("all addresses are returned if none answers, and a single one without asking") {
    const Server silent{"127.0.0.1", false};
    const Udp::endpoint nobody{asio::ip::make_address("127.0.0.4"), silent.endpoint().port()};
    CHECK(process::find_answering({}, AnswersWanted::all).empty());
    CHECK(process::find_answering({silent.endpoint()}, AnswersWanted::one, kPatience) ==
          Endpoints{silent.endpoint()});
    CHECK(process::find_answering({silent.endpoint(), nobody}, AnswersWanted::one, kShort) ==
          Endpoints{silent.endpoint(), nobody});
}

TEST_CASE("a server is found that listens only on the IPv6 address of its name") {
    if (!has_v6()) {
        MESSAGE("no IPv6 here");
        return;
    }
    const Server six{"::1"};
    const Udp::endpoint four{asio::ip::make_address("127.0.0.1"), six.endpoint().port()};
    CHECK(process::find_answering({four, six.endpoint()}, AnswersWanted::one, kPatience) ==
          Endpoints{six.endpoint()});
    CHECK(process::find_answering({four, six.endpoint()}, AnswersWanted::all, kShort) ==
          Endpoints{six.endpoint()});
}
