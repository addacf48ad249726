#pragma once

#include "proxy/cli/flags.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/ip/udp.hpp>

namespace tw::process {
struct GivenFlag;
} // namespace tw::process

namespace tw::cli {

void add_color_flag(Command& command);

/// The start of the names of variables that set a flag.
inline constexpr std::string_view kVariablePrefix = "TWSCOPE_";

/// Returns the variable of a flag: TWSCOPE_MAX_SESSIONS for --max-sessions.
[[nodiscard]] std::string environment_variable_name(const Flag& flag);

/// Completes the command line from the variables TWSCOPE_NAME and then from the file given with
/// --config. Flags win, then variables, then the file. An unknown key is an error.
class Settings {
  public:
    /// Adds --color and --config to the command.
    explicit Settings(Command& command);

    /// Fills in what the command line left out, after it was parsed.
    /// Errors: UsageError.
    void fill_missing_flags();

    /// Like fill_missing_flags(), but returns the messages of all errors instead of throwing.
    [[nodiscard]] std::vector<std::string> try_fill_missing_flags();

    /// True if the file given with --config could be read, or no file was given. Otherwise the
    /// flags are not those that the user meant, so checking them would give false errors.
    [[nodiscard]] bool is_config_file_read() const { return is_file_read_; }

    /// Describes which flags each source has set, one line for each source, and which flags of the
    /// file another source overrides. The lines contain no values, which may be secret.
    [[nodiscard]] std::vector<std::string> describe_sources() const;

    /// Like fill_missing_flags(), and also sets the colours of the log according to --color.
    /// Precondition: this process has one thread.
    void fill_flags_and_set_color();

    /// Prints what replaces each given flag that has a new name.
    void print_replaced_flags() const;

    /// Sets the flags to those of another process, and the colours of the log.
    void set_flags_of_process(const std::vector<process::GivenFlag>& flags);

    /// Whether the flag was given, also if its value is not valid.
    [[nodiscard]] bool is_given(const std::string& flag) const;

    /// Returns an error message. If the message begins with a flag, adds the variable or file that
    /// has set the flag.
    [[nodiscard]] std::string add_source_to_message(std::string message) const;

    /// Runs a command. A UsageError of the command gets its message from add_source_to_message().
    [[nodiscard]] int run_command(const std::function<int()>& command) const;

    /// The file given with --config, after fill_missing_flags(); empty if there is none.
    [[nodiscard]] const std::string& config_file() const { return file_; }

    /// All flags that have a value, in the order in which the command declares them. The values
    /// come from the command line, a variable or a file.
    [[nodiscard]] std::vector<process::GivenFlag> flags() const;

  private:
    void fill_flags_from_environment();
    void fill_flags_from_file();
    /// Sets a flag, or adds an error to the command's problems. `source`: where the values come
    /// from; the error text begins with it. `if_empty`: the error text for a missing value.
    void set_flag(Flag& flag, const Texts& values, const std::string& source,
                  const std::string& if_empty);
    void apply_color() const;

    Command* command_;
    std::string file_;
    std::vector<std::string> overridden_; ///< flags of the file that another source has set
    bool is_file_read_ = true;
};

/// Gives a command its flags, and an action that fills in flags which the command line leaves out,
/// from variables and the configuration file, and then calls `run`. The returned flags exist as
/// long as the action.
template <typename Flags>
Flags& add_settings_and_action(Command& command, int (*run)(const Flags& flags)) {
    const auto flags = std::make_shared<Flags>();
    const auto settings = std::make_shared<Settings>(command);
    command.action = [flags, settings, run](const Invocation& /*invocation*/) {
        settings->fill_flags_and_set_color();
        return settings->run_command([&] { return run(*flags); });
    };
    return *flags;
}

/// Returns the absolute path of a file that may not exist, without symbolic links.
[[nodiscard]] std::filesystem::path full_path(const std::filesystem::path& path);

/// Returns the folder that a flag names.
/// Errors: UsageError if the path is no folder.
[[nodiscard]] std::filesystem::path existing_folder(const std::string& flag,
                                                    const std::string& name);

/// As existing_folder(). Errors: UsageError also if no file can be created in the folder.
[[nodiscard]] std::filesystem::path writable_folder(const std::string& flag,
                                                    const std::string& name);

/// The parts of "HOST:PORT", "[V6]:PORT" or ":PORT".
struct HostPort {
    std::string host; ///< empty if only a port was given
    std::uint16_t port = 0;
};

// The following functions parse the text of a flag. Errors: UsageError that names the flag.

[[nodiscard]] HostPort parse_host_port(const std::string& text, const std::string& flag,
                                       const char* suggested_host = "127.0.0.1");
/// Parses HOST:PORT of --server, without omissions.
[[nodiscard]] HostPort parse_server(const std::string& text);
/// Parses an address, not a name, and a port. `default_address`: used if only a port is given.
[[nodiscard]] boost::asio::ip::udp::endpoint
parse_endpoint(const std::string& text, const std::string& flag, const char* default_address);

} // namespace tw::cli
