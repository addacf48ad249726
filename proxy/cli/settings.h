#pragma once

#include "proxy/cli/flags.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Error;
struct ConfigItem;
} // namespace CLI

namespace tw::process {
struct GivenFlag;
} // namespace tw::process

namespace tw::cli {

/// Adds --color to a command. `value`: gets auto, always or never.
void add_color_flag(Command& command, std::string& value);

/// Calls `check`. If it throws an exception, adds the message to the list, unless the list contains
/// the message already.
template <typename Check>
void add_problem_of_check(std::vector<std::string>& problems, const Check& check) {
    try {
        check();
    } catch (const std::exception& error) {
        if (std::find(problems.begin(), problems.end(), error.what()) == problems.end()) {
            problems.emplace_back(error.what());
        }
    }
}

/// Whether any variable of the environment may be a setting. Checking its name needs the flags of
/// all commands.
[[nodiscard]] bool has_variables();

/// Completes the command line from the variables TWSCOPE_NAME and then from the file given with
/// --config. Flags win, then variables, then the file. An unknown key is an error.
class Settings {
  public:
    /// Adds --config to the command.
    explicit Settings(Command& command);

    /// Fills in what the command line left out, after it was parsed.
    /// Errors: UsageError.
    void fill_flags();

    /// Like fill_flags(), but returns the messages of all errors instead of throwing the first one.
    [[nodiscard]] std::vector<std::string> try_fill_flags();

    /// True if the file given with --config could be read, or no file was given. Otherwise the
    /// flags are not those that the user meant, so checking them would give false errors.
    [[nodiscard]] bool is_file_read() const { return is_read_; }

    /// Describes which flags each source has set, one line for each source, and which flags of the
    /// file another source overrides. The lines contain no values, which may be secret.
    [[nodiscard]] std::vector<std::string> sources() const;

    /// Like fill_flags(), and also sets the colours of the log according to --color.
    /// Precondition: this process has one thread.
    void complete();

    /// Like complete(), but sets the flags to those of another process, instead of reading them.
    void complete_from_process(const std::vector<process::GivenFlag>& flags);

    /// Whether a variable or the file names the flag, also if its value is not valid.
    [[nodiscard]] bool has_flag(std::string_view flag) const;

    /// Returns an error message. If the message begins with a flag, adds the variable or file that
    /// has set the flag.
    [[nodiscard]] std::string add_source_to_message(std::string message) const;

    /// Runs a command. A UsageError of the command gets its message from add_source_to_message().
    [[nodiscard]] int run(const std::function<int()>& command) const;

    /// The file given with --config, after fill_flags(); empty if there is none.
    [[nodiscard]] const std::string& file() const { return file_; }

    /// All flags, in the command's order, with their values from any source.
    [[nodiscard]] std::vector<process::GivenFlag> flags() const;

  private:
    void complete_from_variables();
    void complete_from_file();
    void apply_color() const;
    void complete_from_items(const std::vector<CLI::ConfigItem>& items);

    CLI::App* command_;
    std::string file_;
    std::string color_{"auto"};
    std::vector<std::string> problems_;                        ///< errors of try_fill_flags()
    std::vector<std::pair<std::string, std::string>> sources_; ///< flag and source
    std::vector<std::string> overridden_; ///< flags of the file that another source has set
    bool is_read_ = true;
};

/// Returns the action of a command: completes the settings, and runs it.
[[nodiscard]] std::function<int()> complete_and_run(std::shared_ptr<Settings> settings,
                                                    std::function<int()> command);

/// Returns the folders that a flag names.
/// Errors: UsageError if a path is no folder.
[[nodiscard]] std::vector<std::filesystem::path>
existing_folders(const std::string& flag, const std::vector<std::string>& names);

/// Returns the folder that a flag names.
/// Errors: UsageError if the path is no folder, or one in which no file can be created.
[[nodiscard]] std::filesystem::path writable_folder(const std::string& flag,
                                                    const std::string& name);

/// The parts of "HOST:PORT", "[V6]:PORT" or ":PORT".
struct HostPort {
    std::string host; ///< empty if only a port was given
    std::uint16_t port = 0;
};

/// Returns what the parser found wrong, such as "--keep: may be given once".
[[nodiscard]] std::string describe_parser_error(const CLI::Error& error);

/// Returns "; did you mean --keep?" with the command's flag whose name is most similar to `name`,
/// after `before`; empty if none is similar.
[[nodiscard]] std::string suggest_flag(const CLI::App& command, std::string_view name,
                                       std::string_view before);

/// Parses the text of a flag. Errors: UsageError that names the flag.
[[nodiscard]] HostPort parse_host_port(const std::string& text, const std::string& flag);

} // namespace tw::cli
