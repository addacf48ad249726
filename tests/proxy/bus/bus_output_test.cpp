#include "proxy/bus/bus_output.h"
#include "proxy/relay/unique_fd.h"

#include <chrono>
#include <string>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

using tw::bus::BusOutput;
using tw::bus::PublishOptions;

/// Takes connections and never says a word.
class SilentServer {
  public:
    SilentServer() {
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof here;
        auto* const address = reinterpret_cast<sockaddr*>(&here);
        REQUIRE(::bind(socket_.get(), address, size) == 0);
        REQUIRE(::listen(socket_.get(), 1) == 0);
        REQUIRE(::getsockname(socket_.get(), address, &size) == 0);
        port_ = ntohs(here.sin_port);
    }

    [[nodiscard]] std::string url() const { return fmt::format("nats://127.0.0.1:{}", port_); }

  private:
    tw::relay::UniqueFd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::uint16_t port_ = 0;
};

TEST_CASE("a bus that never answers does not keep a run from ending") {
    using namespace std::chrono_literals;
    const SilentServer server;
    BusOutput output{PublishOptions{.access = {.urls = {server.url()}}, .server = "one"},
                     {.full = 0ms, .end = 0ms}};
    output.write("{\"type\":\"a\"}\n{\"type\":\"b\"}\n");
    const auto begun = std::chrono::steady_clock::now();
    output.finish();
    CHECK(std::chrono::steady_clock::now() - begun < 3s); // for which the library waits
    CHECK(output.lost() == 2);
}

} // namespace
