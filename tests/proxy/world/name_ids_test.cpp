// Covers: proxy/world/id_restorer.cpp
#include "proxy/world/id_restorer.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using record::IdKind;

std::string name(int number) {
    return "n" + std::to_string(number);
}

/// Returns the id of a name; 0 if it has none.
int id_of(world::NameIds& ids, const std::string& of) {
    const auto id = ids.assign_id(of);
    return id ? id->id : 0;
}

} // namespace

TEST_CASE("an id that a view tells is taken from the name that had it") {
    world::NameIds ids;
    ids.begin_tick();
    ids.learn_id("foo", 0);
    ids.begin_tick();
    ids.learn_id("baz", 0); // the player foo was renamed
    CHECK(ids.has_learned_id("baz"));
    CHECK(ids.is_learned_id(0));
    CHECK_FALSE(ids.has_learned_id("foo"));
    ids.begin_tick();
    CHECK_FALSE(ids.has_learned_id("baz"));
    CHECK(id_of(ids, "baz") == 0);
    CHECK(id_of(ids, "foo") == 128); // another player with this name
    CHECK(id_of(ids, "foo") == 128);
    ids.begin_tick();
    ids.learn_id("foo", 3);
    CHECK(id_of(ids, "foo") == 3);
    CHECK(id_of(ids, "bar") == 128);
}

TEST_CASE("an id of a name that no view tells is taken when a view tells it of another") {
    world::NameIds ids;
    ids.begin_tick();
    CHECK(id_of(ids, "foo") == 128);
    ids.learn_id("bar", 128); // an id of a server with more players than servers support today
    CHECK(id_of(ids, "foo") == 129);
    CHECK(id_of(ids, "bar") == 128);
}

TEST_CASE("what views offer gives way to what the server says, and to nobody else") {
    world::NameIds ids;
    ids.begin_tick();
    ids.learn_id("foo", 3);
    ids.offer_id("bar", 3); // the server uses the id for another name
    ids.offer_id("foo", 5); // the server uses another id for the name
    ids.offer_id("baz", 4);
    ids.offer_id("qux", 4); // assigned in this tick already
    CHECK(id_of(ids, "foo") == 3);
    CHECK(ids.assign_id("foo")->kind == IdKind::server);
    CHECK(id_of(ids, "baz") == 4);
    CHECK(ids.assign_id("baz")->kind == IdKind::views);
    CHECK(id_of(ids, "bar") == 128);
    CHECK(ids.assign_id("bar")->kind == IdKind::twscope);
    CHECK(id_of(ids, "qux") == 129);
    ids.begin_tick();
    ids.keep_learned_id("foo");
    ids.offer_id("qux", 4); // baz left
    ids.offer_id("bar", 3);
    CHECK(id_of(ids, "qux") == 4);
    CHECK(id_of(ids, "foo") == 3);
    CHECK(id_of(ids, "bar") == 128);
    CHECK(id_of(ids, "baz") == 129);
    ids.begin_tick();
    ids.offer_id("foo", 9); // a learned id is kept only after keep_learned_id()
    CHECK(id_of(ids, "foo") == 9);
    CHECK(ids.last_learned_id("foo") == std::nullopt);
    ids.learn_id("baz", 9);
    CHECK(ids.last_learned_id("baz") == 9);
    CHECK(id_of(ids, "foo") == 129);
}

TEST_CASE("names beyond those that are kept have ids of their own, and who stays keeps them") {
    world::NameIds ids;
    for (int tick = 0; tick < 500; ++tick) {
        ids.begin_tick();
        CHECK(id_of(ids, "who stays") == 128);
        std::set<std::uint16_t> given{128};
        for (int player = 0; player < 15; ++player) {
            given.insert(static_cast<std::uint16_t>(id_of(ids, name(10 * tick + player))));
        }
        CHECK(given.size() == 16);
        CHECK(*given.begin() == 128);
        CHECK(*given.rbegin() < record::Roster::kMaxPlayers);
    }
}

TEST_CASE("more names in one tick than are kept have none, and no two of the others have one") {
    world::NameIds ids;
    ids.begin_tick();
    std::set<std::uint16_t> given;
    for (int player = 0; player < static_cast<int>(world::NameIds::kMaxNames); ++player) {
        given.insert(static_cast<std::uint16_t>(id_of(ids, name(player))));
    }
    CHECK(given.size() == world::NameIds::kMaxNames);
    CHECK(id_of(ids, "one more") == 0);
    ids.learn_id("another", 5);
    CHECK(id_of(ids, "another") == 0);
    ids.begin_tick();
    CHECK(id_of(ids, "one more") != 0);
}

} // namespace tw::test
