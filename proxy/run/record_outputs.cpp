#include "proxy/run/record_outputs.h"

#include <chrono>
#include <thread>
#include <tuple>

namespace tw::run {

namespace {

/// A little longer than a live run waits for its bus.
constexpr std::chrono::milliseconds kLongestFinish{1200};
constexpr std::chrono::milliseconds kPulse{50};

} // namespace

void RecordOutputs::open(sink::RecordTarget* bus, LiveOutput* file,
                         std::atomic<std::uint64_t>& progress) {
    file_ = file;
    progress_ = &progress;
    if (bus == nullptr) {
        return;
    }
    bus_.emplace(*bus, 0, &progress);
    if (file != nullptr) {
        both_.emplace(file->queue(), bus_->queue());
    }
}

sink::Output* RecordOutputs::lines() {
    if (both_) {
        return &*both_;
    }
    if (bus_) {
        return &bus_->queue();
    }
    return file_ == nullptr ? nullptr : &file_->queue();
}

std::optional<record::BusTotals> RecordOutputs::bus_totals() const {
    auto totals = bus_ ? bus_->target().bus_totals() : std::nullopt;
    if (totals) {
        totals->dropped += bus_->queue().dropped();
    }
    return totals;
}

void RecordOutputs::check() {
    if (bus_) {
        std::ignore = bus_->check();
    }
}

/// A bus may take a while to acknowledge the last records: that is no hang, and whoever watches over us
/// has to see it.
std::uint64_t RecordOutputs::finish() {
    if (!bus_) {
        return 0;
    }
    std::atomic<bool> done{false};
    std::thread pulse{[this, &done] {
        const auto until = std::chrono::steady_clock::now() + kLongestFinish;
        while (!done && std::chrono::steady_clock::now() < until) {
            progress_->fetch_add(1, std::memory_order_relaxed);
            std::this_thread::sleep_for(kPulse);
        }
    }};
    const std::uint64_t lost = bus_->finish();
    done = true;
    pulse.join();
    return lost;
}

} // namespace tw::run
