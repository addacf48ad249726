#include "proxy/bus/memory_backlog.h"

#include "proxy/sink/output.h"

#include <algorithm>

namespace tw::bus {

bool MemoryBacklog::append(std::string_view block) {
    const std::uint64_t lines = sink::lines_in(block);
    if (lines == 0) {
        return true;
    }
    const std::lock_guard lock{mutex_};
    blocks_.push_back({.first = last_ + 1, .text = std::string{block}});
    bytes_ += block.size();
    last_ += lines;
    return true;
}

bool MemoryBacklog::has_room() const {
    const std::lock_guard lock{mutex_};
    return bytes_ < max_bytes_;
}

std::uint64_t MemoryBacklog::bytes() const {
    const std::lock_guard lock{mutex_};
    return bytes_;
}

bool MemoryBacklog::read(std::uint64_t from, Lines& lines) {
    const std::lock_guard lock{mutex_};
    if (from > last_ || blocks_.empty()) {
        return false;
    }
    const auto behind =
        std::upper_bound(blocks_.begin(), blocks_.end(), from,
                         [](std::uint64_t line, const Lines& block) { return line < block.first; });
    lines = behind == blocks_.begin() ? blocks_.front() : *std::prev(behind);
    return true;
}

void MemoryBacklog::settle(std::uint64_t line, std::uint64_t place) {
    const std::lock_guard lock{mutex_};
    settled_ = line;
    place_ = place;
    while (!blocks_.empty() && (blocks_.size() > 1 ? blocks_[1].first - 1 : last_) <= line) {
        bytes_ -= blocks_.front().text.size();
        blocks_.pop_front();
    }
}

std::uint64_t MemoryBacklog::settled() const {
    const std::lock_guard lock{mutex_};
    return settled_;
}

std::optional<std::uint64_t> MemoryBacklog::place() const {
    const std::lock_guard lock{mutex_};
    return place_;
}

std::uint64_t MemoryBacklog::last() const {
    const std::lock_guard lock{mutex_};
    return last_;
}

} // namespace tw::bus
