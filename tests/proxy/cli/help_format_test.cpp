#include "proxy/cli/help_format.h"

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
        {app.add_flag("--raw", raw, "Ints"), "  --raw                       Ints\n"},
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
