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

#include <fcntl.h>

namespace tw::bus {

/// Locks a file for this open descriptor until it is closed, also against other descriptors of the
/// same process. Returns false if it is locked already or cannot be locked.
[[nodiscard]] inline bool lock_file(int file) {
    struct flock whole {};

    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/// The state of a run in a spool, besides its lines.
struct SpoolState {
    std::uint64_t settled = 0;          ///< lines up to this number are in the stream or lost
    std::optional<std::uint64_t> place; ///< see Backlog; nullopt if no line was published
    std::string server;                 ///< server name as a part of subjects
    std::string stream; ///< the stream for the lines; empty if an older version wrote the state

    /// True if the waiting lines may be published to this stream.
    [[nodiscard]] bool is_for(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// Returns the content of the state's file: one line of fixed length.
/// Layout: "settled=NUMBER place=NUMBER server=NAME stream=NAME\n", numbers with 20 digits; "-" for
/// no place.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Parses spool_state_text(); nullopt if the text is invalid.
[[nodiscard]] std::optional<SpoolState> read_spool_state(std::string_view text);

/// Returns the name of a file of lines: RUN-NUMBER.jsonl, with the number of its first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// The run of a file of lines, and the number of its first line.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0;

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

[[nodiscard]] std::optional<SpoolFile> read_spool_file_name(std::string_view name);

/// Returns the name of a state's file.
[[nodiscard]] std::string spool_state_name(std::string_view run);
/// Returns the run in the name of a state's file; nullopt for another name.
[[nodiscard]] std::optional<std::string> run_of_state_name(std::string_view name);

/// The folder in which runs keep unpublished lines, with a limit for their size.
class SpoolFolder {
  public:
    /// The least limit; less holds not even a second of a busy server.
    static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;

    struct Found {
        SpoolFile file;
        std::uint64_t bytes = 0;
    };

    /// Creates the folder if it does not exist.
    /// Errors: throws std::system_error.
    SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes,
                sink::Disk& disk = sink::system_disk());

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] sink::Disk& disk() const { return *disk_; }

    /// Size at which a run starts its next file.
    [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }

    /// The size of the lines of this run and of runs that no process owns.
    [[nodiscard]] std::uint64_t bytes() const;

    /// The number of lines dropped to make room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

    /// The losses that no line reports yet: dropped lines, and the losses that dropped lines had
    /// reported.
    [[nodiscard]] std::uint64_t unreported() const { return unreported_; }

    /// Notes that a line reports `lost` of the unreported losses.
    void on_reported(std::uint64_t lost) { unreported_ -= lost; }

    /// The number of lines that are missing in files although no run dropped them.
    [[nodiscard]] std::uint64_t damaged() const { return damaged_; }

    /// Counts and logs the missing lines of a run that ended.
    void look_for_damage(const std::string& run, std::uint64_t settled);

    /// Counts the lines in files that somebody removed.
    void count_gone(std::uint64_t lines);

    /// The number of lines of ended runs that wait to be published to this stream. The count may be
    /// a second old.
    [[nodiscard]] std::uint64_t waiting(const std::string& own_run,
                                        const std::string& stream) const;

    /// Logs what will not be published: files without a readable state, and lines for other
    /// streams.
    void report_unpublished(const std::string& stream) const;

    /// The losses from dropping a file.
    struct Loss {
        std::uint64_t lines = 0;    ///< unpublished lines
        std::uint64_t reported = 0; ///< records that these lines reported as lost
    };

    /// Drops the oldest lines until `bytes` bytes fit: first those of ended runs, then those of the
    /// caller's run through `drop_own`, which returns nullopt if there are no more.
    void make_room(const std::string& own_run, std::uint64_t bytes,
                   const std::function<std::optional<Loss>()>& drop_own);

    /// The loss from dropping a file that starts with line `first`, if the lines before `unsettled`
    /// are published.
    [[nodiscard]] static Loss loss_of(const std::string& path, std::uint64_t first,
                                      std::uint64_t unsettled);

    /// The ids of the runs that have a state file.
    [[nodiscard]] std::vector<std::string> runs() const;

    struct Contents {
        std::uint64_t lines = 0; ///< whole lines
        std::uint64_t torn = 0;  ///< bytes after the last whole line
    };

    /// Counts the contents of a file of lines.
    [[nodiscard]] static Contents contents(const std::string& path);

    /// The files of lines, the oldest first.
    [[nodiscard]] std::vector<Found> files() const;

    /// Adds `bytes` to the folder's count, for a run that this process takes over.
    void count(const std::string& run, std::uint64_t bytes);

    void add(std::uint64_t bytes);

    /// Removes a file and its `bytes` from the count. A missing file is no error.
    void remove(const std::string& path, std::uint64_t bytes);

  private:
    [[nodiscard]] bool counts(const std::string& run) const;
    [[nodiscard]] std::uint64_t lines_of(const Found& last) const;
    [[nodiscard]] std::uint64_t count_waiting(const std::string& own_run,
                                              const std::string& stream) const;
    void count_again(const std::string& own_run);
    [[nodiscard]] bool drop_leftover(const std::string& own_run);
    [[nodiscard]] bool drop(const Found& found);
    void lose(const Loss& loss);

    std::filesystem::path path_;
    std::uint64_t max_bytes_;
    std::uint64_t segment_bytes_;
    sink::Disk* disk_;
    mutable std::mutex mutex_;
    std::set<std::string> counted_; ///< ids of the ended runs whose bytes are counted in bytes()
    std::uint64_t bytes_ = 0;
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> unreported_{0};
    std::atomic<std::uint64_t> damaged_{0};
    mutable std::mutex waiting_mutex_;
    mutable std::chrono::steady_clock::time_point waiting_counted_{};
    mutable std::uint64_t waiting_ = 0;
    /// The size in bytes and the number of lines of each file.
    mutable std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines_;
};

} // namespace tw::bus
