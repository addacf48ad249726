#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/process/supervisor.h"

#include <functional>
#include <memory>
#include <string>

namespace tw::cli {

/// Creates the flags of the running command with their defaults.
using MakeFlags = std::function<std::unique_ptr<RunFlags>()>;

/// Sets the actions of signals that may arrive before their handlers exist, in both processes of a
/// live run.
void prepare_signals(const Invocation& invocation);

/// Runs the observer process, a child of the process that receives the traffic. Returns the exit
/// code.
[[nodiscard]] int run_observer_process(const RunFlags& flags, Settings& settings);

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
