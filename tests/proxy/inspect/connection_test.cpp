// Covers: proxy/inspect/connection/connection.cpp
#include "proxy/inspect/connection/connection.h"

#include <string_view>
#include <vector>

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

using tw::inspect::VitalOrder;
using tw::wire::VitalClass;

namespace {

struct Step {
    std::uint16_t sequence = 0;
    bool resend = false;
    VitalClass taken = VitalClass::next;
};

constexpr auto kNext = VitalClass::next;
constexpr auto kOld = VitalClass::old;
constexpr auto kGap = VitalClass::gap;

} // namespace

TEST_CASE("vital chunks are taken in order, once, as their receiver takes them") {
    struct Row {
        std::string_view name;
        bool synced;
        std::vector<Step> steps;
    };

    const Row rows[] = {
        {"from the start, in order", true, {{1, false, kNext}, {2, false, kNext}}},
        {"twice", true, {{1, false, kNext}, {1, false, kOld}, {1, true, kOld}}},
        {"one is missing and comes again",
         true,
         {{1, false, kNext}, {3, false, kGap}, {2, true, kNext}, {3, true, kNext}}},
        {"from the start, the first is missing", true, {{2, false, kGap}, {1, true, kNext}}},
        {"over the end of the sequence",
         false,
         {{1022, false, kNext}, {1023, false, kNext}, {0, false, kNext}, {1, false, kNext}}},
        {"joined midway: what is new sets the place",
         false,
         {{700, false, kNext}, {701, true, kNext}}},
        {"joined midway: what is resent does not", false, {{699, true, kOld}, {700, false, kNext}}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        VitalOrder order;
        order.reset(row.synced);
        for (const Step& step : row.steps) {
            CAPTURE(step.sequence);
            CHECK(order.classify_chunk(step.sequence, step.resend) == step.taken);
        }
    }
}

TEST_CASE("what the receiver acknowledges ends the wait for what passed unseen") {
    VitalOrder order;
    order.reset(true);
    CHECK(order.classify_chunk(1, false) == kNext);
    CHECK(order.classify_chunk(5, false) == kGap);
    REQUIRE(order.has_gap());
    CHECK_FALSE(order.on_ack(1)); // says nothing new
    CHECK(order.has_gap());
    CHECK_FALSE(order.on_ack(0)); // an older packet
    CHECK(order.has_gap());
    CHECK(order.on_ack(5));
    CHECK_FALSE(order.has_gap());
    CHECK(order.classify_chunk(5, true) == kOld);
    CHECK(order.classify_chunk(6, false) == kNext);
}

TEST_CASE(
    "what came behind a chunk that passed unseen was taken, too, as far as it came in a row") {
    struct Row {
        std::string_view name;
        std::vector<std::uint16_t> dropped; ///< behind 1, in this order
        std::uint16_t ack;
        bool waiting;
        std::uint16_t next;
    };

    const Row rows[] = {
        {"acknowledged as far as the missing one", {3}, 2, false, 4},
        {"several came meanwhile", {3, 4, 5}, 2, false, 6},
        {"one of them twice", {3, 4, 3, 4}, 2, false, 5},
        {"acknowledged beyond those that came", {3}, 4, false, 5},
        {"another one is missing", {3, 5}, 2, true, 3},
        {"both of them acknowledged", {3, 5}, 4, false, 6},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        VitalOrder order;
        order.reset(true);
        REQUIRE(order.classify_chunk(1, false) == kNext);
        for (const std::uint16_t sequence : row.dropped) {
            REQUIRE(order.classify_chunk(sequence, false) == kGap);
        }
        CHECK(order.on_ack(row.ack));
        CHECK(order.has_gap() == row.waiting);
        CHECK(order.classify_chunk(row.next, false) == kNext);
    }
}

TEST_CASE("an acknowledgement moves nothing where nothing is missing") {
    VitalOrder order;
    order.reset(true);
    CHECK(order.classify_chunk(1, false) == kNext);
    CHECK_FALSE(order.on_ack(9));
    CHECK(order.classify_chunk(2, false) == kNext);
}

TEST_CASE("a chunk that was passed over was taken if its receiver says so") {
    for (const bool taken : {true, false}) {
        CAPTURE(taken);
        VitalOrder order;
        order.reset(true);
        REQUIRE(order.classify_chunk(1, false) == kNext);
        order.skip_chunk(1); // had already
        CHECK_FALSE(order.has_gap());
        order.skip_chunk(2);
        CHECK(order.on_ack(2) == true);
        CHECK(order.classify_chunk(3, false) == kNext);
        order.skip_chunk(4);
        CHECK_FALSE(order.on_ack(3));
        CHECK(order.classify_chunk(taken ? 4 : 5, false) == (taken ? kNext : kGap));
    }
}
