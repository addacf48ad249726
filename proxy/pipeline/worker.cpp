#include "proxy/pipeline/worker.h"

#include "proxy/base/clock.h"
#include "proxy/pipeline/world_run.h"
#include "proxy/record/pseudonym.h"

#include <algorithm>
#include <chrono>

namespace tw::pipeline {

namespace {

/// Records reach the file within this time, so that `tail -f` works.
constexpr std::chrono::milliseconds kFlushEvery{100};

/// How often the page gets new data: more often than the page's interval of one second.
constexpr std::chrono::milliseconds kPublishEvery{250};

/// While copies arrive, they are collected for this long, so that the relay need not wake the
/// worker.
constexpr std::chrono::milliseconds kGather{2};

/// The longest sleep without copies, since other workers wait for this one at a segment change.
constexpr std::chrono::milliseconds kLongestSleep{500};

/// Converts the relay's direction to the wire's; the only place that does.
wire::Direction direction_of(const relay::Event& event) {
    return event.direction == relay::Direction::c2s ? wire::Direction::c2s : wire::Direction::s2c;
}

std::string_view reason_of(relay::GapReason reason) {
    switch (reason) {
    case relay::GapReason::new_observer:
        return "new_observer";
    case relay::GapReason::kernel_dropped:
        return "kernel_dropped";
    default:
        return "ring_full";
    }
}

std::string_view reason_of(relay::CloseReason reason) {
    switch (reason) {
    case relay::CloseReason::idle:
        return "idle";
    case relay::CloseReason::handed_over:
        return "handed over";
    case relay::CloseReason::removed:
        return "removed";
    case relay::CloseReason::displaced:
        return "displaced";
    case relay::CloseReason::turned:
        return "sides turned";
    default:
        return "shutdown";
    }
}

} // namespace

Worker::Worker(const Config& config, const Outputs& outputs, inspect::MapSource& maps,
               const RingInput& post, std::atomic<std::uint32_t>& numbers, unsigned index)
    : ring_{post.ring}, observer_{post.observer}, facts_{post.facts}, config_{&config},
      worlds_{outputs.worlds == nullptr ? nullptr : &outputs.worlds->queue(index)},
      pipeline_{
          config, outputs, outputs.worlds == nullptr ? nullptr : &outputs.worlds->input(index),
          maps,   numbers, index},
      board_{outputs.board}, index_{index} {
    if (outputs.resync) {
        resync_.emplace(outputs.resync);
    }
}

Worker::~Worker() {
    finish();
}

void Worker::start() {
    thread_ = std::thread{[this] { run(); }};
}

void Worker::finish() {
    if (thread_.joinable()) {
        ending_.store(true);
        ring_.wake();
        thread_.join();
    }
}

WorkerResult Worker::take_result() {
    WorkerResult result = pipeline_.take_result();
    result.checkpoints = std::move(saved_);
    return result;
}

void Worker::run() {
    flushed_ = published_ = base::Clock::now();
    while (true) {
        // Read before the ring, so that the relay's last events are not missed.
        const bool ending = ending_.load();
        constexpr std::size_t kBatch = 256;
        const std::size_t seen =
            ring_.consume([this](const relay::Event& event) { look_at(event); }, kBatch);
        to_flush_ = to_flush_ || seen != 0;
        to_publish_ = to_publish_ || seen != 0;
        const auto now = base::Clock::now();
        do_what_is_due(now);
        if (seen == kBatch) {
            continue;
        }
        if (seen != 0) {
            std::this_thread::sleep_for(kGather);
        } else if (ending) {
            break;
        } else {
            if (worlds_ != nullptr) {
                worlds_->rest(true);
            }
            ring_.sleep_until(next_due(now),
                              [this] { return ending_ || report_wanted_ || flight_wanted_; });
            if (worlds_ != nullptr) {
                worlds_->rest(false);
            }
        }
    }
    inspector_.finish(base::now_utc(), "shutdown");
    pipeline_.finish(base::now_utc());
}

void Worker::do_what_is_due(base::Clock::time_point now) {
    if (feed_ != nullptr) {
        feed_->hand_over(now);
    }
    if (now - flushed_ >= kFlushEvery) {
        flushed_ = now;
        to_flush_ = false;
        pipeline_.flush(base::now_utc());
        writing_ = flight_ != nullptr;
    }
    if (flight_ != nullptr && (flight_wanted_.exchange(false) || writing_)) {
        writing_ = flight_->on_time(base::now_utc());
        to_flush_ = to_flush_ || flight_->busy();
    }
    if (board_ != nullptr && to_publish_ && now - published_ >= kPublishEvery) {
        published_ = now;
        publish();
    }
    if (report_wanted_.exchange(false)) {
        inspector_.report(base::now_utc());
        to_flush_ = true;
    }
}

/// The next time at which work is due even without events.
base::Clock::time_point Worker::next_due(base::Clock::time_point now) const {
    auto due = writing_ ? now : now + kLongestSleep;
    if (to_flush_) {
        due = std::min(due, flushed_ + kFlushEvery);
    }
    if (board_ != nullptr && to_publish_) {
        due = std::min(due, published_ + kPublishEvery);
    }
    if (feed_ != nullptr && feed_->pending()) {
        due = std::min(due, now + kFlushEvery); // the page was busy
    }
    return due;
}

void Worker::publish() {
    pipeline_.fill(view_);
    // on failure a reader was active; retried later
    to_publish_ = !board_->try_publish(index_, view_);
}

std::string_view Worker::server_name(const relay::Event& event) const {
    return facts_ == nullptr || event.server_index >= facts_->servers.size()
               ? std::string_view{}
               : facts_->servers[event.server_index].shown_name();
}

void Worker::open(const relay::Event& event) {
    std::optional<inspect::SessionCheckpoint> checkpoint;
    if (checkpoints_ != nullptr) {
        if (const auto found = checkpoints_->find(event.session); found != checkpoints_->end()) {
            checkpoint = found->second;
            seamless_.insert(event.session);
        }
    }
    inspector_.on_open(event.session, event.time,
                       record::shown_client(base::to_string(event.client), config_->pseudonym_key),
                       base::to_string(event.server), std::move(checkpoint), server_name(event));
}

void Worker::close(const relay::Event& event) {
    if (resync_) {
        resync_->forget(event.session);
    }
    if (event.reason == relay::CloseReason::handed_over) {
        if (auto checkpoint = inspector_.save(event.session)) {
            saved_.emplace(event.session, *std::move(checkpoint));
        }
    }
    inspector_.on_close(event.session, event.time, reason_of(event.reason));
}

void Worker::look_at(const relay::Event& event) {
    if (event.kind == relay::EventKind::observer) {
        greeted_ = event.session == observer_;
        return;
    }
    if (!greeted_) {
        return; // an event for an earlier observer
    }
    switch (event.kind) {
    case relay::EventKind::open:
        open(event);
        break;
    case relay::EventKind::datagram:
        inspector_.on_datagram(event.session, event.time, direction_of(event), event.bytes,
                               event.next);
        if (resync_ && event.direction == relay::Direction::s2c) {
            resync_->look(event.session, event.time, inspector_.wants_resync(event.session));
        }
        break;
    case relay::EventKind::close:
        close(event);
        break;
    case relay::EventKind::gap:
        if (event.gap != relay::GapReason::new_observer || seamless_.erase(event.session) == 0) {
            inspector_.on_gap(event.session, event.time, event.lost, reason_of(event.gap));
        }
        break;
    case relay::EventKind::resync:
        inspector_.on_resync(event.session, event.time);
        break;
    case relay::EventKind::observer:
        break; // handled above
    }
}

} // namespace tw::pipeline
