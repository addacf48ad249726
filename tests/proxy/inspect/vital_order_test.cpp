#include "proxy/inspect/vital_order.h"

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
            CHECK(order.take(step.sequence, step.resend) == step.taken);
        }
    }
}

TEST_CASE("what the receiver acknowledges ends the wait for what passed unseen") {
    VitalOrder order;
    order.reset(true);
    CHECK(order.take(1, false) == kNext);
    CHECK(order.take(5, false) == kGap);
    REQUIRE(order.waiting());
    CHECK_FALSE(order.acknowledged(1)); // says nothing new
    CHECK(order.waiting());
    CHECK_FALSE(order.acknowledged(0)); // an older packet
    CHECK(order.waiting());
    CHECK(order.acknowledged(5));
    CHECK_FALSE(order.waiting());
    CHECK(order.take(5, true) == kOld);
    CHECK(order.take(6, false) == kNext);
}

TEST_CASE("an acknowledgement moves nothing where nothing is missing") {
    VitalOrder order;
    order.reset(true);
    CHECK(order.take(1, false) == kNext);
    CHECK_FALSE(order.acknowledged(9));
    CHECK(order.take(2, false) == kNext);
}
