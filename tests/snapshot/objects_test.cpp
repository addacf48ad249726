// Covers: snapshot/object_fields.cpp
#include "snapshot/error.h"
#include "snapshot/names.h"
#include "snapshot/objects.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "vectors.h"
#include <doctest/doctest.h>

using namespace tw::snapshot;
using namespace tw::snapshot::test;

namespace {

std::string uuid_text(const Uuid& uuid) {
    const auto text = format_uuid(uuid);
    return {text.begin(), text.end()};
}

const ObjectSpec* find_by_name(std::string_view name) {
    for (const auto& object : object_table()) {
        if (object.name == name) {
            return &object;
        }
    }
    return nullptr;
}

const NameTable* find_names(std::string_view name) {
    for (const NameTable* table :
         std::initializer_list<const NameTable*>{&names::weapon,
                                                 &names::powerup,
                                                 &names::emote,
                                                 &names::emoticon,
                                                 &names::hook_state,
                                                 &names::team,
                                                 &names::authed,
                                                 &names::sound,
                                                 &names::entityclass,
                                                 &names::lasertype,
                                                 &names::flag_carrier_special,
                                                 &names::spectator_special,
                                                 &names::savestate,
                                                 &names::playerflag,
                                                 &names::gameflag,
                                                 &names::gamestateflag,
                                                 &names::characterflag,
                                                 &names::explayerflag,
                                                 &names::gameinfoflag,
                                                 &names::gameinfoflag2,
                                                 &names::projectileflag,
                                                 &names::legacyprojectileflag,
                                                 &names::laserflag,
                                                 &names::pickupflag,
                                                 &names::servercapflag}) {
        if (table->name == name) {
            return table;
        }
    }
    return nullptr;
}

// Returns the name of the table in a note of the specification: "enum sound", "flags gameflag; ...".
std::string table_in_note(const boost::json::object& field) {
    const auto* const note = field.if_contains("note");
    const std::string text = note != nullptr ? std::string{note->as_string()} : std::string{};
    for (const std::string prefix : {"enum ", "flags "}) {
        if (text.rfind(prefix, 0) == 0 && text.find('/') == std::string::npos) {
            return text.substr(prefix.size(), text.find(';') - prefix.size());
        }
    }
    return {};
}

void check_object(const ObjectSpec& object, const boost::json::object& wanted) {
    CHECK(object.name == std::string_view{wanted.at("name").as_string()});
    CHECK(object.size == wanted.at("size_ints").to_number<std::size_t>());
    CHECK((object.kind == ObjectKind::event) == (wanted.at("kind").as_string() == "event"));
    if (const auto* const type = wanted.if_contains("type")) {
        CHECK(object.type == type->to_number<std::uint16_t>());
        CHECK(find_object(object.type, object.dialect) == &object);
    }
    const auto& fields = wanted.at("fields").as_array();
    REQUIRE(object.fields.size() == fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
        CAPTURE(i);
        CHECK(object.fields[i].name == std::string_view{fields[i].at("name").as_string()});
        CHECK(object.fields[i].offset == fields[i].at("offset").to_number<std::size_t>());
    }
}

void check_names(const NameTable& table, const boost::json::value& values) {
    REQUIRE(table.values.size() == values.as_object().size());
    for (const NamedValue& each : table.values) {
        CHECK(values.at(each.name).to_number<std::int64_t>() == each.value);
    }
}

} // namespace

TEST_CASE("the table of objects agrees with the specification") {
    const auto& objects = spec_file("gamenet-0.6-ddnet.json").at("snapshot_objects").as_array();
    const auto seven = spec_file("gamenet-0.7.json").at("snapshot_objects").as_array().size();
    CHECK(object_table().size() == objects.size() + 2 + seven);
    for (const auto& value : objects) {
        const auto& wanted = value.as_object();
        const std::string name{wanted.at("name").as_string()};
        CAPTURE(name);
        const ObjectSpec* const object = find_by_name(name);
        REQUIRE(object != nullptr);
        check_object(*object, wanted);
        if (wanted.contains("type")) {
            CHECK(object->dialect == Dialect::six);
            CHECK(agreed_size(object->type, kAgreedSizes) == object->size);
        } else {
            CHECK(object->type == 0);
            CHECK(uuid_text(object->uuid) == wanted.at("uuid").as_string());
            CHECK(object->uuid_name == std::string_view{wanted.at("uuid_name").as_string()});
            CHECK(object->min_size ==
                  wanted.at("min_ints_current_reader").to_number<std::size_t>());
            CHECK(find_object(object->uuid) == object);
        }
        const auto& fields = wanted.at("fields").as_array();
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const auto& field = fields[i].as_object();
            const FieldSpec& got = object->fields[i];
            CAPTURE(i);
            const auto* const count = field.if_contains("count");
            CHECK(got.count == (count != nullptr ? count->to_number<std::size_t>() : 1));
            CHECK((got.kind == FieldKind::int_string) ==
                  (field.at("type").as_string() == "int_string"));
            CHECK((got.kind == FieldKind::named) == (got.names != nullptr));
            if (const auto table = table_in_note(field); !table.empty()) {
                REQUIRE(got.names != nullptr);
                CHECK(got.names->name == table);
            }
        }
    }
}

