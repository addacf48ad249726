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

/// Consecutive JSON lines of records of one run. All lines are complete.
struct RecordLines {
    std::uint64_t first = 0; ///< number of the first line; lines of a run are numbered from 1
    std::string text{};
};

/// Stores a run's JSON lines, numbered from 1, until the bus has stored them in its stream. One
/// thread appends lines, another thread reads them and calls settle_lines().
class Backlog : public record::Interface {
  public:
    /// Returns the run's UUID. The id of a line's message consists of the UUID and the line's
    /// number.
    [[nodiscard]] virtual const std::string& run_id() const = 0;
    /// Returns the server's name as it is written in subjects.
    [[nodiscard]] virtual const std::string& server_name() const = 0;

    /// Reads some lines from the number `from` on; skips lost lines. Returns false if no such line
    /// was appended yet.
    [[nodiscard]] virtual bool read_lines(std::uint64_t from, RecordLines& lines) = 0;

    /// Marks all lines up to the number `line` as settled: they are in the stream, or lost. Later
    /// lines have sequence numbers above `sequence` in the stream.
    virtual void settle_lines(std::uint64_t line, std::uint64_t sequence) = 0;

    [[nodiscard]] virtual std::uint64_t last_settled() const = 0;

    /// Returns true if a later run of twscope can find and publish the unsettled lines.
    [[nodiscard]] virtual bool is_persistent() const { return false; }

    /// Returns the argument `sequence` of the last settle_lines() call; nullopt if no line was ever
    /// published.
    [[nodiscard]] virtual std::optional<std::uint64_t> settled_sequence() const = 0;
    /// Returns the number of the last appended line; 0 if no line was appended.
    [[nodiscard]] virtual std::uint64_t last_line() const = 0;
};

class LineStore : public Backlog {
  public:
    /// Appends complete lines. Returns false, and appends nothing, if they do not fit at the
    /// moment.
    virtual bool append(std::string_view block) = 0;

    [[nodiscard]] virtual bool has_room() const = 0;

    /// Returns true if no line can be appended any more.
    [[nodiscard]] virtual bool has_failed_permanently() const { return false; }

    /// Returns the errno of the failure that prevents appending; 0 if appending is possible.
    [[nodiscard]] virtual int error() const { return 0; }

    /// After a failure, tries again to write to the disk.
    virtual void retry_writing() {}

    /// Returns the number of lines dropped to make room for newer lines.
    [[nodiscard]] virtual std::uint64_t dropped_lines() const { return 0; }

    /// Returns the number of lost records that no appended line reports. A dropped line counts as
    /// one record, plus the lost records that the line reported.
    [[nodiscard]] virtual std::uint64_t unreported_losses() const { return 0; }

    /// Subtracts `lost` from the unreported losses. Call this function after appending a line that
    /// reports them.
    virtual void mark_losses_reported(std::uint64_t /*lost*/) {}

    /// Returns the number of unsettled lines, including lines of earlier runs.
    [[nodiscard]] virtual std::uint64_t waiting_lines() const {
        // read first, because last_line() may grow in between
        const std::uint64_t before = last_settled();
        return last_line() - before;
    }

    /// Returns the size of the unsettled lines in bytes.
    [[nodiscard]] virtual std::uint64_t waiting_bytes() const = 0;
};

/// Stores lines in limited memory. If the memory is full, append() returns false.
class MemoryBacklog final : public LineStore {
  public:
    /// The limit in bytes: enough for the lines of one minute of a server with 64 players.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

    MemoryBacklog(std::string run, std::string server, std::size_t max_bytes = kMaxBytes)
        : run_{std::move(run)}, server_{std::move(server)}, max_bytes_{max_bytes} {}

    bool append(std::string_view block) override;
    [[nodiscard]] bool has_room() const override;
    [[nodiscard]] std::uint64_t waiting_bytes() const override;

    [[nodiscard]] const std::string& run_id() const override { return run_; }

    [[nodiscard]] const std::string& server_name() const override { return server_; }

