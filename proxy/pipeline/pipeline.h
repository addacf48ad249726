#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/pipeline/config.h"
#include "proxy/pipeline/live_feed.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/flight_recorder.h"
#include "proxy/sink/record_limits.h"
#include "proxy/world/server_worlds.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace tw::pipeline {

/// Passes each record to several sinks in order.
class Fanout final : public record::RecordSink {
  public:
    void add(record::RecordSink& sink) { sinks_.push_back(&sink); }

    /// Adds a sink behind a filter, if there is one.
    void add(record::RecordSink& sink, const std::optional<filter::Filter>& filter) {
        add(filter ? filtered_.emplace_back(*filter, sink) : sink);
    }

    void on_record(const record::Record& record) override {
        for (record::RecordSink* sink : sinks_) {
            sink->on_record(record);
        }
    }

  private:
    std::vector<record::RecordSink*> sinks_;
    std::deque<filter::FilteredSink> filtered_;
};

/// The state of each session that an ending observer saves, by the session's number at the relay.
using SessionCheckpoints = std::unordered_map<std::uint32_t, inspect::SessionCheckpoint>;

/// The size limit of checkpoints. They are passed on in an unnamed file. Sessions without a
/// checkpoint are treated as joined midway.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{256} << 20U;

/// Creates the unnamed file for checkpoints. Returns an invalid descriptor and sets errno on
/// failure.
[[nodiscard]] base::UniqueFd create_checkpoint_file();

/// Writes checkpoints to a file. Returns how many were written; fewer than all if they are too
/// large or writing fails.
[[nodiscard]] std::size_t write_checkpoints(int file, const SessionCheckpoints& checkpoints);

/// Writes the checkpoints and logs how many were left out. Does nothing without a file.
void save_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints);

/// Reads a file of write_checkpoints(); empty if it is invalid or of another version.
[[nodiscard]] SessionCheckpoints read_checkpoints(int file);

/// The result of one worker, or merged of all workers of a run. A new member must also be added to
/// merge() and Worker::take_result().
struct WorkerResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::Ledger ledger{}; ///< traffic by message and item type; empty unless enabled
    std::vector<filter::Expectation> expectations{};
    sink::DemoLosses demo_losses{};      ///< what demos could not record
    std::uint64_t capture_losses = 0;    ///< datagrams missing in the capture
    std::uint64_t messages_left_out = 0; ///< message records beyond the limit
    sink::FlightTally flight{};          ///< the flight recorder's totals
    /// Sessions that continue in another relay, for its observer.
    SessionCheckpoints checkpoints{};

    /// Adds the result of another worker. Precondition: `other` had the same expectations.
    void merge(WorkerResult other) {
        totals.merge(other.totals);
        sessions += other.sessions;
        ledger.merge(other.ledger);
        filter::merge(expectations, other.expectations);
        demo_losses.merge(other.demo_losses);
        capture_losses += other.capture_losses;
        messages_left_out += other.messages_left_out;
        flight.merge(other.flight);
        checkpoints.merge(other.checkpoints);
    }
};

/// Passes on all records except snapshots and the messages that carry snapshots, because merged
/// worlds replace them.
class WithoutSnapshots final : public record::RecordSink {
  public:
    explicit WithoutSnapshots(record::RecordSink& to) : to_{&to} {}

    void on_record(const record::Record& record) override {
        if (!std::holds_alternative<const record::SnapshotRecord*>(record) &&
            !carries_snapshot(record)) {
            to_->on_record(record);
        }
    }

  private:
    [[nodiscard]] static bool carries_snapshot(const record::Record& record) {
        constexpr std::string_view kSnap = "snap";
        const auto* const* message = std::get_if<const record::MessageRecord*>(&record);
        return message != nullptr && (*message)->system &&
               ((*message)->name == kSnap || (*message)->name.starts_with("snap_"));
    }

    record::RecordSink* to_;
};

