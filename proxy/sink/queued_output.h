#pragma once

#include "proxy/sink/output.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tw::sink {

/// Writes to another output on a thread of its own. The queue is bounded: when the disk cannot keep
/// up, whole blocks are dropped and their lines counted, and nobody waits.
class QueuedOutput final : public Output {
  public:
    /// Half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    explicit QueuedOutput(Output& target);
    /// Writes what is queued, then ends the thread.
    ~QueuedOutput() override;
    QueuedOutput(const QueuedOutput&) = delete;
    QueuedOutput& operator=(const QueuedOutput&) = delete;
    QueuedOutput(QueuedOutput&&) = delete;
    QueuedOutput& operator=(QueuedOutput&&) = delete;

    void write(std::string_view block) override;
    [[nodiscard]] std::uint64_t dropped_lines() const;

  private:
    void run();

    Output* target_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::string queue_;
    std::string writing_;
    std::uint64_t dropped_lines_ = 0;
    bool stop_ = false;
    std::thread thread_;
};

} // namespace tw::sink
