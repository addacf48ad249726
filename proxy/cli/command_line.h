#pragma once

#include "proxy/cli/commands.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// Returns a script with which bash completes commands, flags and flag values.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// A script that does the same in zsh, by way of its support for bash.
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

/// A script that does the same in fish, with the help of each command and flag.
[[nodiscard]] std::string fish_completion(const CLI::App& app);

/// The program's command line: all commands and their flags, with the action of each command.
struct CommandLine {
    explicit CommandLine(const Invocation& invocation = {});

    CLI::App app;
    std::vector<std::pair<CLI::App*, Action>> actions;
};

/// Runs the whole program: parses the command line and runs the command. Returns the exit code.
[[nodiscard]] int run_program(int argc, char** argv);

} // namespace tw::cli
