// Covers: proxy/cli/command_line.cpp
#include "proxy/cli/command_line.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

TEST_CASE("bash completes commands, flags and the words a flag can be") {
    struct Row {
        std::string_view words; ///< "twscope proxy --it": the last is the one under the cursor
        std::string_view current;
        std::string_view before;
        std::string_view completed;
    };

    const Row rows[] = {
        {"twscope d", "d", "twscope", "decode"},
        {"twscope proxy --ite", "--ite", "proxy", "--items"},
        {"twscope proxy --items ''", "", "--items", "none changed all"},
        {"twscope proxy --items c", "c", "--items", "changed"},
        {"twscope decode --fail", "--fail", "decode", "--fail-on"},
        {"twscope map --idle", "--idle", "map", ""},
    };
    const tw::cli::CommandLine line;
    const tw::test::TemporaryFolder folder;
    tw::test::write_text(folder.file("completion"), tw::cli::bash_completion(line.app));
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
