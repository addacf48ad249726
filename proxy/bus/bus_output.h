#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/publisher.h"
#include "proxy/store/file_output.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tw::bus {

/// Time limits for waiting for the bus.
struct BusTimeouts {
    /// How long write() waits while the memory is full. After this time, the written lines are
    /// lost.
    std::chrono::milliseconds write;
    /// How long finish_writing() waits until the bus has acknowledged all lines.
    std::chrono::milliseconds finish_writing;
};

/// The time limits of a live run. write() never waits, because its caller writes only while
/// accepts_data() is true. The end of a run takes at most two seconds.
inline constexpr BusTimeouts kLiveTimeouts{.write = std::chrono::milliseconds{0},
                                           .finish_writing = std::chrono::seconds{1}};
/// The time limits for publishing a file of records. Reading the file can wait while the bus is
/// slow.
inline constexpr BusTimeouts kFileTimeouts{.write = std::chrono::seconds{30},
                                           .finish_writing = std::chrono::seconds{30}};

/// Publishes the JSON lines of records on a message bus. With a spool, every line is first written
/// to the spool. Without a spool, lines that the bus cannot accept at the moment wait in limited
/// memory.
class BusOutput final : public store::OutputFile {
  public:
    /// Opens the output. Errors: throws std::system_error if the spool cannot be opened.
    BusOutput(const PublishOptions& options, BusTimeouts timeouts);
    ~BusOutput() override;
    BusOutput(const BusOutput&) = delete;
    BusOutput& operator=(const BusOutput&) = delete;

    void write(std::string_view block) override;

    void do_due_work(Clock::time_point now) override;

    [[nodiscard]] bool accepts_data() const override { return backlog_->has_room(); }

    void finish_writing() override;

    /// Returns the totals of published records. Callable from any thread. Waiting records are
    /// counted once a second, because that reads the spool's folder.
    [[nodiscard]] record::BusTotals totals() const;

  private:
    /// A line that reports `lost` dropped lines.
    struct LossReport {
        std::uint64_t line = 0; ///< number of the line
        std::uint64_t lost = 0;
    };

    [[nodiscard]] std::uint64_t total_lost_lines() const;
    void update_shared_counters();
    void append_loss_record();
    std::uint64_t count_waiting_lines();

    std::string spool_path_;
    BusTimeouts timeouts_;
    /// The written lines without repeated lines. A member, so that its memory is reused.
    std::string new_lines_;
    std::atomic<std::uint64_t> refused_lines_{0}; ///< number of lines for which there was no room
    /// Number of lines that are still to be published.
    std::atomic<std::uint64_t> waiting_lines_{0};
    std::atomic<std::uint64_t> waiting_bytes_{0};
    std::vector<LossReport> loss_reports_;
    std::uint64_t logged_dropped_lines_ = 0; ///< number of dropped lines that were logged
    std::int64_t lossless_until_ = 0;        ///< all losses before this time (UTC, ns) are reported
    Clock::time_point last_maintenance_{};
    bool is_finished_ = false;
    std::shared_ptr<Publisher> publisher_;
    Backlog* backlog_ = nullptr;
};

} // namespace tw::bus
