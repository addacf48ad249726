#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/capture/capture_sink.h"
#include "proxy/capture/flight_recorder.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/connection/session_checkpoint.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/pipeline/config.h"
#include "proxy/pipeline/live_feed.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "proxy/sink/record_limits.h"
#include "proxy/world/server_worlds.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tw::pipeline {

/// Passes each record to several sinks in order.
class RecordFanout final : public record::RecordSink {
  public:
    void add_sink(record::RecordSink& sink) { sinks_.push_back(&sink); }

    /// Adds a sink. If `filter` is set, the sink receives only the records that the filter selects.
    void add_sink(record::RecordSink& sink, const std::optional<filter::Filter>& filter) {
        add_sink(filter ? filtered_.emplace_back(*filter, sink) : sink);
    }

    /// Creates a sink that this object owns, and adds the sink like add_sink().
    template <typename Sink, typename... Arguments>
    void add_new_sink(const std::optional<filter::Filter>& filter, Arguments&&... arguments) {
        add_sink(
            *owned_.emplace_back(std::make_unique<Sink>(std::forward<Arguments>(arguments)...)),
            filter);
    }

    void on_record(const record::Record& record) override {
        for (record::RecordSink* sink : sinks_) {
            sink->on_record(record);
        }
    }

  private:
    std::vector<record::RecordSink*> sinks_;
    std::deque<filter::FilteredSink> filtered_;
    std::vector<std::unique_ptr<record::RecordSink>> owned_;
};

/// The states of sessions that an observer process saves when it ends, by the session's number.
using SessionCheckpoints = std::unordered_map<std::uint32_t, inspect::SessionCheckpoint>;

/// The size limit of a file with checkpoints. The next observer does not know the earlier traffic
/// of sessions that do not fit.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{256} << 20U;

/// Creates a file in memory for checkpoints. Returns an invalid descriptor and sets errno on
/// failure.
[[nodiscard]] base::UniqueFd create_checkpoint_file();

/// Writes the checkpoints, at most kMaxCheckpointBytes. Logs how many could not be written. Does
/// nothing if `file` is invalid.
void save_checkpoints(const base::UniqueFd& file, const SessionCheckpoints& checkpoints);

/// Reads the checkpoints that save_checkpoints() wrote. Returns an empty map if the file is
/// invalid or has another version.
[[nodiscard]] SessionCheckpoints read_checkpoints(int file);

/// The result of one worker, or the sum of all workers' results. New members must also be added to
/// merge() and Pipeline::take_result().
struct WorkerResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::ByteLedger ledger{}; ///< traffic by message and item type; empty unless enabled
    std::vector<filter::Expectation> expectations{};
    demo::DemoLosses demo_losses{};         ///< data missing in demos
    std::uint64_t capture_losses = 0;       ///< number of datagrams missing in the capture
    std::uint64_t omitted_messages = 0;     ///< number of message records that exceeded the limit
    capture::FlightRecorderCounts flight{}; ///< the flight recorder's totals
    /// The states of the sessions that another relay continues, for the observer of that relay.
    SessionCheckpoints checkpoints{};

    /// Adds the result of another worker, which checked the same expectations.
    void merge(WorkerResult other) {
        totals.merge(other.totals);
        sessions += other.sessions;
        ledger.merge(other.ledger);
        filter::add_results(expectations, other.expectations);
        demo_losses.merge(other.demo_losses);
        capture_losses += other.capture_losses;
        omitted_messages += other.omitted_messages;
        flight.merge(other.flight);
        checkpoints.merge(other.checkpoints);
    }
};

/// Passes snapshots, and the messages that contain snapshots, to `removed`, which may be null.
/// Passes all other records to `to`. Used if merged snapshots are written instead.
class SnapshotRemover final : public record::RecordSink {
  public:
    SnapshotRemover(record::RecordSink& to, record::RecordSink* removed)
        : to_{&to}, removed_{removed} {}

