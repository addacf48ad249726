#include "proxy/relay/upstream.h"
#include "tests/proxy/relay/udp_peers.h"

#include <set>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;
using namespace tw::relay::test;

Endpoint ipv4_client(std::uint8_t last) {
    return ipv4_endpoint(0xc0000200U + last);
}

Endpoint ipv6_client(std::uint8_t net, std::uint8_t host) {
    Endpoint client;
    client.v6 = true;
    client.address[7] = std::byte{net};
    client.address[15] = std::byte{host};
    return client;
}

SipKey make_sip_key(std::uint8_t number) {
    SipKey key{};
    key[0] = std::byte{number};
    return key;
}

TEST_CASE("each client address has one loopback address for all ports") {
    LoopbackAddresses addresses{make_sip_key(1)};
    std::set<std::uint32_t> taken;
    for (std::uint32_t i = 0; i < 70'000; ++i) {
        Endpoint client = ipv4_endpoint(0x0a000000U + i);
        const auto address = addresses.assign_address(client);
        REQUIRE(address);
        REQUIRE(taken.insert(*address).second);
        REQUIRE((*address >> 22U) == (0x7f400000U >> 22U));
        REQUIRE((*address & 0xffU) != 0);
        REQUIRE((*address & 0xffU) != 0xff);
        client.port = 7;
        REQUIRE(addresses.assign_address(client) == address);
    }
    CHECK(addresses.assign_address(ipv6_client(1, 1)) ==
          addresses.assign_address(ipv6_client(1, 2)));
    CHECK(addresses.assign_address(ipv6_client(1, 1)) !=
          addresses.assign_address(ipv6_client(2, 1)));
    CHECK(addresses.assign_address(Endpoint{}) != addresses.assign_address(ipv6_client(0, 0)));
}

TEST_CASE(
    "a loopback address is free after its last session, and is assigned again to its client") {
    LoopbackAddresses addresses{make_sip_key(1)};
    const auto first = addresses.assign_address(ipv4_client(1));
    CHECK(addresses.assign_address(ipv4_client(1)) == first);
    addresses.release_address(ipv4_client(1));
    CHECK(addresses.assign_address(ipv4_client(1)) == first); // one session still has the address
    addresses.release_address(ipv4_client(1));
    addresses.release_address(ipv4_client(1));
    addresses.release_address(ipv4_client(1)); // one release too many is harmless
    CHECK(addresses.assign_address(ipv4_client(1)) == first);
    LoopbackAddresses same{make_sip_key(1)};
    LoopbackAddresses other{make_sip_key(2)};
    CHECK(same.assign_address(ipv4_client(1)) == first);
    CHECK(other.assign_address(ipv4_client(1)) != first);
}

TEST_CASE("an upstream socket is connected to the server, with the local address of its mode") {
    Peer server;
    for (const auto mode : {ClientAddressMode::shared, ClientAddressMode::loopback}) {
        UpstreamFactory factory{server.endpoint(), mode, 65'536, SipKey{}};
        std::error_code error;
        UpstreamSocket upstream = factory.open_socket(ipv4_client(1), error);
        REQUIRE_FALSE(error);
        CHECK(upstream.loopback_client.has_value() == (mode == ClientAddressMode::loopback));
        CHECK(::send(upstream.socket.get(), "x", 1, 0) == 1);
        REQUIRE(server.receive());
        CHECK(endpoint_from(server.sender().data()) == upstream.local);
        CHECK((to_string(upstream.local).substr(0, 10) == "127.0.0.1:") ==
              (mode == ClientAddressMode::shared));
        factory.close_socket(upstream);
        CHECK_FALSE(upstream.socket.valid());
        CHECK_FALSE(upstream.loopback_client);
    }
}

} // namespace
