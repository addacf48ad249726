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
/// that do not fit are dropped and counted; neither side waits. Does not allocate once it has
/// grown.
class WorldQueue final : public world::InputSink {
  public:
    /// Half a second of 64 players with snapshots of 32 KiB each.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
    /// The limit of waiting inputs; kMaxBytes limits their data. Beyond it snapshots and messages
    /// are dropped, and beyond twice as many any input. Ends of sessions are kept longest, because
    /// worlds would wait for an ended session.
    static constexpr std::size_t kMaxInputs = 65536;

    /// The inputs that take() returned.
    class Batch {
      public:
        [[nodiscard]] bool empty() const { return next_ == entries_.size(); }

        /// Time of the next input. Precondition: not empty().
        [[nodiscard]] record::Timestamp time() const { return entries_[next_].input.time; }

        /// Passes on the next input. Precondition: not empty().
        void pass_on(world::InputSink& to);

      private:
        friend class WorldQueue;

        /// Copies of the data that an input points to.
        struct Named {
            std::string server;
            std::string name;
            record::MapRecord map;
        };

        struct Entry {
            world::Input input;
            std::size_t begin = 0; ///< start of the items' block or message bytes in ints_
            std::size_t num_items = 0;
            std::size_t num_ints = 0;
            std::size_t num_bytes = 0;
            std::shared_ptr<const Named> named{};
            std::shared_ptr<const record::World> world{};
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

    void on_input(const world::Input& input) override;

    /// Sets whether the producer is idle. While it is, later inputs have a current time.
    void rest(bool resting) { resting_.store(resting, std::memory_order_release); }

    [[nodiscard]] bool resting() const { return resting_.load(std::memory_order_acquire); }

    /// Takes all inputs. Precondition: the batch is empty. Returns the time up to which there will
    /// be no further inputs.
    record::Timestamp take(Batch& batch);

    /// The number of dropped inputs.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    /// Copies of the data that a session's snapshots point to; renewed when it changes.
    struct Kept {
        const record::World* seen = nullptr;
        std::shared_ptr<const record::World> world{};
        std::shared_ptr<const record::Roster> roster{};
    };

    void keep(const world::Input& input, Batch::Entry& entry);

    mutable std::mutex mutex_;
    Batch filling_;
    std::uint64_t dropped_ = 0;
    std::atomic<bool> resting_{false};
    std::unordered_map<std::uint32_t, Kept> kept_; ///< used by the producer
};

/// Makes merged worlds from the data of all workers, on a thread of its own. Workers never wait for
/// it. Inputs of all workers are ordered by time, so that the worlds equal those of a capture of
/// the same traffic.
class WorldRun {
  public:
    /// If the configuration makes no worlds, they are made only while the page has viewers, and only
    /// for the page.
    WorldRun(const Config& config, const Outputs& outputs);
    ~WorldRun();
    WorldRun(const WorldRun&) = delete;
    WorldRun& operator=(const WorldRun&) = delete;
    WorldRun(WorldRun&&) = delete;
    WorldRun& operator=(WorldRun&&) = delete;

    /// The sink for a worker's decoded data.
    [[nodiscard]] world::InputSink& input(unsigned worker);

    /// The queue behind input().
    [[nodiscard]] WorldQueue& queue(unsigned worker) { return *sources_[worker]->queue; }

    /// Makes worlds of what is left. Call it after all workers have finished.
    void finish();

    /// Precondition: finish() was called.
    [[nodiscard]] world::WorldTotals totals() const;

    /// The results of its sinks. Precondition: finish() was called.
    [[nodiscard]] WorkerResult take_result() const;

  private:
    struct Source {
        std::unique_ptr<WorldQueue> queue = std::make_unique<WorldQueue>();
        std::optional<WatchedInputs> watched{}; ///< filters inputs before the queue
        WorldQueue::Batch batch{};
        record::Timestamp until = 0; ///< no further input comes before this time
    };

    /// Passes inputs on, and reports ended sessions to the finding limit, since world records do
    /// not contain them.
    class Inputs final : public world::InputSink {
      public:
        explicit Inputs(WorldRun& run) : run_{&run} {}

        void on_input(const world::Input& input) override;

      private:
        WorldRun* run_;
    };

    void run();
    /// Passes on inputs that no earlier input can follow; with `all`, all of them.
    void merge(bool all);
    [[nodiscard]] bool fetch();
    void rest();
    void report_demos();

    WrittenRecords written_; ///< unused if only the page shows worlds
    std::optional<sink::WorldDemo> demos_;
    std::optional<PageWorld> page_;
    web::Watch* wake_ = nullptr; ///< wakes the thread when a viewer appears; null: none
    Fanout sinks_;
    world::Merger merger_;
    Inputs inputs_{*this}; ///< in front of merger_
    std::vector<std::unique_ptr<Source>> sources_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace tw::pipeline
