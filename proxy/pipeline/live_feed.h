#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"
#include "proxy/web/board.h"
#include "proxy/web/feed.h"
#include "proxy/world/open_world.h"
#include "proxy/world/seven_as_six.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::pipeline {

/// Converts snapshots for the live page: those of 0.7 are translated to objects of 0.6, as in
/// merged worlds.
class PageItemConverter {
  public:
    /// `objects` must outlive it.
    explicit PageItemConverter(const snapshot::ObjectSet& objects) : seven_as_six_{objects} {}

    /// Returns the items to show, valid as long as the record and until the next call.
    /// Precondition: the snapshot was rebuilt.
    [[nodiscard]] snapshot::SnapshotView convert(const record::SnapshotRecord& record);

  private:
    world::SevenAsSix seven_as_six_;
    std::vector<world::View> views_; ///< member only to reuse its memory
    snapshot::Snapshot items_;
    std::vector<std::int32_t> ints_;
};

/// Counts the bytes of traffic by message and item type, only while a viewer of the page looks at
/// these counts.
class LedgerWhileViewed final : public inspect::Observer {
  public:
    /// `interest` must outlive this object.
    explicit LedgerWhileViewed(const web::ViewerInterest& interest) : interest_{&interest} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override;
    void on_packet(const wire::Packet& packet) override;
    void on_control(const wire::Control& control) override;
    void on_chunks(const inspect::AcceptedChunks& chunks) override;
    void on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                  const wire::MessageHead* head) override;
    void on_fields(std::size_t bytes) override;
    void on_part(const inspect::PartSeen& part) override;
    void on_delta(const inspect::DeltaSeen& delta) override;
    void on_datagram_end() override;

    [[nodiscard]] const record::Ledger& ledger() const { return ledger_; }

  private:
    const web::ViewerInterest* interest_;
    bool counting_ = false; ///< the current datagram is counted
    record::Ledger ledger_;
    inspect::Attribution attribution_{ledger_};
};

/// Collects one worker's records for the viewers of the page; does nothing while there are no
/// viewers.
class LiveFeed final : public record::RecordSink {
  public:
    using Clock = std::chrono::steady_clock;

    /// `feed` and `objects` must outlive it. `worker`: the index of the worker's mailbox in the
    /// feed.
    LiveFeed(web::PageFeed& feed, std::size_t worker, const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Does not wait: if the page is not ready, the data stays
    /// for the next call.
    void flush_to_page(Clock::time_point now);

    /// Whether collected data was not yet passed to the page.
    [[nodiscard]] bool pending() const { return has_lines_ || !batch_.empty(); }

    /// The observer that counts traffic for the page; the inspector must call it for all datagrams.
    [[nodiscard]] LedgerWhileViewed& ledger() { return ledger_; }

  private:
    /// Appends JSON lines to a batch.
    class Lines final : public sink::Output {
      public:
        explicit Lines(web::ViewerBatch& batch) : batch_{&batch} {}

        void write(std::string_view block) override;

      private:
        web::ViewerBatch* batch_;
    };

    void add_snapshot(const record::SnapshotRecord& record);
    void add_ledger(Clock::time_point now);

    web::PageFeed* feed_;
    std::size_t worker_;
    web::ViewerBatch batch_;
    Lines lines_{batch_};
    sink::JsonLines json_;
    bool has_lines_ = false; ///< lines in json_ that are not yet in batch_
    LedgerWhileViewed ledger_;
    PageItemConverter items_;
    Clock::time_point ledger_sent_at_{};
};

/// Passes on all session events except snapshots, which it passes on only while a viewer of the
/// page looks at the world.
class InputsWhileViewed final : public world::WorldInputSink {
  public:
    /// Both must outlive it.
    InputsWhileViewed(const web::ViewerInterest& interest, world::WorldInputSink& to)
        : interest_{&interest}, to_{&to} {}

    void on_input(const world::WorldInput& input) override {
        if (input.kind != world::WorldInput::Kind::snapshot || interest_->wants_world()) {
            to_->on_input(input);
        }
    }

  private:
    const web::ViewerInterest* interest_;
    world::WorldInputSink* to_;
};

/// Collects merged worlds for the viewers of the page; does nothing while there are none. Only the
/// server with the most sessions is shown; the page also gets its name.
class PageWorld final : public record::RecordSink {
  public:
    /// Both must outlive it.
    PageWorld(web::PageFeed& feed, const snapshot::ObjectSet& objects)
        : feed_{&feed}, objects_{&objects}, items_{objects} {}

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Does not wait: if the page is not ready, the data stays
    /// for the next call.
    void flush_to_page();

  private:
    [[nodiscard]] bool select_server(const record::WorldRecord& world);
    void write_line(const record::WorldRecord& world);

    web::PageFeed* feed_;
    const snapshot::ObjectSet* objects_;
    PageItemConverter items_;
    web::ViewerBatch batch_;
    std::string server_; ///< the server whose world is shown
    std::uint32_t views_ = 0;
    record::Timestamp shown_at_ = 0; ///< time of the last shown world
    snapshot::Tick tick_ = snapshot::kNoBase;
    record::Timestamp line_written_at_ = 0; ///< time of the last JSON line
};

/// Keeps the records around the latest findings about snapshots, from the last valid snapshot
/// before to the first one after, so that the page can explain the findings. Between findings it
/// stores only the head of each session's last valid snapshot.
class FindingContexts final : public record::RecordSink {
  public:
    /// The number of contexts kept; the oldest is dropped.
    static constexpr std::size_t kMaxContexts = 16;
    /// The size limit of a context; snapshots that would exceed it are left out.
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
    /// The least time between two contexts, so that invalid traffic does not cost much work.
    static constexpr record::Timestamp kMinInterval = 500'000'000;

    /// `objects` must outlive it.
    explicit FindingContexts(const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Copies all contexts, also unfinished ones, into the view.
    void fill(web::StatusView& view) const;

  private:
    /// A session's last valid snapshot.
    struct ValidSnapshot {
        record::RecordHead head{};
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// The records around a finding, until the next valid snapshot.
    struct OpenContext {
        snapshot::Tick tick = 0;
        std::string before{}; ///< record lines before the finding
        std::string since{};  ///< record lines of the finding and after it
    };

    struct SessionState {
        std::string session; ///< the line of its last session record
        std::string map;
        std::optional<ValidSnapshot> last_valid{};
        std::unique_ptr<OpenContext> open;
    };

    void on_session(const record::SessionRecord& record);
    void on_map(const record::MapRecord& record);
    void on_snapshot(const record::SnapshotRecord& record);
    void on_finding(const record::FindingRecord& record);
    /// Adds the last valid snapshot before the finding, and the given one after it.
    void add_valid_snapshot(const record::SnapshotRecord& record, SessionState& state);
    void finish_context(std::uint32_t session, SessionState& state);
    static void append_line(OpenContext& open, std::string& to, const std::string& line);
    [[nodiscard]] std::string to_json_line(const record::Record& record);
    [[nodiscard]] static web::FindingContext make_context(std::uint32_t session,
                                                          const SessionState& state);

    std::unordered_map<std::uint32_t, SessionState> sessions_;
    std::deque<web::FindingContext> contexts_;    ///< complete contexts, oldest first
    std::optional<record::Timestamp> last_begun_; ///< start time of the latest context
    sink::TextOutput lines_;
    sink::JsonLines json_;
};

} // namespace tw::pipeline
