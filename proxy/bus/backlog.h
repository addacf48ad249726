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

/// Whole lines that follow each other.
struct Lines {
    std::uint64_t first = 0; ///< number of the first one
    std::string text{};
};

/// Where a run's lines stand until they are in the stream, numbered from 1. One thread appends, one
/// reads and settles; it is safe for both.
class Backlog {
  public:
    Backlog() = default;
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;
    Backlog(Backlog&&) = delete;
    Backlog& operator=(Backlog&&) = delete;
    virtual ~Backlog() = default;

    /// A UUID: with the number of a line it makes the id of its message.
    [[nodiscard]] virtual const std::string& run() const = 0;
    /// As a part of subjects.
    [[nodiscard]] virtual const std::string& server() const = 0;

    /// Lines from this number on, or from the next that is not lost. False: there are none, for now.
    [[nodiscard]] virtual bool read(std::uint64_t from, Lines& lines) = 0;

    /// All up to `line` are in the stream or lost; what else of the run is in the stream stands behind
    /// `place`.
    virtual void settle(std::uint64_t line, std::uint64_t place) = 0;

    [[nodiscard]] virtual std::uint64_t settled() const = 0;

    /// Whether what is not settled is there for the next run.
    [[nodiscard]] virtual bool lasting() const { return false; }

    /// As settle was told last; nothing: nothing of it was ever published.
    [[nodiscard]] virtual std::optional<std::uint64_t> place() const = 0;
    /// The number of the last line; 0: there was none.
    [[nodiscard]] virtual std::uint64_t last() const = 0;
};

/// A backlog that takes lines.
class Store : public Backlog {
  public:
    /// Whole lines. False: not now, and nothing of it is kept.
    virtual bool append(std::string_view block) = 0;

    [[nodiscard]] virtual bool has_room() const = 0;

    /// Whether it will never take any again.
    [[nodiscard]] virtual bool is_gone() const { return false; }

    /// errno of what keeps it from taking lines; 0: nothing does.
    [[nodiscard]] virtual int error() const { return 0; }

    /// Tries again what failed.
    virtual void mend() {}

    /// Lines that had to make room for younger ones.
    [[nodiscard]] virtual std::uint64_t given_up() const { return 0; }

    /// Losses that no line reports: lines given up, and what those had reported.
    [[nodiscard]] virtual std::uint64_t unreported() const { return 0; }

    /// The last line reports so many of them.
    virtual void on_reported(std::uint64_t /*lost*/) {}

    /// Lines that wait, with what earlier runs left.
    [[nodiscard]] virtual std::uint64_t waiting() const {
        const std::uint64_t before = settled(); // first: the other one only grows
        return last() - before;
    }

    /// Bytes that wait.
    [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Lines in memory of limited size: when it is full, who appends has to wait.
class MemoryBacklog final : public Store {
  public:
    /// A minute of a server with 64 players.
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

/// One run's lines on a disk: files that are only ever appended to, and a state. Whoever has the
/// state's lock has the run; it is let go by whatever ends the process.
///
/// A line that was appended outlives the process, not the machine: nothing is synced.
class Spool final : public Store {
  public:
    /// A new run's. Errors: throws std::system_error.
    Spool(SpoolFolder& folder, const std::string& run, const std::string& server,
          const std::string& stream);
    /// What a run before this one left; null: it is somebody's, for another stream, or nothing that can
    /// be read.
    [[nodiscard]] static std::unique_ptr<Spool> adopt(SpoolFolder& folder, const std::string& run,
                                                      const std::string& stream);
    /// Of any run but this one; null: there is nothing.
    [[nodiscard]] static std::unique_ptr<Spool>
    next_leftover(SpoolFolder& folder, const std::string& own_run, const std::string& stream);
    /// Removes what is settled.
    ~Spool() override;
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    Spool(Spool&&) = delete;
    Spool& operator=(Spool&&) = delete;

    bool append(std::string_view block) override;

    [[nodiscard]] bool has_room() const override { return error() == 0; }

    [[nodiscard]] bool is_gone() const override { return is_taken_away_; }

    [[nodiscard]] int error() const override;
    void mend() override;
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
    /// Gives up the oldest file but the one being written; nothing: there is no such file.
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
    base::UniqueFd state_file_; ///< locked
    mutable std::mutex mutex_;
    SpoolState state_;
    bool is_ours_ = false;
    std::atomic<bool> is_taken_away_{false}; ///< its folder, while it was needed
    bool known_ = false; ///< the state stands on the disk: without it nobody finds the lines
    std::deque<Segment> segments_;
    base::UniqueFd file_; ///< of the last segment; of an adopted run: none
    std::uint64_t last_ = 0;
    int error_ = 0;

    // Of the reader alone.
    base::UniqueFd read_file_;
    std::uint64_t read_segment_ = 0; ///< its first line; 0: none
    std::uint64_t read_at_ = 0;      ///< in that file
    std::uint64_t read_number_ = 0;  ///< of the line there
};

} // namespace tw::bus
