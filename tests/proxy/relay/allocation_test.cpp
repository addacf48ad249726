#include "proxy/relay/relay.h"
#include "tests/proxy/relay/udp_peers.h"
#include "tests/support/allocation_count.h"

#include <cstdlib>
#include <new>

#include <doctest/doctest.h>
#include <sys/socket.h>

namespace {

using namespace tw::relay;
using namespace tw::relay::test;
using tw::test::allocation_count;

/// A datagram there and back over plain calls, which allocate nothing themselves.
bool round_trip(int client, int server, std::span<std::byte> buffer) {
    SocketAddress from{};
    socklen_t length = sizeof from;
    if (::send(client, buffer.data(), buffer.size(), 0) < 0 ||
        ::recvfrom(server, buffer.data(), buffer.size(), 0, &from.base, &length) < 0) {
        return false;
    }
    return ::sendto(server, buffer.data(), buffer.size(), 0, &from.base, length) >= 0 &&
           ::recv(client, buffer.data(), buffer.size(), 0) >= 0;
}

TEST_CASE("forwarding allocates nothing once a session is there") {
    for (const bool busy_poll : {false, true}) {
        CAPTURE(busy_poll);
        Peer server;
        Options options = options_for(server.endpoint());
        options.busy_poll = busy_poll;
        Ring ring{Ring::kMinBytes}; // fills up on the way: telling of gaps allocates nothing either
        Ring* const rings[] = {&ring};
        Relay relay{options, rings};
        relay.start();
        Peer client;
        client.socket().connect(relay.listen_endpoints()[0]);
        Bytes buffer(600);
        const int c = client.socket().native_handle();
        const int s = server.socket().native_handle();
        for (int i = 0; i < 100; ++i) {
            REQUIRE(round_trip(c, s, buffer));
        }
        const auto before = allocation_count();
        bool passed = true;
        std::uint64_t observed = 0;
        for (int i = 0; i < 2000; ++i) {
            passed = passed && round_trip(c, s, buffer);
            if (i % 500 == 499) {
                observed += ring.consume([](const Event&) {});
            }
        }
        const auto after = allocation_count();
        CHECK(passed);
        CHECK(observed > 1000);
        CHECK(ring.dropped() > 0);
        CHECK(after - before == 0);
    }
}

} // namespace