TEST_CASE("every enum and flag word has the specification's names") {
    for (const bool flags : {false, true}) {
        const auto& groups =
            spec_file("gamenet-0.6-ddnet.json").at(flags ? "flags" : "enums").as_object();
        for (const auto& group : groups) {
            const std::string name{group.key()};
            const std::set<std::string_view> unused{"control_message", "chunk",
                                                    "packet_byte0",    "weapon_special",
                                                    "laserguntype",    "laserdraggertype"};
            if (unused.contains(name)) {
                continue; // no field of a snapshot has these names
            }
            CAPTURE(name);
            const NameTable* const table = find_names(name);
            REQUIRE(table != nullptr);
            CHECK(table->flags == flags);
            check_names(*table, group.value());
            for (const auto& each : table->values) {
                CHECK(table->find(static_cast<std::int32_t>(each.value)).has_value() == !flags);
            }
        }
    }
    CHECK(names::weapon.find(4) == "laser");
    CHECK_FALSE(names::weapon.find(-1));
    CHECK(names::held_weapon.find(-1) == "none");
    CHECK(names::held_weapon.find(5) == "ninja");
    CHECK(names::ammo.find(-1) == "unlimited");
    CHECK_FALSE(names::ammo.find(3));
    CHECK(names::kill_weapon.find(-3) == "game");
}

TEST_CASE("the objects of 0.7 agree with their specification") {
    const auto& file = spec_file("gamenet-0.7.json");
    // If a 0.6 object has no client, the 0.7 object of the same name has none either.
    const std::set<std::string_view> of_a_client{"character", "player_info", "spectator_info",
                                                 "de_client_info", "player_info_race"};
    for (const auto& value : file.at("snapshot_objects").as_array()) {
        const auto& wanted = value.as_object();
        const auto type = wanted.at("type").to_number<std::uint16_t>();
        const ObjectSpec* const object = find_object(type, Dialect::seven);
        REQUIRE(object != nullptr);
        CAPTURE(object->name);
        CHECK(object->dialect == Dialect::seven);
        check_object(*object, wanted);
        const bool agreed = wanted.at("size_on_wire").as_string() == "implicit";
        CHECK(agreed_size(type, kSevenAgreedSizes) == (agreed ? object->size : 0));
        const auto& fields = wanted.at("fields").as_array();
        std::optional<std::size_t> x;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const auto& field = fields[i].as_object();
            const FieldSpec& got = object->fields[i];
            CAPTURE(got.name);
            x = got.name == "x" ? std::optional{std::size_t{got.offset}} : x;
            if (field.at("type").as_string() == "flags") {
                REQUIRE(got.names != nullptr);
                CHECK(got.names->name == std::string_view{field.at("flags").as_string()});
                check_names(*got.names, file.at("flags").at(field.at("flags").as_string()));
            } else if (field.at("type").as_string() == "tick" && got.name != "hook_tick") {
                // hook_tick is not a tick: it counts ticks, as in 0.6.
                CHECK(got.kind == FieldKind::tick);
            }
        }
        CHECK(object->position.has_value() == wanted.contains("position"));
        if (object->position) {
            CHECK(object->position->x == x);
            CHECK(object->position->per_unit == 1);
        }
        CHECK((object->client && !object->client->field) == of_a_client.contains(object->name));
    }
    CHECK(find_object(0, Dialect::seven) == nullptr);
    CHECK(find_object(25, Dialect::seven) == nullptr);
    for (const NameTable* table : std::initializer_list<const NameTable*>{
             &names::seven::pickup, &names::seven::vote, &names::seven::chat,
             &names::seven::gamemsg, &names::seven::spec_mode}) {
        check_names(*table, file.at("enums").at(table->name));
    }
}

