#include "proxy/relay/upstream.h"
#include "tests/proxy/relay/udp_peers.h"

#include <set>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;
using namespace tw::relay::test;

Endpoint client_at(std::uint8_t last) {
    Endpoint client;
    client.address = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{last}};
    return client;
}

TEST_CASE("loopback addresses are unique while taken and come back to whom they belong") {
    LoopbackAddresses addresses;
    std::set<std::uint32_t> taken;
    const auto first = addresses.take(client_at(1));
    REQUIRE(first);
    taken.insert(*first);
    for (int i = 0; i < 1000; ++i) { // past a /24, so past addresses that end in 0 and 255
        const auto address = addresses.take(client_at(1));
        REQUIRE(address);
        CHECK(taken.insert(*address).second);
        CHECK((*address >> 24U) == 127);
        CHECK((*address & 0xffU) != 0);
        CHECK((*address & 0xffU) != 0xff);
    }
    addresses.give_back(*first);
    CHECK(addresses.take(client_at(1)) == first);
    CHECK(addresses.take(client_at(2)) != addresses.take(client_at(3)));
}

TEST_CASE("an upstream socket is connected to the server, from the address its mode says") {
    Peer server;
    for (const auto mode : {ClientAddress::shared, ClientAddress::loopback}) {
        UpstreamFactory factory{server.endpoint(), mode, 65'536};
        std::error_code error;
        Upstream upstream = factory.open(client_at(1), error);
        REQUIRE_FALSE(error);
        CHECK(upstream.loopback.has_value() == (mode == ClientAddress::loopback));
        CHECK(::send(upstream.socket.get(), "x", 1, 0) == 1);
        REQUIRE(server.receive());
        CHECK(endpoint_from(server.sender().data()) == upstream.local);
        CHECK((to_string(upstream.local).substr(0, 10) == "127.0.0.1:") ==
              (mode == ClientAddress::shared));
        factory.close(upstream);
        CHECK_FALSE(upstream.socket.valid());
        CHECK_FALSE(upstream.loopback);
    }
}

} // namespace
