#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/file_queue.h"
#include "proxy/web/api.h"
#include "proxy/web/feed.h"
#include "proxy/web/record_requests.h"
#include "proxy/web/state.h"
#include "proxy/wire/message_set.h"
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

/// The folders that recordings are made in, as the page sees them: captures and demos by their names
/// alone. What else lies there, and where a link leads, is not shown.
class RecordingFolders {
  public:
    /// What is read of a folder: who has more files than that looks elsewhere.
    static constexpr std::size_t kMaxEntries = 10'000;
    static constexpr std::size_t kMaxListed = 500;

    /// One that is named twice counts once.
    explicit RecordingFolders(const std::vector<std::filesystem::path>& folders);

    [[nodiscard]] bool empty() const { return folders_.empty(); }

    /// The newest first.
    [[nodiscard]] std::vector<web::RecordedFile> list() const;
    /// Null: there is none of that name.
    [[nodiscard]] std::shared_ptr<const web::ServedFile> open(std::string_view name) const;

  private:
    std::vector<std::filesystem::path> folders_;
};

/// What recordings in this folder take, in bytes.
[[nodiscard]] std::uint64_t recorded_bytes(const std::filesystem::path& folder);

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
    [[nodiscard]] tl::expected<void, std::string> set(web::RecordingKind kind, bool on);
    /// From any thread.
    [[nodiscard]] web::PageRecordingState state() const;
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
    [[nodiscard]] std::optional<std::string> reason_against(web::RecordingKind kind) const;
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

/// A worker's part of what is recorded from the page. Until something is switched on it only keeps in
/// mind who plays where.
class PageRecorder final : public record::RecordSink, public sink::DatagramSink {
  public:
    /// `recordings` has to outlive it.
    explicit PageRecorder(PageRecordings& recordings);

    void on_record(const record::Record& record) override;

    /// Where states come from, for captures that begin in mid-game.
    void repeat_states(sink::StateSource states) {
        gathering_.blocks().repeat_states(std::move(states));
    }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        if (capture_) {
            gathering_.blocks().on_datagram(head, datagram);
        }
    }

    void on_datagram_end() override;

    /// Some times a second: does what was ordered, hands over what is gathered.
    void on_time(record::Timestamp now);
    /// Nothing follows.
    void finish(record::Timestamp now);

  private:
    void obey(const PageRecordings::Orders& orders, record::Timestamp now);
    void end_capture(record::Timestamp now);

    PageRecordings* recordings_;
    sink::DemoSink demos_;
    bool demos_on_ = false;
    sink::DemoLosses told_{}; ///< losses that are counted already
    std::uint32_t round_ = 0;
    std::optional<sink::FileQueue::File> capture_;
    sink::CaptureGathering gathering_;
};

} // namespace tw::pipeline

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::pipeline {

/// What the live page knows of the language of filters and of lines of records.

/// A filter for lines of records.
/// Errors: those of the language; a key that no line of the page's log has.
[[nodiscard]] tl::expected<web::LineFilter, web::Complaint>
make_line_filter(const std::string& text, const wire::ModDescription& mod);

/// What filters can name, for completion: keys of records and of items, types of items, and the words
/// that a key can hold.
[[nodiscard]] std::string filter_keys_json(const wire::ModDescription& mod);

/// A snapshot as a line of records, with all its items; `physics` may be null.
[[nodiscard]] std::string snapshot_line(const web::SeenSnapshot& seen,
                                        const snapshot::SnapshotView& items,
                                        std::shared_ptr<const map::Physics> physics,
                                        const snapshot::ObjectSet& objects);

} // namespace tw::pipeline
