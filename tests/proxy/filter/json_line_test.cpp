#include "proxy/filter/json_line.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw::filter;

namespace {

/// Collects all values as text.
class ValueCollector final : public ValueVisitor {
  public:
    std::string text;

    bool receive_value(const Value& value) override {
        text += text.empty() ? "" : "|";
        if (const auto* const integer = std::get_if<std::int64_t>(&value.number);
            integer != nullptr && !value.is_word) {
            text += std::to_string(*integer);
        } else if (value.number.index() == 2) {
            text += std::to_string(std::get<double>(value.number));
        } else {
            text += value.text;
        }
        return false;
    }
};

std::string value_texts(std::string_view line, std::string_view key) {
    ValueCollector all;
    JsonLine json{line};
    json.object().visit_values(key, all);
    return all.text;
}

} // namespace

TEST_CASE("the values of a key are found, and truncated lines have no other values") {
    const std::string line =
        R"({"a":1,"b":{"c":"x\"y\\\u00e4\ud83d\ude00\n","d":[1,2.5,-3]},"at":{"tile":[7,-8]},)"
        R"("list":[{"n":"p"},{"n":"q"},{"m":[["r"]]}],"t":true,"z":null,"s":"}]\\"})";

    struct Row {
        const char* key;
        const char* found;
    };

    const Row rows[] = {{"a", "1"},
                        {"b.c", "x\"y\\\u00e4\U0001F600\n"},
                        {"b.d", "1|2.500000|-3"},
                        {"b.d.x", "1"},
                        {"at.tile.x", "7"},
                        {"at.tile.y", "-8"},
                        {"at.tile.z", ""},
                        {"list.n", "p|q"},
                        {"list.m", "r"},
                        {"t", "true"},
                        {"z", ""},
                        {"b", ""},
                        {"a.b", ""},
                        {"s", "}]\\"},
                        {"", ""},
                        {".", ""}};
    for (const Row& row : rows) {
        CAPTURE(row.key);
        CHECK(value_texts(line, row.key) == row.found);
    }
    for (std::size_t size = 0; size < line.size(); ++size) {
        CAPTURE(size);
        for (const Row& row : rows) {
            const std::string found = value_texts(line.substr(0, size), row.key);
            CHECK(std::string_view{row.found}.starts_with(found.substr(0, found.find('|'))));
        }
    }
    CHECK(value_texts(std::string(100'000, '['), "a.b").empty());
    CHECK(value_texts(R"({"a":"\ud800x\u12"})", "a") == R"(\ud800x\u12)");
}

TEST_CASE("unusual values are read as written, or not at all") {
    struct Row {
        const char* name;
        std::string line;
        const char* key;
        const char* found;
    };

    const Row rows[] = {
        {"the first of two equal keys", R"({"a":1,"a":2})", "a", "1"},
        {"and of two equal objects", R"({"a":{"b":1},"a":{"c":2}})", "a.c", ""},
        {"an integer of 64 bits", R"({"a":-9223372036854775808})", "a", "-9223372036854775808"},
        {"a longer one", R"({"a":9223372036854775808})", "a", "9223372036854775808.000000"},
        {"one beyond all numbers", R"({"a":1e999,"b":1})", "a", ""},
        {"what stands behind it", R"({"a":1e999,"b":1})", "b", "1"},
        {"half a number", R"({"a":1x})", "a", ""},
        {"a string without escapes that are known", R"({"a":"\q"})", "a", "\\q"},
        {"bytes that are no UTF-8", "{\"a\":\"\xff\",\"b\":1}", "b", "1"},
        {"and their text", "{\"a\":\"\xff\xc3\xa4\",\"b\":1}", "a", "???"},
        {"a control byte in a string", "{\"a\":\"\x01\",\"b\":1}", "b", ""},
        {"an unclosed string", R"({"a":1,"b":"})", "a", ""},
        {"what stands before damage", R"({"a":1,"b":2 "c":3})", "b", "2"},
        {"what stands behind it", R"({"a":1,"b":2 "c":3})", "c", ""},
        {"another object behind it", R"({"a":1}{"b":2})", "b", ""},
        {"brackets that do not belong together", R"({"a":[1},"b":2})", "b", "2"},
        {"an escaped key", R"({"\u0061":1})", "a", ""},
        {"spaces", R"( { "a" : [ 1 , 2 ] } )", "a", "1|2"},
        {"an empty key", R"({"":1})", "", "1"},
        {"no object", R"([{"a":1}])", "a", ""},
        {"nothing", "", "a", ""},
        {"deep lists",
         R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + R"(,"b":1})", "a",
         ""},
        {"what stands behind them",
         R"({"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + R"(,"b":1})", "b",
         "1"},
    };
    JsonLine line;
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(value_texts(row.line, row.key) == row.found);
        // The result does not change after a search for a missing key.
        line.set_line(row.line);
        ValueCollector none;
        CHECK_FALSE(line.object().visit_values("none", none));
        ValueCollector all;
        line.object().visit_values(row.key, all);
        CHECK(all.text == row.found);
    }
    const std::string long_key(10'000, 'k');
    CHECK(value_texts(R"({"a":1})", long_key).empty());
    CHECK(value_texts("{\"" + long_key + "\":1}", long_key).empty());
}

TEST_CASE("the text of a value is a part of the line") {
    const std::string line = R"({"a": 12 ,"b":{"c":"x\"y"},"d":[1],"e":-1,"f":1.5,"g":null})";
    JsonLine of_line{line};
    JsonObject& json = of_line.object();
    CHECK(json.find_scalar_text("b.c") == R"("x\"y")");
    CHECK(json.find_scalar_text("a") == "12");
    CHECK(json.find_scalar_text("a")->data() == line.data() + line.find("12"));
    CHECK(json.find_scalar_text("g") == "null");
    for (const char* const none : {"b", "d", "d.x", "x", "a.b", ""}) {
        CAPTURE(none);
        CHECK_FALSE(json.find_scalar_text(none));
    }
    CHECK(json.find_integer("e") == -1);
    CHECK_FALSE(json.find_integer("f"));
    CHECK(json.find_count("a") == 12);
    CHECK(json.find_count("e") == 0);
    CHECK(json.find_count("b.c") == 0);
    of_line.set_line("no record");
    CHECK(json.find_count("lost") == 0);
}