TEST_CASE("a packed text decodes to the same text") {
    for (const std::string_view text : {"", "a", "anna", "exactly15bytes!"}) {
        std::array<std::int32_t, 4> ints{};
        encode_int_string(text, ints);
        std::array<char, 16> room{};
        CHECK(std::string_view{room.data(), decode_int_string(ints, room)} == text);
        CHECK((static_cast<std::uint32_t>(ints.back()) & 0xFFU) == 0);
    }
    std::array<std::int32_t, 1> small{};
    encode_int_string("longer", small);
    std::array<char, 4> room{};
    CHECK(std::string_view{room.data(), decode_int_string(small, room)} == "lon");
    encode_int_string("nowhere", {});
}

TEST_CASE("no two objects share a name, a type or a UUID, and fields stay inside") {
    std::set<std::pair<Dialect, std::string_view>> names;
    std::set<Uuid> uuids;
    std::set<std::pair<Dialect, std::uint16_t>> types;
    for (const auto& object : object_table()) {
        CAPTURE(object.name);
        CHECK(names.emplace(object.dialect, object.name).second);
        CHECK((object.type != 0 ? types.emplace(object.dialect, object.type).second
                                : uuids.insert(object.uuid).second));
        CHECK(object.min_size <= object.size);
        std::size_t next = 0;
        for (const auto& field : object.fields) {
            CHECK(field.offset == next);
            next += field.count;
        }
        CHECK((object.fields.empty() || next == object.size));
    }
    CHECK(find_object(std::uint16_t{0}, Dialect::six) == nullptr);
    CHECK(find_object(std::uint16_t{21}, Dialect::six) == nullptr);
    CHECK(find_object(std::uint16_t{0x7fff}, Dialect::six) == nullptr);
    CHECK(find_object(Uuid{}) == nullptr);
}

TEST_CASE("positions are those of the game") {
    struct Row {
        const char* object;
        std::vector<std::int32_t> data;
        bool found;
        int x;
        int per_unit;
    };

    const Row rows[] = {
        {"character", std::vector<std::int32_t>(22), true, 1, 1},
        {"character", {0, 1}, false, 0, 0},
        {"character", {}, false, 0, 0},
        {"laser", std::vector<std::int32_t>(5), true, 0, 1},
        {"ddnet_laser", std::vector<std::int32_t>(7), true, 0, 1},
        {"spectator_info", {-1, 5, 6}, true, 1, 1},
        {"sound_world", {1, 2, 3}, true, 0, 1},
        {"sound_global", {1, 2, 3}, false, 0, 0},
        {"player_info", std::vector<std::int32_t>(5), false, 0, 0},
        {"ddrace_projectile", std::vector<std::int32_t>(6), true, 0, 100},
        {"ddnet_projectile", std::vector<std::int32_t>(10), true, 0, 100},
        {"projectile", {1, 2, 97, -22, 1, 5}, true, 0, 1},
        {"projectile", {1, 2, 97, 512, 1, 5}, true, 0, 100},
        {"projectile", {1, 2, 97, 0x3f03, 1, 5}, true, 0, 100},
        {"projectile", {1, 2, 97, -1, 1, 5}, true, 0, 1},
        {"projectile", {1, 2, 97, 100, 1, 5}, true, 0, 1},
        {"projectile", {1, 2, 97}, true, 0, 1},
        {"pickup", {1}, false, 0, 0},
    };
    for (const auto& row : rows) {
        CAPTURE(row.object);
        CAPTURE(row.data.size());
        const auto position = position_of(*find_by_name(row.object), row.data);
        REQUIRE(position.has_value() == row.found);
        if (position) {
            CHECK(position->x == row.x);
            CHECK(position->y == row.x + 1);
            CHECK(position->per_unit == row.per_unit);
        }
    }
}

