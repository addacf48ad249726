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

/// Takes a file for whoever opened it, until it is closed there; also against another opening of the same
/// process. False: somebody has it, or it cannot be locked.
[[nodiscard]] inline bool lock_file(int file) {
    struct flock whole {};

    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/// What a spool knows of one run besides its lines.
struct SpoolState {
    std::uint64_t settled = 0;          ///< all up to here is in the stream or lost
    std::optional<std::uint64_t> place; ///< see Backlog; nothing: nothing was ever published
    std::string server;                 ///< as a part of subjects
    std::string stream; ///< that it is for; empty: a version before this one wrote it

    /// Whether what waits may go to this stream.
    [[nodiscard]] bool is_for(std::string_view other) const {
        return stream.empty() || stream == other;
    }

    friend bool operator==(const SpoolState&, const SpoolState&) = default;
};

/// As a file holds it: one line of a length that does not change.
/// Layout: "settled=NUMBER place=NUMBER server=NAME stream=NAME\n", numbers with 20 digits; place - for nothing.
[[nodiscard]] std::string spool_state_text(const SpoolState& state);

/// Nothing: it is no such text.
[[nodiscard]] std::optional<SpoolState> read_spool_state(std::string_view text);

/// The name of a file of lines: RUN-NUMBER.jsonl, after its first line.
[[nodiscard]] std::string spool_file_name(std::string_view run, std::uint64_t first);

/// Whose lines a file holds, and from where on.
struct SpoolFile {
    std::string run;
    std::uint64_t first = 0;

    friend bool operator==(const SpoolFile&, const SpoolFile&) = default;
};

[[nodiscard]] std::optional<SpoolFile> read_spool_file_name(std::string_view name);

/// What a state's file is called.
[[nodiscard]] std::string spool_state_name(std::string_view run);
/// Nothing: another file.
[[nodiscard]] std::optional<std::string> run_of_state_name(std::string_view name);

/// The folder in which runs keep what is not published yet, and how much of it there may be.
class SpoolFolder {
  public:
    /// Less holds no second of a busy server.
    static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;

    struct Found {
        SpoolFile file;
        std::uint64_t bytes = 0;
    };

    /// Made when it is not there. Errors: throws std::system_error.
    SpoolFolder(std::filesystem::path path, std::uint64_t max_bytes,
                sink::Disk& disk = sink::system_disk());

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    [[nodiscard]] sink::Disk& disk() const { return *disk_; }

    /// When the next file of a run begins.
    [[nodiscard]] std::uint64_t segment_bytes() const { return segment_bytes_; }

    /// Of this run, and of those that are nobody's.
    [[nodiscard]] std::uint64_t bytes() const;

    /// Lines that had to make room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

    /// Of these, and of those that they reported, how many no line reports.
    [[nodiscard]] std::uint64_t unreported() const { return unreported_; }

    /// A line reports so many.
    void on_reported(std::uint64_t lost) { unreported_ -= lost; }

    /// Lines that nobody gave up, and that stand nowhere any more.
    [[nodiscard]] std::uint64_t damaged() const { return damaged_; }

    /// Counts what is missing of a run that is over, and says so in the log.
    void look_for_damage(const std::string& run, std::uint64_t settled);

    /// So many lines waited in files that somebody removed.
    void count_gone(std::uint64_t lines);

    /// Lines that runs which are over left for this stream, as of a second ago at most.
    [[nodiscard]] std::uint64_t waiting(const std::string& own_run,
                                        const std::string& stream) const;

    /// Says in the log what is there that nobody publishes: files without a state that can be read, and
    /// what is for other streams.
    void report_unpublished(const std::string& stream) const;

    /// What giving up a file costs.
    struct Loss {
        std::uint64_t lines = 0;    ///< that nobody published
        std::uint64_t reported = 0; ///< records that those lines reported as lost
    };

    /// Gives up the oldest lines until so many bytes fit: first of runs that are over, then of the one
    /// that asks, by `drop_own`; nothing: there are no more.
    void make_room(const std::string& own_run, std::uint64_t bytes,
                   const std::function<std::optional<Loss>()>& drop_own);

    /// Of a file whose first line has the number `first`, when the lines before `unsettled` are
    /// published.
    [[nodiscard]] static Loss loss_of(const std::string& path, std::uint64_t first,
                                      std::uint64_t unsettled);

    /// Those that have a state.
    [[nodiscard]] std::vector<std::string> runs() const;

    struct Contents {
        std::uint64_t lines = 0; ///< whole ones
        std::uint64_t torn = 0;  ///< bytes behind them
    };

    /// Of a file of lines.
    [[nodiscard]] static Contents contents(const std::string& path);

    /// The files of lines, the oldest first.
    [[nodiscard]] std::vector<Found> files() const;

    /// A run is ours from now on.
    void count(const std::string& run, std::uint64_t bytes);

    void add(std::uint64_t bytes);

    /// Removes a file that counts with so many bytes. What is not there any more needs no removing.
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
    std::set<std::string> counted_; ///< runs that are over, and whose bytes count
    std::uint64_t bytes_ = 0;
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> unreported_{0};
    std::atomic<std::uint64_t> damaged_{0};
    mutable std::mutex waiting_mutex_;
    mutable std::chrono::steady_clock::time_point waiting_counted_{};
    mutable std::uint64_t waiting_ = 0;
    mutable std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> lines_; ///< bytes, lines
};

} // namespace tw::bus