    void on_record(const record::Record& record) override {
        const bool is_removed = std::holds_alternative<const record::SnapshotRecord*>(record) ||
                                carries_snapshot(record);
        if (auto* const sink = is_removed ? removed_ : to_; sink != nullptr) {
            sink->on_record(record);
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
    record::RecordSink* removed_;
};

/// Writes the records of sessions, or of merged snapshots. Checks the records against the user's
/// expectations, prints findings as text, and writes the JSON lines that the filter selects and the
/// limits allow.
class RecordWriter final : public record::RecordSink {
  public:
    /// The objects that `config` and `outputs` point to must outlive this object.
    RecordWriter(const Config& config, const WorkerOutputs& outputs);

    void on_record(const record::Record& record) override { sinks_.on_record(record); }

    /// Tells the FindingRateLimiter that a session has ended.
    void end_session(const record::RecordHeader& head);
    void flush();
    /// Writes records that tell how many records the limits left out, and flushes. Afterwards, only
    /// write_summary() may be called.
    void write_omitted_counts();
    /// Writes the summary of the run, even if the filter does not select it.
    void write_summary(const record::SummaryRecord& summary);

    [[nodiscard]] const filter::Expectations& expectations() const { return expectations_; }

    [[nodiscard]] std::uint64_t num_omitted_messages() const {
        return message_limit_ ? message_limit_->num_omitted_messages() : 0;
    }

  private:
    filter::Expectations expectations_;
    std::optional<sink::JsonLines> json_;
    std::optional<sink::MessageRateLimiter> message_limit_;
    std::optional<sink::FindingRateLimiter> finding_limit_;
    RecordFanout sinks_;
};

/// Inspects datagrams and writes the results. Consists of an inspector and all sinks of records and
/// datagrams. Used for live, tapped and captured traffic.
class Pipeline {
  public:
    /// `config` and the objects that `outputs` points to must outlive this object. `worlds`:
    /// receives the sessions' snapshots to merge; null if they are not merged. `index`: index of
    /// the worker.
    Pipeline(const Config& config, const WorkerOutputs& outputs, world::WorldInputSink* worlds,
             inspect::MapSource& maps, std::atomic<std::uint32_t>& session_numbers,
             std::size_t index = 0);

    [[nodiscard]] inspect::Inspector& inspector() { return inspector_; }

    [[nodiscard]] RecordWriter& record_writer() { return writer_; }

    [[nodiscard]] capture::FlightRecorder* flight_recorder() {
        return flight_ ? &*flight_ : nullptr;
    }

    [[nodiscard]] WorkerPageFeed* page_feed() { return feed_ ? &*feed_ : nullptr; }

    /// Copies to `view` the state that the live page shows. Precondition: the page is enabled.
    void fill_status_view(web::StatusView& view);
    /// Passes collected data to the outputs. Call this function several times a second.
    void flush(record::Timestamp now);
    /// Writes the rest of the data to the outputs. No datagram may be inspected afterwards.
    void write_remaining_data(record::Timestamp now);
    /// Returns the result of this worker. Call this function once, after write_remaining_data().
    [[nodiscard]] WorkerResult take_result();

  private:
    /// Makes `sink` receive all datagrams and records.
    template <typename Sink>
    void add_datagram_sink(Sink& sink);

    WorkerResult result_;
    inspect::Observers observers_;
    inspect::ByteAttribution attribution_{result_.ledger};
    RecordFanout sinks_; ///< all sinks of records, in the order of their calls
    RecordWriter writer_;
    SnapshotRemover snapshot_remover_;
    std::optional<web::StatusCollector> status_;
    std::optional<FindingContextCollector> contexts_;
    std::optional<WorkerPageFeed> feed_;
    std::optional<demo::DemoSink> demos_;
    std::optional<capture::CaptureSink> capture_;
    std::optional<capture::FlightRecorder> flight_;
    std::optional<PageRecorder> page_recorder_;
    inspect::Inspector inspector_;
};

} // namespace tw::pipeline
