#include "proxy/pipeline/world_run.h"

#include "proxy/base/clock.h"
#include "proxy/base/log.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace tw::pipeline {

using world::MergerInput;

void WorldQueue::on_input(MergerInput input) {
    const std::lock_guard lock{mutex_};
    complete_until_ = std::max(complete_until_, input.time);
    if (input.kind == MergerInput::Kind::time_passed) {
        return;
    }
    const bool is_optional =
        input.kind == MergerInput::Kind::snapshot || input.kind == MergerInput::Kind::message;
    const std::size_t bytes =
        input.payload.size() +
        (input.items == nullptr ? 0 : input.items->view().block_ints() * sizeof(std::int32_t));
    if (inputs_.size() >= (is_optional ? kMaxInputs : 2 * kMaxInputs) ||
        (bytes != 0 && bytes_ + bytes > kMaxBytes)) {
        ++dropped_inputs_;
        return;
    }
    bytes_ += bytes;
    inputs_.push_back(std::move(input));
}

bool WorldQueue::wants_snapshots() const {
    return interest_ == nullptr || interest_->wants_topic(web::ViewerTopic::world);
}

record::Timestamp WorldQueue::take_inputs(Batch& batch) {
    const std::lock_guard lock{mutex_};
    batch = std::exchange(inputs_, {});
    bytes_ = 0;
    return complete_until_;
}

std::uint64_t WorldQueue::num_dropped_inputs() const {
    const std::lock_guard lock{mutex_};
    return dropped_inputs_;
}

namespace {

/// The longest time between the relay's timestamp of a datagram and the moment at which an idle
/// worker reads it.
constexpr record::Timestamp kMaxTransitTime = 50'000'000;

/// The pause between two merges: the duration of a tick. It adds little delay, because a tick is
/// merged only after at least four later ticks have arrived.
constexpr std::chrono::milliseconds kMergePause{20};
/// The pause between two merges if only the page shows merged snapshots. It is short, so that a
/// tick is merged soon after its last snapshot has arrived.
constexpr std::chrono::milliseconds kPageMergePause{5};
/// How many ticks merging waits for late snapshots if only the page shows merged snapshots. A short
/// wait is enough, because the page may lack a tee for a moment.
constexpr world::MergeDelay kPageMergeDelay{.min_ticks = 0, .max_ticks = 2};
constexpr std::chrono::milliseconds kWorldFlushInterval{100};
/// The interval at which queues are emptied while the page has no viewers.
constexpr std::chrono::milliseconds kIdleInterval{1000};

} // namespace

WorldThread::WorldThread(const Config& config, const WorkerOutputs& outputs)
    : writer_{config, config.writes_worlds() ? outputs : WorkerOutputs{}},
      merger_{config.mod->objects, sinks_,
              config.writes_worlds() ? world::MergeDelay{} : kPageMergeDelay,
              world::WorldMerger::memory_share(config.memory_bytes)} {
    if (outputs.feed != nullptr) {
        sinks_.add_sink(page_.emplace(*outputs.feed, config.mod->objects));
    }
    if (config.writes_worlds()) {
        sinks_.add_sink(writer_);
        if (outputs.console != nullptr) {
            sinks_.add_new_sink<sink::ConsoleSink>(config.console_filter, *outputs.console);
        }
    } else {
        page_interest_ = &outputs.feed->interest;
    }
    if (config.writes_worlds() && config.demos) {
        sinks_.add_sink(demos_.emplace(*config.demos, *outputs.files));
        if (config.demos->messages) {
            merger_.send_messages_to(*demos_);
        }
    }
    for (unsigned i = 0; i < outputs.num_workers; ++i) {
        workers_.emplace_back(page_interest_);
    }
    thread_ = std::thread{[this] { run(); }};
}

WorldThread::~WorldThread() {
    finish_and_join();
}

