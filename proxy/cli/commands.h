#pragma once

#include "proxy/analyze/outcome.h"
#include "proxy/sink/file_output.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// What a subcommand does once its flags are read; the value is the program's exit code.
using Action = std::function<int()>;

/// Exit codes of the program (README): 0 fine.
inline constexpr int kExitFinding = 1; ///< a finding that --fail-on names
inline constexpr int kExitUsage = 2;   ///< wrong usage, or it could not start
inline constexpr int kExitFailed = 3;  ///< failed while running
inline constexpr int kExitNotYet = 4;  ///< could not start yet: worth another try

/// How the program was started.
struct Invocation {
    std::vector<std::string> arguments; ///< as given, the program's name first
    /// Started by a relay as its observer with this number (see run::ObserverChannel); 0: by a person.
    std::uint32_t observer = 0;
    bool observer_waits = false; ///< see run::ObserverChannel
};

/// Each adds its subcommand and returns what to do when it is chosen.
[[nodiscard]] Action add_proxy_command(CLI::App& app, Invocation invocation);
[[nodiscard]] Action add_tap_command(CLI::App& app, Invocation invocation);
[[nodiscard]] Action add_decode_command(CLI::App& app);
[[nodiscard]] Action add_records_command(CLI::App& app);
[[nodiscard]] Action add_collect_command(CLI::App& app);
[[nodiscard]] Action add_compare_command(CLI::App& app);
[[nodiscard]] Action add_replay_command(CLI::App& app);
[[nodiscard]] Action add_extcap_command(CLI::App& app);
[[nodiscard]] Action add_map_command(CLI::App& app);
[[nodiscard]] Action add_stats_command(CLI::App& app);
[[nodiscard]] Action add_sizes_command(CLI::App& app);
[[nodiscard]] Action add_explain_command(CLI::App& app);
[[nodiscard]] Action add_findings_command(CLI::App& app);
[[nodiscard]] Action add_health_command(CLI::App& app);

/// Prints to standard error what failed, and writes the summary to its file where there is one
/// (as JUnit when its name ends with .xml). Returns the exit code.
[[nodiscard]] int report_result(const analyze::Outcome& outcome,
                                std::optional<sink::FileOutput>& file);

} // namespace tw::cli
