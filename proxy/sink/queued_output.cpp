#include "proxy/sink/queued_output.h"

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

namespace tw::sink {

namespace {

/// How often the target is asked, when nothing is written, whether there is something to be done.
constexpr std::chrono::milliseconds kTurn{250};
/// Handed on at a time, where the target does not want more, so that it can be seen that it gets on.
constexpr std::size_t kQueuedPiece = 65'536;
/// Makes a target try at once what it would try later.
constexpr std::chrono::seconds kLastTry{10};

std::int64_t utc_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string_view cause_of(int error) {
    switch (error) {
    case 0:
        return "too_slow";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "disk_full";
    default:
        return "disk_error";
    }
}

} // namespace

QueuedOutput::QueuedOutput(RecordTarget& target, unsigned makers,
                           std::atomic<std::uint64_t>* progress)
    : target_{&target}, makers_{makers}, progress_{progress},
      segment_{target.segmented() ? 1U : 0U}, thread_{[this] { run(); }} {}

QueuedOutput::~QueuedOutput() {
    finish();
}

void QueuedOutput::finish() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void QueuedOutput::write_in(std::uint32_t segment, std::string_view block) {
    if (block.empty()) {
        return;
    }
    {
        const std::lock_guard lock{mutex_};
        if (queues_[0].size() + queues_[1].size() + block.size() > kMaxQueueBytes) {
            drop(block);
            return;
        }
        // Who made it before the turn may hand it over after it.
        std::string& queue = queues_[turning_ && segment == segment_ ? 1 : 0];
        tell_of_loss(queue);
        queue.append(block);
        if (queue.size() < target_->portion()) {
            return;
        }
    }
    wake_.notify_one();
}

void QueuedOutput::drop(std::string_view block) {
    const std::uint64_t count = target_->units().count(block);
    dropped_ += count;
    if (!loss_) {
        loss_ = Loss{.since = utc_now(), .cause = cause_of(target_->error())};
    }
    loss_->count += count;
}

void QueuedOutput::tell_of_loss(std::string& queue) {
    if (!loss_ || loss_->count == 0) {
        return;
    }
    queue.append(target_->units().loss(*loss_, utc_now()));
    loss_.reset();
}

void QueuedOutput::arrive(std::uint32_t segment) {
    {
        const std::lock_guard lock{mutex_};
        arrived_ += turning_ && segment == segment_ ? 1U : 0U;
    }
    wake_.notify_one();
}

std::uint64_t QueuedOutput::dropped() const {
    const std::lock_guard lock{mutex_};
    return dropped_;
}

/// Announces the next segment, and begins it once all have arrived there.
void QueuedOutput::turn(std::unique_lock<std::mutex>& lock, Clock::time_point now) {
    if (!turning_) {
        if (target_->cut_due(now)) {
            arrived_ = 0;
            turning_ = true;
            segment_.fetch_add(1, std::memory_order_release);
        }
        return;
    }
    if (arrived_ < makers_ || !queues_[0].empty() || !writing_.empty()) {
        return;
    }
    lock.unlock(); // it may take a while: what is in memory is brought to the disk
    const bool cut = target_->cut();
    lock.lock();
    if (cut) {
        queues_[0].append(queues_[1]);
        queues_[1].clear();
        turning_ = false;
    }
}

/// Hands on what was taken from the queue, as long as the target takes it.
void QueuedOutput::hand_on() {
    const std::size_t most = std::max(kQueuedPiece, target_->portion());
    while (handed_ < writing_.size() && target_->ready()) {
        const std::string_view text = std::string_view{writing_}.substr(handed_);
        // A small rest is not handed on alone.
        const std::size_t size =
            text.size() <= most + most / 2 ? text.size() : target_->units().front(text, most);
        target_->write(text.substr(0, size));
        handed_ += size;
        if (progress_ != nullptr) {
            progress_->fetch_add(size, std::memory_order_relaxed);
        }
    }
    if (handed_ == writing_.size()) {
        writing_.clear();
        handed_ = 0;
    }
}

void QueuedOutput::run() {
    std::unique_lock lock{mutex_};
    while (!stop_) {
        wake_.wait_for(lock, kTurn, [this] {
            const bool all_arrived = turning_ && arrived_ >= makers_;
            return stop_ || (target_->ready() && (queues_[0].size() >= target_->portion() ||
                                                  !writing_.empty() || all_arrived));
        });
        if (writing_.empty()) {
            std::swap(queues_[0], writing_);
        }
        const auto now = Clock::now();
        lock.unlock();
        target_->on_time(now);
        hand_on();
        lock.lock();
        turn(lock, now);
    }
    tell_of_loss(queues_[turning_ ? 1 : 0]);
    lock.unlock(); // nobody writes here any more
    write_rest();
}

/// What the target does not take now is lost.
void QueuedOutput::write_rest() {
    for (std::string* const queue : {queues_.data(), queues_.data() + 1}) {
        hand_on_or_lose();
        if (queue == &queues_[1] && turning_) {
            std::ignore = target_->cut();
        }
        std::swap(*queue, writing_);
        hand_on_or_lose();
    }
    target_->finish();
}

void QueuedOutput::hand_on_or_lose() {
    if (!target_->ready()) {
        target_->on_time(Clock::now() + kLastTry);
    }
    hand_on();
    if (!writing_.empty()) {
        const std::lock_guard lock{mutex_};
        dropped_ += target_->units().count(std::string_view{writing_}.substr(handed_));
        writing_.clear();
        handed_ = 0;
    }
}

} // namespace tw::sink
