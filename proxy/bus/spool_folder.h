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

/// The state of a run's spool, apart from its lines.
struct SpoolState {
    std::uint64_t settled = 0;             ///< lines up to this number are in the stream or lost
    std::optional<std::uint64_t> sequence; ///< see Backlog::sequence()
    std::string server;                    ///< server name as it is written in subjects
    std::string stream; ///< the lines' stream; empty if an older version wrote the state

    /// True if the waiting lines may be published to this stream.
    [[nodiscard]] bool belongs_to_stream(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// Returns the content of a state file: one line of fixed length.
/// Layout: "settled=NUMBER place=NUMBER server=NAME stream=NAME\n". Numbers have 20 digits; "-" stands
/// for no sequence number.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Parses the result of spool_state_text(); nullopt if the text is invalid.
[[nodiscard]] std::optional<SpoolState> read_spool_state(std::string_view text);

/// Returns the name of a file with lines: RUN-NUMBER.jsonl. NUMBER is the number of its first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// The parts of the name of a file with lines: the run, and the number of the first line.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0;

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

[[nodiscard]] std::optional<SpoolFile> read_spool_file_name(std::string_view name);

[[nodiscard]] std::string spool_state_name(std::string_view run);
/// Returns the run in the name of a state file; nullopt if the name is another one.
[[nodiscard]] std::optional<std::string> run_of_state_name(std::string_view name);

/// The folder in which runs keep unpublished lines, with a limit for their size.
class SpoolFolder {
  public:
    /// The lowest permitted limit in bytes. A lower one would not hold one second of a busy server.
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

    /// The size in bytes at which a run starts its next file.
    [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }

    /// The size in bytes of the lines of this run, and of runs that no process owns.
    [[nodiscard]] std::uint64_t bytes() const;

    /// The number of lines dropped to make room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

    /// The number of lost records that no line reports yet. A dropped line counts as one record, plus
    /// the losses that the line reported.
    [[nodiscard]] std::uint64_t unreported() const { return unreported_; }

    /// Must be called after a line was appended that reports `lost` of the unreported losses.
    void on_reported(std::uint64_t lost) { unreported_ -= lost; }

    /// The number of lines that the disk lost: they are missing in files, and twscope did not drop them.
    [[nodiscard]] std::uint64_t damaged_lines() const { return damaged_; }

    /// Counts and logs the missing lines of a run that has ended. `settled`: its last settled line.
    void count_damaged_lines(const std::string& run, std::uint64_t settled);

    /// Counts and logs lines in files that somebody removed.
    void count_removed_lines(std::uint64_t lines);

    /// Returns the number of lines of ended runs that wait to be published to this stream. The number
    /// may be a second old.
    [[nodiscard]] std::uint64_t waiting(const std::string& own_run,
                                        const std::string& stream) const;

    /// Logs what will not be published: files without a readable state, and lines for other
    /// streams.
    void report_unpublished(const std::string& stream) const;

    /// What is lost when a file is dropped.
    struct FileLoss {
        std::uint64_t lines = 0;    ///< unpublished lines in the file
        std::uint64_t reported = 0; ///< lost records that these lines report
    };

    /// Drops the oldest lines until `bytes` bytes fit: first those of ended runs, then those of the
    /// caller's run by calling `drop_own`, which returns nullopt if it cannot drop more.
    void make_room(const std::string& own_run, std::uint64_t bytes,
                   const std::function<std::optional<FileLoss>()>& drop_own);

    /// Returns what is lost if a file is dropped. `first`: the number of the file's first line.
    /// `unsettled`: lines from this number on are not published yet.
    [[nodiscard]] static FileLoss loss_of(const std::string& path, std::uint64_t first,
                                          std::uint64_t unsettled);

    [[nodiscard]] std::vector<std::string> run_ids() const;

    struct FileContents {
        std::uint64_t lines = 0;            ///< whole lines
        std::uint64_t incomplete_bytes = 0; ///< bytes after the last whole line
    };

    [[nodiscard]] static FileContents count_contents(const std::string& path);

    /// Returns the files with lines, the oldest first.
    [[nodiscard]] std::vector<FoundFile> files() const;

    /// Adds the `bytes` of a run that this process takes over to the folder's size.
    void add_leftover(const std::string& run, std::uint64_t bytes);

    void add_bytes(std::uint64_t bytes);

    /// Removes a file and subtracts its `bytes` from the folder's size. A missing file is no error.
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
    std::set<std::string> counted_; ///< ids of the ended runs that bytes() includes
    std::uint64_t bytes_ = 0;
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> unreported_{0};
    std::atomic<std::uint64_t> damaged_{0};
    mutable std::mutex waiting_mutex_;
    mutable std::chrono::steady_clock::time_point waiting_counted_{};
    mutable std::uint64_t waiting_ = 0;
    /// For each file, its size in bytes and its number of lines; a cache.
    mutable std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines_;
};

} // namespace tw::bus
