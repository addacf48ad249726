#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/filter/filter.h"
#include "proxy/game/merger.h"
#include "proxy/run/fanout.h"
#include "proxy/run/page_world.h"
#include "proxy/run/worker_result.h"
#include "proxy/run/world_queue.h"
#include "proxy/sink/finding_limit.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"
#include "proxy/sink/world_demo.h"
#include "snapshot/object_set.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace tw::run {

/// What the worlds of a live run are made of, and go to.
struct WorldOptions {
    const snapshot::ObjectSet* objects = nullptr;    ///< null: the standard table
    std::size_t max_bytes = game::Merger::kMaxBytes; ///< that wait to be made worlds of
    sink::JsonOptions json{};
    sink::Output* records = nullptr; ///< null: nothing is written
    std::optional<filter::Filter> filter{};
    std::vector<filter::Expectation> expectations{};
    std::optional<sink::DemoOptions> demos{};
    sink::FileQueue* files = nullptr;         ///< of demos; set where there are any
    std::vector<record::RecordSink*> sinks{}; ///< others; called on the thread that makes worlds
    admin::Feed* page = nullptr; ///< shown worlds while somebody looks at them; null: no page
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
    [[nodiscard]] game::InputSink& input(unsigned worker);

    /// What stands behind that.
    [[nodiscard]] WorldQueue& queue(unsigned worker) { return *sources_[worker]->queue; }

    /// To be called when all workers have finished: makes worlds of what is left.
    void finish();

    /// Only after finish.
    [[nodiscard]] game::WorldTotals totals() const;

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
    class Inputs final : public game::InputSink {
      public:
        explicit Inputs(WorldRun& run) : run_{&run} {}

        void on_input(const game::Input& input) override;

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
    admin::Watch* wake_ = nullptr; ///< whose word to wait for while nobody looks; null: none
    Fanout sinks_;
    game::Merger merger_;
    Inputs inputs_{*this}; ///< before the merger
    std::vector<std::unique_ptr<Source>> sources_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace tw::run