TEST_CASE("the client of an item is its id or one of its ints") {
    struct Row {
        std::string_view object;
        std::vector<std::int32_t> data;
        std::optional<std::uint16_t> client;
    };

    const Row rows[] = {
        {"character", std::vector<std::int32_t>(22), 5},
        {"ddnet_character", {}, 5},
        {"ddnet_player", {0, 0}, 5},
        {"spec_char", {1, 2}, 5},
        {"player_info", {0, 9, 0, 0, 0}, 9},
        {"death", {1, 2, 64}, 64},
        {"death", {1, 2, -1}, std::nullopt},
        {"death", {1, 2, 65536}, std::nullopt},
        {"ddnet_laser", {0, 0, 0, 0, 0, 3, 0}, 3},
        {"ddnet_laser", {0, 0, 0, 0, 0}, std::nullopt}, // too short to contain a client
        {"ddnet_projectile", {0, 0, 0, 0, 0, 0, 12, 0, 0, 0}, 12},
        {"pickup", {1, 2, 0, 0}, std::nullopt},
        {"game_info", std::vector<std::int32_t>(8), std::nullopt},
    };
    for (const Row& row : rows) {
        CAPTURE(row.object);
        const auto table = object_table();
        const auto spec = std::ranges::find_if(
            table, [&](const ObjectSpec& candidate) { return candidate.name == row.object; });
        REQUIRE(spec != table.end());
        CHECK(client_of(*spec, {9, 5}, row.data) == row.client);
    }
}

TEST_CASE("descriptor items contain UUIDs") {
    for (const auto& row : vectors("uuid")) {
        const auto ints = ints_of(row.at("item_ints"));
        const auto uuid = descriptor_uuid(ints).value();
        CHECK(uuid_text(uuid) == row.at("uuid").as_string());
        CHECK_FALSE(descriptor_uuid(std::span{ints}.first(3)));
        auto longer = ints;
        longer.push_back(7);
        CHECK(descriptor_uuid(longer) == uuid);
    }
}

TEST_CASE("int strings have four bytes per int, and three in the last int") {
    for (const auto& row : vectors("int_strings")) {
        const auto ints = ints_of(row.at("ints"));
        std::string text(4 * ints.size(), '?');
        text.resize(decode_int_string(ints, text));
        CHECK(text == std::string_view{row.at("text").as_string()});
        std::string small(2, '?');
        CHECK(decode_int_string(ints, small) == std::min<std::size_t>(text.size(), 2));
    }
    std::string text(8, '?');
    CHECK(decode_int_string({}, text) == 0);
    CHECK(decode_int_string(std::vector<std::int32_t>{0, 0}, text) == 7);
}

TEST_CASE("every error has a name and a sentence of its own") {
    std::set<std::string_view> names;
    for (const auto& info : kErrorTable) {
        CHECK(names.insert(info.name).second);
        CHECK(info.sentence.size() > 10);
        CHECK(info.sentence.back() == '.');
        CHECK(&error_info(info.code) == &info);
        CHECK(info.ddnet_code <= 0);
    }
    CHECK(kErrorTable.size() == static_cast<std::size_t>(DecodeErrc::too_many_bytes) + 1);
}

