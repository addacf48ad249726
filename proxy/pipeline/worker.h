#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/attribution.h"
#include "proxy/pipeline/config.h"
#include "proxy/pipeline/live_feed.h"
#include "proxy/pipeline/page_recordings.h"
#include "proxy/pipeline/resync.h"
#include "proxy/pipeline/worker_result.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/record/records.h"
#include "proxy/relay/ring.h"
#include "proxy/sink/capture_sink.h"
#include "proxy/sink/console.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/flight_recorder.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/record_limits.h"
#include "proxy/web/board.h"
#include "proxy/world/server_worlds.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace tw::pipeline {

/// Passes on all records except snapshots, which merged worlds replace, and the messages that carry
/// them.
class WithoutSnapshots final : public record::RecordSink {
  public:
    explicit WithoutSnapshots(record::RecordSink& to) : to_{&to} {}

    void on_record(const record::Record& record) override {
        if (!std::holds_alternative<const record::SnapshotRecord*>(record) && !carries(record)) {
            to_->on_record(record);
        }
    }

  private:
    [[nodiscard]] static bool carries(const record::Record& record) {
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

/// The source of a worker's datagrams.
struct RingInput {
    std::span<std::byte> ring;  ///< memory for relay::Ring
    std::uint32_t observer = 1; ///< this observer's number within the run (see relay::Tap)
    const channel::RelayFacts* facts = nullptr; ///< has the servers' names; null: they have none
};

/// Inspects one relay thread's copies on a thread of its own: ring, inspector and sinks.
class Worker {
  public:
    /// `config` must outlive it. `index`: its slot on the status board.
    Worker(const Config& config, const Outputs& outputs, inspect::MapSource& maps,
           const RingInput& post, std::atomic<std::uint32_t>& numbers, std::size_t index);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Worker(Worker&&) = delete;
    Worker& operator=(Worker&&) = delete;

    void start();

    /// Sets the previous observer's checkpoints; call it before start(). They must outlive the
    /// worker.
    void restore(const SessionCheckpoints& checkpoints) { checkpoints_ = &checkpoints; }

    /// Requests the totals of the sessions so far. Callable from any thread and from signal
    /// handlers.
    void request_report() {
        report_wanted_.store(true);
        ring_.wake();
    }

    /// Makes the flight recorder, if there is one, write the data of a session, or of all with 0.
    /// Callable from any thread.
    void request_flight(std::uint32_t session) {
        if (flight_) {
            flight_->request(session);
            flight_wanted_.store(true);
            ring_.wake();
        }
    }

    /// Inspects what is left in the ring and closes the sessions. Call it after the relay has
    /// ended.
    void finish();

    /// Call it once, after finish().
    [[nodiscard]] WorkerResult take_result();

  private:
    [[nodiscard]] inspect::Options inspect_options(const Outputs& outputs);
    void run();
    void do_what_is_due(base::Clock::time_point now);
    [[nodiscard]] base::Clock::time_point next_due(base::Clock::time_point now) const;
    void look_at(const relay::Event& event);
    void publish();
    [[nodiscard]] std::string_view server_name(const relay::Event& event) const;
    void open(const relay::Event& event);
    void close(const relay::Event& event);

    relay::Ring ring_;
    std::uint32_t observer_;
    const channel::RelayFacts* facts_;
    bool greeted_ = false; ///< the `observer` event for this observer was read
    const Config* config_;
    Fanout sinks_;
    Fanout asked_; ///< the sinks of written records and expectations
    WithoutSnapshots without_snapshots_{asked_};
    std::optional<world::Feed> world_feed_;
    WorldQueue* worlds_ = nullptr; ///< the queue that world_feed_ fills
    std::optional<sink::JsonLines> json_;
    std::optional<sink::MessageLimit> message_limit_;
    std::optional<sink::FindingLimit> limited_json_;
    std::optional<filter::FilteredSink> filtered_json_;
    std::optional<filter::FilteredSink> filtered_console_;
    filter::Expectations expectations_;
    WorkerResult result_;
    inspect::Attribution attribution_{result_.ledger};
    inspect::Observers observers_;
    std::optional<sink::ConsoleSink> console_;
    std::optional<sink::DemoSink> demos_;
    std::optional<sink::CaptureSink> capture_;
    std::optional<CaptureObserver> capture_observer_;
    std::optional<sink::Wanted> wanted_;
    std::optional<filter::FilteredSink> filtered_capture_;
    std::optional<sink::FlightRecorder> flight_;
    std::optional<CaptureObserver> flight_observer_;
    std::optional<PageRecorder> page_recorder_;
    std::optional<CaptureObserver> page_observer_;
    std::optional<web::LiveSink> live_;
    std::optional<FindingContexts> contexts_;
    std::optional<ResyncRequester> resync_;
    std::optional<LiveFeed> feed_;
    const SessionCheckpoints* checkpoints_ = nullptr;
    std::unordered_set<std::uint32_t> seamless_; ///< restored sessions, which must not have a gap
    web::StatusBoard* board_;
    std::size_t index_;
    web::View view_; ///< member only to reuse its memory
    inspect::Inspector inspector_;
    base::Clock::time_point flushed_;
    base::Clock::time_point published_;
    bool to_flush_ = false;  ///< events were read since the last flush
    bool to_publish_ = true; ///< events were read since the last publish
    std::atomic<bool> ending_{false};
    std::atomic<bool> report_wanted_{false};
    std::atomic<bool> flight_wanted_{false};
    bool writing_ = false; ///< the flight recorder has not finished writing
    std::thread thread_;
};

} // namespace tw::pipeline
