#include "proxy/sink/file_output.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace tw::sink {

namespace {

std::uint64_t lines_in(std::string_view block) {
    return static_cast<std::uint64_t>(std::count(block.begin(), block.end(), '\n'));
}

} // namespace

FileOutput::FileOutput(const std::string& path) : path_{path} {
    constexpr mode_t kReadableByAll = 0644;
    descriptor_ = path == "-" ? ::dup(STDOUT_FILENO)
                              : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                                       kReadableByAll);
    if (descriptor_ < 0) {
        throw std::system_error{errno, std::generic_category(), path};
    }
}

FileOutput::~FileOutput() {
    ::close(descriptor_);
}

void FileOutput::write(std::string_view block) {
    while (!block.empty() && !failed()) {
        const ssize_t written = ::write(descriptor_, block.data(), block.size());
        if (written >= 0) {
            block.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno != EINTR) {
            error_ = errno;
        }
    }
    if (failed()) {
        lost_lines_ += lines_in(block);
    }
}

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
