// Covers: proxy/base/endpoint.cpp
#include "proxy/base/endpoint.h"
#include "tests/proxy/relay/udp_peers.h"

#include <string>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using boost::asio::ip::make_address;
using tw::relay::test::Udp;

TEST_CASE("an endpoint keeps and prints the address it was made from") {
    struct Row {
        std::string address;
        std::uint16_t port;
        std::string text;
        bool loopback;
    };

    const Row rows[] = {
        {"127.0.0.1", 8303, "127.0.0.1:8303", true},
        {"127.64.3.2", 1, "127.64.3.2:1", true},
        {"192.0.2.255", 65535, "192.0.2.255:65535", false},
        {"0.0.0.0", 0, "0.0.0.0:0", false},
        {"::1", 8303, "[::1]:8303", true},
        {"::", 8303, "[::]:8303", false},
        {"2001:db8::1", 53, "[2001:db8::1]:53", false},
        {"fe80::1%1", 53, "[fe80::1%1]:53", false},
        {"::ffff:192.0.2.1", 53, "192.0.2.1:53", false},
    };
    for (const auto& row : rows) {
        CAPTURE(row.address);
        const Udp::endpoint from{make_address(row.address), row.port};
        const Endpoint endpoint = endpoint_from(from.data());
        CHECK(to_string(endpoint) == row.text);
        CHECK(is_loopback(endpoint) == row.loopback);
        CHECK(endpoint == endpoint_from(from.data()));
    }
}

TEST_CASE("an address of another family gives an empty endpoint") {
    sockaddr other{};
    other.sa_family = AF_UNIX;
    CHECK(endpoint_from(&other) == Endpoint{});
}

} // namespace