TEST_CASE("keys of the record can be read between those of its items") {
    const std::string text =
        R"({"n":7,"items":[{"a":1,"b":[2]},5,{"b":3,"a":4},[6],{}],"m":8,"findings":{"x.y":2}})";
    JsonLine line{text};
    CHECK(line.object().has_member("items"));
    for (int round = 0; round < 2; ++round) {
        ValueCollector all;
        int items = 0;
        line.for_each_item([&](JsonObject& item) {
            ++items;
            for (const char* const key : {"b", "none", "a", "b"}) {
                item.visit_values(key, all);
            }
            line.object().visit_values("m", all);
            line.object().visit_values("n", all);
            return items == 4;
        });
        CHECK(items == 4);
        CHECK(all.text == "2|1|2|8|7|8|7|3|4|3|8|7|8|7");
    }
    ValueCollector counts;
    line.object().visit_finding_count("x.y", counts);
    line.object().visit_finding_count("x.z", counts);
    CHECK(counts.text == "2|0");
    line.set_line(R"({"items":{"a":1},"findings":3})");
    CHECK(line.object().has_member("items"));
    CHECK_FALSE(line.object().visit_finding_count("x.y", counts));
    int none = 0;
    line.for_each_item([&](JsonObject&) { return ++none != 0; });
    CHECK(none == 0);
    line.set_line(R"({"items":[{"a":1},{"a":2 "b"},{"a":3}]})");
    ValueCollector before;
    line.for_each_item([&](JsonObject& item) {
        item.visit_values("a", before);
        item.visit_values("b", before);
        return false;
    });
    CHECK(before.text == "1|2");
}

TEST_CASE("a short line can follow a very long one") {
    std::string text = R"({"items":[)";
    while (text.size() < std::size_t{16} << 20U) {
        text += R"({"a":1},)";
    }
    text += R"({"a":2}],"b":3})";
    JsonLine line{text};
    std::size_t items = 0;
    line.for_each_item([&](JsonObject&) { return ++items == 0; });
    CHECK(items == (text.size() - 14) / 8);
    CHECK(line.object().find_count("b") == 3);
    line.set_line(R"({"b":4})");
    CHECK(line.object().find_count("b") == 4);
}
