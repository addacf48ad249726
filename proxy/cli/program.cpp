#include "proxy/cli/program.h"

#include "proxy/cli/command_line.h"
#include "proxy/record/terminal_text.h"

#include <cstdio>
#include <exception>
#include <string>

#include <fmt/format.h>

namespace tw::cli {

namespace {

int run(int argc, char** argv) {
    CommandLine line;
    CLI::App& app = line.app;
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        const auto chosen = app.get_subcommands();
        if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
            fmt::print(stderr, "twscope: there is no command '{}' (see 'twscope --help')\n",
                       record::terminal_text(argv[1]));
            return kExitUsage;
        }
        const std::string where = chosen.empty() ? "" : chosen.front()->get_name() + ' ';
        fmt::print(stderr, "twscope: {} (see 'twscope {}--help')\n", error.what(), where);
        return kExitUsage;
    }
    for (const auto& [command, action] : line.actions) {
        if (command->parsed()) {
            return action();
        }
    }
    return kExitUsage;
}

} // namespace

int run_program(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "twscope: {}\n", error.what());
        return kExitUsage;
    }
}

} // namespace tw::cli
