#pragma once

#include "proxy/admin/recordings.h"
#include "proxy/admin/state.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_queue.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include <tl/expected.hpp>

namespace tw::run {

struct PageRecordingOptions {
    sink::DemoOptions demos{}; ///< its folder is that of captures, too
    bool captures = false;     ///< they hold every secret: only where those may be shown
};

/// What the page has switched on: between its thread, which says so, and the workers, which ask now and
/// then. Ends by itself when the disk fails or the folder is full.
class PageRecordings {
  public:
    /// That recordings in the folder may take before none begins or goes on.
    static constexpr std::uint64_t kMaxFolderBytes = std::uint64_t{4} << 30U;

    /// What workers are to do. A capture has one file, which all of them write.
    struct Orders {
        std::uint32_t round = 0; ///< counts starts and ends of captures; even: none
        sink::FileQueue::File capture = 0;
        bool demos = false;
    };

    /// `workers`: how many ask. `max_bytes`: kMaxFolderBytes, less in tests. `progress`: as of FileQueue.
    PageRecordings(PageRecordingOptions options, unsigned workers,
                   std::uint64_t max_bytes = kMaxFolderBytes,
                   std::atomic<std::uint64_t>* progress = nullptr);

    [[nodiscard]] const PageRecordingOptions& options() const { return options_; }

    /// By the page. Errors: one line that says why not.
    [[nodiscard]] tl::expected<void, std::string> set(admin::RecordingKind kind, bool on);
    /// From any thread.
    [[nodiscard]] admin::PageRecordingState state() const;
    /// From any thread: ends what could not be written.
    void hear();
    /// Once a second: ends what cannot go on, because of that or for want of room.
    void look();

    /// By workers.
    [[nodiscard]] Orders orders() const;

    [[nodiscard]] sink::FileQueue& files() { return files_; }

    /// A worker writes no more to the capture. The last one closes its file.
    void leave(sink::FileQueue::File capture);

    /// What found no room, in a worker's own count.
    void add_losses(std::uint64_t lost) { lost_.fetch_add(lost, std::memory_order_relaxed); }

    /// When all workers have finished: writes what is left.
    void finish();

  private:
    [[nodiscard]] std::optional<std::string> reason_against(admin::RecordingKind kind) const;
    void switch_capture(bool on);
    void switch_demos(bool on);
    void stop(std::string reason);

    PageRecordingOptions options_;
    unsigned workers_;
    std::uint64_t max_bytes_;
    mutable std::mutex mutex_; ///< of who says what is to be done
    std::uint32_t round_ = 0;
    sink::FileQueue::File capture_ = 0;
    std::optional<std::int64_t> capture_since_ms_;
    std::optional<std::int64_t> demos_since_ms_;
    std::string stopped_;              ///< why it ended by itself
    std::atomic<unsigned> writing_{0}; ///< workers that write a capture, or are to
    std::atomic<std::uint64_t> lost_{0};
    sink::FileQueue files_;
};

} // namespace tw::run
