#pragma once

#include "proxy/pipeline/pipeline.h"
#include "proxy/sink/world_demo.h"
#include "proxy/world/open_world.h"
#include "snapshot/arena.h"
#include "snapshot/objects.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tw::pipeline {

/// A bounded queue of session events from a decoding worker to the thread that makes worlds. Events
/// that do not fit are dropped and counted; neither side waits.
class WorldQueue final : public world::WorldInputSink {
  public:
    /// Half a second of 64 players with snapshots of 32 KiB each.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
    /// The limit of queued inputs; kMaxBytes limits their data. If the queue holds this many,
    /// further snapshots and messages are dropped; if it holds twice as many, all inputs are. Ends
    /// of sessions are dropped last, because worlds would wait for a session whose end is lost.
    static constexpr std::size_t kMaxInputs = 65536;

    /// Inputs that take() moved out of the queue.
    class Batch {
      public:
        [[nodiscard]] bool empty() const { return next_ == entries_.size(); }

        /// Time of the next input. Precondition: not empty().
        [[nodiscard]] record::Timestamp time() const { return entries_[next_].input.time; }

        /// Passes on the next input. Precondition: not empty().
        void pass_next(world::WorldInputSink& to);

      private:
        friend class WorldQueue;

        /// Copies of the data that an input points to.
        struct InputData {
            std::string server;
            std::string name;
            record::MapRecord map;
        };

        struct Entry {
            world::WorldInput input;
            std::size_t begin = 0; ///< start of the items' block or message bytes in ints_
            std::size_t num_items = 0;
            std::size_t num_ints = 0;
            std::size_t num_bytes = 0;
            std::shared_ptr<const InputData> data{};
            std::shared_ptr<const record::TileMap> tile_map{};
            std::shared_ptr<const record::Roster> roster{};
        };

        void clear();

        [[nodiscard]] std::size_t bytes() const { return ints_.size() * sizeof(std::int32_t); }

        std::vector<Entry> entries_;
        snapshot::RawVector<std::int32_t> ints_;
        std::size_t next_ = 0;
        /// The time before which no further input comes.
        record::Timestamp until_ = 0;
    };

    void on_input(const world::WorldInput& input) override;

    /// Sets whether the worker is idle. The next input of an idle worker has the current time, so
    /// the other workers' inputs need not wait for it.
    void set_idle(bool idle) { idle_.store(idle, std::memory_order_release); }

    [[nodiscard]] bool is_idle() const { return idle_.load(std::memory_order_acquire); }

    /// Moves all inputs into the batch, which must be empty. Returns a time before which no further
    /// input will come.
    record::Timestamp take(Batch& batch);

    /// The number of dropped inputs.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    /// Copies of the objects that a session's snapshots point to, shared by all queued snapshots
    /// until those objects change.
    struct SharedCopies {
        const record::TileMap* source = nullptr;
        std::shared_ptr<const record::TileMap> tile_map{};
        std::shared_ptr<const record::Roster> roster{};
    };

    void share_copies(const world::WorldInput& input, Batch::Entry& entry);

    mutable std::mutex mutex_;
    Batch filling_;
    std::uint64_t dropped_ = 0;
    std::atomic<bool> idle_{false};
    std::unordered_map<std::uint32_t, SharedCopies> copies_; ///< used by the producer
};

/// Makes merged worlds from the data of all workers, on a thread of its own. Workers never wait for
/// it. Inputs of all workers are ordered by time, so that the worlds equal those of a capture of
/// the same traffic.
class WorldRun {
  public:
    /// If the configuration makes no worlds, they are made only while the page has viewers, and
    /// only for the page.
    WorldRun(const Config& config, const Outputs& outputs);
    ~WorldRun();
    WorldRun(const WorldRun&) = delete;
    WorldRun& operator=(const WorldRun&) = delete;

    /// The sink for a worker's decoded data.
    [[nodiscard]] world::WorldInputSink& input(unsigned worker);

    /// The queue that input() of this worker fills.
    [[nodiscard]] WorldQueue& queue(unsigned worker) { return *sources_[worker]->queue; }

    /// Makes worlds of the inputs that are still queued. Call it after all workers have finished.
    void finish();

    /// Precondition: finish() was called.
    [[nodiscard]] world::WorldTotals totals() const;

    /// The results of its sinks. Precondition: finish() was called.
    [[nodiscard]] WorkerResult take_result() const;

  private:
    struct Source {
        std::unique_ptr<WorldQueue> queue = std::make_unique<WorldQueue>();
        std::optional<InputsWhileViewed> watched{}; ///< filters inputs before the queue
        WorldQueue::Batch batch{};
        record::Timestamp until = 0; ///< no further input comes before this time
    };

    /// Passes inputs to the merger. Also reports ended sessions to the finding limit, because world
    /// records do not contain those ends.
    class Inputs final : public world::WorldInputSink {
      public:
        explicit Inputs(WorldRun& run) : run_{&run} {}

        void on_input(const world::WorldInput& input) override;

      private:
        WorldRun* run_;
    };

    void run();
    /// Passes on the inputs, ordered by time. An input waits while a worker may still send an
    /// earlier one; with `all`, no input waits.
    void merge_inputs(bool all);
    [[nodiscard]] bool fetch_inputs();
    void pause();
    void log_demo_losses();

    WrittenRecords written_; ///< unused if only the page shows worlds
    std::optional<sink::WorldDemo> demos_;
    std::optional<PageWorld> page_;
    /// Wakes the thread when a viewer appears; null unless only the page shows worlds.
    web::ViewerInterest* page_interest_ = nullptr;
    Fanout sinks_;
    world::WorldMerger merger_;
    Inputs inputs_{*this}; ///< passes the inputs of all workers to merger_
    std::vector<std::unique_ptr<Source>> sources_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace tw::pipeline
