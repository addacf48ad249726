#pragma once

#include "proxy/cli/publish_flags.h"
#include "proxy/cli/record_flags.h"
#include "proxy/cli/recording_flags.h"
#include "proxy/inspect/session.h"
#include "proxy/process/followed_server.h"
#include "proxy/relay/impairment.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
} // namespace CLI

namespace tw::cli {

class Settings;

/// The flags of every live run, wherever its traffic comes from: what becomes of it.
struct RunFlags {
    RecordFlags records;
    ArtifactFlags artifacts;
    RecordingFlags recording;
    BusFlags bus;
    FlightFlags flight;
    HttpFlags http;
    double idle_timeout = 60; ///< seconds
    std::size_t max_sessions = 1024;
    std::size_t ring_mib = 16;
    std::size_t memory_mib = inspect::MemoryBudget::kDefaultBytes >> 20U;
    std::size_t observer_memory_mib = 8192;
    double duration = 0; ///< seconds; 0: until a signal comes
    bool stats = false;
    bool background = false;
    bool no_inspect = false;
    bool quiet = false;
    std::string log_level = "info";

    RunFlags() = default;
    virtual ~RunFlags() = default;
    RunFlags(const RunFlags&) = delete;
    RunFlags& operator=(const RunFlags&) = delete;
    RunFlags(RunFlags&&) = delete;
    RunFlags& operator=(RunFlags&&) = delete;

    virtual void add_to(CLI::App& command) = 0;
    /// Reads all that is in them, for whoever mistyped it. `settings`: what completed them.
    /// Errors: UsageError.
    virtual void check(const Settings& settings) const;
    /// What the page may record. Errors: UsageError.
    [[nodiscard]] std::optional<pipeline::PageRecordingOptions> page_recordings() const;
    /// Where recordings lie that the page may give away. Errors: UsageError.
    [[nodiscard]] std::vector<std::filesystem::path> recording_folders() const;
    /// The folders in which files are made while it runs. Errors: UsageError.
    [[nodiscard]] std::vector<std::filesystem::path> written_folders() const;
    /// What the server is called where nobody gave it a name.
    [[nodiscard]] virtual std::string server_name() const = 0;
    /// Where is kept what stays from run to run.
    [[nodiscard]] virtual std::filesystem::path state_folder() const = 0;

    /// How bad the line is to be. Errors: UsageError.
    [[nodiscard]] virtual relay::Impairment impairment() const { return {}; }

    /// Servers that have names; none: there is one, without. Errors: UsageError.
    [[nodiscard]] virtual std::vector<process::ServedServer> servers() const { return {}; }

    /// So many are to be forwarded for. Errors: UsageError where the system does not allow that.
    virtual void prepare_servers(std::size_t /*count*/) const {}

    /// Whether the server is to be asked for what is missing.
    [[nodiscard]] virtual bool asks_again() const { return false; }

    /// Whether all datagrams of a session pass by.
    [[nodiscard]] virtual bool sees_all() const { return true; }

  protected:
    /// What is recorded, and how it is shown.
    void add_outputs(CLI::App& command);
    /// How long, how many, how much.
    void add_limits(CLI::App& command);
    /// How it begins, ends, and what it says.
    void add_course(CLI::App& command, const std::string& background_help);

  private:
    void check_files(const Settings& settings) const;
    void check_inspecting() const;
};

/// Times are seconds; 500ms, 30s and 2min are understood, too.
[[nodiscard]] CLI::Validator seconds();

} // namespace tw::cli
