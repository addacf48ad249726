#include "proxy/game/name_ids.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

std::string name(int number) {
    return "n" + std::to_string(number);
}

} // namespace

TEST_CASE("an id that a view tells is taken from the name that had it") {
    game::NameIds ids;
    ids.begin_tick();
    ids.learn("foo", 0);
    ids.begin_tick();
    ids.learn("baz", 0); // foo has another name now
    CHECK(ids.knows("baz"));
    CHECK(ids.knows(0));
    CHECK_FALSE(ids.knows("foo"));
    ids.begin_tick();
    CHECK_FALSE(ids.knows("baz"));
    CHECK(ids.id_of("baz") == 0);
    CHECK(ids.id_of("foo") == 128); // somebody else of that name
    CHECK(ids.id_of("foo") == 128);
    ids.begin_tick();
    ids.learn("foo", 3);
    CHECK(ids.id_of("foo") == 3);
    CHECK(ids.id_of("bar") == 128);
}

TEST_CASE("an id of a name that no view tells is taken when a view tells it of another") {
    game::NameIds ids;
    ids.begin_tick();
    CHECK(ids.id_of("foo") == 128);
    ids.learn("bar", 128); // of a server with more players than there are today
    CHECK(ids.id_of("foo") == 129);
    CHECK(ids.id_of("bar") == 128);
}

TEST_CASE("names beyond those that are kept have ids of their own, and who stays keeps them") {
    game::NameIds ids;
    for (int tick = 0; tick < 500; ++tick) {
        ids.begin_tick();
        CHECK(ids.id_of("who stays") == 128);
        std::set<std::uint16_t> given{128};
        for (int player = 0; player < 15; ++player) {
            given.insert(ids.id_of(name(10 * tick + player)).value_or(0));
        }
        CHECK(given.size() == 16);
        CHECK(*given.begin() == 128);
        CHECK(*given.rbegin() < record::Roster::kMaxPlayers);
    }
}

TEST_CASE("more names in one tick than are kept have none, and no two of the others have one") {
    game::NameIds ids;
    ids.begin_tick();
    std::set<std::uint16_t> given;
    for (int player = 0; player < static_cast<int>(game::NameIds::kMaxNames); ++player) {
        given.insert(ids.id_of(name(player)).value_or(0));
    }
    CHECK(given.size() == game::NameIds::kMaxNames);
    CHECK(ids.id_of("one more") == std::nullopt);
    ids.learn("another", 5);
    CHECK(ids.id_of("another") == std::nullopt);
    ids.begin_tick();
    CHECK(ids.id_of("one more"));
}

} // namespace tw::test
