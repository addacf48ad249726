#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace tw::cli {

/// The port that texts suggest for a page.
inline constexpr std::string_view kSuggestedHttpPort = "9303";

/// True if a flag takes no value.
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
void set_flag_headings(CLI::App& command, const std::string& traffic);

/// Returns the flags of live runs, without dashes, that are not under "Advanced".
[[nodiscard]] std::vector<std::string_view> names_of_flags_with_heading();

/// Formats help for users and help2man: "-o, --output FILE", values as "none|changed|all", and the
/// default after the description; no line is longer than the terminal is wide.
class HelpFormat : public CLI::Formatter {
  public:
    [[nodiscard]] std::string make_option(const CLI::Option* option,
                                          bool is_positional) const override;
    [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                        CLI::AppFormatMode mode) const override;
};

} // namespace tw::cli
