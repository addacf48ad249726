#pragma once

#include "proxy/demo/world_demo.h"
#include "proxy/pipeline/pipeline.h"
#include "proxy/world/view.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace tw::pipeline {

/// A bounded queue of inputs (events of sessions) from a worker to the thread that merges
/// snapshots. Inputs that do not fit are dropped and counted. Neither thread waits for the other.
class WorldQueue final : public world::WorldInputSink {
  public:
    /// The limit of the inputs' data in bytes: half a second of 64 players with snapshots of 32 KiB
    /// each.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
    /// If this many inputs are queued, further snapshots and messages are dropped. If twice as many
    /// are queued, all further inputs are dropped. Ends of sessions are dropped last, because
    /// merging would wait for a session whose end was lost.
    static constexpr std::size_t kMaxInputs = 65536;

    using Batch = std::deque<world::MergerInput>;

    /// If `interest` is not null, snapshots are wanted only while a viewer of the page looks at
    /// merged snapshots. `interest` must outlive this object.
    explicit WorldQueue(const web::ViewerInterest* interest = nullptr) : interest_{interest} {}

    void on_input(world::MergerInput input) override;
    [[nodiscard]] bool wants_snapshots() const override;

    /// Sets whether the worker is idle. The next input of an idle worker will have a time near the
    /// current time. Therefore, older inputs of other workers need not wait for it.
    void set_worker_idle(bool idle) { is_worker_idle_.store(idle, std::memory_order_release); }

    [[nodiscard]] bool is_worker_idle() const {
        return is_worker_idle_.load(std::memory_order_acquire);
    }

    /// Moves all inputs to the batch. No further input has a time before the returned time.
    record::Timestamp take_inputs(Batch& batch);

    [[nodiscard]] std::uint64_t num_dropped_inputs() const;

  private:
    const web::ViewerInterest* interest_;
    mutable std::mutex mutex_;
    Batch inputs_;
    std::size_t bytes_ = 0;                ///< the size of the data in inputs_, in bytes
    record::Timestamp complete_until_ = 0; ///< no further input has an earlier time
    std::uint64_t dropped_inputs_ = 0;
    std::atomic<bool> is_worker_idle_{false};
};

/// Merges the snapshots of all workers' sessions, on a separate thread. Workers never wait for this
/// thread. The inputs of all workers are ordered by time. Therefore, decoding a capture of the same
/// traffic gives the same results.
class WorldThread {
  public:
    /// If config.writes_worlds() is false, merges snapshots only while the page has viewers.
    WorldThread(const Config& config, const WorkerOutputs& outputs);
    ~WorldThread();
    WorldThread(const WorldThread&) = delete;
    WorldThread& operator=(const WorldThread&) = delete;

    /// Returns the queue from a worker to this thread.
    [[nodiscard]] WorldQueue& queue(unsigned worker) { return workers_[worker].queue; }

    /// Merges the inputs that are still queued, and ends the thread. Call this function after all
    /// workers have finished.
    void finish_and_join();

    /// Returns the totals of the run. Call this function after finish_and_join().
    [[nodiscard]] world::WorldTotals totals() const;
    /// Returns the result of merging. Call this function after finish_and_join().
    [[nodiscard]] WorkerResult take_result() const;

  private:
    struct WorkerInputs {
        explicit WorkerInputs(const web::ViewerInterest* interest) : queue{interest} {}

        WorldQueue queue;
        WorldQueue::Batch batch{};
        record::Timestamp until = 0; ///< no further input of the queue has an earlier time
    };

    void run();
    void merge_first_input(WorldQueue::Batch& batch);
    /// Passes the inputs of all workers to merger_, ordered by time. If `all` is false, keeps
    /// inputs as long as a worker may still send an earlier input.
    void merge_inputs(bool all);
    [[nodiscard]] bool fetch_inputs();
    void wait_for_inputs();

    RecordWriter writer_; ///< unused if only the page shows merged snapshots
    std::optional<demo::WorldDemo> demos_;
    std::optional<PageWorldFeed> page_;
    /// Tells whether a viewer looks at merged snapshots. Null if merged snapshots are also written.
    web::ViewerInterest* page_interest_ = nullptr;
    RecordFanout sinks_;
    world::WorldMerger merger_;
    std::deque<WorkerInputs> workers_; ///< one for each worker
    std::atomic<bool> is_ending_{false};
    std::thread thread_;
};

} // namespace tw::pipeline
