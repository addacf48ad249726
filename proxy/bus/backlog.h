#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/bus/spool_folder.h"
#include "proxy/record/interface.h"
#include "proxy/sink/file_queue.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tw::bus {

/// Consecutive record lines of one run, each complete.
struct RecordLines {
    std::uint64_t first = 0; ///< number of the first line
    std::string text{};
};

/// Holds a run's record lines, numbered from 1, until the bus has stored them in its stream. One
/// thread appends lines; another one reads them and calls settle().
class Backlog : public record::Interface {
  public:
    /// The run's UUID. A message's id consists of it and the line's number.
    [[nodiscard]] virtual const std::string& run() const = 0;
    /// The server's name as it is written in subjects.
    [[nodiscard]] virtual const std::string& server_name() const = 0;

    /// Reads lines from the number `from` on and skips lost lines. Returns false if there are no
    /// such lines at the moment.
    [[nodiscard]] virtual bool read_lines(std::uint64_t from, RecordLines& lines) = 0;

    /// Marks all lines up to `line` as settled: they are in the stream, or lost. In the stream, the
    /// sequence number of every later line is above `sequence`.
    virtual void settle(std::uint64_t line, std::uint64_t sequence) = 0;

    [[nodiscard]] virtual std::uint64_t last_settled() const = 0;

    /// True if unsettled lines are stored so that the next run of twscope finds them.
    [[nodiscard]] virtual bool is_persistent() const { return false; }

    /// The argument `sequence` of the last settle() call; nullopt if no line was ever published.
    [[nodiscard]] virtual std::optional<std::uint64_t> sequence() const = 0;
    /// The number of the last line; 0 if there was none.
    [[nodiscard]] virtual std::uint64_t last_line() const = 0;
};

class LineStore : public Backlog {
  public:
    /// Appends whole lines. Returns false, and appends nothing, if there is no room now.
    virtual bool append(std::string_view block) = 0;

    [[nodiscard]] virtual bool has_room() const = 0;

    /// True if the store will never accept lines again.
    [[nodiscard]] virtual bool is_gone() const { return false; }

    /// The errno of the failure that prevents appending; 0 if appending is possible.
    [[nodiscard]] virtual int error() const { return 0; }

    /// Tries again to append after a failure.
    virtual void retry() {}

    /// The number of lines dropped to make room for newer lines.
    [[nodiscard]] virtual std::uint64_t dropped_lines() const { return 0; }

    /// The number of lost records that no line reports yet. A dropped line counts as one record, plus
    /// the losses that the line reported.
    [[nodiscard]] virtual std::uint64_t unreported_losses() const { return 0; }

    /// Must be called after a line was appended that reports `lost` of the unreported losses.
    virtual void on_reported(std::uint64_t /*lost*/) {}

    /// The number of unsettled lines, including those of earlier runs.
    [[nodiscard]] virtual std::uint64_t waiting_lines() const {
        // read first, because last_line() may grow in between
        const std::uint64_t before = last_settled();
        return last_line() - before;
    }

    /// The size of the unsettled lines in bytes.
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Holds lines in limited memory. If the memory is full, append() returns false.
class MemoryBacklog final : public LineStore {
  public:
    /// Enough for the lines of one minute of a server with 64 players.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

    MemoryBacklog(std::string run, std::string server, std::size_t max_bytes = kMaxBytes)
        : run_{std::move(run)}, server_{std::move(server)}, max_bytes_{max_bytes} {}

    bool append(std::string_view block) override;
    [[nodiscard]] bool has_room() const override;
    [[nodiscard]] std::uint64_t bytes() const override;

    [[nodiscard]] const std::string& run() const override { return run_; }

    [[nodiscard]] const std::string& server_name() const override { return server_; }

    [[nodiscard]] bool read_lines(std::uint64_t from, RecordLines& lines) override;
    void settle(std::uint64_t line, std::uint64_t sequence) override;
    [[nodiscard]] std::uint64_t last_settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> sequence() const override;
    [[nodiscard]] std::uint64_t last_line() const override;

