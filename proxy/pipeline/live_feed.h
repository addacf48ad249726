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

/// Snapshots as the page knows them: in the objects of 0.6, as worlds tell those of 0.7, too.
class PageItems {
  public:
    /// `objects` has to outlive it.
    explicit PageItems(const snapshot::ObjectSet& objects) : seven_as_six_{objects} {}

    /// Lives as long as the record, and until the next call. Precondition: it was rebuilt.
    [[nodiscard]] snapshot::SnapshotView of(const record::SnapshotRecord& record);

  private:
    world::SevenAsSix seven_as_six_;
    std::vector<world::View> views_; ///< kept for its memory
    snapshot::Snapshot items_;
    std::vector<std::int32_t> ints_;
};

/// Books where the bytes go, but only while somebody looks at it.
class WatchedLedger final : public inspect::Observer {
  public:
    /// `watch` has to outlive it.
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
    bool on_ = false; ///< for the datagram at hand
    record::Ledger ledger_;
    inspect::Attribution attribution_{ledger_};
};

/// Takes one worker's records and gathers what viewers of the page look at; nothing while nobody does.
class LiveFeed final : public record::RecordSink {
  public:
    using Clock = std::chrono::steady_clock;

    /// `feed` and `objects` have to outlive it; `worker`: its box.
    LiveFeed(web::Feed& feed, std::size_t worker, const snapshot::ObjectSet& objects);

    void on_record(const record::Record& record) override;

    /// Gives the page what there is. Never waits: when the page is not ready, the next call does.
    void hand_over(Clock::time_point now);

    /// Whether something waits for the page.
    [[nodiscard]] bool pending() const { return has_lines_ || !batch_.empty(); }

    /// To be shown what is read, as all observers.
    [[nodiscard]] WatchedLedger& ledger() { return ledger_; }

  private:
    /// Where the lines go.
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
    bool has_lines_ = false; ///< in json_, not in batch_ yet
    WatchedLedger ledger_;
    PageItems items_;
    Clock::time_point told_ledger_{};
};

/// Passes on what sessions are told, and their snapshots only while somebody looks at the world: until
/// then they cost one load each.
class WatchedInputs final : public world::InputSink {
  public:
    /// Both have to outlive it.
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

/// Takes the worlds of a run and gathers what viewers of the page look at; nothing while nobody does.
/// Of several servers the one with the most sessions is shown, which the page is told the name of.
class PageWorld final : public record::RecordSink {
  public:
    /// Both have to outlive it.
    PageWorld(web::Feed& feed, const snapshot::ObjectSet& objects)
        : feed_{&feed}, objects_{&objects}, items_{objects} {}

    void on_record(const record::Record& record) override;

    /// Gives the page what there is. Never waits: when the page is not ready, the next call does.
    void hand_over();

  private:
    [[nodiscard]] bool is_shown(const record::WorldRecord& world);
    void write_line(const record::WorldRecord& world);

    web::Feed* feed_;
    const snapshot::ObjectSet* objects_;
    PageItems items_;
    web::Batch batch_;
    std::string server_; ///< whose world is shown
    std::uint32_t views_ = 0;
    record::Timestamp shown_ = 0; ///< when its last one was
    snapshot::Tick tick_ = snapshot::kNoBase;
    record::Timestamp lined_ = 0; ///< when the last line was
};

/// Keeps the records around the latest findings about snapshots, from the last right snapshot to
/// the next one, so that the live page can tell their stories. Between findings it only remembers
/// when each session's last right snapshot came.
class FindingContexts final : public record::RecordSink {
  public:
    /// Accounts that are kept; the oldest goes first.
    static constexpr std::size_t kKept = 16;
    /// Bytes of one account; a snapshot that would exceed them is left out.
    static constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
    /// An account begins at most so often: whoever sends nonsense must not keep us busy.
    static constexpr record::Timestamp kPause = 500'000'000;

    /// `objects` has to outlive it.
    explicit FindingContexts(const snapshot::ObjectSet& objects);
    ~FindingContexts() override;
    FindingContexts(const FindingContexts&) = delete;
    FindingContexts& operator=(const FindingContexts&) = delete;
    FindingContexts(FindingContexts&&) = delete;
    FindingContexts& operator=(FindingContexts&&) = delete;

    void on_record(const record::Record& record) override;

    /// Those that are whole, and those under way.
    void fill(web::View& view) const;

  private:
    /// A session's last right snapshot.
    struct Right {
        record::RecordHead head{};
        snapshot::Tick tick = 0;
        snapshot::Tick delta_tick = snapshot::kNoBase;
    };

    /// What is known of a finding until the next right snapshot is here.
    struct Telling {
        snapshot::Tick tick = 0;
        std::string before{}; ///< lines of the records, what came before the finding …
        std::string since{};  ///< … and what came with it and behind it
    };

    struct Known {
        std::string session; ///< the line of its last session record
        std::string map;
        std::optional<Right> right{};
        std::unique_ptr<Telling> telling;
    };

    class Lines;

    void see(const record::SessionRecord& record);
    void see(const record::MapRecord& record);
    void see(const record::SnapshotRecord& record);
    void see(const record::FindingRecord& record);
    /// The last right snapshot before the finding, and the next one behind it.
    void tell_around(const record::SnapshotRecord& record, Known& known);
    void end(std::uint32_t session, Known& known);
    static void append(Telling& telling, std::string& to, const std::string& line);
    /// The record's line.
    [[nodiscard]] std::string line_of(const record::Record& record);
    [[nodiscard]] static web::FindingContext account(std::uint32_t session, const Known& known);

    std::unordered_map<std::uint32_t, Known> sessions_;
    std::deque<web::FindingContext> accounts_; ///< oldest first
    std::optional<record::Timestamp> begun_;   ///< the last of them
    std::unique_ptr<Lines> lines_;
    sink::JsonLines json_;
};

} // namespace tw::pipeline
