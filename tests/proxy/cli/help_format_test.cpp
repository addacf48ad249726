// Covers: proxy/cli/settings.cpp
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using tw::cli::HelpFormat;

TEST_CASE("help shows names, values and defaults the way help2man reads them") {
    CLI::App app;
    std::string file;
    std::string items = "changed";
    std::vector<std::string> listen{"127.0.0.1:8303"};
    bool raw = false;
    unsigned threads = 1;
    double seconds = 0;

    struct Row {
        const CLI::Option* option;
        std::string text;
    };

    const Row rows[] = {
        {app.add_option("-o,--output", file, "Write")->type_name("FILE"),
         "  -o, --output FILE           Write\n"},
        {app.add_option("--items", items, "Which")
             ->check(CLI::IsMember{{"none", "changed", "all"}})
             ->capture_default_str(),
         "  --items none|changed|all    Which (default: changed)\n"},
        {app.add_option("--listen", listen, "Where")->type_name("ADDR")->capture_default_str(),
         "  --listen ADDR               Where (default: 127.0.0.1:8303)\n"},
        {app.add_option("--http", listen, "Where")->type_name("[ADDR:]PORT"),
         "  --http [ADDR:]PORT          Where\n"},
        {app.add_flag("--raw", raw, "Ints"), "  --raw                       Ints\n"},
        {app.add_option("--threads", threads, "Relay threads")
             ->check(CLI::Range(1U, 64U))
             ->capture_default_str(),
         "  --threads NUMBER            Relay threads (1 to 64; default: 1)\n"},
        {app.add_option("--seed", threads, "Chance")
             ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 60U)),
         "  --seed NUMBER               Chance\n"},
        {app.add_option("--memory", threads, "MiB")->type_name("MIB")->check(CLI::Range(16, 99)),
         "  --memory MIB                MiB (16 to 99)\n"},
        {app.add_option("--duration", seconds, "Stop after this many seconds")
             ->transform(tw::cli::seconds())
             ->check(CLI::Range(0.001, 366 * 86400.0)),
         "  --duration TIME             Stop after this many seconds (or with a unit: ms, s, min, "
         "h)\n"},
        {app.add_option("--session", threads, "Only this")
             ->type_name("NUMBER")
             ->check(CLI::PositiveNumber),
         "  --session NUMBER            Only this\n"},
        // Two blanks at least, or the description would be read as part of the value.
        {app.add_option("--twenty-eight-wide", file, "Where")->type_name("VALUE-8"),
         "  --twenty-eight-wide VALUE-8\n                              Where\n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.option->get_name());
        CHECK(HelpFormat{}.make_option(row.option, false) == row.text);
    }
    const CLI::Option* const map = app.add_option("file", file, "The map")->required();
    CHECK(HelpFormat{}.make_option(map, true) == "  file                        The map\n");
}

TEST_CASE("the words a value can be are told from other names of types") {
    CLI::App app;
    std::string value;
    CLI::Option* const option = app.add_option("--value", value);
    CHECK(tw::cli::value_words(*option).empty());
    option->type_name("A}{B");
    CHECK(tw::cli::value_words(*option).empty());
    option->type_name("TEXT:{a,b}");
    CHECK(tw::cli::value_words(*option) == std::vector<std::string>{"a", "b"});
    option->type_name("TEXT:{a}");
    CHECK(tw::cli::value_words(*option) == std::vector<std::string>{"a"});
}
