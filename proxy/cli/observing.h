#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/process/supervisor.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// Creates the flags of the running command with their defaults.
using MakeFlags = std::function<std::unique_ptr<RunFlags>()>;

/// Rereads the configuration of a running command.
class ConfigReloader {
  public:
    /// `settings`: the complete settings at the start. `command`: the command's name.
    ConfigReloader(std::string command, Invocation invocation, MakeFlags make_flags,
                   const RunFlags& flags, const Settings& settings);

    /// Returns the changes to make now. Logs the changes that are not possible, with reasons.
    /// Changes nothing if the configuration is invalid.
    [[nodiscard]] process::ReloadedSettings operator()();

  private:
    /// Rereads the configuration and returns the changes. Errors: UsageError; nothing has changed
    /// then.
    [[nodiscard]] process::ReloadedSettings reread();
    [[nodiscard]] std::optional<std::vector<process::ConfiguredServer>>
    servers_of(const RunFlags& flags) const;

    std::string command_;
    Invocation invocation_;
    MakeFlags make_flags_;
    /// RunFlags::prepare_servers() of the flags at the start, because the session limit of these
    /// flags stays in force.
    std::function<void(std::size_t count)> prepare_servers_;
    bool named_;                             ///< true if the servers have names
    std::vector<process::GivenFlag> values_; ///< the values in force
};

/// Sets the actions of signals that may arrive before their handlers exist, in both processes of a
/// live run.
void prepare_signals(const Invocation& invocation);

/// Runs the observer process, a child of the process that receives the traffic. Returns the exit
/// code.
[[nodiscard]] int observe(const RunFlags& flags, Settings& settings);

/// Returns the options of a live run's supervisor: its observer, its duration, and the effect of
/// signals.
/// `flags` and `settings` are complete and have to outlive the run.
/// Errors: UsageError.
[[nodiscard]] process::SupervisorOptions
supervision(const std::string& command, const RunFlags& flags, const Settings& settings,
            const Invocation& invocation, const MakeFlags& make_flags);

[[nodiscard]] int exit_code(const process::LiveRunResult& result);
/// The exit code of a run whose observer could not start.
[[nodiscard]] int exit_code_of_failed_start(const process::ProcessExit& ending);

} // namespace tw::cli
