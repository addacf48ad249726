// Covers: proxy/cli/command_line.cpp
#include "proxy/cli/command_line.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

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
    const tw::cli::CommandLine line;
    const tw::test::TemporaryFolder folder;
    tw::test::write_text(folder.file("completion"), tw::cli::bash_completion(line.program.app()));
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
    const tw::cli::CommandLine line;
    CHECK(tw::cli::zsh_completion(line.program.app())
              .ends_with(tw::cli::bash_completion(line.program.app())));
    const std::string fish = tw::cli::fish_completion(line.program.app());
    const std::string_view wanted[] = {
        "complete -c twscope -n __fish_use_subcommand -f -a decode -d '",
        "'__fish_seen_subcommand_from proxy' -l items -x -a 'none changed all raw' -d '",
        "'__fish_seen_subcommand_from proxy' -s o -l output -r -F -d '",
        "'__fish_seen_subcommand_from proxy' -s s -l server -x -d '",
    };
    for (const std::string_view each : wanted) {
        CAPTURE(each);
        CHECK(fish.find(each) != std::string::npos);
    }
}

TEST_CASE("help and the version have the names that other programs use") {
    using tw::test::twscope;
    CHECK(twscope({"help"}).out == twscope({"--help"}).out);
    CHECK(twscope({"help", "records"}).out == twscope({"records", "--help"}).out);
    CHECK(twscope({"-V"}).out == twscope({"--version"}).out);
    CHECK(twscope({"completion", "tcsh"}).status == 2);
    CHECK(twscope({"completion", "bash"}).out ==
          tw::cli::bash_completion(tw::cli::CommandLine{}.program.app()));
}