  private:
    std::string run_;
    std::string server_;
    std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::deque<RecordLines> blocks_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t settled_ = 0;
    std::optional<std::uint64_t> sequence_;
};

/// Holds one run's lines on a disk: append-only files and a state file. The process that holds the
/// lock of the state file owns the run. The lock ends with the process.
///
/// Appended lines survive the end of the process, but not a crash of the machine, because files are
/// not synced.
class Spool final : public LineStore {
  public:
    /// Creates the spool of a new run.
    /// Errors: throws std::system_error.
    Spool(SpoolFolder& folder, const std::string& run, const std::string& server,
          const std::string& stream);
    /// Takes over the spool of an earlier run. Returns null if another process owns the spool, if its
    /// lines are for another stream, or if it cannot be read.
    [[nodiscard]] static std::unique_ptr<Spool>
    take_over(SpoolFolder& folder, const std::string& run, const std::string& stream);
    /// Takes over the spool of any run other than `own_run`. Returns null if there is no such spool.
    [[nodiscard]] static std::unique_ptr<Spool>
    take_over_next(SpoolFolder& folder, const std::string& own_run, const std::string& stream);
    /// Removes settled lines.
    ~Spool() override;
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;

    bool append(std::string_view block) override;

    [[nodiscard]] bool has_room() const override { return error() == 0; }

    [[nodiscard]] bool is_gone() const override { return is_folder_removed_; }

    [[nodiscard]] int error() const override;
    void retry() override;
    [[nodiscard]] std::uint64_t dropped_lines() const override;
    [[nodiscard]] std::uint64_t unreported_losses() const override;
    void on_reported(std::uint64_t lost) override;

    [[nodiscard]] bool is_persistent() const override { return true; }

    [[nodiscard]] std::uint64_t waiting_lines() const override;
    [[nodiscard]] std::uint64_t bytes() const override;

    [[nodiscard]] const std::string& run() const override { return run_; }

    [[nodiscard]] const std::string& server_name() const override { return state_.server; }

    [[nodiscard]] bool read_lines(std::uint64_t from, RecordLines& lines) override;
    void settle(std::uint64_t line, std::uint64_t sequence) override;
    [[nodiscard]] std::uint64_t last_settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> sequence() const override;
    [[nodiscard]] std::uint64_t last_line() const override;

  private:
    struct SpoolSegment {
        std::uint64_t first = 0;
        std::uint64_t bytes = 0;
    };

    Spool(SpoolFolder& folder, std::string run, int state);
    void find_segments();
    /// Drops the oldest file. Returns nullopt if only the file that is being written is left.
    std::optional<SpoolFolder::FileLoss> drop_oldest();
    [[nodiscard]] bool begin_segment(std::size_t coming);
    void remove_first_segment();
    [[nodiscard]] int write_state();
    [[nodiscard]] std::uint64_t end_of(std::size_t segment) const;
    [[nodiscard]] std::string path_of(std::uint64_t first) const;
    [[nodiscard]] bool seek_line(std::uint64_t from);
    [[nodiscard]] bool read_segment(RecordLines& lines);
    void drop_lines_after(std::uint64_t last, RecordLines& lines);

    SpoolFolder* folder_;
    std::string run_;
    base::UniqueFd state_file_; ///< its lock marks the owner of the run
    mutable std::mutex mutex_;
    SpoolState state_;
    bool is_ours_ = false;
    std::atomic<bool> is_folder_removed_{false}; ///< the folder was removed while in use
    /// True if the state file was written. Without it, a later run does not find the lines.
    bool has_state_file_ = false;
    std::deque<SpoolSegment> segments_;
    base::UniqueFd file_; ///< the last segment's file; invalid for a run that was taken over
    std::uint64_t last_ = 0;
    int error_ = 0;

    // These members are used by the reading thread only.
    base::UniqueFd read_file_;
    std::uint64_t read_segment_ = 0; ///< first line of the segment being read; 0 if there is none
    std::uint64_t read_at_ = 0;      ///< position in the file of the segment being read
    std::uint64_t read_number_ = 0;  ///< number of the line at read_at_
};

} // namespace tw::bus
