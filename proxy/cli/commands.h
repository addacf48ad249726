#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/cli/flags.h"
#include "proxy/store/file_output.h"

#include <memory>
#include <string>
#include <vector>

namespace tw::cli {

/// Exit codes of the program (README). 0 is success.
inline constexpr int kExitFinding = 1;   ///< a finding of --fail-on occurred
inline constexpr int kExitUsage = 2;     ///< wrong usage, or the program could not start
inline constexpr int kExitFailed = 3;    ///< failed while running
inline constexpr int kExitRetryable = 4; ///< could not start yet; a later try may succeed

/// The start of the argument with which a relay's process starts its observer. The observer's
/// number follows.
inline constexpr const char* kObserverArgument = "--observer=";

struct Invocation {
    /// The arguments as given, starting with the program's name.
    std::vector<std::string> arguments;
    bool is_observer = false; ///< a relay started the program as its observer process
};

/// Runs the whole program: parses the command line and runs the command. Returns the exit code.
[[nodiscard]] int run_program(int argc, char** argv);

/// Each function adds the flags of a command, and its action.
void add_proxy_command(Command& command);
void add_tap_command(Command& command);
void add_decode_command(Command& command);
void add_records_command(Command& command);
void add_collect_command(Command& command);
void add_compare_command(Command& command);
void add_replay_command(Command& command);
void add_extcap_command(Command& command);
void add_map_command(Command& command);
void add_explain_command(Command& command);
void add_health_command(Command& command);
void add_completion_command(Command& command);

/// Prints failed checks to standard error and writes the summary to its file, if there is one (as
/// JUnit if its name ends with .xml). Returns the exit code.
[[nodiscard]] int report_result(const analyze::Outcome& outcome, store::OutputFile* file);

using CommandList = std::vector<std::unique_ptr<Command>>;

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
/// decode --stats FILE". Returns a message about the new command; empty if the command is not old.
[[nodiscard]] std::string replace_old_command(std::vector<std::string>& arguments);

} // namespace tw::cli
