#pragma once

#include "proxy/bus/backlog.h"
#include "proxy/bus/publisher.h"
#include "proxy/bus/spool_folder.h"
#include "proxy/sink/file_output.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// How long somebody waits for the bus.
struct Patience {
    std::chrono::milliseconds full; ///< who writes while all memory is full; then it is lost
    std::chrono::milliseconds end;  ///< the end, for what is not acknowledged
};

/// Of a live run: who writes asks whether it is ready, and keeps what it has. A run ends within two
/// seconds, whatever stands still.
inline constexpr Patience kLivePatience{.full = std::chrono::milliseconds{0},
                                        .end = std::chrono::seconds{1}};
/// Of a file that is read: it can wait, but not for ever.
inline constexpr Patience kFilePatience{.full = std::chrono::seconds{30},
                                        .end = std::chrono::seconds{30}};

/// A bus as the end of records. Every line goes to the spool first, where there is one; otherwise what
/// the bus cannot be handed now waits in memory of limited size.
class BusOutput final : public sink::OutputFile {
  public:
    /// Errors: throws std::system_error for a spool that cannot be opened.
    BusOutput(const PublishOptions& options, Patience patience);
    ~BusOutput() override;
    BusOutput(const BusOutput&) = delete;
    BusOutput& operator=(const BusOutput&) = delete;
    BusOutput(BusOutput&&) = delete;
    BusOutput& operator=(BusOutput&&) = delete;

    void write(std::string_view block) override;

    void on_time(Clock::time_point now) override;

    [[nodiscard]] bool ready() const override {
        return store_->is_gone() || (!holds_ && store_->has_room());
    }

    void finish() override;

    void switch_to(int descriptor) override;

    void go_behind_last_unit() override {}

    void stop_waiting() override {}

    [[nodiscard]] const std::string& path() const override { return path_; }

    /// What is only not published yet is no failure.
    [[nodiscard]] int error() const override;

    [[nodiscard]] std::uint64_t lost() const override;

    [[nodiscard]] std::optional<record::BusTotals> bus_totals() const override;

  private:
    struct Work {
        std::optional<SpoolFolder> folder;
        std::unique_ptr<Store> store;
        std::optional<Publisher> publisher;
    };

    [[nodiscard]] bool let_go();
    void refuse(std::string_view lines);
    [[nodiscard]] std::uint64_t damaged() const;
    void report_loss();

    std::string path_;
    std::string spool_;
    Patience patience_;
    std::string kept_; ///< of a block; kept for its memory
    std::string held_; ///< what the store would not take
    std::atomic<bool> holds_{false};
    std::atomic<std::uint64_t> held_lines_{0};
    std::atomic<std::uint64_t> refused_{0};
    std::uint64_t reported_in_ = 0; ///< the last line that reports what made room
    std::uint64_t logged_ = 0;      ///< lines that made room and that the log reports
    std::int64_t lossless_until_ = 0;
    Clock::time_point looked_{};
    bool finished_ = false;
    std::shared_ptr<Work> work_; ///< shared with a thread that may not end in time
    Store* store_ = nullptr;
    Publisher* publisher_ = nullptr;
};

} // namespace tw::bus
