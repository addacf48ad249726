// Covers: proxy/cli/help.cpp
#include "proxy/cli/command_line.h"
#include "proxy/cli/help.h"
#include "proxy/cli/run_flags.h"
#include "tests/proxy/cli/program_runs.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
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
        // At least two spaces separate the description from the value.
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

TEST_CASE("the values of a flag are distinguished from names of types") {
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

TEST_CASE("help is wrapped to the terminal's width, and continuation lines are indented") {
    struct Row {
        std::string_view text;
        std::size_t columns;
        std::string_view wrapped;
    };

    const Row rows[] = {
        {"", 20, ""},
        {"one two", 20, "one two\n"},
        {"one two three four", 8, "one two\nthree\nfour\n"},
        {"  one two three", 9, "  one two\n  three\n"},
        {"  -a  one two three", 13, "  -a  one two\n      three\n"},
        {"  --long  one two three", 14,
         "  --long  one\n    two three\n"}, // too narrow to indent to the second column
        {"       one two three", 15, "       one two\n       three\n"},
        {"unbreakable words", 5, "unbreakable\nwords\n"},
        {"  --unbreakable  x", 5, "  --unbreakable  x\n"},
        {"one\n\ntwo three", 5, "one\n\ntwo\nthree\n"},
        {"   ", 2, "   \n"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        CAPTURE(row.columns);
        CHECK(tw::cli::wrap_lines(row.text, row.columns) == row.wrapped);
    }
}

TEST_CASE("-h of a live run fits on a screen, and --help lists each flag once, under a heading") {
    for (const std::string command : {"proxy", "tap"}) {
        CAPTURE(command);
        const std::string brief = tw::test::in_shell("COLUMNS=80 $twscope " + command + " -h").out;
        CHECK(std::count(brief.begin(), brief.end(), '\n') <= 40);
        CHECK(brief.find("\nAdvanced:") == std::string::npos);
        for (const std::string heading : {"Record", "Watch", "Check", "Many servers"}) {
            CHECK(brief.find('\n' + heading + ":\n") != std::string::npos);
        }
        const std::string all = tw::test::in_shell("$twscope " + command + " --help").out;
        CHECK(all == tw::test::twscope({"help", command}).out);
        CHECK(all.find("\nAdvanced:\n") != std::string::npos);
        const tw::cli::CommandLine line;
        for (const CLI::Option* option : line.app.get_subcommand(command)->get_options()) {
            const bool is_old = !tw::cli::replacement_of_flag(*option).empty();
            const auto& names = option->get_lnames();
            const std::string flag = names.empty() ? "-h" : "--" + names.front();
            CAPTURE(flag);
            const auto& letters = option->get_snames();
            const std::string before =
                names.empty() || letters.empty() ? "\n  " : "\n  -" + letters.front() + ", ";
            std::size_t lines = 0;
            for (const std::string& after : {std::string{" "}, std::string{"\n"}}) {
                const std::string start = before + flag + after;
                for (auto at = all.find(start); at != std::string::npos;
                     at = all.find(start, at + 1)) {
                    ++lines;
                }
            }
            CHECK(lines == (is_old ? 0 : 1));
        }
    }
}

TEST_CASE("each flag with a heading is a flag of a live run") {
    const tw::cli::CommandLine line;
    for (const std::string_view flag : tw::cli::names_of_flags_with_heading()) {
        CAPTURE(flag);
        const std::string name = "--" + std::string{flag};
        const auto has_flag = [&](const char* command) {
            return line.app.get_subcommand(command)->get_option_no_throw(name) != nullptr;
        };
        CHECK((has_flag("proxy") || has_flag("tap")));
    }
}

TEST_CASE("no line of help is longer than the terminal is wide") {
    const tw::cli::CommandLine line;
    std::vector<std::string> commands{""};
    for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; })) {
        commands.push_back(command->get_name());
    }
    for (const std::string& command : commands) {
        for (const std::string& flag : {std::string{"-h"}, std::string{"--help"}}) {
            for (const std::string& columns :
                 {std::string{"60"}, std::string{"80"}, std::string{"120"}}) {
                CAPTURE(command);
                CAPTURE(columns);
                std::istringstream help{
                    tw::test::in_shell("COLUMNS=" + columns + " $twscope " + command + ' ' + flag)
                        .out};
                for (std::string text; std::getline(help, text);) {
                    CAPTURE(text);
                    CHECK(text.size() <= std::stoul(columns));
                }
            }
        }
    }
}

TEST_CASE("help of a command names only the exit codes that it has") {
    struct Row {
        const char* command;
        const char* finding; ///< the meaning of exit code 1; empty if unused
        const char* not_yet; ///< the meaning of exit code 4; empty if unused
    };

    const Row rows[] = {
        {"map", "", ""},
        {"records", "", ""},
        {"decode", " 1 an --expect or --fail-on was not met", ""},
        {"compare", " 1 the games differ", ""},
        {"health", " 1 no answer", ""},
        {"collect", " 1 an --expect or --fail-on was not met",
         " 4 could not start yet (the bus, the stream or a port is unavailable)."},
        {"replay", " 1 an --expect or --fail-on was not met", " 4 the server did not answer."},
    };
    for (const Row& row : rows) {
        CAPTURE(row.command);
        const std::string help =
            tw::test::in_shell(std::string{"COLUMNS=1000 $twscope "} + row.command + " --help").out;
        const std::string codes = help.substr(std::min(help.find("Exit codes:"), help.size()));
        CAPTURE(codes);
        CHECK(codes.find(" 0 success, ") != std::string::npos);
        CHECK((codes.find(", 1 ") != std::string::npos) == !std::string_view{row.finding}.empty());
        CHECK((codes.find(", 4 ") != std::string::npos) == !std::string_view{row.not_yet}.empty());
        CHECK(codes.find(row.finding) != std::string::npos);
        CHECK(codes.find(row.not_yet) != std::string::npos);
    }
}
