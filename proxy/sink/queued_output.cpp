#include "proxy/sink/queued_output.h"

#include <utility>

namespace tw::sink {

QueuedOutput::QueuedOutput(Output& target) : target_{&target}, thread_{[this] { run(); }} {}

QueuedOutput::~QueuedOutput() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void QueuedOutput::write(std::string_view block) {
    {
        const std::lock_guard lock{mutex_};
        if (queue_.size() + block.size() > kMaxQueueBytes) {
            dropped_lines_ += lines_in(block);
            return;
        }
        queue_.append(block);
    }
    wake_.notify_one();
}

std::uint64_t QueuedOutput::dropped_lines() const {
    const std::lock_guard lock{mutex_};
    return dropped_lines_;
}

void QueuedOutput::run() {
    std::unique_lock lock{mutex_};
    while (true) {
        wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (queue_.empty()) {
            return;
        }
        std::swap(queue_, writing_);
        lock.unlock();
        target_->write(writing_);
        writing_.clear();
        lock.lock();
    }
}

} // namespace tw::sink
