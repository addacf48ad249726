#include "proxy/run/world_run.h"

#include "proxy/relay/clock.h"
#include "proxy/run/relay_first.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <spdlog/spdlog.h>

namespace tw::run {

namespace {

/// A datagram is stamped by the relay, and comes to a worker that rests, within this time.
constexpr record::Timestamp kOnTheWay = 50'000'000;

/// A tick is 20 ms, and worlds close 80 ms behind the newest at the earliest.
constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::milliseconds kFlushEvery{100};

} // namespace

WorldRun::WorldRun(const WorldOptions& options, unsigned workers)
    : expectations_{options.expectations}, merger_{options.objects == nullptr
                                                       ? snapshot::ObjectSet::standard()
                                                       : *options.objects,
                                                   sinks_} {
    if (options.records != nullptr) {
        json_.emplace(options.json, *options.records);
        add_filtered(sinks_, limited_json_.emplace(*json_), options.filter, filtered_json_);
    }
    if (!options.expectations.empty()) {
        sinks_.add(expectations_);
    }
    if (options.demos) {
        sinks_.add(demos_.emplace(*options.demos, *options.files));
    }
    for (record::RecordSink* const sink : options.sinks) {
        sinks_.add(*sink);
    }
    for (unsigned i = 0; i < workers; ++i) {
        sources_.push_back(std::make_unique<Source>());
    }
    thread_ = std::thread{[this] { run(); }};
}

WorldRun::~WorldRun() {
    finish();
}

bool WorldRun::fetch() {
    bool any = false;
    for (const auto& source : sources_) {
        if (source->batch.empty()) {
            const bool resting = source->queue->resting();
            const record::Timestamp now = relay::now_utc() - kOnTheWay;
            source->until = source->queue->take(source->batch);
            source->until = resting ? std::max(source->until, now) : source->until;
            any = any || !source->batch.empty();
        }
    }
    return any;
}

void WorldRun::merge(bool all) {
    while (true) {
        Source* first = nullptr;
        auto until = std::numeric_limits<record::Timestamp>::max();
        for (const auto& source : sources_) {
            if (source->batch.empty()) {
                until = std::min(until, source->until);
            } else if (first == nullptr || source->batch.time() < first->batch.time()) {
                first = source.get();
            }
        }
        if (first == nullptr && until != std::numeric_limits<record::Timestamp>::max()) {
            merger_.on_input({.time = until});
        }
        if (first == nullptr || (!all && first->batch.time() > until)) {
            return;
        }
        first->batch.pass_on(merger_);
    }
}

void WorldRun::run() {
    let_relay_go_first();
    auto flushed = std::chrono::steady_clock::now();
    while (true) {
        const bool ending = ending_.load(std::memory_order_acquire);
        const bool any = fetch();
        merge(false);
        const auto now = std::chrono::steady_clock::now();
        if (json_ && now - flushed >= kFlushEvery) {
            flushed = now;
            json_->flush();
        }
        if (!any) {
            if (ending) {
                break;
            }
            std::this_thread::sleep_for(kPause);
        }
    }
    do {
        merge(true);
    } while (fetch());
    merger_.finish();
    if (json_) {
        json_->flush();
    }
}

void WorldRun::finish() {
    if (thread_.joinable()) {
        ending_.store(true, std::memory_order_release);
        thread_.join();
        if (demos_) {
            report_demos();
        }
    }
}

void WorldRun::report_demos() {
    demos_->finish();
    if (const sink::WorldDemoLosses losses = demos_->losses(); losses.items != 0) {
        spdlog::warn("{} items in {} ticks are more than a snapshot of a demo holds, and not in it",
                     losses.items, losses.ticks);
    }
}

WorkerResult WorldRun::take_result() const {
    WorkerResult result{.expectations = expectations_.list()};
    merger_.totals().add_findings_to(result.totals);
    if (demos_) {
        result.demo_losses = demos_->losses().demos;
    }
    return result;
}

game::WorldTotals WorldRun::totals() const {
    game::WorldTotals totals = merger_.totals();
    for (const auto& source : sources_) {
        totals.worlds.dropped += source->queue->dropped();
    }
    return totals;
}

} // namespace tw::run
