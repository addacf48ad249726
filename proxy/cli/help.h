#pragma once

#include "proxy/cli/flags.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

/// The port that help and messages suggest for the live page.
inline constexpr std::string_view kSuggestedHttpPort = "9303";

/// Quotes a text as one word of a shell, and makes it safe for a terminal.
[[nodiscard]] std::string quote_for_shell(std::string_view text);

/// Wraps lines of help to this many columns, without breaking words. Continuation lines are
/// indented to the text after the line's first gap of two spaces, or else like the line.
[[nodiscard]] std::string wrap_lines(std::string_view text, std::size_t columns);

/// Returns the names of a flag, such as "-o" and "--output".
[[nodiscard]] std::vector<std::string> names_with_dashes(const Flag& flag);

/// Returns a line of help: `name` in the first column, and `text` in the second.
[[nodiscard]] std::string help_line(const std::string& name, const std::string& text);

/// Returns the help about a flag, for users and help2man: "-o, --output FILE", values as
/// "none|changed|all", and limits and the default after the description.
[[nodiscard]] std::string flag_help(const Flag& flag);

/// Returns the help of a command. `is_brief`: only about the most used flags.
[[nodiscard]] std::string command_help(const Command& command, bool is_brief);

/// Adds -h and --help. Must be called after the heading and all other flags were set.
void add_help_flags(Command& command);

} // namespace tw::cli