bool WorldThread::fetch_inputs() {
    bool any = false;
    for (WorkerInputs& source : workers_) {
        if (source.batch.empty()) {
            const bool idle = source.queue.is_worker_idle();
            const record::Timestamp now = base::now_utc() - kMaxTransitTime;
            source.until = source.queue.take_inputs(source.batch);
            source.until = idle ? std::max(source.until, now) : source.until;
            any = any || !source.batch.empty();
        }
    }
    return any;
}

void WorldThread::merge_first_input(WorldQueue::Batch& batch) {
    MergerInput input = std::move(batch.front());
    batch.pop_front();
    // writer_ receives no records of single sessions, so it must be told that a session has ended.
    const bool ends = input.kind == MergerInput::Kind::close;
    const record::RecordHeader head{
        .time = input.time, .session = input.session, .server_name = input.server_name};
    merger_.on_input(std::move(input));
    if (ends) {
        writer_.end_session(head);
    }
}

void WorldThread::merge_inputs(bool all) {
    while (true) {
        WorkerInputs* first = nullptr;
        auto until = std::numeric_limits<record::Timestamp>::max();
        for (WorkerInputs& source : workers_) {
            if (source.batch.empty()) {
                until = std::min(until, source.until);
            } else if (first == nullptr || source.batch.front().time < first->batch.front().time) {
                first = &source;
            }
        }
        if (first == nullptr && until != std::numeric_limits<record::Timestamp>::max()) {
            merger_.on_input({.time = until});
        }
        if (first == nullptr || (!all && first->batch.front().time > until)) {
            return;
        }
        merge_first_input(first->batch);
    }
}

void WorldThread::run() {
    auto flushed = std::chrono::steady_clock::now();
    while (true) {
        const bool ending = is_ending_.load(std::memory_order_acquire);
        const bool any = fetch_inputs();
        // For the page, the order of inputs does not matter.
        merge_inputs(page_interest_ != nullptr);
        if (page_) {
            page_->flush_to_page();
        }
        const auto now = std::chrono::steady_clock::now();
        if (now - flushed >= kWorldFlushInterval) {
            flushed = now;
            writer_.flush();
        }
        if (!any) {
            if (ending) {
                break;
            }
            wait_for_inputs();
        }
    }
    do {
        merge_inputs(true);
    } while (fetch_inputs());
    merger_.merge_waiting_ticks();
    writer_.write_omitted_counts();
}

void WorldThread::wait_for_inputs() {
    if (page_interest_ != nullptr && !page_interest_->wants_topic(web::ViewerTopic::world)) {
        page_interest_->wait_for_world_viewer(kIdleInterval);
    } else {
        std::this_thread::sleep_for(page_interest_ != nullptr ? kPageMergePause : kMergePause);
    }
}

void WorldThread::finish_and_join() {
    if (thread_.joinable()) {
        is_ending_.store(true, std::memory_order_release);
        if (page_interest_ != nullptr) {
            page_interest_->stop_waiting();
        }
        thread_.join();
        if (demos_) {
            demos_->end_demos();
        }
        if (const auto dropped = totals().worlds.dropped;
            dropped != 0 && page_interest_ == nullptr) {
            log::warn("{} in no world: too many servers at once, or more snapshots than could "
                      "be merged",
                      record::count_with_noun(dropped, "snapshot[s] [is|are]"));
        }
    }
}

WorkerResult WorldThread::take_result() const {
    WorkerResult result{.expectations = writer_.expectations().list()};
    if (page_interest_ == nullptr) {
        merger_.totals().add_findings_to(result.totals);
    }
    if (demos_) {
        result.demo_losses = demos_->losses();
        result.demo_losses.messages_over_limit += merger_.lost_message_count();
    }
    return result;
}

world::WorldTotals WorldThread::totals() const {
    world::WorldTotals totals = merger_.totals();
    for (const WorkerInputs& source : workers_) {
        totals.worlds.dropped += source.queue.num_dropped_inputs();
    }
    return totals;
}

} // namespace tw::pipeline
