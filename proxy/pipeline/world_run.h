#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/pipeline/live_feed.h"
#include "proxy/pipeline/worker_result.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"
#include "proxy/sink/record_limits.h"
#include "proxy/sink/world_demo.h"
#include "proxy/world/open_world.h"
#include "proxy/world/server_worlds.h"
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

/// Copies of what happens to sessions, on the way from who decodes to who makes worlds. Bounded: what
/// finds no room is dropped and counted, and nobody waits. Allocates nothing once it has grown.
class WorldQueue final : public world::InputSink {
  public:
    /// Half a second of 64 players whose snapshots have 32 KiB each.
    static constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;
    /// Inputs that wait; what they hold is bounded above. Beyond it a snapshot or a message is dropped,
    /// and beyond twice as many anything: without the end of a session its world would wait for it in vain.
    static constexpr std::size_t kMaxInputs = 65536;

    /// What was taken out, and is read one by one.
    class Batch {
      public:
        [[nodiscard]] bool empty() const { return next_ == entries_.size(); }

        /// When the next one happened. Precondition: there is one.
        [[nodiscard]] record::Timestamp time() const { return entries_[next_].input.time; }

        /// Precondition: there is one.
        void pass_on(world::InputSink& to);

      private:
        friend class WorldQueue;

        /// What an input points at.
        struct Named {
            std::string server;
            std::string name;
            record::MapRecord map;
        };

        struct Entry {
            world::Input input;
            std::size_t begin = 0; ///< of the items' block, or the message's bytes, in ints_
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
        /// Nothing comes that happened before.
        record::Timestamp until_ = 0;
    };

    void on_input(const world::Input& input) override;

    /// Whether who fills it has nothing to do: what happens now comes in a moment, and nothing of
    /// before.
    void rest(bool resting) { resting_.store(resting, std::memory_order_release); }

    [[nodiscard]] bool resting() const { return resting_.load(std::memory_order_acquire); }

    /// Takes all there is. Precondition: the batch is empty. Returns up to when that is all.
    record::Timestamp take(Batch& batch);

    /// Inputs that were dropped.
    [[nodiscard]] std::uint64_t dropped() const;

  private:
    /// What a session's snapshots point at, copied when it is another.
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
    std::unordered_map<std::uint32_t, Kept> kept_; ///< of the side that fills
};

/// What the worlds of a live run are made of, and go to.
struct WorldOptions {
    const snapshot::ObjectSet* objects = nullptr;     ///< null: the standard table
    std::size_t max_bytes = world::Merger::kMaxBytes; ///< that wait to be made worlds of
    sink::JsonOptions json{};
    sink::Output* records = nullptr; ///< null: nothing is written
    std::optional<filter::Filter> filter{};
    std::vector<filter::Expectation> expectations{};
    std::optional<sink::DemoOptions> demos{};
    sink::FileQueue* files = nullptr;         ///< of demos; set where there are any
    std::vector<record::RecordSink*> sinks{}; ///< others; called on the thread that makes worlds
    web::Feed* page = nullptr; ///< shown worlds while somebody looks at them; null: no page
    /// Nobody else wants them: while nobody looks, none are made. The rest above counts for nothing.
    bool for_page_only = false;
};

/// Makes worlds of what all workers decode, on a thread of its own behind them. Workers never wait for
/// it. What happened first comes first, whichever worker saw it, so that the worlds are those of a
/// capture of the same traffic.
class WorldRun {
  public:
    WorldRun(const WorldOptions& options, unsigned workers);
    ~WorldRun();
    WorldRun(const WorldRun&) = delete;
    WorldRun& operator=(const WorldRun&) = delete;
    WorldRun(WorldRun&&) = delete;
    WorldRun& operator=(WorldRun&&) = delete;

    /// Where a worker puts what it decodes.
    [[nodiscard]] world::InputSink& input(unsigned worker);

    /// What stands behind that.
    [[nodiscard]] WorldQueue& queue(unsigned worker) { return *sources_[worker]->queue; }

    /// To be called when all workers have finished: makes worlds of what is left.
    void finish();

    /// Only after finish.
    [[nodiscard]] world::WorldTotals totals() const;

    /// What came of it beside that; only after finish.
    [[nodiscard]] WorkerResult take_result() const;

  private:
    struct Source {
        std::unique_ptr<WorldQueue> queue = std::make_unique<WorldQueue>();
        std::optional<WatchedInputs> watched{}; ///< before the queue
        WorldQueue::Batch batch{};
        record::Timestamp until = 0; ///< nothing comes that happened before
    };

    /// Hands on what happens, and says which sessions ended to who counts findings of them: worlds do
    /// not tell.
    class Inputs final : public world::InputSink {
      public:
        explicit Inputs(WorldRun& run) : run_{&run} {}

        void on_input(const world::Input& input) override;

      private:
        WorldRun* run_;
    };

    void run();
    /// Passes on what nothing can come before; with `all` what there is.
    void merge(bool all);
    [[nodiscard]] bool fetch();
    void add_sinks(const WorldOptions& options);
    void rest();
    void report_demos();

    std::optional<sink::JsonLines> json_;
    std::optional<sink::FindingLimit> limited_json_;
    std::optional<filter::FilteredSink> filtered_json_;
    filter::Expectations expectations_;
    std::optional<sink::WorldDemo> demos_;
    std::optional<PageWorld> page_;
    web::Watch* wake_ = nullptr; ///< whose word to wait for while nobody looks; null: none
    Fanout sinks_;
    world::Merger merger_;
    Inputs inputs_{*this}; ///< before the merger
    std::vector<std::unique_ptr<Source>> sources_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace tw::pipeline
