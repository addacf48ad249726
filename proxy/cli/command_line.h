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

/// A script that lets bash complete commands, flags and the words a flag can be.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// The same for zsh, which reads what bash reads.
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

/// The same for fish, with the sentence that describes each command and flag.
[[nodiscard]] std::string fish_completion(const CLI::App& app);

/// The program's command line: every command with its flags, and what it does.
struct CommandLine {
    explicit CommandLine(const Invocation& invocation = {});

    CLI::App app;
    std::vector<std::pair<CLI::App*, Action>> actions;
};

/// The whole program: reads the command line, does what it says, returns the exit code.
[[nodiscard]] int run_program(int argc, char** argv);

} // namespace tw::cli
