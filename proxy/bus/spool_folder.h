#pragma once

#include "proxy/store/file_queue.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::bus {

/// The content of a run's state file.
struct SpoolState {
    std::uint64_t settled = 0; ///< all lines up to this number are in the stream or lost
    /// A sequence number in the stream. Lines after `settled` have greater sequence numbers.
    std::optional<std::uint64_t> sequence{};
    std::string server{}; ///< server name as it is written in subjects
    /// Name of the stream to which the lines belong; empty in the state of an older version.
    std::string stream{};

    /// Returns true if the run's lines may be published to the stream `other`.
    [[nodiscard]] bool belongs_to_stream(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// Returns the text of a state file: one line of fixed length.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Parses the result of spool_state_text(). Returns nullopt if the text is invalid.
[[nodiscard]] std::optional<SpoolState> parse_spool_state(std::string_view text);

/// A file with lines of a run.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0; ///< number of the first line
    std::uint64_t bytes = 0; ///< size of the file

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

/// Returns the name of a file with lines: RUN-NUMBER.jsonl. NUMBER is the number of the file's
/// first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// Parses the result of spool_file_name(). Returns nullopt for any other name.
[[nodiscard]] std::optional<SpoolFile> parse_spool_file_name(std::string_view name);

/// Returns the name of a run's state file: RUN.state.
[[nodiscard]] std::string spool_state_file_name(std::string_view run);
/// Returns the run's UUID in the name of a state file; nullopt for any other name.
[[nodiscard]] std::optional<std::string> parse_state_file_name(std::string_view name);

/// A number of lines, and their size in bytes.
struct LineTotals {
    std::uint64_t lines = 0;
    std::uint64_t bytes = 0;
};

/// The folder in which runs store unpublished lines. Does not touch the files of runs that other
/// processes own. `max_bytes` limits the files of this process's run and of runs without an owner.
class SpoolFolder {
  public:
    /// The lowest permitted `max_bytes`. Fewer bytes would not suffice for one second of a busy
    /// server.
    static constexpr std::uint64_t kMinSpoolBytes = std::uint64_t{1} << 20U;

    /// Creates the folder if it does not exist.
    /// Errors: throws std::system_error.
    SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes,
                store::Disk& disk = store::system_disk());

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] std::string path_of(const SpoolFile& file) const {
        return (path_ / spool_file_name(file.run, file.first)).string();
    }

    [[nodiscard]] store::Disk& disk() const { return *disk_; }

    /// Returns the size in bytes at which a run starts its next file.
    [[nodiscard]] std::uint64_t segment_bytes() const;

    /// Sets whether this process uses the run, which may be an earlier run that it publishes. The
    /// lines of such an earlier run are not dropped.
    void set_run_in_use(const std::string& run, bool in_use);

    /// Returns the files that hold lines (not state), the oldest first.
    [[nodiscard]] std::vector<SpoolFile> list_files() const;

    /// Returns the UUIDs of the runs with a state file.
    [[nodiscard]] std::vector<std::string> list_run_ids() const;

    /// Drops the oldest lines until `bytes` bytes fit. Ended runs lose their lines before `own_run`
    /// does. Returns the number of the last line of `own_run` that was dropped; 0 if none was.
    std::uint64_t drop_oldest_lines_to_fit(const std::string& own_run, std::uint64_t bytes);

    /// Returns the number of lines dropped to make room.
    [[nodiscard]] std::uint64_t dropped_lines() const { return dropped_lines_; }

    /// Returns the number of lines that are missing because files were damaged or removed.
    [[nodiscard]] std::uint64_t missing_lines() const { return missing_lines_; }

    /// Adds to missing_lines(), and logs the loss.
    void count_missing_lines(std::uint64_t lines);

    /// Counts the unpublished lines for `stream` of all runs except `own_run`.
    [[nodiscard]] LineTotals count_unpublished_lines(const std::string& own_run,
                                                     const std::string& stream);

    /// Returns the number of lines in a file. Counts again only if the file's size has changed.
    [[nodiscard]] std::uint64_t count_lines(const SpoolFile& file);

    /// Logs which runs will not be published: runs without a readable state file, and runs for
    /// other streams.
    void report_unpublished_files(const std::string& stream) const;

  private:
    [[nodiscard]] bool is_run_in_use(const std::string& run) const;
    [[nodiscard]] std::optional<SpoolState> read_run_state(const std::string& run) const;
    [[nodiscard]] std::uint64_t last_line_of_file(const std::vector<SpoolFile>& files,
                                                  std::size_t at);
    [[nodiscard]] std::uint64_t num_unsettled_lines(const std::vector<SpoolFile>& files,
                                                    std::size_t at);

    std::filesystem::path path_;
    std::uint64_t max_bytes_;
    store::Disk* disk_;
    std::atomic<std::uint64_t> dropped_lines_{0};
    std::atomic<std::uint64_t> missing_lines_{0};
    mutable std::mutex mutex_;
    std::set<std::string> runs_in_use_; ///< ids of the runs that this process uses
    /// A cache: the size in bytes and the number of lines of each file.
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> line_counts_;
};

} // namespace tw::bus
