#include "proxy/cli/flags.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using tw::cli::Texts;
using tw::cli::UsageError;

namespace {

/// A command with a flag of every kind.
struct Sample {
    Sample() {
        command.add("files", &files, "FILE", "");
        command.add("-o,--output", &output, "FILE", "");
        command.add("--maps", &maps, "DIR", "");
        command.add("--session", &sessions, "NUMBER", "");
        command.add("--other", &other, "NUMBER", "").check([](const std::string& text) {
            return text == "0" ? "expected another number" : "";
        });
        command.add_list("--fail-on", fail_on, "ID,...", "");
        command.add_list(
            "--items",
            [](const Texts& words) {
                if (words.size() > 1) {
                    throw UsageError{"--items: one alone"};
                }
            },
            "WHICH", "");
        command.add("--flight", &flight, "LIMITS DIR", "").take_one_or_two_values();
        command.add_number("--threads", &threads, 1, 64, "");
        command.add_number("--tick", &tick, -1, std::int64_t{1} << 40U, "");
        command.add_time("--duration", seconds, 0.1, 100, "");
        command.add("--color", &color, "WHEN", "").one_of({"auto", "never"});
        command.add_choice("--version", version, "NUMBER", {{"four", 4}, {"six", 6}}, "");
        const auto raw_flag = command.add_switch("--raw", raw, "");
        command.add_switch("--no-messages", messages, "", false).excludes(raw_flag);
    }

    tw::cli::Command command;
    Texts files;
    std::string output;
    Texts maps;
    std::vector<std::int64_t> sessions;
    std::optional<std::int64_t> other;
    Texts fail_on;
    Texts flight;
    unsigned threads = 1;
    std::int64_t tick = 0;
    double seconds = 0;
    std::string color = "auto";
    int version = 6;
    bool raw = false;
    bool messages = true;
};

} // namespace

TEST_CASE("each kind of flag sets its variable") {
    Sample sample;
    sample.command.parse({"a",         "-o",         "out",       "--maps",
                          "m",         "b",          "--maps",    "n",
                          "--session", "1",          "--session", "2",
                          "--other",   "3",          "--fail-on", "x,y",
                          "--fail-on", "z",          "--flight",  "60s",
                          "folder",    "--threads",  "64",        "--tick",
                          "-1",        "--duration", "500ms",     "--color",
                          "never",     "--version",  "four",      "--no-messages"});
    CHECK(sample.files == Texts{"a", "b"});
    CHECK(sample.output == "out");
    CHECK(sample.maps == Texts{"m", "n"});
    CHECK(sample.sessions == std::vector<std::int64_t>{1, 2});
    CHECK(sample.other == 3);
    CHECK(sample.fail_on == Texts{"x", "y", "z"});
    CHECK(sample.flight == Texts{"60s", "folder"});
    CHECK(sample.threads == 64);
    CHECK(sample.tick == -1);
    CHECK(sample.seconds == doctest::Approx(0.5));
    CHECK(sample.color == "never");
    CHECK(sample.version == 4);
    CHECK_FALSE(sample.raw);
    CHECK_FALSE(sample.messages);
}

TEST_CASE("a value that a flag does not accept is an error that names the flag") {
    struct Row {
        Texts arguments;
        std::string_view says;
    };

    const Row rows[] = {
        {{"--other", "0"}, "--other: expected another number"},
        {{"--items", "a,b"}, "--items: one alone"},
        {{"--threads", "65"}, "--threads: Value 65 not in range"},
        {{"--threads", "x"}, "--threads: Value x not in range"},
        {{"--tick", "-2"}, "--tick: Value -2 not in range"},
        {{"--duration", "nan(1)"},
         "--duration: nan(1) is not a time; give a number, for example 30s"},
        {{"--duration", "0.01"}, "--duration: Value 0.01 not in range"},
        {{"--color", "blue"}, "--color: blue not in {auto,never}"},
        {{"--version", "five"}, "--version: five not in {four,six}"},
        {{"--output", "a", "-o", "b"}, "--output"},
        {{"--raw", "--no-messages"}, "--raw excludes --no-messages"},
        {{"--unknown"}, "--unknown"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.arguments.front());
        Sample sample;
        std::string said;
        try {
            sample.command.parse(row.arguments);
        } catch (const UsageError& error) {
            said = error.what();
        }
        CAPTURE(said);
        CHECK(said.find(row.says) != std::string::npos);
    }
}
