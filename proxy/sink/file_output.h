#pragma once

#include "proxy/sink/output.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace tw::sink {

/// A file, or standard output for "-". Open once, write, and on the first error stop for good: what
/// could not be written is counted.
class FileOutput final : public Output {
  public:
    /// Errors: throws std::system_error when the file cannot be opened.
    explicit FileOutput(const std::string& path);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    /// As it was opened.
    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] bool failed() const { return error_ != 0; }

    /// errno of the failure, 0 while all is well. From any thread, as the others that only ask.
    [[nodiscard]] int error() const { return error_; }

    [[nodiscard]] std::uint64_t lost_lines() const { return lost_lines_; }

  private:
    std::string path_;
    int descriptor_ = -1;
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_lines_{0};
};

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
