#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"
#include "proxy/web/page_feed.h"
#include "proxy/web/status_view.h"
#include "proxy/world/seven_to_six.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tw::pipeline {

/// Converts the items of 0.7 snapshots to objects of 0.6, because the live page knows only objects
/// of 0.6.
class PageItemConverter {
  public:
    /// `objects` must outlive this object.
    explicit PageItemConverter(const snapshot::ObjectSet& objects) : translator_{objects} {}

    /// Returns the record's items as objects of 0.6. They are valid until the next call, and only
    /// as long as the record is valid. Precondition: the record contains a decoded snapshot.
    [[nodiscard]] snapshot::SnapshotView convert_items(const record::SnapshotRecord& record);

  private:
    world::SevenToSixTranslator translator_;
    std::vector<world::View> views_; ///< a member, so that its memory is reused
    snapshot::Snapshot items_;
    std::vector<std::int32_t> ints_;
};

/// Counts the bytes of traffic by message and item type while a viewer of the page looks at the
/// traffic totals.
class PageTrafficCounter final : public inspect::Observer {
  public:
    /// `interest` must outlive this object.
    explicit PageTrafficCounter(const web::ViewerInterest& interest) : interest_{&interest} {}

    /// Adds this object to an inspector's observers. The inspector must call observers for every
    /// datagram.
    void add_to_observers(inspect::Observers& observers) {
        observers.add_observer(*this);
        observers.add_observer(attribution_, &is_counting_);
    }

    void on_datagram(const record::RecordHeader& /*head*/,
                     std::span<const std::byte> /*datagram*/) override {
        is_counting_ = interest_->wants_topic(web::ViewerTopic::traffic_totals);
    }

    [[nodiscard]] const record::ByteLedger& byte_ledger() const { return ledger_; }

  private:
    const web::ViewerInterest* interest_;
    bool is_counting_ = false; ///< true if the current datagram is counted
    record::ByteLedger ledger_;
    inspect::ByteAttribution attribution_{ledger_};
};

/// Collects one worker's records for the viewers of the page. Does nothing while the page has no
/// viewers.
class WorkerPageFeed final : public record::RecordSink {
  public:
    using Clock = std::chrono::steady_clock;

    /// `feed` and `objects` must outlive this object. `worker`: the index of the worker's mailbox
    /// in the feed.
    WorkerPageFeed(web::PageFeed& feed, std::size_t worker, const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Does not wait: if the page is not ready, the data stays
    /// for the next call.
    void flush_to_page(Clock::time_point now);

    [[nodiscard]] bool has_pending_data() const { return has_lines_ || !batch_.empty(); }

    [[nodiscard]] PageTrafficCounter& traffic_counter() { return traffic_counter_; }

  private:
    void add_snapshot(const record::SnapshotRecord& record);
    void add_byte_ledger(Clock::time_point now);

    web::PageFeed* feed_;
    std::size_t worker_;
    web::ViewerBatch batch_;
    sink::TextOutput lines_;
    sink::JsonLines json_;
    bool has_lines_ = false; ///< true if json_ contains lines that are not yet in batch_
    PageTrafficCounter traffic_counter_;
    PageItemConverter items_;
    Clock::time_point ledger_sent_at_{};
};

/// Collects the merged snapshots of the server with the most sessions, and the server's name, for
/// the viewers of the page. Does nothing while the page has no viewers.
class PageWorldFeed final : public record::RecordSink {
  public:
    /// `feed` and `objects` must outlive this object.
    PageWorldFeed(web::PageFeed& feed, const snapshot::ObjectSet& objects)
        : feed_{&feed}, objects_{&objects}, items_{objects} {}

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Does not wait: if the page is not ready, the data stays
    /// for the next call.
    void flush_to_page();

  private:
    [[nodiscard]] bool select_shown_server(const record::WorldRecord& world);

    web::PageFeed* feed_;
    const snapshot::ObjectSet* objects_;
    PageItemConverter items_;
    web::ViewerBatch batch_;
    std::string server_;              ///< the server whose merged snapshots are shown
    std::uint32_t session_count_ = 0; ///< number of sessions in the latest merged snapshot
    record::Timestamp shown_at_ = 0;  ///< time of the latest merged snapshot that was shown
    snapshot::Tick previous_tick_ = snapshot::kNoBase; ///< tick of that snapshot
    record::Timestamp line_written_at_ = 0;            ///< time of the latest JSON line
};

/// Stores the records around the latest findings about snapshots, so that the page can explain the
/// findings. A finding's context contains the records from the last valid snapshot before the
/// finding to the first valid snapshot after it. Between findings, only the header of each
/// session's latest valid snapshot is stored.
class FindingContextCollector final : public record::RecordSink {
  public:
    /// The limit of stored contexts. If it is exceeded, the oldest context is dropped.
    static constexpr std::size_t kMaxContexts = 16;
    /// The size limit of a context in bytes. Records that would exceed the limit are left out.
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
    /// The least time between the starts of two contexts, in nanoseconds. It limits the work that
    /// invalid traffic causes.
    static constexpr record::Timestamp kMinInterval = 500'000'000;

    /// `objects` must outlive this object.
    explicit FindingContextCollector(const snapshot::ObjectSet& objects) : objects_{&objects} {}

    void on_record(const record::Record& record) override {
        std::visit([this](const auto* each) { collect_record(*each); }, record);
    }

    /// Copies all contexts to the view, including incomplete ones.
    void copy_contexts_to(web::StatusView& view) const;

  private:
    /// The header of a session's latest valid snapshot.
    struct ValidSnapshot {
        record::RecordHeader head{};
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// A finding's context that will be complete at the next valid snapshot.
    struct OpenContext {
        snapshot::Tick tick = 0;
        std::string before{}; ///< JSON lines of the records before the finding
        std::string since{};  ///< JSON lines of the finding and of the records after it
    };

    struct SessionState {
        std::string session; ///< JSON line of the session's latest session record
        std::string map;     ///< JSON line of the session's latest map record
        std::optional<ValidSnapshot> last_valid{};
        std::unique_ptr<OpenContext> open;
    };

    void collect_record(const record::SessionRecord& record);
    void collect_record(const record::MapRecord& record);
    void collect_record(const record::SnapshotRecord& record);
    void collect_record(const record::FindingRecord& record);

    template <typename OtherRecord>
    void collect_record(const OtherRecord& /*record*/) {}

    /// Completes the open context with two valid snapshots: the session's last valid snapshot
    /// before the finding, and `record`, which follows the finding.
    void add_valid_snapshot(const record::SnapshotRecord& record, SessionState& state);
    void finish_context(std::uint32_t session, SessionState& state);
    /// Appends a line to `to`, if the context has room for it. `to`: open.before or open.since.
    static void append_line(OpenContext& open, std::string& to, const std::string& line);
    [[nodiscard]] std::string to_json_line(const record::Record& record) const;
    [[nodiscard]] static web::FindingContext make_finding_context(std::uint32_t session,
                                                                  const SessionState& state);

    std::unordered_map<std::uint32_t, SessionState> sessions_;
    std::deque<web::FindingContext> contexts_;            ///< complete contexts, oldest first
    std::optional<record::Timestamp> last_context_start_; ///< start time of the latest context
    const snapshot::ObjectSet* objects_;
};

} // namespace tw::pipeline
