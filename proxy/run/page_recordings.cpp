#include "proxy/run/page_recordings.h"

#include "proxy/relay/clock.h"
#include "proxy/run/recording_folders.h"
#include "proxy/sink/capture_blocks.h"

#include <ctime>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace tw::run {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

std::string capture_name(record::Timestamp now) {
    return fmt::format("capture-{:%Y%m%dT%H%M%SZ}.pcapng",
                       fmt::gmtime(static_cast<std::time_t>(now / kSecond)));
}

} // namespace

PageRecordings::PageRecordings(PageRecordingOptions options, unsigned workers,
                               std::uint64_t max_bytes, std::atomic<std::uint64_t>* progress)
    : options_{std::move(options)}, workers_{workers}, max_bytes_{max_bytes},
      files_{sink::FileQueue::Full::refuse, sink::FileQueue::kMaxQueueBytes, progress} {}

std::optional<std::string> PageRecordings::reason_against(admin::RecordingKind kind) const {
    if (kind == admin::RecordingKind::capture && !options_.captures) {
        return "a capture contains passwords and whispers, and this run may not show secrets";
    }
    if (kind == admin::RecordingKind::capture && writing_.load(std::memory_order_acquire) != 0) {
        return "the previous capture is still being finished; try again";
    }
    if (recorded_bytes(options_.demos.folder) >= max_bytes_) {
        return fmt::format("the recordings in {} take {} MiB or more; move some away first",
                           options_.demos.folder.string(), max_bytes_ >> 20U);
    }
    return std::nullopt;
}

tl::expected<void, std::string> PageRecordings::set(admin::RecordingKind kind, bool on) {
    const std::lock_guard lock{mutex_};
    const bool is_on = kind == admin::RecordingKind::capture ? capture_since_ms_.has_value()
                                                             : demos_since_ms_.has_value();
    if (is_on == on) {
        return {};
    }
    if (auto reason = on ? reason_against(kind) : std::nullopt) {
        return tl::unexpected{*std::move(reason)};
    }
    if (on) {
        stopped_.clear();
    }
    if (kind == admin::RecordingKind::demos) {
        switch_demos(on);
    } else {
        switch_capture(on);
        if (on && !capture_since_ms_) {
            return tl::unexpected{std::string{"the disk is too slow; try again"}};
        }
    }
    return {};
}

void PageRecordings::switch_demos(bool on) {
    demos_since_ms_ = on ? std::optional{relay::now_utc() / kMillisecond} : std::nullopt;
    spdlog::info("demos from the page: {}", on ? "on" : "off");
}

void PageRecordings::switch_capture(bool on) {
    if (on) {
        const auto now = relay::now_utc();
        const auto file = files_.create(options_.demos.folder / capture_name(now),
                                        sink::CaptureBlocks::head("from the page"),
                                        sink::FileQueue::Readers::owner);
        if (!file) {
            return;
        }
        capture_ = *file;
        capture_since_ms_ = now / kMillisecond;
        writing_.store(workers_, std::memory_order_release);
    } else {
        capture_since_ms_.reset();
    }
    ++round_;
    spdlog::info("capture from the page: {}", on ? "on" : "off");
}

admin::PageRecordingState PageRecordings::state() const {
    const std::lock_guard lock{mutex_};
    return {.captures = options_.captures,
            .capture_since_ms = capture_since_ms_,
            .demos_since_ms = demos_since_ms_,
            .lost = lost_.load(std::memory_order_relaxed) + files_.lost(),
            .stopped = stopped_};
}

void PageRecordings::stop(std::string reason) {
    if (!capture_since_ms_ && !demos_since_ms_) {
        return;
    }
    if (capture_since_ms_) {
        switch_capture(false);
    }
    if (demos_since_ms_) {
        switch_demos(false);
    }
    stopped_ = std::move(reason);
    spdlog::error("recording from the page stopped: {}; forwarding continues", stopped_);
}

void PageRecordings::hear() {
    const std::lock_guard lock{mutex_};
    while (auto complaint = files_.take_complaint()) {
        spdlog::error("not written: {}; forwarding continues", *complaint);
        stop(*std::move(complaint));
    }
}

void PageRecordings::look() {
    hear();
    const std::lock_guard lock{mutex_};
    if ((capture_since_ms_ || demos_since_ms_) &&
        recorded_bytes(options_.demos.folder) >= max_bytes_) {
        stop(fmt::format("the recordings in {} take {} MiB", options_.demos.folder.string(),
                         max_bytes_ >> 20U));
    }
}

PageRecordings::Orders PageRecordings::orders() const {
    const std::lock_guard lock{mutex_};
    return {.round = round_, .capture = capture_, .demos = demos_since_ms_.has_value()};
}

void PageRecordings::leave(sink::FileQueue::File capture) {
    if (writing_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        files_.close(capture);
    }
}

void PageRecordings::finish() {
    files_.finish();
    while (const auto complaint = files_.take_complaint()) {
        spdlog::error("not written: {}", *complaint);
    }
    if (const auto lost = state().lost; lost != 0) {
        spdlog::warn("recordings from the page lack {} datagrams, snapshots and blocks", lost);
    }
}

} // namespace tw::run
