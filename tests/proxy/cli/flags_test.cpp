#include "proxy/cli/flags.h"

#include <doctest/doctest.h>

using tw::cli::Texts;
using tw::cli::UsageError;

namespace {

/// A command with a flag of every kind.
struct SampleCommand {
    SampleCommand() {
        command.add("files", &files, "FILE", "");
        command.add("-o,--output", &output, "FILE", "");
        command.add("--maps", &maps, "DIR", "");
        command.add_number("--session", &sessions, 1, 99, "");
        command.add_number("--other", &other, 1, std::int64_t{1} << 40U, "");
        command.add_list("--fail-on", fail_on, "ID,...", "");
        command.add_list(
            "--items",
            [](const Texts& words) {
                if (words.size() > 1) {
                    throw UsageError{"--items: one alone"};
                }
            },
            "WHICH", "");
        command.add("--flight", &flight, "LIMITS DIR", "").max_values = 2;
        command.add_number("--threads", &threads, 1, 64, "");
        command.add_number("--tick", &tick, -1, std::int64_t{1} << 40U, "");
        command.add_time("--duration", seconds, 0.1, 100, "");
        command.add("--color", &color, "WHEN", "").allowed_words = {"auto", "never"};
        command.add_choice("--version", version, "NUMBER", {{"four", 4}, {"six", 6}}, "");
        command.add_switch("-r,--raw", raw, "");
        command.add_switch("-n,--no-messages", messages, "", false);
    }

    tw::cli::Command command{"sample"};
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
    SampleCommand sample;
    sample.command.parse_arguments(
        {"a",         "-o",         "out",       "--maps",   "m",       "b",         "--maps=n",
         "--session", "1",          "--session", "2",        "--other", "3",         "--fail-on",
         "x,y",       "--fail-on",  "z",         "--flight", "60s",     "folder",    "--threads",
         "64",        "--tick",     "-1",        "--color",  "never",   "--version", "four",
         "-n",        "--duration", "500ms",     "--",       "--raw"});
    CHECK(sample.files == Texts{"a", "b", "--raw"});
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

TEST_CASE("letters may stand together, and a value may follow its letter") {
    for (const Texts& arguments : {Texts{"-rnoout"}, {"-rn", "-o=out"}, {"-r", "-no", "out"}}) {
        CAPTURE(arguments.front());
        SampleCommand sample;
        sample.command.parse_arguments(arguments);
        CHECK(sample.raw);
        CHECK_FALSE(sample.messages);
        CHECK(sample.output == "out");
    }
    SampleCommand off;
    off.command.parse_arguments({"--raw=false", "--no-messages=off"});
    CHECK_FALSE(off.raw);
    CHECK(off.messages);
}

TEST_CASE("a value that a flag does not accept is an error that names the flag") {
    struct Row {
        Texts arguments;
        std::string_view says;
    };

    const Row rows[] = {
        {{"--other", "0"}, "--other 0: expected a number from 1"},
        {{"--items", "a,b"}, "--items: one alone"},
        {{"--threads", "65"}, "--threads 65: expected a number from 1 to 64"},
        {{"--threads", "x"}, "--threads x: expected a number"},
        {{"--tick", "-2"}, "--tick -2: expected a number from -1"},
        {{"--duration", "nan(1)"}, "--duration nan(1): expected a time in seconds, or like 30s"},
        {{"--duration", "0.01"}, "from 0.1 to 100"},
        {{"--color", "blue"}, "--color blue: expected one of auto, never"},
        {{"--version", "five"}, "--version five: expected one of four, six"},
        {{"--output", "a", "-o", "b"}, "--output: may be given once"},
        {{"--raw=maybe"}, "--raw: expected true or false, not 'maybe'"},
        {{"--output"}, "--output: needs a value"},
        {{"--output", "--raw"}, "--output: needs a value before --raw"},
        {{"--output="}, "--output: is empty"},
        {{"--unknown"}, "sample has no --unknown"},
        {{"-rx"}, "sample has no -x"},
        {{"-threads"}, "sample has no -threads; did you mean --threads?"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.arguments.front());
        SampleCommand sample;
        CHECK_THROWS_WITH_AS(sample.command.parse_arguments(row.arguments),
                             doctest::Contains(std::string{row.says}.c_str()), UsageError);
    }
}