    [[nodiscard]] bool read_lines(std::uint64_t from, RecordLines& lines) override;
    void settle_lines(std::uint64_t line, std::uint64_t sequence) override;
    [[nodiscard]] std::uint64_t last_settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> settled_sequence() const override;
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

/// Stores one run's lines on a disk, in append-only files ("segments") and a state file. The
/// process that holds the lock of the state file owns the run. The lock ends with the process.
class Spool final : public LineStore {
  public:
    /// Creates the spool of a new run.
    /// Errors: throws std::system_error.
    Spool(SpoolFolder& folder, const std::string& run, const std::string& server,
          const std::string& stream);
    /// Takes over the spool of an earlier run. Returns null if another process owns the spool, if
    /// the lines are for another stream, or if the spool cannot be read.
    [[nodiscard]] static std::unique_ptr<Spool>
    take_over(SpoolFolder& folder, const std::string& run, const std::string& stream);
    /// Takes over the spool of any run other than `own_run`. Returns null if there is none to take
    /// over.
    [[nodiscard]] static std::unique_ptr<Spool>
    take_over_next(SpoolFolder& folder, const std::string& own_run, const std::string& stream);
    /// Removes the files whose lines are settled.
    ~Spool() override;
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;

    bool append(std::string_view block) override;

    [[nodiscard]] bool has_room() const override { return error() == 0; }

    [[nodiscard]] bool has_failed_permanently() const override { return is_folder_removed_; }

    [[nodiscard]] int error() const override;
    void retry_writing() override;
    [[nodiscard]] std::uint64_t dropped_lines() const override;
    [[nodiscard]] std::uint64_t unreported_losses() const override;
    void mark_losses_reported(std::uint64_t lost) override;

    [[nodiscard]] bool is_persistent() const override { return true; }

    [[nodiscard]] std::uint64_t waiting_lines() const override;
    [[nodiscard]] std::uint64_t waiting_bytes() const override;

    [[nodiscard]] const std::string& run_id() const override { return run_; }

    [[nodiscard]] const std::string& server_name() const override { return state_.server; }

    [[nodiscard]] bool read_lines(std::uint64_t from, RecordLines& lines) override;
    void settle_lines(std::uint64_t line, std::uint64_t sequence) override;
    [[nodiscard]] std::uint64_t last_settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> settled_sequence() const override;
    [[nodiscard]] std::uint64_t last_line() const override;

  private:
    struct SpoolSegment {
        std::uint64_t first = 0;
        std::uint64_t bytes = 0;
    };

    Spool(SpoolFolder& folder, std::string run, int state);
    void find_segments();
    /// Drops the oldest file and returns what is lost. Returns nullopt if only the file that is
    /// being written is left.
    std::optional<SpoolFolder::FileLoss> drop_oldest_file();
    [[nodiscard]] bool begin_segment(std::size_t coming);
    void remove_first_segment();
    [[nodiscard]] int write_state();
    [[nodiscard]] std::uint64_t last_line_of(std::size_t segment) const;
    [[nodiscard]] std::string segment_path(std::uint64_t first) const;
    [[nodiscard]] bool seek_line(std::uint64_t from);
    [[nodiscard]] bool read_segment(RecordLines& lines);
    void drop_lines_after(std::uint64_t last, RecordLines& lines);

    SpoolFolder* folder_;
    std::string run_;
    base::UniqueFd state_file_; ///< locked by the process that owns the run
    mutable std::mutex mutex_;
    SpoolState state_;
    bool is_ours_ = false;
    std::atomic<bool> is_folder_removed_{false}; ///< the folder was removed while in use
    /// True if the state file was written. Without a state file, a later run cannot find the lines.
    bool has_state_file_ = false;
    std::deque<SpoolSegment> segments_;
    base::UniqueFd file_; ///< the last segment's file; invalid for a run that was taken over
    std::uint64_t last_ = 0;
    int error_ = 0;

    // The members below are used only by the reading thread.
    base::UniqueFd read_file_;
    /// Number of the first line of the segment being read; 0 if no segment is being read.
    std::uint64_t read_segment_ = 0;
    std::uint64_t read_at_ = 0;     ///< position in the file of this segment, in bytes
    std::uint64_t read_number_ = 0; ///< number of the line at read_at_
};

} // namespace tw::bus
