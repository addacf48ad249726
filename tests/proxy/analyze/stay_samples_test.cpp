// Covers: proxy/analyze/map_visits.cpp
#include "proxy/analyze/map_visits.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using analyze::Likeness;
using analyze::MapVisitSamples;
using analyze::RecordedItem;
using analyze::RecordedItems;

namespace {

RecordedItems items(const std::vector<RecordedItem>& list) {
    RecordedItems made;
    for (std::uint32_t key = 0; key < list.size(); ++key) {
        made.emplace_back(key, std::make_shared<const RecordedItem>(list[key]));
    }
    return made;
}

/// `different`: of ten items.
RecordedItems ten(int tick, int different = 0) {
    std::vector<RecordedItem> list;
    for (int i = 0; i < 10; ++i) {
        const int x = tick + (i < different ? 1000 + i : i);
        list.push_back({.type = "character", .fields = fmt::format(R"({{"x":{}}})", x)});
    }
    return items(list);
}

} // namespace

TEST_CASE("samples take no more room than they may, and those of a longer stay are among others'") {
    MapVisitSamples longer;
    MapVisitSamples shorter;
    constexpr int kTicks = 9000;
    for (int tick = 0; tick < 10 * kTicks; tick += 2) {
        longer.add(tick, ten(tick));
        if (tick < kTicks) {
            shorter.add(tick, ten(tick));
        }
        CHECK_LE(longer.size(), MapVisitSamples::kFirst + MapVisitSamples::kMost);
    }
    CHECK(longer.size() >= MapVisitSamples::kMost / 2);
    const Likeness like = longer.compare(shorter);
    CHECK(like.ticks >= MapVisitSamples::kFirst);
    CHECK(like.equal == like.ticks);
    CHECK(like.items == 1);
}

TEST_CASE("how many ticks are equal is counted, and how many items is estimated") {
    for (const int different : {0, 1, 5, 10}) {
        CAPTURE(different);
        MapVisitSamples a;
        MapVisitSamples b;
        for (int tick = 0; tick < 500; tick += 2) {
            a.add(tick, ten(tick));
            b.add(tick, ten(tick, different));
        }
        const Likeness like = a.compare(b);
        CHECK(like.ticks == 250);
        CHECK(like.equal == (different == 0 ? 250 : 0));
        // Of what either has.
        const double share = (10.0 - different) / (10.0 + different);
        CHECK(like.items == doctest::Approx(share).epsilon(0.15));
    }
}

TEST_CASE("stays without a tick in common are not alike") {
    MapVisitSamples a;
    MapVisitSamples b;
    a.add(2, ten(2));
    b.add(4, ten(2));
    CHECK(a.compare(b).ticks == 0);
    CHECK(a.compare(b).items == 0);
    CHECK(MapVisitSamples{}.compare(a).ticks == 0);
}

TEST_CASE("what one kind of view has and another has not makes no difference") {
    const RecordedItem flag{.type = "flag", .fields = R"({"x":5})"};
    RecordedItem raw = flag;
    raw.data = {5};
    const RecordedItem of_a_mod{.type = "", .fields = ""};
    RecordedItem named = of_a_mod;
    named.data = {7};
    const RecordedItem of_demos{.type = "de_game_info", .fields = R"({"flags":1})"};
    MapVisitSamples a;
    MapVisitSamples b;
    a.add(2, items({flag, of_a_mod}));
    b.add(2, items({raw, named, of_demos}));
    CHECK(a.compare(b).equal == 1);
    CHECK(a.compare(b).items == 1);
}
