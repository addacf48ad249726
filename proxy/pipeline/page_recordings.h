#pragma once

#include "proxy/capture/capture_sink.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/store/file_queue.h"
#include "proxy/web/page_data.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/run_state.h"
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

namespace tw::pipeline {

/// Lists and opens the captures and demos in some folders, for the live page. The page identifies a
/// recording by its file name. Other files and links are ignored.
class RecordingFolders {
  public:
    /// The most directory entries that are read in each folder.
    static constexpr std::size_t kMaxEntries = 10'000;
    static constexpr std::size_t kMaxListedRecordings = 500;

    /// Removes duplicates from `folders`.
    explicit RecordingFolders(const std::vector<std::filesystem::path>& folders);

    [[nodiscard]] bool empty() const { return folders_.empty(); }

    /// Lists recordings, the newest first, at most kMaxListedRecordings.
    [[nodiscard]] std::vector<web::RecordedFile> list_recordings() const;
    /// Opens a recording by its name. Returns null if it does not exist.
    [[nodiscard]] std::shared_ptr<const web::ServedFile>
    open_recording(std::string_view name) const;

  private:
    std::vector<std::filesystem::path> folders_;
};

/// Returns the total size of the recordings in a folder.
[[nodiscard]] std::uint64_t recording_folder_bytes(const std::filesystem::path& folder);

struct PageRecordingOptions {
    demo::DemoOptions demos{}; ///< options of demos; captures are written to the same folder
    /// True if viewers may record captures, which contain all secrets, such as passwords.
    bool allows_captures = false;
};

/// The recordings that viewers of the page start and stop. The page's thread starts and stops them;
/// the workers poll the state. Recordings stop by themselves if writing fails or the folder is
/// full.
class PageRecordings {
  public:
    /// Recordings stop when the folder has this size in bytes.
    static constexpr std::uint64_t kMaxFolderBytes = std::uint64_t{4} << 30U;

    /// A capture to which all workers write. The last worker that releases it closes the file.
    struct Capture {
        Capture(store::FileQueue& queue, store::FileQueue::File opened)
            : files{&queue}, file{opened} {}

        ~Capture() { files->close(file); }

        Capture(const Capture&) = delete;
        Capture& operator=(const Capture&) = delete;

        store::FileQueue* files;
        store::FileQueue::File file;
    };

    /// The recordings to which every worker must write at the moment.
    struct ActiveRecordings {
        std::shared_ptr<const Capture> capture{}; ///< null: no capture
        bool records_demos = false;               ///< true if demos are recorded
    };

    /// `max_bytes`: the size limit of the folder. `progress`: see FileQueue.
    explicit PageRecordings(PageRecordingOptions options, std::uint64_t max_bytes = kMaxFolderBytes,
                            std::atomic<std::uint64_t>* progress = nullptr);

    [[nodiscard]] const PageRecordingOptions& options() const { return options_; }

    /// Starts or stops a recording. Only the page's thread may call this function. Errors: one line
    /// with the reason.
    [[nodiscard]] tl::expected<void, std::string> switch_recording(web::RecordingKind kind,
                                                                   bool on);
    [[nodiscard]] web::PageRecordingState state() const;
    /// Stops all recordings if a file could not be written. Callable from any thread.
    void stop_after_write_error();
    /// Stops all recordings if a file could not be written or the folder is full. Call this
    /// function once a second.
    void stop_if_failed_or_full();

    [[nodiscard]] ActiveRecordings active_recordings() const;

    [[nodiscard]] store::FileQueue& file_queue() { return files_; }

    /// Counts blocks that a worker lost because the queue was full.
    void count_lost_blocks(std::uint64_t lost) {
        lost_blocks_.fetch_add(lost, std::memory_order_relaxed);
    }

    /// Writes all queued data. Call this function after all workers have finished.
    void write_queued_data();

  private:
    [[nodiscard]] std::optional<std::string> refusal_reason(web::RecordingKind kind) const;
    void switch_capture(bool on);
    void switch_demos(bool on);
    void stop_all_recordings(std::string reason);

    PageRecordingOptions options_;
    std::uint64_t max_bytes_;
    store::FileQueue files_;
    mutable std::mutex mutex_; ///< guards the members that switch_recording() changes
    std::shared_ptr<const Capture> capture_;
    std::optional<std::int64_t> capture_since_ms_;
    std::optional<std::int64_t> demos_since_ms_;
    std::string stop_reason_; ///< why twscope stopped recordings; empty if a viewer stopped them
    std::atomic<std::uint64_t> lost_blocks_{0};
};

/// Writes one worker's part of the recordings that viewers of the page have started. Without such a
/// recording, only keeps track of sessions.
class PageRecorder final : public record::RecordSink, public inspect::Observer {
  public:
    /// `recordings` must outlive this object.
    explicit PageRecorder(PageRecordings& recordings);

    void on_record(const record::Record& record) override;

    /// Sets the source of session states. Captures that begin during a game contain these states.
    void set_session_state_source(capture::SessionStateSource states) {
        block_buffer_.encoder().set_session_state_source(std::move(states));
    }

    void on_datagram(const record::RecordHeader& head,
                     std::span<const std::byte> datagram) override {
        if (capture_) {
            block_buffer_.encoder().on_datagram(head, datagram);
        }
    }

    void on_datagram_end() override;

    /// Starts or stops recording as viewers requested, and passes collected data to the files. Call
    /// this function several times a second.
    void update_recordings(record::Timestamp now);
    void end_recordings(record::Timestamp now);

  private:
    void end_capture(record::Timestamp now);

    PageRecordings* recordings_;
    demo::DemoSink demos_;
    bool is_recording_demos_ = false;
    /// Number of lost demo chunks that `recordings_` has already counted.
    std::uint64_t counted_demo_losses_ = 0;
    std::shared_ptr<const PageRecordings::Capture> capture_; ///< null while no capture runs
    capture::CaptureBlockBuffer block_buffer_;
};

/// The part of web::PageData that depends only on the format of records.
class RecordPageData : public web::PageData {
  public:
    /// `mod` must outlive the object.
    explicit RecordPageData(const wire::ModDescription& mod) : mod_{&mod} {}

    [[nodiscard]] const snapshot::ObjectSet& objects() const override { return mod_->objects; }

    [[nodiscard]] tl::expected<web::LineFilter, web::InputError>
    make_filter(const std::string& text) const override;
    [[nodiscard]] std::string filter_keys_json() const override;
    [[nodiscard]] std::string snapshot_line(const web::InspectedSnapshot& seen,
                                            const snapshot::SnapshotView& items) const override;

  private:
    const wire::ModDescription* mod_;
};

} // namespace tw::pipeline
