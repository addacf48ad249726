#pragma once

#include "proxy/sink/file_queue.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
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
    std::uint64_t settled = 0;             ///< lines up to this number are in the stream or lost
    std::optional<std::uint64_t> sequence; ///< see Backlog::settled_sequence()
    std::string server;                    ///< server name as it is written in subjects
    /// Name of the stream for the lines; empty if an older version wrote the state.
    std::string stream;

    /// Returns true if the lines may be published to the stream `other`.
    [[nodiscard]] bool belongs_to_stream(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// Returns the text of a state file: one line of fixed length.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Parses the result of spool_state_text(). Returns nullopt if the text is invalid.
[[nodiscard]] std::optional<SpoolState> read_spool_state(std::string_view text);

/// Returns the name of a file with lines: RUN-NUMBER.jsonl. NUMBER is the number of the file's
/// first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// The parts of the name of a file with lines: the run, and the number of the first line.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0;

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

[[nodiscard]] std::optional<SpoolFile> read_spool_file_name(std::string_view name);

[[nodiscard]] std::string spool_state_name(std::string_view run);
/// Returns the run in the name of a state file; nullopt if it is not the name of a state file.
[[nodiscard]] std::optional<std::string> run_of_state_name(std::string_view name);

/// The folder in which runs store unpublished lines. Limits the size of the folder.
class SpoolFolder {
  public:
    /// The lowest permitted limit in bytes. A lower limit would not suffice for one second of a
    /// busy server.
    static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;

    struct FoundFile {
        SpoolFile file;
        std::uint64_t bytes = 0;
    };

    /// Creates the folder if it does not exist.
    /// Errors: throws std::system_error.
    SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes,
                sink::Disk& disk = sink::system_disk());

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] sink::Disk& disk() const { return *disk_; }

    /// Returns the size in bytes at which a run starts its next file.
    [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }

    /// Returns the size in bytes of the lines of this process's run and of runs that no process
    /// owns.
    [[nodiscard]] std::uint64_t total_bytes() const;

    /// Returns the number of lines dropped to make room.
    [[nodiscard]] std::uint64_t dropped_line_count() const { return lost_; }

    /// Returns the number of lost records that no line reports yet. A dropped line counts as one
    /// record, plus the lost records that the line reported.
    [[nodiscard]] std::uint64_t unreported_losses() const { return unreported_; }

    /// Subtracts `lost` from the unreported losses. Call this function after appending a line that
    /// reports them.
    void mark_losses_reported(std::uint64_t lost) { unreported_ -= lost; }

    /// Returns the number of lines that are missing in files although twscope did not drop them.
    [[nodiscard]] std::uint64_t damaged_lines() const { return damaged_; }

    /// Counts and logs the missing lines of a run that has ended. `settled`: number of the run's
    /// last settled line.
    void count_damaged_lines(const std::string& run, std::uint64_t settled);

    /// Counts and logs the lines of files that another program or a user removed.
    void count_removed_lines(std::uint64_t lines);

    /// Returns the number of lines of ended runs that wait to be published to `stream`. The number
    /// may be one second old.
    [[nodiscard]] std::uint64_t waiting_lines(const std::string& own_run,
                                              const std::string& stream) const;

    /// Logs which files will not be published: files without a readable state file, and files for
    /// other streams.
    void report_unpublished(const std::string& stream) const;

    /// The records that are lost when a file is dropped.
    struct FileLoss {
        std::uint64_t lines = 0;    ///< number of unpublished lines in the file
        std::uint64_t reported = 0; ///< number of lost records that these lines report
    };

    /// Drops the oldest lines until `bytes` bytes fit: first lines of ended runs, then lines of the
    /// caller's run by calling `drop_own`. `drop_own` returns nullopt if it cannot drop more.
    void make_room_for(const std::string& own_run, std::uint64_t bytes,
                       const std::function<std::optional<FileLoss>()>& drop_own);

    /// Returns the records that are lost if a file is dropped. `first`: the number of the file's
    /// first line. `unsettled`: the first line that is not published yet.
    [[nodiscard]] static FileLoss loss_in_file(const std::string& path, std::uint64_t first,
                                               std::uint64_t unsettled);

    [[nodiscard]] std::vector<std::string> run_ids() const;

    struct FileContents {
        std::uint64_t lines = 0;            ///< number of complete lines
        std::uint64_t incomplete_bytes = 0; ///< number of bytes after the last complete line
    };

    [[nodiscard]] static FileContents count_contents(const std::string& path);

    /// Returns the files with lines, the oldest first.
    [[nodiscard]] std::vector<FoundFile> list_files() const;

    /// Adds the size of a run that this process takes over to the size of the folder.
    void add_leftover_bytes(const std::string& run, std::uint64_t bytes);

    void add_bytes(std::uint64_t bytes);

    /// Removes a file and subtracts its size from the size of the folder. A missing file is no
    /// error.
    void remove_file(const std::string& path, std::uint64_t bytes);

  private:
    [[nodiscard]] bool is_counted(const std::string& run) const;
    [[nodiscard]] std::uint64_t count_lines(const FoundFile& last) const;
    [[nodiscard]] std::uint64_t count_waiting(const std::string& own_run,
                                              const std::string& stream) const;
    void recount_bytes(const std::string& own_run);
    [[nodiscard]] bool drop_oldest_leftover(const std::string& own_run);
    [[nodiscard]] bool drop_file(const FoundFile& found);
    void count_loss(const FileLoss& loss);

    std::filesystem::path path_;
    std::uint64_t max_bytes_;
    std::uint64_t segment_bytes_;
    sink::Disk* disk_;
    mutable std::mutex mutex_;
    std::set<std::string> counted_; ///< ids of the ended runs that total_bytes() includes
    std::uint64_t bytes_ = 0;
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> unreported_{0};
    std::atomic<std::uint64_t> damaged_{0};
    mutable std::mutex waiting_mutex_;
    mutable std::chrono::steady_clock::time_point waiting_counted_{};
    mutable std::uint64_t waiting_ = 0;
    /// A cache: the size in bytes and the number of lines of each file.
    mutable std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines_;
};

} // namespace tw::bus
