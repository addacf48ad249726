#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

/// Names of earlier versions. They still work in this one, say what replaces them, and are neither
/// in help nor in completions.
namespace tw::cli {

/// Replaces an old command: the arguments "twscope stats FILE" become "twscope decode --stats
/// FILE". Returns what replaces what; empty if the command is not old.
[[nodiscard]] std::string replace_old_command(std::vector<std::string>& arguments);

/// Returns what replaces a flag; empty if the flag is not old.
[[nodiscard]] std::string_view replacement_of_flag(const CLI::Option& option);

/// Leaves the command's old flags out of its help.
void hide_old_flags(CLI::App& command);

/// Prints what replaces the old flags that were given.
void report_old_flags(const CLI::App& command);

} // namespace tw::cli
