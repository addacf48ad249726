// Covers: snapshot/objects.cpp
#include "snapshot/objects.h"

#include <string>

#include <doctest/doctest.h>

namespace tw::snapshot {
namespace {

CustomObject orb(std::uint16_t type) {
    CustomObject object;
    object.type = type;
    object.name = "orb";
    object.size = 2;
    object.fields = {{.name = "x"},
                     {.name = "mood", .offset = 1, .names = {{0, "calm"}, {1, "angry"}}}};
    return object;
}

} // namespace

TEST_CASE("the standard set is the table and nothing else") {
    const ObjectSet& set = ObjectSet::standard();
    CHECK(set.custom().empty());
    CHECK(set.sizes(Dialect::six) == kAgreedSizes);
    for (const ObjectSpec& spec : object_table()) {
        const ObjectSpec* found =
            spec.type != 0 ? set.find(spec.type, spec.dialect) : set.find(spec.uuid);
        REQUIRE(found == &spec);
        CHECK(&object_table()[set.index_of(*found)] == &spec);
    }
    CHECK(set.find(60, Dialect::six) == nullptr);
    CHECK(set.sizes(Dialect::seven) == kSevenAgreedSizes);
    CHECK(set.find(0, Dialect::seven) == nullptr);
    CHECK(set.find(25, Dialect::seven) == nullptr);
}

TEST_CASE("a mod's types are of 0.6, or of 0.7 where it says so") {
    ObjectSet set;
    CustomObject object = orb(40);
    object.agreed = true;
    object.dialect = Dialect::seven;
    REQUIRE(set.add(object));
    CHECK(set.find(40, Dialect::six) == nullptr);
    REQUIRE(set.find(40, Dialect::seven) != nullptr);
    CHECK(set.find(40, Dialect::seven)->dialect == Dialect::seven);
    CHECK(set.sizes(Dialect::six) == kAgreedSizes);
    CHECK(set.sizes(Dialect::seven)[40] == 2);
    object.dialect = Dialect::six;
    REQUIRE(set.add(object)); // another one
    CHECK(set.find(40, Dialect::six) != set.find(40, Dialect::seven));
    // The 0.7 form of a type is replaced, too.
    object.type = kSevenCharacterType;
    object.dialect = Dialect::seven;
    REQUIRE(set.add(object));
    CHECK(set.find(kSevenCharacterType, Dialect::seven)->name == "orb");
    CHECK(set.find(kSevenCharacterType, Dialect::six)->name == "player_info");
    // A type that cannot have an agreed size does not replace an object.
    object = orb(1000);
    object.dialect = Dialect::seven;
    CHECK(set.add(object));
}

TEST_CASE("what a mod adds is found by its number and described as it said") {
    ObjectSet set;
    {
        CustomObject object = orb(40);
        object.agreed = true;
        REQUIRE(set.add(object));
    } // the set keeps what it was given
    const ObjectSpec* found = set.find(40, Dialect::six);
    REQUIRE(found != nullptr);
    CHECK(found->name == "orb");
    CHECK(found->size == 2);
    REQUIRE(found->fields.size() == 2);
    CHECK(found->fields[0].name == "x");
    CHECK(found->fields[0].kind == FieldKind::integer);
    CHECK(found->fields[1].kind == FieldKind::named);
    REQUIRE(found->fields[1].names != nullptr);
    CHECK(found->fields[1].names->values[1].name == "angry");
    CHECK(set.sizes(Dialect::six)[40] == 2);
    CHECK(set.index_of(*found) == object_table().size());
    CHECK(ObjectSet::standard().find(40, Dialect::six) == nullptr);
}

TEST_CASE("what is added without agreement has its size in deltas") {
    ObjectSet set;
    REQUIRE(set.add(orb(41)));
    CHECK(set.sizes(Dialect::six) == kAgreedSizes);
}

TEST_CASE("an object named by a UUID is found by it, and by no number") {
    ObjectSet set;
    CustomObject object = orb(0);
    object.uuid[0] = 0xab;
    REQUIRE(set.add(object));
    const ObjectSpec* found = set.find(object.uuid);
    REQUIRE(found != nullptr);
    CHECK(found->name == "orb");
    CHECK(set.find(std::uint16_t{0}, Dialect::six) == nullptr);
    CHECK_FALSE(set.add(object));
}

TEST_CASE("a mod's own form of a type takes the place of the agreed one, once") {
    ObjectSet set;
    CustomObject object = orb(kCharacterType);
    object.agreed = true;
    REQUIRE(set.add(object));
    REQUIRE(set.find(kCharacterType, Dialect::six) != nullptr);
    CHECK(set.find(kCharacterType, Dialect::six)->name == "orb");
    CHECK(set.sizes(Dialect::six)[kCharacterType] == 2);
    CHECK_FALSE(set.add(object));
    object = orb(kPlayerInfoType);
    REQUIRE(set.add(object));
    CHECK(set.sizes(Dialect::six)[kPlayerInfoType] == 0);
    CHECK(find_object(kCharacterType, Dialect::six)->name == "character");
}

TEST_CASE("a mod's own form of a known UUID takes its place, once") {
    ObjectSet set;
    const ObjectSpec& known = object_table()[21];
    REQUIRE(known.type == 0);
    CustomObject object = orb(0);
    object.uuid = known.uuid;
    object.client = ClientSpec{};
    object.kind = ObjectKind::event;
    object.fields[0].merge = FieldMerge::per_viewer;
    REQUIRE(set.add(object));
    CHECK_FALSE(set.add(object));
    const ObjectSpec* const found = set.find(known.uuid);
    REQUIRE(found != nullptr);
    CHECK(found->name == "orb");
    CHECK(found->client.has_value());
    CHECK(found->kind == ObjectKind::event);
    CHECK(found->fields[0].merge == FieldMerge::per_viewer);
    CHECK(ObjectSet::standard().find(known.uuid) == &known);
}

TEST_CASE("types that cannot be added are refused") {
    struct Row {
        std::string name;
        std::uint16_t type;
        bool agreed;
    };

    const Row rows[] = {
        {"one that stands for a UUID", kFirstUuidType, false},
        {"an agreed size of a type that cannot have one", 64, true},
        {"an agreed size of a UUID", 0, true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        ObjectSet set;
        CustomObject object = orb(row.type);
        object.uuid[0] = 0xab;
        object.agreed = row.agreed;
        CHECK_FALSE(set.add(object));
        CHECK(set.custom().empty());
    }
}

TEST_CASE("a set is bounded") {
    ObjectSet set;
    std::uint16_t type = 100;
    while (set.add(orb(type))) {
        ++type;
    }
    CHECK(set.custom().size() == 256);
    CHECK(set.find(100, Dialect::six) != nullptr);
    CHECK(set.find(type, Dialect::six) == nullptr);
}

} // namespace tw::snapshot
