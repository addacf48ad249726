#include "proxy/relay/session.h"
#include "proxy/relay/session_maker.h"
#include "tests/proxy/relay/udp_peers.h"

#include <chrono>
#include <memory>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

namespace {

using namespace tw::base;
using namespace tw::relay;

constexpr ListenerIndex kListener = 0;

/// Returns a session of a client at this port. All clients have the same address.
std::unique_ptr<Session> make_session_at_port(std::uint16_t port, ClientStanding standing) {
    auto made = std::make_unique<Session>();
    made->observed.client = tw::relay::test::ipv4_endpoint(0xc0000201U, port);
    made->standing = standing;
    made->counts_against_limit = standing != ClientStanding::connless;
    return made;
}

TEST_CASE("connectionless sessions do not count against the limit of their address") {
    SessionIndex sessions{8};
    Session& asking = sessions.insert(make_session_at_port(1, ClientStanding::connless));
    Session& leaving = sessions.insert(make_session_at_port(2, ClientStanding::connless));
    const Network source = *EnclosingNetworks{asking.observed.client}.begin();
    CHECK(sessions.num_sessions_against_limit(source) == 0);
    Session& player = sessions.insert(make_session_at_port(3, ClientStanding::unverified));
    CHECK(sessions.num_sessions_against_limit(source) == 1);
    std::ignore = sessions.remove(leaving);
    CHECK(sessions.num_sessions_against_limit(source) == 1);
    sessions.count_against_limit(asking); // the client has begun a connection
    sessions.set_standing(asking, ClientStanding::unverified);
    CHECK(asking.counts_against_limit);
    CHECK(sessions.num_sessions_against_limit(source) == 2);
    const auto left = sessions.remove(asking);
    CHECK_FALSE(left->counts_against_limit);
    CHECK(sessions.num_sessions_against_limit(source) == 1);
    std::ignore = sessions.remove(player);
    CHECK(sessions.num_sessions_against_limit(source) == 0);
    CHECK(sessions.find(left->observed.client, kListener) == nullptr);
}

TEST_CASE("a session is counted for each network that contains its client, by standing") {
    SessionIndex sessions{8};
    const auto make_ipv6_session = [](std::uint8_t last_of_56, std::uint16_t port) {
        auto session = make_session_at_port(port, ClientStanding::unverified);
        session->observed.client.address = {std::byte{0x20}, std::byte{1},         std::byte{0x0d},
                                            std::byte{0xb8}, std::byte{0},         std::byte{1},
                                            std::byte{2},    std::byte{last_of_56}};
        session->observed.client.v6 = true;
        return session;
    };
    Session& first = sessions.insert(make_ipv6_session(1, 1));
    Session& second = sessions.insert(make_ipv6_session(2, 1));
    sessions.set_standing(second, ClientStanding::verified);
    const EnclosingNetworks networks{first.observed.client};
    const std::vector<Network> of_first{networks.begin(), networks.end()};
    REQUIRE(of_first.size() == 3);
    const std::size_t places[]{1, 2, 2};
    const std::size_t verified[]{0, 1, 1};
    for (std::size_t i = 0; i < of_first.size(); ++i) {
        CAPTURE(i);
        CHECK(sessions.num_sessions_against_limit(of_first[i]) == places[i]);
        CHECK(sessions.num_sessions(of_first[i], ClientStanding::unverified) == 1);
        CHECK(sessions.num_sessions(of_first[i], ClientStanding::verified) == verified[i]);
    }
    std::ignore = sessions.remove(second);
    sessions.set_standing(first, ClientStanding::player);
    for (const Network& network : of_first) {
        CHECK(sessions.num_sessions_against_limit(network) == 1);
        CHECK(sessions.num_sessions(network, ClientStanding::unverified) == 0);
    }
}

TEST_CASE("sessions are checked in turn, a bounded number at a time") {
    using namespace std::chrono_literals;
    Clock::time_point now = Clock::now();
    SessionTimers timers{80ms, now}; // a session is checked every 10 ms
    std::vector<std::unique_ptr<Session>> sessions;
    for (std::uint16_t port = 1; port <= 100; ++port) {
        sessions.push_back(make_session_at_port(port, ClientStanding::player));
        timers.add_session(*sessions.back());
    }
    std::vector<std::uint16_t> checked;
    const auto check = [&](Session& session) { checked.push_back(session.observed.client.port); };
    now += 9ms;
    CHECK(timers.check_due_sessions(now, check));
    CHECK(checked.empty());
    sessions.erase(sessions.begin()); // a session that is gone is not checked
    now += 1ms;
    for (const std::size_t after : {32U, 64U, 96U, 99U}) {
        CHECK(timers.check_due_sessions(now, check) == (after == 99));
        CHECK(checked.size() == after);
    }
    CHECK(checked.front() == 2);
    CHECK(checked.back() == 100);
    now += 10ms;
    CHECK_FALSE(timers.check_due_sessions(now, check));
    CHECK(checked.at(99) == 2);
}

} // namespace