/// Passes every inspected datagram to a sink.
class CaptureObserver final : public inspect::Observer {
  public:
    /// `sink` must outlive it.
    explicit CaptureObserver(sink::DatagramSink& sink) : sink_{&sink} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        sink_->on_datagram(head, datagram);
    }

    void on_datagram_end() override { sink_->on_datagram_end(); }

  private:
    sink::DatagramSink* sink_;
};

/// The sinks for both the records of sessions and those of merged worlds: expectations, findings as
/// text, and JSON lines after the filter and the limits.
class WrittenRecords final : public record::RecordSink {
  public:
    /// What `config` and `outputs` point to must outlive it.
    WrittenRecords(const Config& config, const Outputs& outputs);

    void on_record(const record::Record& record) override { sinks_.on_record(record); }

    /// Passes the end of a session to the FindingLimit.
    void end_session(const record::RecordHead& head);
    /// Passes collected lines to the output.
    void flush();
    /// Writes how many records the limits left out, and flushes. Only the summary may follow.
    void finish();
    /// Writes the summary of the run; the filter does not apply to it.
    void write_summary(const record::SummaryRecord& summary);

    /// The expectations with their results so far.
    [[nodiscard]] const filter::Expectations& expectations() const { return expectations_; }

    /// The number of message records that the MessageLimit left out.
    [[nodiscard]] std::uint64_t messages_left_out() const {
        return message_limit_ ? message_limit_->left_out() : 0;
    }

  private:
    filter::Expectations expectations_;
    std::optional<sink::JsonLines> json_;
    std::optional<sink::MessageLimit> message_limit_;
    std::optional<sink::FindingLimit> finding_limit_;
    Fanout sinks_;
};

/// An inspector and all sinks of its records and datagrams, for live, tapped and captured traffic.
class Pipeline {
  public:
    /// `config` and what `outputs` points to must outlive it. `worlds`: the sink of inputs for
    /// merged worlds; null: none. `index`: the number of the worker among those of the run.
    Pipeline(const Config& config, const Outputs& outputs, world::WorldInputSink* worlds,
             inspect::MapSource& maps, std::atomic<std::uint32_t>& session_numbers,
             std::size_t index = 0);

    [[nodiscard]] inspect::Inspector& inspector() { return inspector_; }

    [[nodiscard]] WrittenRecords& written() { return written_; }

    /// The flight recorder; null if there is none.
    [[nodiscard]] sink::FlightRecorder* flight() { return flight_ ? &*flight_ : nullptr; }

    /// The feed of the live page; null if there is no page.
    [[nodiscard]] LiveFeed* feed() { return feed_ ? &*feed_ : nullptr; }

    /// Fills in the state that the live page shows. Precondition: there is a page.
    void fill(web::StatusView& view);
    /// Passes collected data to the outputs. Call it several times a second.
    void flush(record::Timestamp now);
    /// Finishes the outputs. No datagram may follow.
    void finish(record::Timestamp now);
    /// Call it once, after finish().
    [[nodiscard]] WorkerResult take_result();

  private:
    template <typename Sink>
    void add_datagram_sink(Sink& sink);

    WorkerResult result_;
    inspect::Observers observers_;
    inspect::Attribution attribution_{result_.ledger};
    std::deque<CaptureObserver> datagrams_; ///< one for each sink of datagrams
    Fanout sinks_;                          ///< all sinks of records, in this order
    WrittenRecords written_;
    WithoutSnapshots without_snapshots_{written_};
    std::optional<world::WorldFeed> world_feed_;
    std::optional<sink::ConsoleSink> console_;
    std::optional<web::LiveSink> live_;
    std::optional<FindingContexts> contexts_;
    std::optional<LiveFeed> feed_;
    std::optional<sink::DemoSink> demos_;
    std::optional<sink::CaptureSink> capture_;
    std::optional<sink::CaptureSelector> capture_selector_;
    std::optional<sink::FlightRecorder> flight_;
    std::optional<PageRecorder> page_recorder_;
    inspect::Inspector inspector_;
};

} // namespace tw::pipeline
