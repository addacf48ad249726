// Covers: proxy/web/http_server.cpp
#include "proxy/web/http_server.h"

#include <cstdint>

#include <doctest/doctest.h>

using tw::base::CustomerAddress;
using tw::web::ConnectionLimiter;

namespace {

CustomerAddress peer(std::uint64_t number) {
    return {.address = number, .v6 = false};
}

/// Fills the unreserved connections: four peers use all that they may have.
void fill_usual(ConnectionLimiter& seats) {
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kUsual;
         ++number) {
        const auto place = seats.admit(number, peer(number / ConnectionLimiter::kOfPeer));
        REQUIRE(place.is_admitted);
        REQUIRE_FALSE(place.is_reserved);
    }
}

constexpr ConnectionLimiter::ConnectionNumber kNew = 1000;

} // namespace

TEST_CASE("a peer's connections beyond its limit are reserved ones") {
    ConnectionLimiter seats;
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kOfPeer;
         ++number) {
        CHECK_FALSE(seats.admit(number, peer(1)).is_reserved);
    }
    const auto beyond = seats.admit(kNew, peer(1));
    CHECK(beyond.is_admitted);
    CHECK(beyond.is_reserved);
    CHECK_FALSE(beyond.evicted);
    CHECK_FALSE(seats.admit(kNew + 1, peer(2)).is_reserved);
    seats.remove(0);
    CHECK_FALSE(seats.admit(kNew + 2, peer(1)).is_reserved);
}

TEST_CASE("a new connection evicts the oldest reserved connection without a request") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kReserved;
         ++number) {
        const auto place = seats.admit(kNew + number, peer(100 + number));
        CHECK(place.is_reserved);
        CHECK_FALSE(place.evicted);
    }
    seats.note_request_arrived(kNew);
    const auto place = seats.admit(kNew + 100, peer(200));
    CHECK(place.is_admitted);
    CHECK(place.evicted == kNew + 1);
    CHECK(seats.size() == ConnectionLimiter::kUsual + ConnectionLimiter::kReserved);
}

TEST_CASE("a peer at its limit of reserved connections evicts one of its own") {
    ConnectionLimiter seats;
    fill_usual(seats);
    CHECK_FALSE(seats.admit(kNew, peer(7)).evicted);
    for (ConnectionLimiter::ConnectionNumber number = 1;
         number <= ConnectionLimiter::kReservedOfPeer; ++number) {
        CHECK_FALSE(seats.admit(kNew + number, peer(8)).evicted);
    }
    CHECK(seats.admit(kNew + 100, peer(8)).evicted == kNew + 1);
}

TEST_CASE(
    "a connection with a request is never evicted; if all have one, new connections are refused") {
    ConnectionLimiter seats;
    fill_usual(seats);
    for (ConnectionLimiter::ConnectionNumber number = 0; number < ConnectionLimiter::kReserved;
         ++number) {
        static_cast<void>(seats.admit(kNew + number, peer(100 + number)));
        seats.note_request_arrived(kNew + number);
    }
    CHECK_FALSE(seats.admit(kNew + 100, peer(200)).is_admitted);
    CHECK(seats.size() == ConnectionLimiter::kUsual + ConnectionLimiter::kReserved);
    seats.remove(kNew + 3);
    seats.remove(kNew + 3);
    CHECK(seats.admit(kNew + 101, peer(200)).is_admitted);
}
