// Covers: proxy/bus/publisher.cpp
#include "proxy/bus/publisher.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a stream's answers are parsed") {
    struct Row {
        std::string_view name;
        std::string_view json;
        std::uint64_t sequence;
        bool duplicate;
        bool too_long;
        std::string_view error;
    };

    const Row rows[] = {
        {"taken", R"({"stream":"twscope","seq":7})", 7, false, false, ""},
        {"had it", R"({"stream":"twscope","seq":7,"duplicate": true})", 7, true, false, ""},
        {"refused",
         R"({"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"twscope","seq":0})",
         0, false, false, "maximum bytes exceeded"},
        {"too long",
         R"({"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"t","seq":0})",
         0, false, true, "message size exceeds maximum allowed"},
        {"without a reason", R"({"error":{}})", 0, false, false, "it gives no reason"},
        {"an error of another kind", R"({"error":7})", 0, false, false, "it gives no reason"},
        {"no place", R"({"stream":"twscope"})", 0, false, false,
         "its answer has no sequence number"},
        {"a place that is none", R"({"seq":-1})", 0, false, false,
         "its answer has no sequence number"},
        {"a fraction", R"({"seq":1.5})", 0, false, false, "its answer has no sequence number"},
        {"a list", "[]", 0, false, false, "its answer is invalid"},
        {"cut", R"({"seq":)", 0, false, false, "its answer is invalid"},
        {"nothing", "", 0, false, false, "its answer is invalid"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const PublishAnswer answer = read_publish_answer(row.json);
        CHECK(answer.sequence == row.sequence);
        CHECK(answer.duplicate == row.duplicate);
        CHECK(answer.too_long == row.too_long);
        CHECK(answer.error == row.error);
    }
}
