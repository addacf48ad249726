#pragma once

#include "proxy/cli/commands.h"
#include "proxy/cli/run_flags.h"
#include "proxy/cli/settings.h"
#include "proxy/process/supervisor.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

/// What goes on where --output leads now, or --write (ControlMessage::records, ControlMessage::capture): see
/// RecordingFlags::open_again.
[[nodiscard]] base::UniqueFd open_again(const RunFlags& flags, channel::ControlMessage word);

/// Makes the flags of the command that runs, as they are where nothing is given.
using MakeFlags = std::function<std::unique_ptr<RunFlags>()>;

/// Reads the configuration again while a command runs, and opens its files again.
class Reloading {
  public:
    /// `settings`: complete, of the start. `command`: its name.
    Reloading(std::string command, Invocation invocation, MakeFlags make_flags,
              const RunFlags& flags, const Settings& settings);

    /// What is to change now. Says in the log what cannot, and why; where the configuration is
    /// broken, nothing of it changes.
    [[nodiscard]] process::Reload operator()();

  private:
    using Values = std::map<std::string, std::vector<std::string>>;

    /// Errors: UsageError, and what CLI11 throws; nothing has changed then.
    [[nodiscard]] process::Reload reread();
    [[nodiscard]] std::optional<std::vector<process::ServedServer>>
    servers_of(const RunFlags& flags) const;
    void reopen(process::Reload& reload) const;

    std::string command_;
    Invocation invocation_;
    MakeFlags make_flags_;

    /// What can be opened again.
    struct Recorded {
        channel::ControlMessage word;
        std::string path; ///< empty: nothing
        bool segmented;
    };

    std::function<base::UniqueFd(channel::ControlMessage)> open_again_;
    /// Of the start: as many sessions as are in force may come to each.
    std::function<void(std::size_t count)> prepare_servers_;
    std::vector<Recorded> recorded_;
    std::string summary_;
    bool named_;    ///< the servers have names
    Values values_; ///< in force
};

/// What comes by signals before anyone is there to hear them, in either process of a live run.
void prepare_signals(const Invocation& invocation);

/// The process that looks: child of the one that takes traffic in. Returns the exit code.
[[nodiscard]] int observe(const RunFlags& flags, Settings& settings, const Invocation& invocation);

/// How a live run is supervised: by which observer, for how long, what a signal changes.
/// `flags`, `settings`: complete; have to outlive the run. Errors: UsageError.
[[nodiscard]] process::SupervisorOptions
supervision(const std::string& command, const RunFlags& flags, const Settings& settings,
            const Invocation& invocation, const MakeFlags& make_flags);

/// Of a run that is over.
[[nodiscard]] int exit_code(const process::LiveRunResult& result);
/// Of one whose observer could not begin.
[[nodiscard]] int exit_code_of_no_start(const process::Ending& ending);

} // namespace tw::cli
