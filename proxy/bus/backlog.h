#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/bus/spool_folder.h"
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

/// Consecutive whole record lines of a run.
struct Lines {
    std::uint64_t first = 0; ///< number of the first line
    std::string text{};
};

/// Holds a run's record lines, numbered from 1, until the bus has stored them in its stream. One
/// thread appends lines; another one reads them and calls settle().
class Backlog {
  public:
    Backlog() = default;
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;
    Backlog(Backlog&&) = delete;
    Backlog& operator=(Backlog&&) = delete;
    virtual ~Backlog() = default;

    /// The run's UUID. Together with a line's number it forms the id of the line's message.
    [[nodiscard]] virtual const std::string& run() const = 0;
    /// The server's name as a part of subjects.
    [[nodiscard]] virtual const std::string& server() const = 0;

    /// Reads lines from the number `from` on and skips lost lines. Returns false if there are no
    /// such lines at the moment.
    [[nodiscard]] virtual bool read(std::uint64_t from, Lines& lines) = 0;

    /// Marks all lines up to `line` as settled: the stream has them, or they are lost. All later
    /// lines of the run get sequence numbers above `place` in the stream.
    virtual void settle(std::uint64_t line, std::uint64_t place) = 0;

    [[nodiscard]] virtual std::uint64_t settled() const = 0;

    /// True if unsettled lines are kept where the next run finds them.
    [[nodiscard]] virtual bool lasting() const { return false; }

    /// The `place` of the last settle() call; nullopt if no line was ever published.
    [[nodiscard]] virtual std::optional<std::uint64_t> place() const = 0;
    /// The number of the last line; 0 if there was none.
    [[nodiscard]] virtual std::uint64_t last() const = 0;
};

/// A backlog to which lines can be appended.
class Store : public Backlog {
  public:
    /// Appends whole lines. Returns false and keeps nothing if that is not possible now.
    virtual bool append(std::string_view block) = 0;

    [[nodiscard]] virtual bool has_room() const = 0;

    /// True if the store will never accept lines again.
    [[nodiscard]] virtual bool is_gone() const { return false; }

    /// The errno of the failure that prevents appending; 0 if there is none.
    [[nodiscard]] virtual int error() const { return 0; }

    /// Retries what failed.
    virtual void retry() {}

    /// The number of lines dropped to make room for newer ones.
    [[nodiscard]] virtual std::uint64_t given_up() const { return 0; }

    /// The losses that no line reports yet: dropped lines, and the losses that dropped lines had
    /// reported.
    [[nodiscard]] virtual std::uint64_t unreported() const { return 0; }

    /// Notes that the last line reports `lost` of the unreported losses.
    virtual void on_reported(std::uint64_t /*lost*/) {}

    /// The number of unsettled lines, including those of earlier runs.
    [[nodiscard]] virtual std::uint64_t waiting() const {
        const std::uint64_t before = settled(); // read first, as last() only grows
        return last() - before;
    }

    /// The size of the unsettled lines in bytes.
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Holds lines in limited memory. If it is full, the caller has to wait.
class MemoryBacklog final : public Store {
  public:
    /// The lines of one minute of a server with 64 players.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

    MemoryBacklog(std::string run, std::string server, std::size_t max_bytes = kMaxBytes)
        : run_{std::move(run)}, server_{std::move(server)}, max_bytes_{max_bytes} {}

    bool append(std::string_view block) override;
    [[nodiscard]] bool has_room() const override;
    [[nodiscard]] std::uint64_t bytes() const override;

    [[nodiscard]] const std::string& run() const override { return run_; }

    [[nodiscard]] const std::string& server() const override { return server_; }

    [[nodiscard]] bool read(std::uint64_t from, Lines& lines) override;
    void settle(std::uint64_t line, std::uint64_t place) override;
    [[nodiscard]] std::uint64_t settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> place() const override;
    [[nodiscard]] std::uint64_t last() const override;

