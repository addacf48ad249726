// Covers: proxy/bus/publisher.cpp
#include "proxy/bus/publisher.h"

#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

namespace {

SendWindow make_send_window(std::uint64_t settled, std::uint64_t sequence) {
    SendWindow window;
    window.begin_connection(settled, sequence);
    return window;
}

} // namespace

TEST_CASE("lines are settled in order even if they are acknowledged out of order") {
    auto window = make_send_window(0, 100);
    CHECK(window.next_line_number() == 1);
    for (int i = 0; i < 3; ++i) {
        window.mark_line_sent();
    }
    CHECK(window.lines_in_flight() == 3);
    CHECK(window.acknowledge_line(2, 102));
    CHECK(window.last_settled_line() == 0);
    CHECK(window.settled_sequence() == 100);
    CHECK(window.acknowledge_line(1, 101));
    CHECK(window.last_settled_line() == 2);
    CHECK(window.settled_sequence() == 102);
    CHECK(window.acknowledge_line(3, 103));
    CHECK(window.last_settled_line() == 3);
    CHECK(window.lines_in_flight() == 0);
}

TEST_CASE("an acknowledgement of a line that is not in flight is ignored") {
    auto window = make_send_window(10, 0);
    window.mark_line_sent();
    for (const std::uint64_t line : {0U, 1U, 10U, 12U, 11U + 1024U}) {
        CAPTURE(line);
        CHECK_FALSE(window.acknowledge_line(line, 5));
    }
    CHECK(window.acknowledge_line(11, 5));
    CHECK_FALSE(window.acknowledge_line(11, 6));
    CHECK(window.last_settled_line() == 11);
}

TEST_CASE("at most one window of lines is in flight") {
    auto window = make_send_window(0, 0);
    while (window.has_room()) {
        window.mark_line_sent();
    }
    CHECK(window.lines_in_flight() == SendWindow::kMaxLinesInFlight);
    CHECK(window.acknowledge_line(2, 2));
    CHECK_FALSE(window.has_room()); // the first line still uses its slot
    CHECK(window.acknowledge_line(1, 1));
    CHECK(window.has_room());
    window.mark_line_sent();
    window.mark_line_sent();
    CHECK_FALSE(window.has_room());
}

TEST_CASE("skipped lines need no acknowledgement") {
    auto window = make_send_window(4, 50);
    window.skip_next_line(61); // line 5
    CHECK(window.last_settled_line() == 5);
    CHECK(window.settled_sequence() == 61);
    window.skip_next_line(0); // line 6 is lost
    CHECK(window.last_settled_line() == 6);
    CHECK(window.settled_sequence() == 61);
}

TEST_CASE("all unsettled lines of the stream are above the window's sequence number") {
    auto window = make_send_window(5, 100);
    window.mark_line_sent();    // line 6 was not in the stream
    window.skip_next_line(101); // line 7 was in the stream
    window.mark_line_sent();    // line 8 was not
    window.skip_next_line(102); // line 9 was
    CHECK(window.settled_sequence() == 100);
    CHECK(window.acknowledge_line(6, 110));
    CHECK(window.last_settled_line() == 7);
    CHECK(window.settled_sequence() == 101); // not 110, because line 9 is below it
    CHECK(window.acknowledge_line(8, 111));
    CHECK(window.last_settled_line() == 9);
}

TEST_CASE("lines lost before they were sent are skipped") {
    auto window = make_send_window(5, 100);
    window.skip_lines_before(5'000'000'000);
    CHECK(window.next_line_number() == 5'000'000'000);
    CHECK(window.last_settled_line() == 4'999'999'999);
    CHECK(window.settled_sequence() == 100);
    window.mark_line_sent();
    CHECK(window.acknowledge_line(5'000'000'000, 101));
}

TEST_CASE("a stream's answers are parsed") {
    struct Row {
        std::string_view name;
        std::string_view json;
        std::uint64_t sequence;
        bool is_too_long;
        std::string_view error;
    };

    const Row rows[] = {
        {"taken", R"({"stream":"twscope","seq":7})", 7, false, ""},
        {"had it", R"({"stream":"twscope","seq":7,"duplicate": true})", 7, false, ""},
        {"refused",
         R"({"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"},"stream":"twscope","seq":0})",
         0, false, "maximum bytes exceeded"},
        {"too long",
         R"({"error":{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"},"stream":"t","seq":0})",
         0, true, "message size exceeds maximum allowed"},
        {"without a reason", R"({"error":{}})", 0, false, "it gives no reason"},
        {"an error of another kind", R"({"error":7})", 0, false, "it gives no reason"},
        {"no place", R"({"stream":"twscope"})", 0, false, "its answer has no sequence number"},
        {"a place that is none", R"({"seq":-1})", 0, false, "its answer has no sequence number"},
        {"a fraction", R"({"seq":1.5})", 0, false, "its answer has no sequence number"},
        {"a list", "[]", 0, false, "its answer is invalid"},
        {"cut", R"({"seq":)", 0, false, "its answer is invalid"},
        {"nothing", "", 0, false, "its answer is invalid"}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const PublishAnswer answer = parse_publish_answer(row.json);
        CHECK(answer.sequence == row.sequence);
        CHECK(answer.is_too_long == row.is_too_long);
        CHECK(answer.error == row.error);
    }
}
