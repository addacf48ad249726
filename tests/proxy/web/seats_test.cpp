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
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kUsual;
         ++number) {
        const auto place = seats.admit(number, peer(number / ConnectionLimiter::kOfPeer));
        REQUIRE(place.is_admitted);
        REQUIRE_FALSE(place.spare);
    }
}

constexpr ConnectionLimiter::ConnectionNumber kNew = 1000;

} // namespace

TEST_CASE("a peer has so many seats, and its others are spare ones") {
    ConnectionLimiter seats;
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kOfPeer;
         ++number) {
        CHECK_FALSE(seats.admit(number, peer(1)).spare);
    }
    const auto beyond = seats.admit(kNew, peer(1));
    CHECK(beyond.is_admitted);
    CHECK(beyond.spare);
    CHECK_FALSE(beyond.evicted);
    CHECK_FALSE(seats.admit(kNew + 1, peer(2)).spare);
    seats.remove(0);
    CHECK_FALSE(seats.admit(kNew + 2, peer(1)).spare);
}

TEST_CASE("in the spare seats the first that has not asked leaves for who comes") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kSpare;
         ++number) {
        const auto place = seats.admit(kNew + number, peer(100 + number));
        CHECK(place.spare);
        CHECK_FALSE(place.evicted);
    }
    seats.note_request(kNew);
    const auto place = seats.admit(kNew + 100, peer(200));
    CHECK(place.is_admitted);
    CHECK(place.evicted == kNew + 1);
    CHECK(seats.size() == ConnectionLimiter::kUsual + ConnectionLimiter::kSpare);
}

TEST_CASE("a peer with its share of the spare seats makes room by its own") {
    ConnectionLimiter seats;
    fill_usual(seats);
    CHECK_FALSE(seats.admit(kNew, peer(7)).evicted);
    for (ConnectionLimiter::ConnectionNumber number = 1; number <= ConnectionLimiter::kSpareOfPeer;
         ++number) {
        CHECK_FALSE(seats.admit(kNew + number, peer(8)).evicted);
    }
    CHECK(seats.admit(kNew + 100, peer(8)).evicted == kNew + 1);
}

TEST_CASE("who has asked is answered: when all have, nobody else is seated") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kSpare;
         ++number) {
        static_cast<void>(seats.admit(kNew + number, peer(100 + number)));
        seats.note_request(kNew + number);
    }
    CHECK_FALSE(seats.admit(kNew + 100, peer(200)).is_admitted);
    CHECK(seats.size() == ConnectionLimiter::kUsual + ConnectionLimiter::kSpare);
    seats.remove(kNew + 3);
    seats.remove(kNew + 3);
    CHECK(seats.admit(kNew + 101, peer(200)).is_admitted);
}
