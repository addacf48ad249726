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

/// The prefix of environment variables that set flags.
inline constexpr std::string_view kVariablePrefix = "TWSCOPE_";

/// Returns the environment variable that sets a flag: TWSCOPE_MAX_SESSIONS for --max-sessions.
[[nodiscard]] std::string environment_variable_name(const Flag& flag);

/// Sets the flags that the command line leaves out, from environment variables TWSCOPE_NAME and
/// from the file given with --config. Variables override the file. An unknown key in the file is an
/// error.
class Settings {
  public:
    /// Adds --color and --config to the command.
    explicit Settings(Command& command);

    /// Sets the flags that the command line leaves out. Precondition: the command line was parsed.
    /// Errors: UsageError.
    void fill_missing_flags();

    /// Like fill_missing_flags(), but returns the messages of all errors instead of throwing.
    [[nodiscard]] std::vector<std::string> try_fill_missing_flags();

    /// Whether the file given with --config could be read, or no file was given. If false, flags of
    /// the file are missing, so checking the flags would give false errors.
    [[nodiscard]] bool is_config_file_read() const { return is_file_read_; }

    /// Returns a line for each source, with the flags that the source has set. A further line lists
    /// the flags of the file that other sources override. The lines contain no values, because
    /// values may be secret.
    [[nodiscard]] std::vector<std::string> describe_sources() const;

    /// Like fill_missing_flags(), but also prints replaced flags, and sets the colours of the log
    /// according to --color.
    /// Precondition: this process has one thread.
    void fill_flags_and_set_color();

    /// Prints the replacement of each given flag that is outdated.
    void print_replaced_flags() const;

    /// Sets the flags to the values that another process has. Sets the colours of the log according
    /// to --color.
    void set_flags_from_process(const std::vector<process::GivenFlag>& flags);

    /// Whether a source gives the flag, even with an invalid value.
    [[nodiscard]] bool is_given(const std::string& flag) const;

    /// Returns the error message. If it begins with a flag that a variable or the file has set,
    /// appends the name of that variable or file.
    [[nodiscard]] std::string add_source_to_message(std::string message) const;

    /// Runs a command. Passes the message of its UsageError through add_source_to_message().
    [[nodiscard]] int run_command(const std::function<int()>& command) const;

    /// Returns the path of the file given with --config; empty if no file was given.
    /// Precondition: fill_missing_flags() was called.
    [[nodiscard]] const std::string& config_file() const { return file_; }

    /// Returns the flags with their values, in the order in which the command declares them. Leaves
    /// out --help and --check-config.
    [[nodiscard]] std::vector<process::GivenFlag> flags() const;

  private:
    void fill_flags_from_environment();
    void fill_flags_from_file();
    /// Sets a flag. On an error, adds an error text to Command::problems. `source`: the start of
    /// the error text, which says where the values come from. `if_empty`: the error text for a
    /// missing value.
    void set_flag(Flag& flag, const Texts& values, const std::string& source,
                  const std::string& if_empty);
    void apply_color() const;

    Command* command_;
    std::string file_;
    std::vector<std::string> overridden_; ///< flags of the file that another source has set
    bool is_file_read_ = true;
};

/// Sets the action of a command: it fills in missing flags from variables and the configuration
/// file, and then calls `run`. Returns the object that receives the values of the flags. The object
/// exists as long as the action.
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

/// Returns the absolute path without symbolic links. The file need not exist.
[[nodiscard]] std::filesystem::path resolve_path(const std::filesystem::path& path);

/// Returns the path of the folder `name`, which is the value of `flag`.
/// Errors: UsageError if the folder does not exist.
[[nodiscard]] std::filesystem::path require_folder(const std::string& flag,
                                                   const std::string& name);

/// Like require_folder(), but also checks that files can be created in the folder.
/// Errors: UsageError.
[[nodiscard]] std::filesystem::path require_writable_folder(const std::string& flag,
                                                            const std::string& name);

/// The parts of "HOST:PORT", "[V6]:PORT" or ":PORT".
struct HostPort {
    std::string host; ///< empty if only a port was given
    std::uint16_t port = 0;
};

// The following functions parse the value of a flag.
// Errors: UsageError that names the flag.

[[nodiscard]] HostPort parse_host_port(const std::string& text, const std::string& flag,
                                       const char* suggested_host = "127.0.0.1");
/// Parses the HOST:PORT of --server. Neither part may be missing.
[[nodiscard]] HostPort parse_server(const std::string& text);
/// Parses an IP address and a port. A host name is an error. `default_address`: the address if only
/// a port is given.
[[nodiscard]] boost::asio::ip::udp::endpoint
parse_endpoint(const std::string& text, const std::string& flag, const char* default_address);

} // namespace tw::cli
