#include "proxy/pipeline/world_run.h"

#include "proxy/base/clock.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>

namespace tw::pipeline {

using world::WorldInput;

void WorldQueue::Batch::clear() {
    entries_.clear();
    ints_.clear();
    next_ = 0;
}

void WorldQueue::Batch::pass_next(world::WorldInputSink& to) {
    const Entry& entry = entries_[next_];
    ++next_;
    WorldInput input = entry.input;
    input.payload = std::as_bytes(std::span{ints_}.subspan(entry.begin)).first(entry.num_bytes);
    input.items = snapshot::SnapshotView::of_block(
        std::span{ints_}.subspan(entry.begin, 2 * entry.num_items + entry.num_ints),
        entry.num_items, entry.num_ints);
    input.tile_map = entry.tile_map.get();
    input.roster = entry.roster.get();
    if (entry.data) {
        input.server = entry.data->server;
        input.map = input.kind == WorldInput::Kind::map ? &entry.data->map : nullptr;
    }
    to.on_input(input);
}

void WorldQueue::share_copies(const WorldInput& input, Batch::Entry& entry) {
    SharedCopies& copies = copies_[input.session];
    if (copies.source != input.tile_map) {
        copies.source = input.tile_map;
        copies.tile_map = input.tile_map == nullptr
                              ? nullptr
                              : std::make_shared<const record::TileMap>(*input.tile_map);
    }
    if (input.roster == nullptr) {
        copies.roster.reset();
    } else if (copies.roster == nullptr || *copies.roster != *input.roster) {
        copies.roster = std::make_shared<const record::Roster>(*input.roster);
    }
    entry.tile_map = copies.tile_map;
    entry.roster = copies.roster;
}

void WorldQueue::on_input(const WorldInput& input) {
    Batch::Entry entry{.input = input};
    if (input.kind == WorldInput::Kind::snapshot) {
        share_copies(input, entry);
        entry.num_items = input.items.size();
        entry.num_ints = input.items.data().size();
    } else if (input.kind == WorldInput::Kind::message) {
        entry.num_bytes = input.payload.size();
    } else {
        copies_.erase(input.session); // a later map may have the same address
    }
    if (input.kind == WorldInput::Kind::open || input.kind == WorldInput::Kind::map) {
        auto data = std::make_shared<Batch::InputData>();
        data->server = input.server;
        if (input.map != nullptr) {
            data->map = *input.map;
            data->name = input.map->name;
            data->map.name = data->name;
        }
        entry.data = std::move(data);
    }
    const std::lock_guard lock{mutex_};
    filling_.until_ = std::max(filling_.until_, input.time);
    if (input.kind == WorldInput::Kind::time_passed) {
        return;
    }
    const bool snapshot = input.kind == WorldInput::Kind::snapshot;
    const bool message = input.kind == WorldInput::Kind::message;
    const std::size_t ints =
        message ? (entry.num_bytes + sizeof(std::int32_t) - 1) / sizeof(std::int32_t)
                : input.items.block_ints();
    if (filling_.entries_.size() >= (snapshot || message ? kMaxInputs : 2 * kMaxInputs) ||
        (ints != 0 && filling_.memory_bytes() + ints * sizeof(std::int32_t) > kMaxBytes)) {
        ++dropped_;
        return;
    }
    entry.begin = filling_.ints_.size();
    filling_.ints_.resize(entry.begin + ints);
    if (message) {
        std::memcpy(filling_.ints_.data() + entry.begin, input.payload.data(), entry.num_bytes);
    } else {
        input.items.write_block(filling_.ints_.data() + entry.begin);
    }
    filling_.entries_.push_back(std::move(entry));
}

record::Timestamp WorldQueue::take_inputs(Batch& batch) {
    batch.clear();
    const std::lock_guard lock{mutex_};
    std::swap(batch.entries_, filling_.entries_);
    std::swap(batch.ints_, filling_.ints_);
    return filling_.until_;
}

std::uint64_t WorldQueue::dropped_count() const {
    const std::lock_guard lock{mutex_};
    return dropped_;
}

namespace {

/// The longest time between the relay's timestamp of a datagram and the moment at which an idle
/// worker reads it.
constexpr record::Timestamp kMaxTransitTime = 50'000'000;

/// The pause between two merges: one tick. This adds little delay, because a tick waits for at
/// least four later ticks.
constexpr std::chrono::milliseconds kRoundPause{20};
/// The pause if only the page shows merged snapshots. A tick is merged as soon as all its snapshots
/// have arrived, to reduce the delay.
constexpr std::chrono::milliseconds kPagePause{5};
/// How long a tick waits for late snapshots if only the page shows merged snapshots: not long,
/// because a tee may be missing briefly there.
constexpr world::WaitTicks kPageWaitTicks{.least = 0, .most = 2};
constexpr std::chrono::milliseconds kWorldFlushInterval{100};
/// The interval at which queues are emptied while the page has no viewers.
constexpr std::chrono::milliseconds kIdleInterval{1000};

} // namespace

WorldThread::WorldThread(const Config& config, const Outputs& outputs)
    : written_{config, config.makes_worlds() ? outputs : Outputs{}},
      merger_{config.mod->objects, sinks_,
              config.makes_worlds() ? world::WaitTicks{} : kPageWaitTicks,
              world::WorldMerger::memory_share(config.memory_bytes)} {
    if (outputs.feed != nullptr) {
        sinks_.add(page_.emplace(*outputs.feed, config.mod->objects));
    }
    if (config.makes_worlds()) {
        sinks_.add(written_);
    } else {
        page_interest_ = &outputs.feed->interest;
    }
    if (config.makes_worlds() && config.demos) {
        sinks_.add(demos_.emplace(*config.demos, *outputs.files));
        if (config.demos->messages) {
            merger_.send_messages_to(*demos_);
        }
    }
    for (unsigned i = 0; i < outputs.workers; ++i) {
        sources_.push_back(std::make_unique<Source>());
        if (page_interest_ != nullptr) {
            sources_.back()->watched.emplace(*page_interest_, *sources_.back()->queue);
        }
    }
    thread_ = std::thread{[this] { run(); }};
}

world::WorldInputSink& WorldThread::input_of(unsigned worker) {
    Source& source = *sources_[worker];
    return source.watched ? static_cast<world::WorldInputSink&>(*source.watched) : *source.queue;
}

WorldThread::~WorldThread() {
    finish();
}

bool WorldThread::fetch_inputs() {
    bool any = false;
    for (const auto& source : sources_) {
        if (source->batch.empty()) {
            const bool idle = source->queue->is_idle();
            const record::Timestamp now = base::now_utc() - kMaxTransitTime;
            source->until = source->queue->take_inputs(source->batch);
            source->until = idle ? std::max(source->until, now) : source->until;
            any = any || !source->batch.empty();
        }
    }
    return any;
}

void WorldThread::Inputs::on_input(const world::WorldInput& input) {
    run_->merger_.on_input(input);
    if (input.kind == world::WorldInput::Kind::close) {
        run_->written_.end_session(
            {.time = input.time, .session = input.session, .server_name = input.server_name});
    }
}

void WorldThread::merge_inputs(bool all) {
    while (true) {
        Source* first = nullptr;
        auto until = std::numeric_limits<record::Timestamp>::max();
        for (const auto& source : sources_) {
            if (source->batch.empty()) {
                until = std::min(until, source->until);
            } else if (first == nullptr || source->batch.next_time() < first->batch.next_time()) {
                first = source.get();
            }
        }
        if (first == nullptr && until != std::numeric_limits<record::Timestamp>::max()) {
            merger_.on_input({.time = until});
        }
        if (first == nullptr || (!all && first->batch.next_time() > until)) {
            return;
        }
        first->batch.pass_next(inputs_);
    }
}

void WorldThread::run() {
    auto flushed = std::chrono::steady_clock::now();
    while (true) {
        const bool ending = ending_.load(std::memory_order_acquire);
        const bool any = fetch_inputs();
        // For the page, the order of inputs does not matter.
        merge_inputs(page_interest_ != nullptr);
        if (page_) {
            page_->flush_to_page();
        }
        const auto now = std::chrono::steady_clock::now();
        if (now - flushed >= kWorldFlushInterval) {
            flushed = now;
            written_.flush();
        }
        if (!any) {
            if (ending) {
                break;
            }
            pause();
        }
    }
    do {
        merge_inputs(true);
    } while (fetch_inputs());
    merger_.finish();
    written_.finish();
}

void WorldThread::pause() {
    if (page_interest_ != nullptr && !page_interest_->wants_world()) {
        page_interest_->wait_for_world_viewer(kIdleInterval);
    } else {
        std::this_thread::sleep_for(page_interest_ != nullptr ? kPagePause : kRoundPause);
    }
}

void WorldThread::finish() {
    if (thread_.joinable()) {
        ending_.store(true, std::memory_order_release);
        if (page_interest_ != nullptr) {
            page_interest_->stop_waiting();
        }
        thread_.join();
        if (demos_) {
            log_demo_losses();
        }
        if (const auto dropped = totals().worlds.dropped;
            dropped != 0 && page_interest_ == nullptr) {
            spdlog::warn("{} in no world: too many servers at once, or more snapshots than could "
                         "be merged",
                         record::counted(dropped, "snapshot[s] [is|are]"));
        }
    }
}

void WorldThread::log_demo_losses() {
    demos_->finish();
    sink::WorldDemoLosses losses = demos_->losses();
    losses.messages_over_limit += merger_.lost_message_count();
    for (const std::string& loss : loss_sentences(losses)) {
        spdlog::warn("demos: {}", loss);
    }
}

WorkerResult WorldThread::take_result() const {
    WorkerResult result{.expectations = written_.expectations().list()};
    if (page_interest_ == nullptr) {
        merger_.totals().add_findings_to(result.totals);
    }
    if (demos_) {
        result.demo_losses = demos_->losses().demos;
    }
    return result;
}

world::WorldTotals WorldThread::totals() const {
    world::WorldTotals totals = merger_.totals();
    for (const auto& source : sources_) {
        totals.worlds.dropped += source->queue->dropped_count();
    }
    return totals;
}

} // namespace tw::pipeline
