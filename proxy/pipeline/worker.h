#pragma once

#include "proxy/base/clock.h"
#include "proxy/channel/shared_run_memory.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/pipeline/resync.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/relay/ring.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_set>

namespace tw::pipeline {

/// The ring from which a worker reads its datagrams.
struct RingInput {
    std::span<std::byte> ring;  ///< memory for relay::Ring
    std::uint32_t observer = 1; ///< number of this observer process (see relay::DatagramCopier)
    /// The relay's facts with the servers' names; null if no server has a name.
    const channel::RelayFacts* facts = nullptr;
};

/// Inspects the datagrams that one relay thread copies to a ring, on a separate thread.
class Worker {
  public:
    /// `config` must outlive this object. `index`: the worker's number in the page feed.
    Worker(const Config& config, const WorkerOutputs& outputs, inspect::MapSource& maps,
           const RingInput& input, std::atomic<std::uint32_t>& session_numbers, unsigned index);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void start();

    /// Sets the checkpoints that the previous observer process saved. They must outlive the worker.
    /// Call this function before start().
    void set_previous_checkpoints(const SessionCheckpoints& checkpoints) {
        previous_checkpoints_ = &checkpoints;
    }

    /// Makes the worker emit a summary of each open session. Callable from any thread and from
    /// signal handlers.
    void request_summaries() {
        are_summaries_requested_.store(true);
        ring_.wake_consumer();
    }

    /// Makes the flight recorder write a session's data, or all sessions' data if `session` is 0.
    /// Has no effect without a flight recorder. Callable from any thread.
    void request_flight_recording(std::uint32_t session) {
        if (flight_ != nullptr) {
            flight_->request_file(session);
            is_flight_recording_requested_.store(true);
            ring_.wake_consumer();
        }
    }

    /// Inspects the rest of the ring and closes the sessions. Call this function after the relay
    /// has ended.
    void finish_and_join();

    /// Returns the worker's result. Call this function once, after finish_and_join().
    [[nodiscard]] WorkerResult take_result();

  private:
    void run();
    void do_due_work(base::Clock::time_point now);
    [[nodiscard]] base::Clock::time_point next_due_time(base::Clock::time_point now) const;
    void handle_event(const relay::RelayEvent& event);
    void publish_status_view();
    [[nodiscard]] std::string_view server_name(const relay::RelayEvent& event) const;
    void open_session(const relay::RelayEvent& event);
    void close_session(const relay::RelayEvent& event);

    relay::Ring ring_;
    std::uint32_t observer_number_;
    const channel::RelayFacts* facts_;
    /// True if the ring's next events are for this observer, not for an earlier one.
    bool has_reached_own_events_ = false;
    const Config* config_;
    WorldQueue* worlds_; ///< the queue to the thread that merges snapshots; null: none
    Pipeline pipeline_;
    inspect::Inspector& inspector_{pipeline_.inspector()};
    capture::FlightRecorder* flight_{pipeline_.flight_recorder()}; ///< null if not enabled
    WorkerPageFeed* page_feed_{pipeline_.page_feed()};             ///< null without a page
    std::optional<ResyncRequester> resync_requester_;
    /// Checkpoints of the sessions that another relay continues.
    SessionCheckpoints checkpoints_to_save_;
    const SessionCheckpoints* previous_checkpoints_ = nullptr;
    /// The sessions that were restored from checkpoints. A gap at their start is not reported.
    std::unordered_set<std::uint32_t> restored_sessions_;
    web::PageFeed* shared_page_feed_; ///< null without a page
    unsigned worker_index_;
    web::StatusView view_; ///< a member, so that its memory is reused
    base::Clock::time_point flushed_at_;
    base::Clock::time_point published_at_;
    bool needs_flush_ = false;  ///< true if events were read since the last flush
    bool needs_publish_ = true; ///< true if events were read since the last publish_status_view()
    std::atomic<bool> is_ending_{false};
    std::atomic<bool> are_summaries_requested_{false};
    std::atomic<bool> is_flight_recording_requested_{false};
    bool is_flight_recorder_busy_ = false; ///< true if the flight recorder is still writing
    std::thread thread_;
};

} // namespace tw::pipeline
