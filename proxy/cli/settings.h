#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace tw::cli {

/// Whether a flag takes no value.
[[nodiscard]] bool is_switch(const CLI::Option& option);

/// The words a flag's value can be: none, changed, all; empty where it can be anything.
[[nodiscard]] std::vector<std::string> value_words(const CLI::Option& option);

/// Help as people and help2man read it: "-o, --output FILE", values as "none|changed|all", and the
/// default behind the description.
class HelpFormat : public CLI::Formatter {
  public:
    [[nodiscard]] std::string make_option(const CLI::Option* option,
                                          bool is_positional) const override;
};

} // namespace tw::cli

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace tw::cli {

/// A mistake of whoever started us; the message is one line that says what and what to do.
class UsageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A flag that may be given again, each time with one value: what stands behind that is not its own.
void repeatable(CLI::Option* option);

/// Completes what the command line left open: from the variables TWSCOPE_NAME, then from the file
/// given with --config. Flags win, then variables, then the file; an unknown key is an error.
class Settings {
  public:
    /// Adds --config to the command.
    explicit Settings(CLI::App& command);

    /// To be called after the command line was parsed. `text`: taken for the file's.
    /// Errors: UsageError.
    void complete(std::optional<std::string> text = std::nullopt);

    /// The file given with --config, once complete; empty: none.
    [[nodiscard]] const std::string& file() const { return file_; }

    /// What stands in it.
    [[nodiscard]] const std::string& text() const { return text_; }

    /// What each flag was given, by whomever, by the flag's name.
    [[nodiscard]] std::map<std::string, std::vector<std::string>> values() const;

  private:
    void complete_from_file();

    CLI::App* command_;
    std::string file_;
    std::string text_;
};

/// The folders that a flag names. Errors: UsageError for what is no folder.
[[nodiscard]] std::vector<std::filesystem::path>
existing_folders(const std::string& flag, const std::vector<std::string>& names);

/// "HOST:PORT", "[V6]:PORT" or ":PORT" taken apart.
struct HostPort {
    std::string host; ///< empty when only a port was given
    std::uint16_t port = 0;
};

/// Errors: UsageError that names the flag.
[[nodiscard]] HostPort parse_host_port(const std::string& text, const std::string& flag);

} // namespace tw::cli
