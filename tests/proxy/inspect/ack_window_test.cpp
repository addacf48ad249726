// Covers: proxy/inspect/connection/connection.cpp
#include "proxy/inspect/connection/connection.h"

#include <string_view>

#include <doctest/doctest.h>

using tw::inspect::AckWindow;

TEST_CASE("a receiver takes acknowledgements from the last one up to what it sent") {
    struct Row {
        std::string_view name;
        std::uint16_t sent;
        std::uint16_t before; ///< acknowledged already
        std::uint16_t ack;
        bool taken;
    };

    const Row rows[] = {
        {"what was sent", 5, 2, 5, true},     {"again", 5, 2, 2, true},
        {"less than before", 5, 2, 1, false}, {"more than was sent", 5, 2, 6, false},
        {"far ahead", 5, 2, 500, false},      {"half a turn behind", 5, 2, 700, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        AckWindow window;
        window.reset(true);
        for (std::uint16_t sequence = 1; sequence <= row.sent; ++sequence) {
            window.on_sent(sequence);
        }
        REQUIRE(window.accept_ack(row.before));
        CHECK(window.accept_ack(row.ack) == row.taken);
    }
}

TEST_CASE("the window goes over the end of the sequence") {
    AckWindow window;
    window.reset(false);
    window.on_sent(1023);
    REQUIRE(window.accept_ack(1022)); // joined midway: the first one counts
    window.on_sent(0);
    window.on_sent(1);
    CHECK(window.accept_ack(1));
    CHECK_FALSE(window.accept_ack(1023));
    CHECK_FALSE(window.accept_ack(2));
    CHECK(window.accept_ack_above_range(2));
    CHECK_FALSE(window.accept_ack_above_range(1));
    CHECK_FALSE(window.accept_ack_above_range(301));
}

TEST_CASE("who says again and again that more was sent is believed, if nobody says otherwise") {
    constexpr int kBelieved = 8;
    for (const bool contradicted : {false, true}) {
        CAPTURE(contradicted);
        AckWindow window;
        window.reset(true);
        for (int i = 0; i < kBelieved; ++i) {
            CHECK(window.accept_ack_above_range(10));
            if (contradicted && i == kBelieved / 2) {
                CHECK(window.accept_ack(0));
            }
        }
        CHECK(window.accept_ack(10) != contradicted);
        CHECK(window.accept_ack_above_range(20) !=
              contradicted); // too far for a window that ends at 0
    }
}

TEST_CASE("nothing is out of a window that is not known") {
    AckWindow window;
    window.reset(false);
    CHECK_FALSE(window.accept_ack_above_range(900));
    CHECK(window.accept_ack(900));
    CHECK(window.accept_ack(17));
}
