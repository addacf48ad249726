#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/reload.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/run/supervisor.h"

#include <string>

namespace tw::cli {

/// What comes by signals before anyone is there to hear them, in either process of a live run.
void prepare_signals(const Invocation& invocation);

/// The process that looks: child of the one that takes traffic in. Returns the exit code.
[[nodiscard]] int observe(const RunFlags& flags, Settings& settings, const Invocation& invocation);

/// How a live run is supervised: by which observer, for how long, what a signal changes.
/// `flags`, `settings`: complete; have to outlive the run. Errors: UsageError.
[[nodiscard]] run::SupervisorOptions supervision(const std::string& command, const RunFlags& flags,
                                                 const Settings& settings,
                                                 const Invocation& invocation,
                                                 const MakeFlags& make_flags);

/// Of a run that is over.
[[nodiscard]] int exit_code(const run::LiveRunResult& result);
/// Of one whose observer could not begin.
[[nodiscard]] int exit_code_of_no_start(const run::Ending& ending);

} // namespace tw::cli
