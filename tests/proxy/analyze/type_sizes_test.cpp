#include "proxy/analyze/type_sizes.h"
#include "tests/support/snapshot_messages.h"
#include "tests/support/text.h"

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;

namespace {

void add_snapshot(analyze::TypeSizes& sizes, const Items& items) {
    const auto snapshot = to_snapshot(items);
    const record::SnapshotRecord record{.rebuilt = true, .items = snapshot.view()};
    sizes.on_record(&record);
}

void add_size_finding(analyze::TypeSizes& sizes, std::uint16_t type, std::int64_t size) {
    const record::FindingRecord record{.id = record::FindingId::snapshot_size_differs,
                                       .item = record::FindingItem{.type_id = type},
                                       .value = size};
    sizes.on_record(&record);
}

} // namespace

TEST_CASE("sizes are counted by snapshots, and those that differ are marked") {
    analyze::TypeSizes sizes;
    const Items items{{{0, 0x4001}, {1, 2, 3, 4}},
                      {{4, 1}, {1, 2, 3, 4, 5}},
                      {{4, 2}, {1, 2, 3, 4, 5}},
                      {{33, 1}, {1}},
                      {{0x4001, 1}, {1}}};
    add_snapshot(sizes, items);
    add_snapshot(sizes, items);
    CHECK_FALSE(sizes.has_differences());
    CHECK(sizes.has_unreported_differences());
    CHECK(contains(sizes.sizes_table(), "    4      5          2  not as agreed\n"));
    add_size_finding(sizes, 4, 5);
    CHECK(sizes.has_differences());
    CHECK_FALSE(sizes.has_unreported_differences());
    CHECK(sizes.sizes_table() == " type  object               agreed   ints  snapshots\n"
                                 "    4  pickup                    4      5          2  differs\n"
                                 "   33  type_33                   -      1          2\n");
}

TEST_CASE("a size is compared with that of the objects file, too") {
    snapshot::ObjectSet objects;
    REQUIRE(objects.add({.type = 4, .name = "pickup", .size = 5}, true));
    analyze::TypeSizes sizes{objects};
    add_snapshot(sizes, {{{4, 1}, {1, 2, 3, 4, 5}}});
    CHECK_FALSE(sizes.has_unreported_differences());
    CHECK(contains(sizes.sizes_table(), "    4      5          1  as in the objects file\n"));
    add_snapshot(sizes, {{{4, 1}, {1, 2, 3, 4, 5, 6}}});
    CHECK(sizes.has_unreported_differences());
    CHECK(contains(sizes.sizes_table(), "    4      6          1  not as agreed\n"));
    add_size_finding(sizes, 4, 6);
    REQUIRE(sizes.differences().size() == 1);
    CHECK(sizes.differences().front().text ==
          "pickup: 6 ints instead of 4 (in the objects file: 5); read this way, 1 snapshot has the "
          "right checksum");
    CHECK_FALSE(sizes.differences().front().is_file_wrong);
    add_snapshot(sizes, {{{4, 1}, {1}}});
    add_size_finding(sizes, 4, 1);
    CHECK(contains(sizes.differences().front().text, "pickup: 1 int instead of 4 (in the"));
    add_snapshot(sizes, {{{4, 1}, {1, 2, 3, 4}}});
    add_size_finding(sizes, 4, 4);
    CHECK(contains(sizes.sizes_table(), "    4      4          1  not as in the objects file\n"));
    CHECK(sizes.differences().front().is_file_wrong);
    CHECK(contains(sizes.differences().front().text, "pickup: 4 ints, as agreed (in the"));
}

TEST_CASE("differing types are written in the format of --objects") {
    struct Row {
        std::string_view name;
        std::uint16_t type;
        std::int64_t size;
        std::size_t fields;
        std::string_view last;
        bool agreed;
    };

    const Row rows[] = {
        {"longer", 9, 24, 24, "int_23", true},
        {"shorter", 9, 2, 2, "x", true},
        {"inside a text", 11, 6, 3, "int_5", true},
        {"nobody knows it", 33, 2, 2, "int_1", true},
        {"written in deltas", 4, 0, 5, "int_4", false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        analyze::TypeSizes sizes;
        add_snapshot(sizes, {{{4, 1}, {1, 2, 3, 4, 5}}});
        add_size_finding(sizes, row.type, row.size);
        const std::string text = sizes.objects_json();
        CAPTURE(text);
        CHECK(analyze::is_unedited_objects_json(text));
        std::string edited = text;
        constexpr std::string_view kName = R"("name": ")";
        edited.insert(edited.rfind(kName) + kName.size(), "my_"); // renames the last field
        CHECK_FALSE(analyze::is_unedited_objects_json(edited));
        const auto root = boost::json::parse(text);
        const auto& object = root.at("objects").at(0).as_object();
        CHECK(object.at("type").as_int64() == row.type);
        CHECK(object.at("agreed_size").as_bool() == row.agreed);
        const auto& fields = object.at("fields").as_array();
        CHECK(fields.size() == row.fields);
        CHECK(fields.back().at("name").as_string() == row.last);
        CHECK(object.contains("position") == (row.type == 4 || row.size == 24));
    }
    const std::string none = analyze::TypeSizes{}.objects_json();
    CHECK(none == "{\n  \"objects\": [\n\n  ]\n}\n");
    CHECK(analyze::is_unedited_objects_json(none));
    for (const char* const other : {"", "{}", "[]", R"({"objects": []})", R"({"objects": [{}]})"}) {
        CHECK_FALSE(analyze::is_unedited_objects_json(other));
    }
}
