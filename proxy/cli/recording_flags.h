#pragma once

#include "proxy/sink/recording.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

/// The flags of `proxy` about the files in which it records.
struct RecordingFlags {
    std::string rotate;
    std::string keep;
    std::string sync = "none";

    void add_to(CLI::App& command);
    /// How to record to what --output names; nothing when that is no file on a disk: standard output,
    /// a pipe, a device. Errors: UsageError for flags that do not fit it.
    [[nodiscard]] std::optional<sink::RecordingOptions> options(const std::string& output) const;
    /// The folder in which files are made while the run goes on; empty: none are.
    [[nodiscard]] std::string folder(const std::string& output) const;
    /// Opens what --output names; null when it names nothing. Errors: UsageError.
    [[nodiscard]] std::unique_ptr<sink::RecordTarget> open(const std::string& output,
                                                           sink::Recording::Begin begin) const;
};

} // namespace tw::cli
