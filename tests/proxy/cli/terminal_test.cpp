// What the program shows people: colours, status lines, help that fits.
// Covers: proxy/cli/log.cpp, proxy/cli/settings.cpp
#include "proxy/cli/command_line.h"
#include "tests/proxy/cli/program_runs.h"
#include "tests/support/program.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace tw::test;

TEST_CASE("every command takes --color, and a log has colours where that says so") {
    const tw::cli::CommandLine line;
    for (const CLI::App* command : line.app.get_subcommands([](const CLI::App*) { return true; })) {
        CAPTURE(command->get_name());
        CHECK(command->get_option_no_throw("--color") != nullptr);
    }
    const TemporaryFolder folder;
    const std::string config = folder.file("c.conf");
    write_text(config, "color = \"always\"\n");

    struct Row {
        std::string variables;
        std::string flags;
        bool colored;
    };

    const Row rows[] = {
        {"", "", false}, // standard error is a file
        {"", "--color always", true},
        {"NO_COLOR=1", "--color always", true},
        {"TWSCOPE_COLOR=always", "", true},
        {"TWSCOPE_COLOR=always", "--color never", false},
        {"", "--config " + config, true},
        {"TWSCOPE_COLOR=auto", "--config " + config, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.variables);
        CAPTURE(row.flags);
        const Finished done = in_shell(row.variables +
                                       " \"$twscope\" proxy -s 127.0.0.1:1 -l 127.0.0.1:0 -q "
                                       "--duration 1ms " +
                                       row.flags);
        CHECK(done.status == 0);
        CHECK(done.err.find("stopping") != std::string::npos);
        CHECK((done.err.find("\033[") != std::string::npos) == row.colored);
    }
    check_refused({"findings", "--color", "sometimes"}, "--color");
}
