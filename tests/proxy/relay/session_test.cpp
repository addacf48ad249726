#include "proxy/relay/session.h"

#include <memory>
#include <tuple>

#include <doctest/doctest.h>

namespace {

using namespace tw::relay;

constexpr ListenerIndex kListener = 0;

/// Of one address, each from a port of its own.
std::unique_ptr<Session> session_at(std::uint16_t port, Standing standing) {
    auto made = std::make_unique<Session>();
    made->tap.client.address = {std::byte{192}, std::byte{0}, std::byte{2}, std::byte{1}};
    made->tap.client.port = port;
    made->standing = standing;
    made->has_place = standing != Standing::connless;
    return made;
}

TEST_CASE("who only asks takes no place from the players of its address") {
    Sessions sessions{8};
    Session& asking = sessions.insert(session_at(1, Standing::connless));
    Session& leaving = sessions.insert(session_at(2, Standing::connless));
    const Source source = source_of(asking.tap.client);
    CHECK(sessions.count_of(source) == 0);
    Session& player = sessions.insert(session_at(3, Standing::unproven));
    CHECK(sessions.count_of(source) == 1);
    std::ignore = sessions.remove(leaving);
    CHECK(sessions.count_of(source) == 1);
    sessions.give_place(asking); // it has begun a connection
    sessions.rank(asking, Standing::unproven);
    CHECK(asking.has_place);
    CHECK(sessions.count_of(source) == 2);
    const auto left = sessions.remove(asking);
    CHECK_FALSE(left->has_place);
    CHECK(sessions.count_of(source) == 1);
    std::ignore = sessions.remove(player);
    CHECK(sessions.count_of(source) == 0);
    CHECK(sessions.find(left->tap.client, kListener) == nullptr);
}

} // namespace