namespace tw::snapshot {
namespace {

constexpr names::Names kMood("mood", 0, "calm", "angry");
constexpr std::array kOrbFields{
    FieldSpec{.name = "x"},
    FieldSpec{.name = "mood", .kind = FieldKind::named, .offset = 1, .names = &kMood}};

ObjectSpec make_orb_spec(std::uint16_t type) {
    ObjectSpec spec;
    spec.type = type;
    spec.name = "orb";
    spec.size = 2;
    spec.fields = kOrbFields;
    return spec;
}

} // namespace

TEST_CASE("the standard set contains only the objects of the table") {
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

TEST_CASE("a mod's types belong to 0.6 unless their description says 0.7") {
    ObjectSet set;
    ObjectSpec object = make_orb_spec(40);
    object.dialect = Dialect::seven;
    REQUIRE(set.add(object, true));
    CHECK(set.find(40, Dialect::six) == nullptr);
    REQUIRE(set.find(40, Dialect::seven) != nullptr);
    CHECK(set.find(40, Dialect::seven)->dialect == Dialect::seven);
    CHECK(set.sizes(Dialect::six) == kAgreedSizes);
    CHECK(set.sizes(Dialect::seven)[40] == 2);
    object.dialect = Dialect::six;
    REQUIRE(set.add(object, true)); // adds a second object
    CHECK(set.find(40, Dialect::six) != set.find(40, Dialect::seven));
    // The 0.7 form of a type is replaced, too.
    object.type = kSevenCharacterType;
    object.dialect = Dialect::seven;
    REQUIRE(set.add(object, true));
    CHECK(set.find(kSevenCharacterType, Dialect::seven)->name == "orb");
    CHECK(set.find(kSevenCharacterType, Dialect::six)->name == "player_info");
    // A type that cannot have an agreed size does not replace an object.
    object = make_orb_spec(1000);
    object.dialect = Dialect::seven;
    CHECK(set.add(object, false));
}

TEST_CASE("an added object is found by its type number") {
    ObjectSet set;
    REQUIRE(set.add(make_orb_spec(40), true));
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

TEST_CASE("deltas state the size of an object that is added without an agreed size") {
    ObjectSet set;
    REQUIRE(set.add(make_orb_spec(41), false));
    CHECK(set.sizes(Dialect::six) == kAgreedSizes);
}

TEST_CASE("an object named by a UUID is found by it, and by no number") {
    ObjectSet set;
    ObjectSpec object = make_orb_spec(0);
    object.uuid[0] = 0xab;
    REQUIRE(set.add(object, false));
    const ObjectSpec* found = set.find(object.uuid);
    REQUIRE(found != nullptr);
    CHECK(found->name == "orb");
    CHECK(set.find(std::uint16_t{0}, Dialect::six) == nullptr);
    CHECK_FALSE(set.add(object, false));
}

TEST_CASE("an added object replaces a standard object with the same type once") {
    ObjectSet set;
    const ObjectSpec object = make_orb_spec(kCharacterType);
    REQUIRE(set.add(object, true));
    REQUIRE(set.find(kCharacterType, Dialect::six) != nullptr);
    CHECK(set.find(kCharacterType, Dialect::six)->name == "orb");
    CHECK(set.sizes(Dialect::six)[kCharacterType] == 2);
    CHECK_FALSE(set.add(object, true));
    REQUIRE(set.add(make_orb_spec(kPlayerInfoType), false));
    CHECK(set.sizes(Dialect::six)[kPlayerInfoType] == 0);
    CHECK(find_object(kCharacterType, Dialect::six)->name == "character");
}

TEST_CASE("an added object replaces a standard object with the same UUID once") {
    ObjectSet set;
    const ObjectSpec& known = object_table()[21];
    REQUIRE(known.type == 0);
    std::vector<FieldSpec> fields{kOrbFields.begin(), kOrbFields.end()};
    fields[0].merge = FieldMerge::per_viewer;
    ObjectSpec object = make_orb_spec(0);
    object.fields = fields;
    object.uuid = known.uuid;
    object.client = ClientIdSpec{};
    object.kind = ObjectKind::event;
    REQUIRE(set.add(object, false));
    CHECK_FALSE(set.add(object, false));
    const ObjectSpec* const found = set.find(known.uuid);
    REQUIRE(found != nullptr);
    CHECK(found->name == "orb");
    CHECK(found->client.has_value());
    CHECK(found->kind == ObjectKind::event);
    CHECK(found->fields[0].merge == FieldMerge::per_viewer);
    CHECK(ObjectSet::standard().find(known.uuid) == &known);
}

TEST_CASE("objects with invalid types are not added") {
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
        ObjectSpec object = make_orb_spec(row.type);
        object.uuid[0] = 0xab;
        CHECK_FALSE(set.add(object, row.agreed));
        CHECK(set.custom().empty());
    }
}

TEST_CASE("a set of objects has a limit") {
    ObjectSet set;
    std::uint16_t type = 100;
    while (set.add(make_orb_spec(type), false)) {
        ++type;
    }
    CHECK(set.custom().size() == 256);
    CHECK(set.find(100, Dialect::six) != nullptr);
    CHECK(set.find(type, Dialect::six) == nullptr);
}

TEST_CASE("stored texts and tables do not move") {
    SpecStorage storage;
    const std::string_view name = storage.keep(std::string{"mood"});
    const auto& values = storage.keep(std::vector<NamedValue>{{0, "calm"}, {1, "angry"}});
    const NameTable& names = storage.keep(NameTable{name, false, values});
    for (int i = 0; i < 100; ++i) {
        std::ignore = storage.keep(std::string{"another"});
    }
    CHECK(names.name == "mood");
    CHECK(names.find(1) == "angry");
}

} // namespace tw::snapshot
