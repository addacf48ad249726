// Covers: proxy/bus/link.cpp
#include "proxy/bus/link.h"
#include "proxy/bus/subjects.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::bus;

TEST_CASE("a message id contains run and line; ids of other runs are rejected") {
    CHECK(message_id("run", 7) == "run:7");

    struct Row {
        std::string_view id;
        std::uint64_t line;
    };

    const Row rows[] = {{"run:7", 7},
                        {"run:18446744073709551615", UINT64_MAX},
                        {"run:18446744073709551616", 0},
                        {"run:", 0},
                        {"run", 0},
                        {"run:7x", 0},
                        {"run:-7", 0},
                        {"runner:7", 0},
                        {"other:7", 0},
                        {"", 0}};
    for (const Row& row : rows) {
        CAPTURE(row.id);
        CHECK(line_of_id(row.id, "run") == row.line);
    }
}

TEST_CASE("a message id contains the run if twscope made the id") {
    const std::string run = make_run_id();
    CHECK(run_of_id(message_id(run, 7)) == run);
    for (const std::string& id :
         {std::string{}, run, run + ':', run + ":0", run + ":x", run + "0:7", run.substr(1) + ":7",
          std::string{"run:7"}, std::string(1000, 'x')}) {
        CAPTURE(id);
        CHECK(run_of_id(id).empty());
    }
}
