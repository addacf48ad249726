#pragma once

#include "proxy/base/clock.h"
#include "proxy/channel/shared_block.h"
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

/// Where a worker reads its datagrams.
struct RingInput {
    std::span<std::byte> ring;  ///< memory for relay::Ring
    std::uint32_t observer = 1; ///< this observer's number within the run (see relay::Tap)
    /// Contains the servers' names; null: they have none.
    const channel::RelayFacts* facts = nullptr;
};

/// Inspects one relay thread's copies on a thread of its own: ring and pipeline.
class Worker {
  public:
    /// `config` must outlive it. `index`: its slot on the status board.
    Worker(const Config& config, const Outputs& outputs, inspect::MapSource& maps,
           const RingInput& input, std::atomic<std::uint32_t>& session_numbers, unsigned index);
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void start();

    /// Sets the previous observer's checkpoints; call it before start(). They must outlive the
    /// worker.
    void restore(const SessionCheckpoints& checkpoints) { previous_checkpoints_ = &checkpoints; }

    /// Requests the totals of the sessions so far. Callable from any thread and from signal
    /// handlers.
    void request_report() {
        report_wanted_.store(true);
        ring_.wake();
    }

    /// Makes the flight recorder, if there is one, write the data of a session, or of all with 0.
    /// Callable from any thread.
    void request_flight(std::uint32_t session) {
        if (flight_ != nullptr) {
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
    void run();
    void do_due_work(base::Clock::time_point now);
    [[nodiscard]] base::Clock::time_point next_due(base::Clock::time_point now) const;
    void handle(const relay::Event& event);
    void publish_state();
    [[nodiscard]] std::string_view server_name(const relay::Event& event) const;
    void open(const relay::Event& event);
    void close(const relay::Event& event);

    relay::Ring ring_;
    std::uint32_t observer_;
    const channel::RelayFacts* facts_;
    bool own_events_ = false; ///< the ring's events are for this observer, not an earlier one
    const Config* config_;
    WorldQueue* worlds_; ///< the queue of inputs for merged worlds; null: none
    Pipeline pipeline_;
    inspect::Inspector& inspector_{pipeline_.inspector()};
    sink::FlightRecorder* flight_{pipeline_.flight()}; ///< null: there is none
    LiveFeed* feed_{pipeline_.feed()};                 ///< null: no page
    std::optional<ResyncRequester> resync_;
    SessionCheckpoints checkpoints_to_save_; ///< of sessions that another relay continues
    const SessionCheckpoints* previous_checkpoints_ = nullptr;
    /// Restored sessions; the first gap of each is not reported.
    std::unordered_set<std::uint32_t> restored_;
    web::StatusBoard* board_;
    unsigned index_;
    web::StatusView view_; ///< member only to reuse its memory
    base::Clock::time_point flushed_;
    base::Clock::time_point published_;
    bool needs_flush_ = false;  ///< events were read since the last flush
    bool needs_publish_ = true; ///< events were read since the last publish_state()
    std::atomic<bool> ending_{false};
    std::atomic<bool> report_wanted_{false};
    std::atomic<bool> flight_wanted_{false};
    bool flight_busy_ = false; ///< the flight recorder is still writing
    std::thread thread_;
};

} // namespace tw::pipeline
