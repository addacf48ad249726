// Covers: proxy/inspect/connection/connection.cpp
#include "proxy/inspect/connection/connection.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

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
