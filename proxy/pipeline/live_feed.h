#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"
#include "proxy/web/board.h"
#include "proxy/web/feed.h"
#include "proxy/world/open_world.h"
#include "proxy/world/seven_as_six.h"
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
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::pipeline {

/// Converts snapshots for the live page: those of 0.7 are translated to objects of 0.6, as in
/// merged worlds.
class PageItems {
  public:
    /// `objects` must outlive it.
    explicit PageItems(const snapshot::ObjectSet& objects) : seven_as_six_{objects} {}

    /// Returns the items to show, valid as long as the record and until the next call.
    /// Precondition: the snapshot was rebuilt.
    [[nodiscard]] snapshot::SnapshotView of(const record::SnapshotRecord& record);

  private:
    world::SevenAsSix seven_as_six_;
    std::vector<world::View> views_; ///< member only to reuse its memory
    snapshot::Snapshot items_;
    std::vector<std::int32_t> ints_;
};

/// Accounts for every byte of traffic while a viewer has that view open.
class WatchedLedger final : public inspect::Observer {
  public:
    /// `watch` must outlive it.
    explicit WatchedLedger(const web::Watch& watch) : watch_{&watch} {}

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
    const web::Watch* watch_;
    bool on_ = false; ///< whether the current datagram is counted
    record::Ledger ledger_;
    inspect::Attribution attribution_{ledger_};
};

/// Collects one worker's records for the viewers of the page; does nothing while there are no
/// viewers.
class LiveFeed final : public record::RecordSink {
  public:
    using Clock = std::chrono::steady_clock;

    /// `feed` and `objects` must outlive it. `worker`: its mailbox in the feed.
    LiveFeed(web::Feed& feed, std::size_t worker, const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Never waits: if the page is not ready, the next call does
    /// it.
    void hand_over(Clock::time_point now);

    /// Whether data waits to be passed to the page.
    [[nodiscard]] bool pending() const { return has_lines_ || !batch_.empty(); }

    /// The observer that counts traffic for the page; the inspector must call it for all datagrams.
    [[nodiscard]] WatchedLedger& ledger() { return ledger_; }

  private:
    /// Appends JSON lines to a batch.
    class Lines final : public sink::Output {
      public:
        explicit Lines(web::Batch& batch) : batch_{&batch} {}

        void write(std::string_view block) override;

      private:
        web::Batch* batch_;
    };

    void gather(const record::SnapshotRecord& record);
    void gather_ledger(Clock::time_point now);

    web::Feed* feed_;
    std::size_t worker_;
    web::Batch batch_;
    Lines lines_{batch_};
    sink::JsonLines json_;
    bool has_lines_ = false; ///< lines in json_ that are not yet in batch_
    WatchedLedger ledger_;
    PageItems items_;
    Clock::time_point told_ledger_{};
};

/// Passes session events on, but snapshots only while a viewer has the world open. Otherwise a
/// snapshot costs one atomic load.
class WatchedInputs final : public world::InputSink {
  public:
    /// Both must outlive it.
    WatchedInputs(const web::Watch& watch, world::InputSink& to) : watch_{&watch}, to_{&to} {}

    void on_input(const world::Input& input) override {
        if (input.kind != world::Input::Kind::snapshot || watch_->world()) {
            to_->on_input(input);
        }
    }

  private:
    const web::Watch* watch_;
    world::InputSink* to_;
};

/// Collects merged worlds for the viewers of the page; does nothing while there are none. Only the
/// server with the most sessions is shown; the page also gets its name.
class PageWorld final : public record::RecordSink {
  public:
    /// Both must outlive it.
    PageWorld(web::Feed& feed, const snapshot::ObjectSet& objects)
        : feed_{&feed}, objects_{&objects}, items_{objects} {}

    void on_record(const record::Record& record) override;

    /// Passes collected data to the page. Never waits: if the page is not ready, the next call does
    /// it.
    void hand_over();

  private:
    [[nodiscard]] bool is_shown(const record::WorldRecord& world);
    void write_line(const record::WorldRecord& world);

    web::Feed* feed_;
    const snapshot::ObjectSet* objects_;
    PageItems items_;
    web::Batch batch_;
    std::string server_; ///< the server whose world is shown
    std::uint32_t views_ = 0;
    record::Timestamp shown_ = 0; ///< time of the last world of that server
    snapshot::Tick tick_ = snapshot::kNoBase;
    record::Timestamp lined_ = 0; ///< time of the last line
};

/// Keeps the records around the latest findings about snapshots, from the last valid snapshot
/// before to the first one after, so that the page can explain the findings. Between findings it
/// stores only the head of each session's last valid snapshot.
class FindingContexts final : public record::RecordSink {
  public:
    /// The number of contexts kept; the oldest is dropped.
    static constexpr std::size_t kKept = 16;
    /// The size limit of a context; snapshots that would exceed it are left out.
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
    /// The least time between two contexts, so that invalid traffic does not cost much work.
    static constexpr record::Timestamp kPause = 500'000'000;

    /// `objects` must outlive it.
    explicit FindingContexts(const snapshot::ObjectSet& objects);
    ~FindingContexts() override;
    FindingContexts(const FindingContexts&) = delete;
    FindingContexts& operator=(const FindingContexts&) = delete;
    FindingContexts(FindingContexts&&) = delete;
    FindingContexts& operator=(FindingContexts&&) = delete;

    void on_record(const record::Record& record) override;

    /// Adds finished and unfinished contexts to the view.
    void fill(web::View& view) const;

  private:
    /// A session's last valid snapshot.
    struct ValidSnapshot {
        record::RecordHead head{};
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// The records around a finding, until the next valid snapshot.
    struct Telling {
        snapshot::Tick tick = 0;
        std::string before{}; ///< record lines before the finding
        std::string since{};  ///< record lines of the finding and after it
    };

    struct Known {
        std::string session; ///< the line of its last session record
        std::string map;
        std::optional<ValidSnapshot> right{};
        std::unique_ptr<Telling> telling;
    };

    class Lines;

    void see(const record::SessionRecord& record);
    void see(const record::MapRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);
    /// Adds the valid snapshot before or after the finding.
    void tell_around(const record::SnapshotRecord& record, Known& known);
    void end(std::uint32_t session, Known& known);
    static void append(Telling& telling, std::string& to, const std::string& line);
    /// The JSON line of a record.
    [[nodiscard]] std::string line_of(const record::Record& record);
    [[nodiscard]] static web::FindingContext account(std::uint32_t session, const Known& known);

    std::unordered_map<std::uint32_t, Known> sessions_;
    std::deque<web::FindingContext> accounts_; ///< finished contexts, oldest first
    std::optional<record::Timestamp> begun_;   ///< when the last context began
    std::unique_ptr<Lines> lines_;
    sink::JsonLines json_;
};

} // namespace tw::pipeline
