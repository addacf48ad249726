#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/flags.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::cli {

/// Returns a script with which bash completes commands, flags and flag values.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// Returns a script with which zsh completes commands, flags and flag values, by way of zsh's
/// support for bash.
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

/// Returns a script with which fish completes commands, flags and flag values, and shows the help
/// of each.
[[nodiscard]] std::string fish_completion(const CLI::App& app);

/// The program's command line: all commands and their flags, with the action of each command.
struct CommandLine {
    /// `only`: the name of the only command to add, or --version to add none, which is faster. With
    /// any other text, all are added.
    explicit CommandLine(const Invocation& invocation = {}, std::string_view only = {});

    Command program;
    std::string color{"auto"}; ///< value of --color for commands without coloured output
    std::vector<std::pair<Command, Action>> actions;
};

} // namespace tw::cli
