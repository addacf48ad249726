#pragma once

#include "proxy/bus/spool_state.h"
#include "proxy/sink/disk.h"

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
#include <utility>
#include <vector>

namespace tw::bus {

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
