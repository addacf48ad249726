#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/store/file_output.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tw::cli {

class Command;

/// Runs a subcommand after its flags were parsed. Returns the program's exit code.
using Action = std::function<int()>;

/// Exit codes of the program (README). 0 is success.
inline constexpr int kExitFinding = 1; ///< a finding of --fail-on occurred
inline constexpr int kExitUsage = 2;   ///< wrong usage, or the program could not start
inline constexpr int kExitFailed = 3;  ///< failed while running
inline constexpr int kExitNotYet = 4;  ///< could not start yet; a later try may succeed

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

/// Each function adds a subcommand and returns its action.
[[nodiscard]] Action add_proxy_command(Command& program, Invocation invocation);
[[nodiscard]] Action add_tap_command(Command& program, Invocation invocation);
[[nodiscard]] Action add_decode_command(Command& program);
[[nodiscard]] Action add_records_command(Command& program);
[[nodiscard]] Action add_collect_command(Command& program);
[[nodiscard]] Action add_compare_command(Command& program);
[[nodiscard]] Action add_replay_command(Command& program);
[[nodiscard]] Action add_extcap_command(Command& program);
[[nodiscard]] Action add_map_command(Command& program);
[[nodiscard]] Action add_explain_command(Command& program);
[[nodiscard]] Action add_health_command(Command& program);

/// Prints failed checks to standard error and writes the summary to its file, if there is one (as
/// JUnit if its name ends with .xml). Returns the exit code.
[[nodiscard]] int report_result(const analyze::Outcome& outcome, store::OutputFile* file);

} // namespace tw::cli
