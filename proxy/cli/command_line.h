#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/flags.h"

#include <memory>
#include <string>
#include <vector>

namespace tw::cli {

using CommandList = std::vector<std::unique_ptr<Command>>;

/// Returns all commands with their flags and actions.
[[nodiscard]] CommandList make_commands();

/// Returns a script with which bash completes commands, flags and flag values.
[[nodiscard]] std::string bash_completion(const CommandList& commands);

/// Returns a script with which zsh completes commands, flags and flag values, by way of zsh's
/// support for bash.
[[nodiscard]] std::string zsh_completion(const CommandList& commands);

/// Returns a script with which fish completes commands, flags and flag values, and shows the help
/// of each flag.
[[nodiscard]] std::string fish_completion(const CommandList& commands);

/// Replaces a command of earlier versions: the arguments "twscope stats FILE" become "twscope
/// decode --stats FILE". Returns a text that says so for the user; empty if the command is not old.
[[nodiscard]] std::string replace_old_command(std::vector<std::string>& arguments);

} // namespace tw::cli
