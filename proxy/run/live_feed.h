#pragma once

#include "proxy/admin/feed.h"
#include "proxy/inspect/attribution.h"
#include "proxy/inspect/observer.h"
#include "proxy/record/records.h"
#include "proxy/run/page_items.h"
#include "proxy/sink/json_lines.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace tw::run {

/// Books where the bytes go, but only while somebody looks at it.
class WatchedLedger final : public inspect::Observer {
  public:
    /// `watch` has to outlive it.
    explicit WatchedLedger(const admin::Watch& watch) : watch_{&watch} {}

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
    const admin::Watch* watch_;
    bool on_ = false; ///< for the datagram at hand
    record::Ledger ledger_;
    inspect::Attribution attribution_{ledger_};
};

/// Takes one worker's records and gathers what viewers of the page look at; nothing while nobody does.
class LiveFeed final : public record::RecordSink {
  public:
    using Clock = std::chrono::steady_clock;

    /// `feed` and `objects` have to outlive it; `worker`: its box.
    LiveFeed(admin::Feed& feed, std::size_t worker, const snapshot::ObjectSet& objects);

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
        explicit Lines(admin::Batch& batch) : batch_{&batch} {}

        void write(std::string_view block) override;

      private:
        admin::Batch* batch_;
    };

    void gather(const record::SnapshotRecord& record);
    void gather_ledger(Clock::time_point now);

    admin::Feed* feed_;
    std::size_t worker_;
    admin::Batch batch_;
    Lines lines_{batch_};
    sink::JsonLines json_;
    bool has_lines_ = false; ///< in json_, not in batch_ yet
    WatchedLedger ledger_;
    PageItems items_;
    Clock::time_point told_ledger_{};
};

} // namespace tw::run
