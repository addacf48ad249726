#pragma once

#include "proxy/channel/shared_block.h"
#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/inspect/inspector.h"
#include "proxy/inspect/reporter.h"
#include "proxy/inspect/snapshots/attribution.h"
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

/// What is written of a game: what each session was shown, the world that is made of it, or both.
enum class ViewChoice : std::uint8_t { sessions, world, both };

/// Lets all records pass but snapshots, whose place worlds take, and the messages that carry them.
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

/// Shows a sink every datagram that is looked at.
class CaptureObserver final : public inspect::Observer {
  public:
    /// `sink` has to outlive it.
    explicit CaptureObserver(sink::DatagramSink& sink) : sink_{&sink} {}

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        sink_->on_datagram(head, datagram);
    }

    void on_datagram_end() override { sink_->on_datagram_end(); }

  private:
    sink::DatagramSink* sink_;
};

class WorldRun;

/// What the workers of a run have in common.
struct PipelineOptions {
    inspect::Options inspect; ///< its observers are each worker's own
    bool stats = false;       ///< book where every byte goes
    sink::JsonOptions json;
    std::uint64_t message_bytes = 0;  ///< of a session's messages, a second; 0: without a limit
    sink::Output* records = nullptr;  ///< null: nothing is written
    sink::Console* console = nullptr; ///< null: nothing is shown
    std::optional<filter::Filter> filter{};         ///< of the records written
    std::optional<filter::Filter> console_filter{}; ///< of what the console shows
    std::vector<filter::Expectation> expectations{};
    web::StatusBoard* board = nullptr; ///< what the live page reads; null: there is none
    web::Feed* feed = nullptr;         ///< what its viewers are shown; null: there is no page
    std::string pseudonym_key{};       ///< empty: client addresses as they are
    std::optional<sink::DemoOptions> demos{};
    sink::Output* capture = nullptr;                ///< where datagrams are written; null: nowhere
    std::optional<filter::Filter> capture_filter{}; ///< only those that give a record like this
    sink::FileQueue* files = nullptr;               ///< of demos; set where there are any
    /// Asks for a full snapshot of a session; false when that cannot be. None: nobody may ask.
    std::function<bool(std::uint32_t session)> resync{};
    std::optional<sink::FlightOptions> flight{};
    std::size_t flight_bytes = 0;              ///< of each worker
    sink::FileQueue* flight_files = nullptr;   ///< set where there is a flight recorder
    PageRecordings* page_recordings = nullptr; ///< what the page switches on; null: nothing
    ViewChoice views = ViewChoice::sessions;
    WorldRun* worlds = nullptr; ///< where worlds are made; null: nowhere
};

/// Where a worker finds the copies.
struct RingInput {
    std::span<std::byte> ring;  ///< as relay::Ring takes it
    std::uint32_t observer = 1; ///< which observer of the run this is (see relay::Tap)
    const channel::RelayFacts* facts = nullptr; ///< with the servers' names; null: they have none
};

/// Looks at one relay thread's copies, on a thread of its own: ring, inspector, sinks.
class Worker {
  public:
    /// `index`: its place on the board.
    Worker(const PipelineOptions& options, inspect::MapSource& maps, const RingInput& post,
           std::atomic<std::uint32_t>& numbers, std::size_t index = 0);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Worker(Worker&&) = delete;
    Worker& operator=(Worker&&) = delete;

    void start();

    /// What the observer before this one left; before start(). Has to outlive it.
    void restore(const SessionCheckpoints& checkpoints) { inherited_ = &checkpoints; }

    /// Asks for the totals of the sessions so far; from any thread, also from a signal handler.
    void request_report() {
        report_wanted_.store(true);
        ring_.wake();
    }

    /// Asks the flight recorder, if there is one, for what it keeps of a session, or with 0 of all;
    /// from any thread.
    void request_flight(std::uint32_t session) {
        if (flight_) {
            flight_->request(session);
            flight_wanted_.store(true);
            ring_.wake();
        }
    }

    /// To be called when the relay has ended: looks at all that is left, closes the sessions.
    void finish();

    /// Once, after finish.
    [[nodiscard]] WorkerResult take_result();

  private:
    [[nodiscard]] inspect::Options inspect_options(const PipelineOptions& options);
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
    bool greeted_ = false; ///< what the ring holds from now on is for this observer
    std::string pseudonym_key_;
    Fanout sinks_;
    Fanout asked_; ///< what is written, and held against expectations
    WithoutSnapshots without_snapshots_{asked_};
    std::optional<world::Feed> world_feed_;
    WorldQueue* worlds_ = nullptr; ///< behind the feed
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
    std::optional<FindingContexts> stories_;
    std::optional<ResyncRequester> resync_;
    std::optional<LiveFeed> feed_;
    const SessionCheckpoints* inherited_ = nullptr;
    std::unordered_set<std::uint32_t> seamless_; ///< sessions that are to miss nothing
    web::StatusBoard* board_;
    std::size_t index_;
    web::View view_; ///< kept for its memory
    inspect::Inspector inspector_;
    base::Clock::time_point flushed_;
    base::Clock::time_point published_;
    bool to_flush_ = false;  ///< something was seen since
    bool to_publish_ = true; ///< the page does not know it yet
    std::atomic<bool> ending_{false};
    std::atomic<bool> report_wanted_{false};
    std::atomic<bool> flight_wanted_{false};
    bool writing_ = false; ///< the flight recorder has more to write now
    std::thread thread_;
};

} // namespace tw::pipeline
