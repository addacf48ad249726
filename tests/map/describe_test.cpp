#include "map/acceptance.h"
#include "map/describe.h"
#include "tests/map/writer.h"
#include "tests/map/truth.h"

#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::map {
namespace {

namespace json = boost::json;

/// Keys that say what other programs make of the file, or what only we tell.
const std::set<std::string, std::less<>> kNotCompared = {"verdict", "oddities"};

json::object describe(const test::Truth& truth, const Map& map) {
    std::vector<PointToDescribe> points;
    for (const auto& row : truth.entry.at("points").as_array()) {
        points.push_back({row.at(0).to_number<double>(), row.at(1).to_number<double>()});
    }
    std::vector<WorldPos> boxes;
    for (const auto& row : truth.entry.at("boxes").as_array()) {
        boxes.push_back({row.at(0).to_number<int>(), row.at(1).to_number<int>()});
    }
    DescribeOptions options;
    const std::string set{truth.entry.at("set").as_string().c_str()};
    const std::string file = truth.path.filename().string();
    options.file = file;
    options.set = set;
    options.points = points;
    options.boxes = boxes;
    return json::parse(describe_json(map, options)).as_object();
}

/// 3 and 3.0 are the same number.
bool same(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        return a.to_number<double>() == b.to_number<double>();
    }
    if (a.is_array() && b.is_array()) {
        const auto& left = a.as_array();
        const auto& right = b.as_array();
        return std::equal(left.begin(), left.end(), right.begin(), right.end(), same);
    }
    if (a.is_object() && b.is_object()) {
        const auto& left = a.as_object();
        const auto& right = b.as_object();
        return left.size() == right.size() &&
               std::all_of(left.begin(), left.end(), [&right](const auto& pair) {
                   const auto* const other = right.if_contains(pair.key());
                   return other != nullptr && same(pair.value(), *other);
               });
    }
    return a == b;
}

} // namespace

TEST_CASE("a description of a real map equals the known one in every key") {
    for (const auto& truth : test::truths()) {
        CAPTURE(truth.label);
        const auto map = Map::open(truth.path);
        REQUIRE(map.has_value());
        const json::object got = describe(truth, *map);
        for (const auto& pair : truth.entry) {
            const std::string key{pair.key()};
            const json::value& value = pair.value();
            if (kNotCompared.count(key) > 0) {
                continue;
            }
            CAPTURE(key);
            REQUIRE(got.contains(key));
            CAPTURE(json::serialize(got.at(key)));
            CAPTURE(json::serialize(value));
            CHECK(same(got.at(key), value));
        }
        for (const auto& pair : got) {
            const std::string key{pair.key()};
            CAPTURE(key);
            CHECK((truth.entry.contains(key) || kNotCompared.count(key) > 0));
        }
    }
}

TEST_CASE("a file that is no map is described as far as it goes") {
    struct Row {
        std::string_view name;
        std::vector<std::byte> file;
        bool container;
        std::string_view verdict;
    };

    test::DatafileWriter writer;
    const std::int32_t version[] = {7};
    writer.add_item(kItemVersion, 0, version);
    const std::vector<std::byte> other = writer.finish();
    const std::vector<std::byte> cut{other.begin(), other.end() - 1};
    const Row rows[] = {
        {"nothing", {}, false, "rejects:file_too_short"},
        {"cut", cut, false, "rejects:file_truncated"},
        {"another version", other, true, "rejects:unknown_map_version"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.name);
        const auto map = Map::parse(row.file);
        REQUIRE_FALSE(map.has_value());
        DescribeOptions options;
        options.file = "x.map";
        const auto got =
            json::parse(describe_rejected_json(row.file, map.error(), options)).as_object();
        CHECK(got.at("file").as_string() == "x.map");
        CHECK(got.at("size").to_number<std::size_t>() == row.file.size());
        CHECK(got.contains("sha256"));
        CHECK(got.contains("datafile") == row.container);
        CHECK(got.at("verdict").at("strict").as_string() == row.verdict);
        CHECK(got.at("verdict").at("lenient").as_string() == row.verdict);
    }
}

TEST_CASE("the strict verdict on a real map is that of DDNet master") {
    for (const auto& truth : test::truths()) {
        CAPTURE(truth.label);
        const auto map = Map::open(truth.path);
        REQUIRE(map.has_value());
        const Acceptance verdict = judge(*map);
        CHECK(verdict.strict == truth.entry.at("verdict").at("ddnet").as_string());
        CHECK(verdict.lenient == "accepts");
    }
}

} // namespace tw::map
