#pragma once

#include "proxy/capture/flight_recorder.h"
#include "proxy/store/recording.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::cli {

struct Command;

// The functions of this header throw UsageError for a flag whose value is not valid.

/// A time and a size, such as "1h,512MiB". A missing time or size is 0.
struct TimeAndSize {
    std::chrono::seconds time{0};
    std::uint64_t bytes = 0;
};

/// Parses the time and size in a flag's value. `expected`: the end of the error.
/// Errors: UsageError.
[[nodiscard]] TimeAndSize
parse_time_and_size(const std::string& flag, const std::string& text,
                    std::string_view expected = "a time (s, min, h, d), a size (KiB, MiB, GiB, "
                                                "TiB), or both, for example 1h,512MiB");

/// A kind of recording: its flag, file names, content and permissions.
struct RecordingKind {
    std::string flag;               ///< the flag whose value is the path
    std::string_view content;       ///< "records" or "a capture"
    std::string_view suffix;        ///< suffix of a single file
    std::string_view folder_name;   ///< base name of segments in a folder
    std::string_view folder_suffix; ///< suffix of segments in a folder
    const store::RecordingFormat* format;
    store::AllowedReaders readers;
};

[[nodiscard]] const RecordingKind& lines_recording_kind();
[[nodiscard]] const RecordingKind& capture_recording_kind();

/// A recording that a flag requests.
struct NamedRecording {
    const RecordingKind& kind;
    const std::string& path; ///< empty if the flag was not given
};

/// Opens a file for a recording that is not live, without segments; compressed if its name ends in
/// .zst. Existing contents are lost. Errors: UsageError, also if another process records to it.
[[nodiscard]] std::unique_ptr<store::OutputFile> open_recording(const NamedRecording& recording);

struct RecordingFlags {
    std::string rotate;
    std::string keep;
    std::string min_free;
    store::SyncPolicy sync = store::SyncPolicy::none;
    std::string message_limit = "1MiB";

    void add_to(Command& command);
    /// Errors: UsageError for flags that apply to none of the recordings.
    void check_recordings(std::span<const NamedRecording> recordings) const;
    /// Returns the limit of --message-limit in bytes; 0 for no limit.
    [[nodiscard]] std::uint64_t max_message_bytes() const;
    /// Returns the value of --min-free in bytes; 0 if the flag is not given.
    [[nodiscard]] std::uint64_t min_free_bytes() const;
    /// Returns the options for a recording on a disk; nullopt for standard output, a pipe or a
    /// device.
    [[nodiscard]] std::optional<store::RecordingOptions>
    disk_options(const NamedRecording& recording) const;
    /// Returns a sentence for each recording whose disk has no room for the size of --keep, or has
    /// less room than --min-free.
    [[nodiscard]] std::vector<std::string>
    disk_space_warnings(std::span<const NamedRecording> recordings) const;
    /// Describes where the recording is written, its limits, and how much of the disk is free.
    [[nodiscard]] std::string describe_place(const NamedRecording& recording) const;
    /// Returns the folder of the segments; empty if the recording has none.
    [[nodiscard]] std::string segment_folder(const NamedRecording& recording) const;
    /// Opens the file or stream of a live recording; returns null if the path is empty.
    [[nodiscard]] std::unique_ptr<store::OutputFile>
    open_live_recording(const NamedRecording& recording, store::Recording::StartMode begin) const;
};

struct FlightRecorderFlags {
    /// The values of --flight: limits of time and size, then a folder; empty: no flight recorder.
    std::vector<std::string> values;
    std::vector<std::string> triggers; ///< ids of findings, and severities
    bool writes_all_sessions = false;  ///< a finding writes the datagrams of all sessions

    void add_to(Command& command);

    [[nodiscard]] bool is_enabled() const { return !values.empty(); }

    [[nodiscard]] std::filesystem::path folder() const;
    /// Returns the options of the flight recorder; nullopt if there is none. `memory_mib`: the
    /// memory for inspection. Errors: UsageError, also if the files would contain secrets without
    /// `show_secrets`.
    [[nodiscard]] std::optional<capture::FlightRecorderOptions>
    options(bool show_secrets, std::size_t memory_mib) const;
};

} // namespace tw::cli
