// Covers: proxy/bus/publisher.cpp
#include "proxy/bus/publisher.h"

#include <memory>

#include <doctest/doctest.h>

using namespace tw::bus;

namespace {

/// Too large for the stack of a test.
std::unique_ptr<SendWindow> window_behind(std::uint64_t settled, std::uint64_t place) {
    auto window = std::make_unique<SendWindow>();
    window->begin(settled, place);
    return window;
}

} // namespace

TEST_CASE("lines are settled in order, whatever order they are acknowledged in") {
    const auto window = window_behind(0, 100);
    CHECK(window->next() == 1);
    for (int i = 0; i < 3; ++i) {
        window->note_sent();
    }
    CHECK(window->under_way() == 3);
    CHECK(window->acknowledge(2, 102));
    CHECK(window->settled() == 0);
    CHECK(window->place() == 100);
    CHECK(window->acknowledge(1, 101));
    CHECK(window->settled() == 2);
    CHECK(window->place() == 102);
    CHECK(window->acknowledge(3, 103));
    CHECK(window->settled() == 3);
    CHECK(window->under_way() == 0);
}

TEST_CASE("an acknowledgement of what is not under way counts for nothing") {
    const auto window = window_behind(10, 0);
    window->note_sent();
    for (const std::uint64_t line : {0U, 1U, 10U, 12U, 11U + 1024U}) {
        CAPTURE(line);
        CHECK_FALSE(window->acknowledge(line, 5));
    }
    CHECK(window->acknowledge(11, 5));
    CHECK_FALSE(window->acknowledge(11, 6));
    CHECK(window->settled() == 11);
}

TEST_CASE("no more than a window is under way") {
    const auto window = window_behind(0, 0);
    while (window->has_room()) {
        window->note_sent();
    }
    CHECK(window->under_way() == SendWindow::kSize);
    CHECK(window->acknowledge(2, 2));
    CHECK_FALSE(window->has_room()); // the first still stands there
    CHECK(window->acknowledge(1, 1));
    CHECK(window->has_room());
    window->note_sent();
    window->note_sent();
    CHECK_FALSE(window->has_room());
}

TEST_CASE("what is in the stream already, and what is lost, needs no acknowledgement") {
    const auto window = window_behind(4, 50);
    window->skip_line(61); // line 5
    CHECK(window->settled() == 5);
    CHECK(window->place() == 61);
    window->skip_line(0); // lost
    CHECK(window->settled() == 6);
    CHECK(window->place() == 61);
}

TEST_CASE("behind the place stands all that is in the stream and not settled") {
    const auto window = window_behind(5, 100);
    window->note_sent();    // 6 was not there when we asked
    window->skip_line(101); // 7 was
    window->note_sent();    // 8 was not
    window->skip_line(102); // 9 was
    CHECK(window->place() == 100);
    CHECK(window->acknowledge(6, 110));
    CHECK(window->settled() == 7);
    CHECK(window->place() == 101); // and not 110: 9 would be looked for in vain
    CHECK(window->acknowledge(8, 111));
    CHECK(window->settled() == 9);
}

TEST_CASE("lines that are lost before they were sent are jumped over") {
    const auto window = window_behind(5, 100);
    window->skip_to(5'000'000'000);
    CHECK(window->next() == 5'000'000'000);
    CHECK(window->settled() == 4'999'999'999);
    CHECK(window->place() == 100);
    window->note_sent();
    CHECK(window->acknowledge(5'000'000'000, 101));
}
