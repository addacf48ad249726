#pragma once

#include "proxy/sink/record_target.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tw::sink {

/// Hands on to a target on a thread of its own. The queue is bounded: when the disk cannot keep up, or
/// is full, whole blocks are dropped and counted, and nobody waits. What the target's units say of a loss
/// stands where they would.
///
/// Where the target is written in segments, the next one begins when all makers of records have
/// arrived in it; until then two queues fill.
class QueuedOutput final : public Output {
  public:
    /// Half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    /// `makers`: how many say that they have arrived. `progress` counts bytes handed on, lost ones
    /// included; null: nobody asks. Both have to outlive it.
    explicit QueuedOutput(RecordTarget& target, unsigned makers = 0,
                          std::atomic<std::uint64_t>* progress = nullptr);
    /// Writes what is queued, finishes the target, then ends the thread.
    ~QueuedOutput() override;
    QueuedOutput(const QueuedOutput&) = delete;
    QueuedOutput& operator=(const QueuedOutput&) = delete;
    QueuedOutput(QueuedOutput&&) = delete;
    QueuedOutput& operator=(QueuedOutput&&) = delete;

    void write(std::string_view block) override { write_in(segment(), block); }

    [[nodiscard]] std::uint32_t segment() const override {
        return segment_.load(std::memory_order_acquire);
    }

    void write_in(std::uint32_t segment, std::string_view block) override;
    void arrive(std::uint32_t segment) override;
    /// Records, or packets.
    [[nodiscard]] std::uint64_t dropped() const;

    /// Writes all that is queued. Nothing may come behind it. Once; the destructor does it, too.
    void finish();

  private:
    using Clock = RecordTarget::Clock;

    void run();
    void drop(std::string_view block);
    void tell_of_loss(std::string& queue);
    void turn(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void hand_on();
    void write_rest();
    void hand_on_or_lose();

    RecordTarget* target_;
    unsigned makers_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::array<std::string, 2> queues_; ///< for the segment being written, and for the next one
    std::string writing_;               ///< taken from the queue
    std::size_t handed_ = 0;            ///< of it to the target
    std::uint64_t dropped_ = 0;
    std::optional<Loss> loss_; ///< not reported yet
    bool stop_ = false;
    bool turning_ = false; ///< the next segment was announced
    unsigned arrived_ = 0;
    std::atomic<std::uint32_t> segment_; ///< what is made now belongs there
    std::thread thread_;
};

} // namespace tw::sink
