// Covers: proxy/web/http_server.cpp
#include "proxy/web/http_server.h"

#include <cstdint>

#include <doctest/doctest.h>

using tw::base::Source;
using tw::web::ConnectionLimiter;

namespace {

Source peer(std::uint64_t number) {
    return {.address = number, .v6 = false};
}

/// Fills the seats that are for everyone: four peers take all they may have.
void fill_usual(ConnectionLimiter& seats) {
    for (ConnectionLimiter::Number number = 0; number < ConnectionLimiter::kUsual; ++number) {
        const auto place = seats.arrive(number, peer(number / ConnectionLimiter::kOfPeer));
        REQUIRE(place.seated);
        REQUIRE_FALSE(place.spare);
    }
}

constexpr ConnectionLimiter::Number kNew = 1000;

} // namespace

TEST_CASE("a peer has so many seats, and its others are spare ones") {
    ConnectionLimiter seats;
    for (ConnectionLimiter::Number number = 0; number < ConnectionLimiter::kOfPeer; ++number) {
        CHECK_FALSE(seats.arrive(number, peer(1)).spare);
    }
    const auto beyond = seats.arrive(kNew, peer(1));
    CHECK(beyond.seated);
    CHECK(beyond.spare);
    CHECK_FALSE(beyond.leaves);
    CHECK_FALSE(seats.arrive(kNew + 1, peer(2)).spare);
    seats.leave(0);
    CHECK_FALSE(seats.arrive(kNew + 2, peer(1)).spare);
}

TEST_CASE("in the spare seats the first that has not asked leaves for who comes") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::Number number = 0; number < ConnectionLimiter::kSpare; ++number) {
        const auto place = seats.arrive(kNew + number, peer(100 + number));
        CHECK(place.spare);
        CHECK_FALSE(place.leaves);
    }
    seats.ask(kNew);
    const auto place = seats.arrive(kNew + 100, peer(200));
    CHECK(place.seated);
    CHECK(place.leaves == kNew + 1);
    CHECK(seats.taken() == ConnectionLimiter::kUsual + ConnectionLimiter::kSpare);
}

TEST_CASE("a peer with its share of the spare seats makes room by its own") {
    ConnectionLimiter seats;
    fill_usual(seats);
    CHECK_FALSE(seats.arrive(kNew, peer(7)).leaves);
    for (ConnectionLimiter::Number number = 1; number <= ConnectionLimiter::kSpareOfPeer;
         ++number) {
        CHECK_FALSE(seats.arrive(kNew + number, peer(8)).leaves);
    }
    CHECK(seats.arrive(kNew + 100, peer(8)).leaves == kNew + 1);
}

TEST_CASE("who has asked is answered: when all have, nobody else is seated") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::Number number = 0; number < ConnectionLimiter::kSpare; ++number) {
        static_cast<void>(seats.arrive(kNew + number, peer(100 + number)));
        seats.ask(kNew + number);
    }
    CHECK_FALSE(seats.arrive(kNew + 100, peer(200)).seated);
    CHECK(seats.taken() == ConnectionLimiter::kUsual + ConnectionLimiter::kSpare);
    seats.leave(kNew + 3);
    seats.leave(kNew + 3);
    CHECK(seats.arrive(kNew + 101, peer(200)).seated);
}