  private:
    std::string run_;
    std::string server_;
    std::size_t max_bytes_;
    mutable std::mutex mutex_;
    std::deque<Lines> blocks_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t settled_ = 0;
    std::optional<std::uint64_t> place_;
};

/// Holds one run's lines on a disk: append-only files and a state file. The process that holds the
/// state's lock owns the run; the lock ends with the process.
///
/// An appended line survives the process but not a crash of the machine: nothing is synced.
class Spool final : public Store {
  public:
    /// Creates the spool of a new run.
    /// Errors: throws std::system_error.
    Spool(SpoolFolder& folder, const std::string& run, const std::string& server,
          const std::string& stream);
    /// Takes over the spool of an earlier run. Returns null if another process owns it, it is for
    /// another stream, or it cannot be read.
    [[nodiscard]] static std::unique_ptr<Spool> adopt(SpoolFolder& folder, const std::string& run,
                                                      const std::string& stream);
    /// Takes over the spool of any other run; returns null if there is none.
    [[nodiscard]] static std::unique_ptr<Spool>
    next_leftover(SpoolFolder& folder, const std::string& own_run, const std::string& stream);
    /// Removes settled lines.
    ~Spool() override;
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    Spool(Spool&&) = delete;
    Spool& operator=(Spool&&) = delete;

    bool append(std::string_view block) override;

    [[nodiscard]] bool has_room() const override { return error() == 0; }

    [[nodiscard]] bool is_gone() const override { return is_taken_away_; }

    [[nodiscard]] int error() const override;
    void retry() override;
    [[nodiscard]] std::uint64_t given_up() const override;
    [[nodiscard]] std::uint64_t unreported() const override;
    void on_reported(std::uint64_t lost) override;

    [[nodiscard]] bool lasting() const override { return true; }

    [[nodiscard]] std::uint64_t waiting() const override;
    [[nodiscard]] std::uint64_t bytes() const override;

    [[nodiscard]] const std::string& run() const override { return run_; }

    [[nodiscard]] const std::string& server() const override { return state_.server; }

    [[nodiscard]] bool read(std::uint64_t from, Lines& lines) override;
    void settle(std::uint64_t line, std::uint64_t place) override;
    [[nodiscard]] std::uint64_t settled() const override;
    [[nodiscard]] std::optional<std::uint64_t> place() const override;
    [[nodiscard]] std::uint64_t last() const override;

  private:
    struct Segment {
        std::uint64_t first = 0;
        std::uint64_t bytes = 0;
    };

    Spool(SpoolFolder& folder, std::string run, int state);
    void find_segments();
    /// Drops the oldest file except the current one; returns nullopt if there is no such file.
    std::optional<SpoolFolder::Loss> drop_oldest();
    [[nodiscard]] bool begin_segment(std::size_t coming);
    void remove_first();
    [[nodiscard]] int write_state();
    [[nodiscard]] std::uint64_t end_of(std::size_t segment) const;
    [[nodiscard]] std::string path_of(std::uint64_t first) const;
    [[nodiscard]] bool seek(std::uint64_t from);
    [[nodiscard]] bool fill(Lines& lines);
    void keep_until(std::uint64_t last, Lines& lines);

    SpoolFolder* folder_;
    std::string run_;
    base::UniqueFd state_file_; ///< holds the lock
    mutable std::mutex mutex_;
    SpoolState state_;
    bool is_ours_ = false;
    std::atomic<bool> is_taken_away_{false}; ///< the folder was removed while in use
    /// True if the state file is on the disk. Without that file nobody finds the lines.
    bool known_ = false;
    std::deque<Segment> segments_;
    base::UniqueFd file_; ///< the last segment's file; invalid for a run that was taken over
    std::uint64_t last_ = 0;
    int error_ = 0;

    // Used by the reader only.
    base::UniqueFd read_file_;
    std::uint64_t read_segment_ = 0; ///< first line of the segment being read; 0 if there is none
    std::uint64_t read_at_ = 0;      ///< position in the file of the segment being read
    std::uint64_t read_number_ = 0;  ///< number of the line at read_at_
};

} // namespace tw::bus
