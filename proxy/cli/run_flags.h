#pragma once

#include "proxy/cli/inspect_flags.h"
#include "proxy/cli/publish_flags.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/inspect/session.h"
#include "proxy/process/server_names.h"
#include "proxy/relay/impairment.h"

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::cli {

struct Command;
class Settings;

/// The folder for data that is kept between runs: `given_folder` from --state, else
/// $STATE_DIRECTORY (set by systemd), $XDG_STATE_HOME/twscope or ~/.local/state/twscope.
[[nodiscard]] std::filesystem::path state_folder(const std::string& given_folder);

/// Adds --state. `content`: what the folder is for.
void add_state_flag(Command& command, std::string& state, const std::string& content);

/// The flags of every live run, for any source of traffic. The functions throw UsageError for a
/// flag whose value is not valid.
struct RunFlags {
    RecordFlags records;
    RecordingFlags recording;
    BusFlags bus;
    FlightRecorderFlags flight;
    HttpFlags http;
    std::string state;        ///< folder; empty for the default of state_folder()
    double idle_timeout = 60; ///< seconds
    std::size_t max_sessions = 1024;
    std::size_t ring_mib = 16;
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;
    std::size_t observer_memory_mib = 8192;
    double duration = 0; ///< seconds; 0 to run until a signal
    bool background = false;
    bool no_inspect = false;
    bool check_config = false;
    bool quiet = false;
    std::string log_level = "info";

    RunFlags() = default;
    virtual ~RunFlags() = default;
    RunFlags(const RunFlags&) = delete;
    RunFlags& operator=(const RunFlags&) = delete;
    RunFlags(RunFlags&&) = delete;
    RunFlags& operator=(RunFlags&&) = delete;

    [[nodiscard]] virtual std::unique_ptr<RunFlags> make_default_flags() const = 0;
    virtual void add_to(Command& command) = 0;
    /// A function that checks some of the flags. Errors: UsageError.
    using Check = std::function<void()>;

    /// Returns all checks of the flags. `settings`: the settings of the same command.
    [[nodiscard]] std::vector<Check> flag_checks(const Settings& settings) const;
    /// Returns the checks of the flags about the forwarded or tapped traffic.
    [[nodiscard]] virtual std::vector<Check> traffic_checks(const Settings& settings) const = 0;
    void check_flags(const Settings& settings) const;

    /// The recordings of --output and --write.
    [[nodiscard]] std::array<NamedRecording, 2> recordings() const {
        return {{{lines_recording_kind(), records.output},
                 {capture_recording_kind(), records.capture}}};
    }

    /// Describes what is recorded to which files: "records to game.jsonl, demos to demos/".
    [[nodiscard]] std::string describe_recording() const;
    /// Describes the forwarded or tapped traffic, one line for each address.
    [[nodiscard]] virtual std::vector<std::string> describe_traffic_source() const = 0;
    /// Returns the configuration of the run. `mod` must outlive it.
    [[nodiscard]] pipeline::Config make_config(const wire::ModDescription& mod) const;
    [[nodiscard]] std::optional<pipeline::PageRecordingOptions> page_recording_options() const;
    /// The folders with recordings that the page may offer for download.
    [[nodiscard]] std::vector<std::filesystem::path> recording_folders() const;
    /// The folders in which files are created during the run.
    [[nodiscard]] std::vector<std::filesystem::path> written_folders() const;
    /// The folders of outputs that are opened again by their paths after the files were moved.
    [[nodiscard]] std::vector<std::filesystem::path> folders_of_reopened_files() const;
    /// The name under which records are published if the user named no server.
    [[nodiscard]] virtual std::string server_name() const = 0;

    /// The folder for data that is kept between runs.
    [[nodiscard]] std::filesystem::path state_folder() const {
        return tw::cli::state_folder(state);
    }

    [[nodiscard]] virtual relay::Impairment impairment() const { return {}; }

    /// The servers with names; empty if there is one server without a name.
    [[nodiscard]] virtual std::vector<process::ConfiguredServer> servers() const { return {}; }

    /// Raises this process's limit of descriptors to what forwarding to these servers needs.
    /// Errors: UsageError if the system does not allow that.
    virtual void raise_descriptor_limit(std::size_t /*server_count*/) const {}

    /// True if the run requests full snapshots from the server when a session cannot be decoded.
    [[nodiscard]] virtual bool requests_full_snapshots() const { return false; }

  protected:
    void add_output_flags(Command& command);
    void add_limit_flags(Command& command);
    void add_lifecycle_flags(Command& command, const std::string& background_help);

  private:
    void check_files(const Settings& settings) const;
    void check_inspection_flags() const;
};

/// Checks the configuration of a live run without starting it: prints a description of the run, or
/// its errors. Returns the exit code.
[[nodiscard]] int check_config(const RunFlags& flags, Settings& settings);

void add_duration_flag(Command& command, double& seconds);
void add_log_level_flag(Command& command, std::string& level);

} // namespace tw::cli
