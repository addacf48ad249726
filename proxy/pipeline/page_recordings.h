#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_queue.h"
#include "proxy/web/api.h"
#include "proxy/web/feed.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/state.h"
#include "proxy/wire/message.h"
#include "snapshot/objects.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::pipeline {

/// The captures and demos in some folders, for the live page, which identifies them by file name.
/// Other files are not shown, and links are not followed.
class RecordingFolders {
  public:
    /// The most directory entries that are read per folder.
    static constexpr std::size_t kMaxEntries = 10'000;
    static constexpr std::size_t kMaxListed = 500;

    /// Removes duplicates from `folders`.
    explicit RecordingFolders(const std::vector<std::filesystem::path>& folders);

    [[nodiscard]] bool empty() const { return folders_.empty(); }

    /// Lists the recordings, the newest first.
    [[nodiscard]] std::vector<web::RecordedFile> list() const;
    /// Opens a recording by its name; null if there is no such file.
    [[nodiscard]] std::shared_ptr<const web::ServedFile> open(std::string_view name) const;

  private:
    std::vector<std::filesystem::path> folders_;
};

/// The total size of the recordings in this folder, in bytes.
[[nodiscard]] std::uint64_t recorded_bytes(const std::filesystem::path& folder);

struct PageRecordingOptions {
    sink::DemoOptions demos{}; ///< its folder is used for captures, too
    /// Whether captures are allowed. They contain all secrets, such as passwords.
    bool captures = false;
};

/// The recordings that viewers of the page have switched on. The page's thread switches them and
/// workers poll their state. They stop by themselves if writing fails or the folder is full.
class PageRecordings {
  public:
    /// Recordings stop when the folder has this size.
    static constexpr std::uint64_t kMaxFolderBytes = std::uint64_t{4} << 30U;

    /// What the workers have to record now. All of them write to one capture file.
    struct Task {
        /// Incremented at the start and end of captures; odd while one runs.
        std::uint32_t capture_round = 0;
        sink::FileQueue::File capture = 0;
        bool demos = false;
    };

    /// `workers`: the number of workers. `max_bytes`: kMaxFolderBytes; smaller in tests.
    /// `progress`: see FileQueue.
    PageRecordings(PageRecordingOptions options, unsigned workers,
                   std::uint64_t max_bytes = kMaxFolderBytes,
                   std::atomic<std::uint64_t>* progress = nullptr);

    [[nodiscard]] const PageRecordingOptions& options() const { return options_; }

    /// Starts or stops a kind of recording; called by the page. Errors: one line with the reason.
    [[nodiscard]] tl::expected<void, std::string> switch_recording(web::RecordingKind kind,
                                                                   bool on);
    /// The state of the recordings, for the page. Callable from any thread.
    [[nodiscard]] web::PageRecordingState state() const;
    /// Stops recordings after a write error. Callable from any thread.
    void stop_failed();
    /// Stops recordings after a write error or if the folder is full. Call it once a second.
    void check();

    /// The current task; called by workers.
    [[nodiscard]] Task current_task() const;

    [[nodiscard]] sink::FileQueue& files() { return files_; }

    /// Called by a worker that has stopped writing to the capture. The last worker's call closes
    /// the file.
    void leave_capture(sink::FileQueue::File capture);

    /// Adds the number of blocks that a worker lost because the queue was full.
    void add_losses(std::uint64_t lost) { lost_.fetch_add(lost, std::memory_order_relaxed); }

    /// Writes all queued data. Call it after all workers have finished.
    void finish();

  private:
    [[nodiscard]] std::optional<std::string> refusal_reason(web::RecordingKind kind) const;
    void switch_capture(bool on);
    void switch_demos(bool on);
    void stop(std::string reason);

    PageRecordingOptions options_;
    unsigned workers_;
    std::uint64_t max_bytes_;
    mutable std::mutex mutex_; ///< guards the members that switch_recording() changes
    std::uint32_t capture_round_ = 0;
    sink::FileQueue::File capture_ = 0;
    std::optional<std::int64_t> capture_since_ms_;
    std::optional<std::int64_t> demos_since_ms_;
    std::string stopped_;              ///< why recording ended by itself
    std::atomic<unsigned> writing_{0}; ///< workers that write or will write a capture
    std::atomic<std::uint64_t> lost_{0};
    sink::FileQueue files_;
};

/// Writes one worker's part of the recordings that the page switched on. While none is on, it only
/// tracks the sessions.
class PageRecorder final : public record::RecordSink, public sink::DatagramSink {
  public:
    /// `recordings` must outlive it.
    explicit PageRecorder(PageRecordings& recordings);

    void on_record(const record::Record& record) override;

    /// Sets the source of session states for captures that begin during a game.
    void repeat_states(sink::StateSource states) {
        block_buffer_.blocks().repeat_states(std::move(states));
    }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        if (capture_) {
            block_buffer_.blocks().on_datagram(head, datagram);
        }
    }

    void on_datagram_end() override;

    /// Starts or stops recording according to the current task, and passes on collected data. Call
    /// it several times a second.
    void update(record::Timestamp now);
    /// Ends all recordings.
    void finish(record::Timestamp now);

  private:
    void apply(const PageRecordings::Task& task, record::Timestamp now);
    void end_capture(record::Timestamp now);

    PageRecordings* recordings_;
    sink::DemoSink demos_;
    bool demos_on_ = false;
    sink::DemoLosses counted_losses_{}; ///< losses that were already counted
    std::uint32_t capture_round_ = 0;
    std::optional<sink::FileQueue::File> capture_;
    sink::CaptureBlockBuffer block_buffer_;
};

/// Compiles a filter for record lines.
/// Errors: those of the filter language, or that no line of the page's log has a key of the filter.
[[nodiscard]] tl::expected<web::LineFilter, web::InputError>
make_line_filter(const std::string& text, const wire::ModDescription& mod);

/// The names that filters can use, for completion: keys of records and items, item types, and the
/// values of enumerated keys.
[[nodiscard]] std::string filter_keys_json(const wire::ModDescription& mod);

/// A snapshot as a record line with all its items; `physics` may be null.
[[nodiscard]] std::string snapshot_line(const web::InspectedSnapshot& seen,
                                        const snapshot::SnapshotView& items,
                                        std::shared_ptr<const map::Physics> physics,
                                        const snapshot::ObjectSet& objects);

} // namespace tw::pipeline
