#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/sink/flight_recorder.h"
#include "proxy/sink/recording.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// A time and a size, either of which may be missing: "1h,512MiB".
struct TimeAndSize {
    std::chrono::seconds time{0};
    std::uint64_t bytes = 0;
};

/// Reads those of a flag. Errors: UsageError that names the flag.
[[nodiscard]] TimeAndSize parse_time_and_size(const std::string& flag, const std::string& text);

/// What is recorded in files: how those are named, and what they hold.
struct RecordingKind {
    std::string flag;             ///< names the file or folder
    std::string_view suffix;      ///< of a file
    std::string_view folder_name; ///< of segments in a folder
    std::string_view folder_suffix;
    const sink::Framing* units;
    sink::Readers readers;
};

[[nodiscard]] const RecordingKind& recorded_lines();
[[nodiscard]] const RecordingKind& recorded_capture();

/// Opens what a flag names where there are no segments; what was in it is gone. Errors: UsageError.
[[nodiscard]] std::unique_ptr<sink::OutputFile> open_recording(const RecordingKind& kind,
                                                               const std::string& path);

/// The flags of live runs about the files in which they record.
struct RecordingFlags {
    std::string rotate;
    std::string keep;
    std::string min_free;
    std::string sync = "none";
    std::string message_limit = "1MiB";

    void add_to(CLI::App& command);
    /// Errors: UsageError for flags that fit neither what --output names nor what --write names.
    void check(const std::string& output, const std::string& capture) const;
    /// What --message-limit says; 0: no limit. Errors: UsageError.
    [[nodiscard]] std::uint64_t message_bytes() const;
    /// How to record to a path; nothing when that is no file on a disk: standard output, a pipe, a
    /// device. Errors: UsageError.
    [[nodiscard]] std::optional<sink::RecordingOptions> options(const RecordingKind& kind,
                                                                const std::string& path) const;
    /// The folder in which files are made while the run goes on; empty: none are.
    [[nodiscard]] std::string folder(const RecordingKind& kind, const std::string& path) const;
    /// Opens a path; null when it is empty. Errors: UsageError.
    [[nodiscard]] std::unique_ptr<sink::OutputFile>
    open(const RecordingKind& kind, const std::string& path, sink::Recording::Begin begin) const;
    /// What goes on where a path leads now, for an observer that may open nothing itself; invalid, with
    /// errno, when it cannot be opened, or when that is up to the observer.
    [[nodiscard]] base::UniqueFd open_again(const RecordingKind& kind,
                                            const std::string& path) const;
};

} // namespace tw::cli

namespace CLI {
class App;
} // namespace CLI

namespace tw::cli {

/// The flags of `proxy` about the flight recorder.
struct FlightFlags {
    std::vector<std::string> what; ///< time and size, folder; empty: there is none
    std::vector<std::string> triggers;
    bool whole = false;

    void add_to(CLI::App& command);

    [[nodiscard]] bool on() const { return !what.empty(); }

    /// Where it writes. Errors: UsageError for what is no folder that may be written to.
    [[nodiscard]] std::filesystem::path folder() const;
    /// Errors: UsageError, also where it would hold what must not be shown.
    [[nodiscard]] std::optional<sink::FlightOptions> options(bool show_secrets) const;
    /// Reads all that is in them. Errors: UsageError, also where it does not fit into the memory.
    void check(bool show_secrets, std::size_t memory_mib) const;
};

} // namespace tw::cli
