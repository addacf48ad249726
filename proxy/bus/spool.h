#pragma once

#include "proxy/bus/spool_folder.h"
#include "proxy/bus/spool_state.h"
#include "proxy/bus/store.h"
#include "proxy/relay/unique_fd.h"
#include "proxy/sink/disk.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

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
    relay::UniqueFd state_file_; ///< locked
    mutable std::mutex mutex_;
    SpoolState state_;
    bool is_ours_ = false;
    std::atomic<bool> is_taken_away_{false}; ///< its folder, while it was needed
    bool known_ = false; ///< the state stands on the disk: without it nobody finds the lines
    std::deque<Segment> segments_;
    relay::UniqueFd file_; ///< of the last segment; of an adopted run: none
    std::uint64_t last_ = 0;
    int error_ = 0;

    // Of the reader alone.
    relay::UniqueFd read_file_;
    std::uint64_t read_segment_ = 0; ///< its first line; 0: none
    std::uint64_t read_at_ = 0;      ///< in that file
    std::uint64_t read_number_ = 0;  ///< of the line there
};

} // namespace tw::bus
