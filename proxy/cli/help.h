#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
class Option;
} // namespace CLI

namespace tw::cli {

class Command;

/// The port that texts suggest for a page.
inline constexpr std::string_view kSuggestedHttpPort = "9303";

[[nodiscard]] bool is_switch(const CLI::Option& option);

/// Returns the values that a flag accepts, such as none, changed, all; empty if it accepts any
/// value.
[[nodiscard]] std::vector<std::string> value_words(const CLI::Option& option);

/// Quotes a text as one word of a shell.
[[nodiscard]] std::string shell_word(std::string_view text);

/// Wraps lines of help to this many columns, without breaking words. Continuation lines are
/// indented to the text after the line's first gap of two spaces, or else like the line.
[[nodiscard]] std::string wrap_lines(std::string_view text, std::size_t columns);

/// Puts the flags of a live run under headings, makes -h show only the most used ones, and --help
/// all. `traffic`: the heading of the flags about the source of traffic.
void set_flag_headings(Command& command, const std::string& traffic);

/// Makes -h show only the most used flags. For commands with many flags and no headings.
void add_brief_help(CLI::App& command);

/// Returns the flags of live runs, without dashes, that are not under "Advanced".
[[nodiscard]] std::vector<std::string_view> names_of_flags_with_heading();

/// Returns a formatter of help for users and help2man: "-o, --output FILE", values as
/// "none|changed|all", and the default after the description; no line is longer than the terminal
/// is wide.
[[nodiscard]] std::shared_ptr<CLI::FormatterBase> help_format();

// Commands and flags of earlier versions still work. Their use prints what replaces them. They are
// neither in help nor in completions.

/// Replaces an old command: the arguments "twscope stats FILE" become "twscope decode --stats
/// FILE". Returns a text that says so for the user; empty if the command is not old.
[[nodiscard]] std::string replace_old_command(std::vector<std::string>& arguments);

/// Returns the text that tells users what replaces an old flag; empty if the flag is not old.
[[nodiscard]] std::string_view replacement_of_flag(const CLI::Option& option);

/// Leaves the command's old flags out of its help.
void hide_old_flags(CLI::App& command);

/// Prints what replaces the old flags that were given.
void report_old_flags(const CLI::App& command);

} // namespace tw::cli
