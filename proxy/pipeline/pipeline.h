#pragma once

#include "proxy/inspect/inspector.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/pipeline/config.h"
#include "proxy/pipeline/live_feed.h"
#include "proxy/pipeline/worker_result.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/record_limits.h"
#include "proxy/world/server_worlds.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace tw::pipeline {

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
    std::optional<sink::Wanted> wanted_;
    std::optional<sink::FlightRecorder> flight_;
    std::optional<PageRecorder> page_recorder_;
    inspect::Inspector inspector_;
};

} // namespace tw::pipeline
