// Covers: proxy/cli/command_line.cpp
#include "proxy/cli/commands.h"
#include "proxy/cli/flags.h"
#include "proxy/cli/help.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/program.h"

#include <sstream>

#include <boost/algorithm/string/replace.hpp>
#include <doctest/doctest.h>

using tw::test::contains;
using tw::test::count_of;

namespace {

/// Returns the command with this name.
tw::cli::Command& command_named(std::string_view name) {
    static const auto commands = tw::cli::make_commands();
    return **std::ranges::find_if(commands, [&](const auto& each) { return each->name == name; });
}

} // namespace

TEST_CASE("help shows names, values and defaults in the format that help2man reads") {
    tw::cli::Command command{"sample"};
    std::string file;
    std::string items = "changed";
    tw::cli::Texts listen{"127.0.0.1:8303"};
    tw::cli::Texts none;
    bool raw = false;
    unsigned threads = 1;
    std::uint64_t seed = 1;
    int beyond = 0;
    double never = 0;
    double seconds = 60;

    struct Row {
        tw::cli::Flag& flag;
        std::string text;
    };

    tw::cli::Flag& which = command.add("--items", &items, "WHICH", "Which");
    which.allowed_words = {"none", "changed", "all"};
    tw::cli::Flag& twice = command.add("--twice", &file, "VALUE", "Two");
    twice.default_text = "none";
    const Row rows[] = {
        {command.add("-o,--output", &file, "FILE", "Write"),
         "  -o, --output FILE           Write\n"},
        {which, "  --items none|changed|all    Which (default: changed)\n"},
        {command.add("--listen", &listen, "ADDR", "Where"),
         "  --listen ADDR               Where (default: 127.0.0.1:8303)\n"},
        {command.add("--http", &none, "[ADDR:]PORT", "Where"),
         "  --http [ADDR:]PORT          Where\n"},
        {command.add_switch("--raw", raw, "Ints"), "  --raw                       Ints\n"},
        {command.add_number("--threads", &threads, 1, 64, "Relay threads"),
         "  --threads NUMBER            Relay threads (1 to 64; default: 1)\n"},
        {command.add_number("--seed", &seed, 0, std::int64_t{1} << 60U, "Chance"),
         "  --seed NUMBER               Chance (default: 1)\n"},
        {command.add_number("--memory", &beyond, 16, 99, "Mebibytes", "MIB"),
         "  --memory MIB                Mebibytes (16 to 99)\n"},
        {command.add_time("--duration", never, 0.001, 366 * 86400.0, "Stop after this time"),
         "  --duration TIME             Stop after this time (or with a unit: ms, s, min, h)\n"},
        {command.add_time("--idle", seconds, 0.1, 86400, "End"),
         "  --idle TIME                 End (0.1 to 86400; or with a unit: ms, s, min, h; default: "
         "60)\n"},
        {twice, "  --twice VALUE               Two (default: none)\n"},
        // At least two spaces separate the description from the value.
        {command.add("--twenty-eight-wide", &file, "VALUE-8", "Where"),
         "  --twenty-eight-wide VALUE-8\n                              Where\n"},
        {command.add("file", &file, "FILE", "The map"), "  file                        The map\n"},
    };
    for (const Row& row : rows) {
        CHECK(tw::cli::flag_help(row.flag) == row.text);
    }
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

TEST_CASE("-h of a live run fits on a terminal of 24 lines, and --help lists each flag once, under "
          "a heading") {
    for (const std::string command : {"proxy", "tap"}) {
        CAPTURE(command);
        const std::string brief =
            tw::test::run_in_shell("COLUMNS=80 $twscope " + command + " -h").out;
        CHECK(std::count(brief.begin(), brief.end(), '\n') < 24);
        CHECK_FALSE(contains(brief, "\nAdvanced:"));
        CHECK(contains(brief, "\n  -l, --listen ADDR:PORT  ") == (command == "proxy"));
        CHECK(contains(brief, "\n  --impair NAME=VALUE,...  ") == (command == "proxy"));
        for (const std::string heading : {"Record", "Watch", "Check", "Many servers"}) {
            CHECK(contains(brief, '\n' + heading + ":\n"));
        }
        const std::string all = tw::test::run_in_shell("$twscope " + command + " --help").out;
        CHECK(all == tw::test::twscope({"help", command}).out);
        CHECK(contains(all, "\nAdvanced:\n"));
        for (const tw::cli::Flag& flag : command_named(command).flags) {
            CAPTURE(flag.dashed_name());
            const std::string letter =
                flag.letter.empty() || flag.name.empty() ? "" : '-' + flag.letter + ", ";
            const std::string start = "\n  " + letter + flag.dashed_name();
            CHECK(count_of(all, start + ' ') + count_of(all, start + '\n') ==
                  (flag.replacement.empty() ? 1 : 0));
        }
    }
}

TEST_CASE("-h of the other commands with many flags fits on a screen, too") {
    for (const std::string command : {"decode", "explain", "records"}) {
        CAPTURE(command);
        const std::string brief =
            tw::test::run_in_shell("COLUMNS=80 $twscope " + command + " -h").out;
        CAPTURE(brief);
        CHECK(std::count(brief.begin(), brief.end(), '\n') <= 30);
        CHECK(contains(brief, "\nPositionals:\n"));
        CHECK(contains(brief, "\n  --objects FILE  "));
        CHECK_FALSE(contains(brief, "\n  --color"));
        CHECK(brief.ends_with("'twscope " + command + " --help' lists all flags.\n"));
    }
}

TEST_CASE("no line of help is longer than the terminal is wide") {
    std::vector<std::string> commands{""};
    for (const auto& command : tw::cli::make_commands()) {
        commands.push_back(command->name);
    }
    for (const std::string& command : commands) {
        for (const std::string& flag : {std::string{"-h"}, std::string{"--help"}}) {
            for (const std::string& columns :
                 {std::string{"60"}, std::string{"80"}, std::string{"120"}}) {
                CAPTURE(command);
                CAPTURE(columns);
                std::istringstream help{tw::test::run_in_shell("COLUMNS=" + columns + " $twscope " +
                                                               command + ' ' + flag)
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
            tw::test::run_in_shell(std::string{"COLUMNS=1000 $twscope "} + row.command + " --help")
                .out;
        const std::string codes = help.substr(std::min(help.find("Exit codes:"), help.size()));
        CAPTURE(codes);
        CHECK(contains(codes, " 0 success, "));
        CHECK(contains(codes, ", 1 ") == !std::string_view{row.finding}.empty());
        CHECK(contains(codes, ", 4 ") == !std::string_view{row.not_yet}.empty());
        CHECK(contains(codes, row.finding));
        CHECK(contains(codes, row.not_yet));
    }
}

TEST_CASE("bash completes commands, flags and the values of flags") {
    struct Row {
        std::string_view words; ///< "twscope proxy --it": the last is the one under the cursor
        std::string_view current;
        std::string_view before;
        std::string_view completed;
    };

    const Row rows[] = {
        {"twscope d", "d", "twscope", "decode"},
        {"twscope proxy --ite", "--ite", "proxy", "--items"},
        {"twscope proxy --items ''", "", "--items", "none changed all raw"},
        {"twscope proxy --items c", "c", "--items", "changed"},
        {"twscope decode --fail", "--fail", "decode", "--fail-on"},
        {"twscope map --idle", "--idle", "map", ""},
    };
    const tw::test::TemporaryFolder folder;
    folder.write("completion", tw::cli::bash_completion(tw::cli::make_commands()));
    for (const Row& row : rows) {
        CAPTURE(row.words);
        const auto done = tw::test::run_program(
            "/bin/bash",
            {"-c",
             "source \"$0\" && COMP_WORDS=(" + std::string{row.words} +
                 ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) ; _twscope twscope \"$1\" \"$2\" "
                 "; echo \"${COMPREPLY[*]}\"",
             folder.file("completion"), std::string{row.current}, std::string{row.before}});
        CHECK(done.err.empty());
        CHECK(done.out == std::string{row.completed} + '\n');
    }
}

TEST_CASE("zsh uses the script of bash, and the script of fish has each command and flag") {
    const auto commands = tw::cli::make_commands();
    CHECK(tw::cli::zsh_completion(commands).ends_with(tw::cli::bash_completion(commands)));
    const std::string fish = tw::cli::fish_completion(commands);
    const std::string_view wanted[] = {
        "complete -c twscope -n __fish_use_subcommand -f -a decode -d '",
        "'__fish_seen_subcommand_from proxy' -l items -x -a 'none changed all raw' -d '",
        "'__fish_seen_subcommand_from proxy' -s o -l output -r -F -d '",
        "'__fish_seen_subcommand_from proxy' -s s -l server -x -d '",
    };
    for (const std::string_view each : wanted) {
        CAPTURE(each);
        CHECK(contains(fish, each));
    }
}

TEST_CASE("help and version can be requested by the usual flags") {
    using tw::test::twscope;
    CHECK(twscope({"help"}).out == twscope({"--help"}).out);
    CHECK(twscope({"help", "records"}).out == twscope({"records", "--help"}).out);
    CHECK(twscope({"-V"}).out == twscope({"--version"}).out);
    CHECK(twscope({"completion", "tcsh"}).status == 2);
    CHECK(twscope({"completion", "bash"}).out ==
          tw::cli::bash_completion(tw::cli::make_commands()));
}

namespace {

std::string manual_page(const std::string& name) {
    return tw::test::read_text(TW_MANUAL "/" + name + ".1");
}

} // namespace

TEST_CASE("the manual has a page for each command with every flag and its purpose") {
    const std::string main_page = manual_page("twscope");
    CHECK(contains(main_page, ".TH TWSCOPE \"1\""));
    for (const auto& command : tw::cli::make_commands()) {
        CAPTURE(command->name);
        CHECK(contains(main_page, "\\fBtwscope-" + command->name + "\\fR(1)"));
        const std::string own_page = manual_page("twscope-" + command->name);
        CHECK(contains(own_page, "\ntwscope-" + command->name + " \\- "));
        for (const tw::cli::Flag& flag : command->flags) {
            std::string name = flag.dashed_name();
            boost::algorithm::replace_all(name, "-", "\\-");
            CAPTURE(name);
            CHECK((contains(own_page, name) || !flag.replacement.empty()));
        }
    }
    const std::string proxy_page = manual_page("twscope-proxy");
    CHECK(contains(proxy_page, "\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR FILE\n"));
    CHECK(contains(proxy_page, "\n\\fB\\-\\-items\\fR none|changed|all|raw\n"));
    CHECK(contains(proxy_page, "(default: 127.0.0.1:8303)"));
}
