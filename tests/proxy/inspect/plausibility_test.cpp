// Covers: proxy/inspect/diagnosis/suspects.cpp
#include "proxy/inspect/diagnosis/suspects.h"
#include "snapshot/names.h"

#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::ValueHistory;
using inspect::ValueProbability;
using snapshot::FieldKind;
using snapshot::FieldSpec;
using Points = std::vector<ValueHistory::Point>;

namespace {

const FieldSpec kTruth{.name = "local", .kind = FieldKind::boolean};
const FieldSpec kWeapon{
    .name = "weapon", .kind = FieldKind::named, .names = &snapshot::names::weapon};

const Points kStood{{98, 5}, {96, 5}, {94, 5}};
const Points kStands{{102, 5}, {104, 5}, {106, 5}};
const Points kCame{{98, 90}, {96, 80}, {94, 70}};
const Points kGoes{{102, 110}, {104, 120}, {106, 130}};

} // namespace

TEST_CASE("what follows from the snapshots around is likelier than what does not, by this much") {
    struct Row {
        std::string_view name;
        Points before;
        Points after;
        const FieldSpec* field;
        std::int32_t likely;
        std::int32_t unlikely;
        double times; ///< at least so much likelier
    };

    const Row rows[] = {
        {"what stood stays", kStood, kStands, nullptr, 5, 6, 200},
        {"what moves, moves on", kCame, kGoes, nullptr, 100, 101, 1.5},
        {"and far more so", kCame, kGoes, nullptr, 100, 164, 1000},
        {"what is new is as it will be", {}, kStands, nullptr, 5, 6, 20},
        {"what goes is as it was", kStood, {}, nullptr, 5, 6, 20},
        {"an event is no number of millions", {}, {}, nullptr, 1000, 1000 + (1 << 24), 1000},
        {"a truth value", {}, {}, &kTruth, 1, 2, 100},
        {"a name", {}, {}, &kWeapon, 5, 6, 100},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ValueProbability plausibility{
            {.tick = 100, .before = row.before, .after = row.after, .field = row.field}};
        CHECK(plausibility.probability_of(row.likely) >
              row.times * plausibility.probability_of(row.unlikely));
    }
}

TEST_CASE("where nothing tells two values apart, neither is much likelier") {
    struct Row {
        std::string_view name;
        Points before;
        Points after;
        std::int32_t one;
        std::int32_t other;
    };

    const Row rows[] = {
        {"an event's low bits", {}, {}, 1000, 1016},
        {"before or after a step", kStood, {{102, 7}, {104, 7}}, 5, 7},
        {"what jumps about",
         {{98, 50}, {96, -80}, {94, 3}},
         {{102, -60}, {104, 90}, {106, 1}},
         10,
         14},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const ValueProbability plausibility{
            {.tick = 100, .before = row.before, .after = row.after}};
        CHECK(plausibility.probability_of(row.one) < 3 * plausibility.probability_of(row.other));
        CHECK(plausibility.probability_of(row.other) < 3 * plausibility.probability_of(row.one));
    }
}

TEST_CASE("what changes often, or was seen before, may do so again") {
    const ValueHistory calm{.tick = 100, .before = kStood, .after = kStands, .change_rate = 0.001};
    ValueHistory lively = calm;
    lively.change_rate = 0.3;
    ValueHistory usual = calm;
    const std::vector<std::int32_t> seen{5, 6};
    usual.usual = seen;
    CHECK(ValueProbability{lively}.probability_of(6) >
          10 * ValueProbability{calm}.probability_of(6));
    CHECK(ValueProbability{usual}.probability_of(6) >
          1.5 * ValueProbability{calm}.probability_of(6));
}

TEST_CASE("events are likelier where characters are") {
    const std::vector<std::int32_t> positions{3000};
    const ValueProbability plausibility{{.tick = 100, .positions = positions}};
    CHECK(plausibility.probability_of(3010) > 20 * plausibility.probability_of(2000));
}

TEST_CASE("any value has a probability, at the ends of the range as well") {
    const Points ends{{98, INT32_MIN}, {96, INT32_MAX}};
    const Points others{{102, INT32_MAX}, {104, INT32_MIN}};
    for (const ValueHistory& course :
         {ValueHistory{.tick = 100}, ValueHistory{.tick = 100, .before = ends},
          ValueHistory{.tick = 100, .before = ends, .after = others}}) {
        const ValueProbability plausibility{course};
        for (const std::int32_t value : {0, INT32_MIN, INT32_MAX}) {
            CHECK(plausibility.probability_of(value) > 0);
            CHECK(plausibility.probability_of(value) <= 1);
        }
    }
}

TEST_CASE("ints are named as their object does") {
    const auto* const info =
        snapshot::find_object(snapshot::kClientInfoType, snapshot::Dialect::six);
    const auto* const character =
        snapshot::find_object(snapshot::kCharacterType, snapshot::Dialect::six);
    CHECK(inspect::field_name(character, 1) == "x");
    CHECK(inspect::field_name(character, 22) == "int_22");
    CHECK(inspect::field_name(info, 1) == "name[1]");
    CHECK(inspect::field_name(nullptr, 0) == "int_0");
}
