#include "proxy/pipeline/worker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tw::pipeline {

namespace {

/// The longest time until a record is written to the file. It is short for users of `tail -f`.
constexpr std::chrono::milliseconds kFlushInterval{100};

/// The interval at which the page receives new data. The page itself updates once a second.
constexpr std::chrono::milliseconds kPublishInterval{250};

/// How long the worker sleeps after it has read datagrams. Meanwhile, the relay need not wake it.
constexpr std::chrono::milliseconds kBatchSleep{2};

/// The longest sleep while no datagrams arrive. It is limited because the next segment of a
/// recording starts only when all workers have advanced to it.
constexpr std::chrono::milliseconds kMaxSleep{500};

wire::Direction direction_of(const relay::RelayEvent& event) {
    return event.direction == relay::Direction::c2s ? wire::Direction::c2s : wire::Direction::s2c;
}

std::string_view gap_reason_name(relay::GapReason reason) {
    using enum relay::GapReason;
    return reason == new_observer     ? "new_observer"
           : reason == kernel_dropped ? "kernel_dropped"
                                      : "ring_full";
}

std::string_view close_reason_name(relay::CloseReason reason) {
    using relay::CloseReason;
    constexpr std::pair<CloseReason, std::string_view> kReasons[]{
        {CloseReason::idle, "idle"},
        {CloseReason::handed_over, "handed over"},
        {CloseReason::removed, "removed"},
        {CloseReason::displaced, "displaced"},
        {CloseReason::sides_exchanged, "sides turned"}};
    for (const auto& [known, name] : kReasons) {
        if (known == reason) {
            return name;
        }
    }
    return "shutdown";
}

} // namespace

Worker::Worker(const Config& config, const WorkerOutputs& outputs, inspect::MapSource& maps,
               const RingInput& input, std::atomic<std::uint32_t>& session_numbers, unsigned index)
    : ring_{input.ring}, observer_number_{input.observer}, facts_{input.facts}, config_{&config},
      worlds_{outputs.worlds == nullptr ? nullptr : &outputs.worlds->queue(index)},
      pipeline_{config, outputs, worlds_, maps, session_numbers, index},
      shared_page_feed_{outputs.feed}, worker_index_{index} {
    if (outputs.request_full_snapshot) {
        resync_requester_.emplace(outputs.request_full_snapshot);
    }
}

Worker::~Worker() {
    finish_and_join();
}

void Worker::start() {
    thread_ = std::thread{[this] { run(); }};
}

void Worker::finish_and_join() {
    if (thread_.joinable()) {
        is_ending_.store(true);
        ring_.wake_consumer();
        thread_.join();
    }
}

WorkerResult Worker::take_result() {
    WorkerResult result = pipeline_.take_result();
    result.checkpoints = std::move(checkpoints_to_save_);
    return result;
}

void Worker::run() {
    flushed_at_ = published_at_ = base::Clock::now();
    while (true) {
        // is_ending_ is read before the ring. Otherwise, the relay's last events could be missed.
        const bool ending = is_ending_.load();
        constexpr std::size_t kBatch = 256;
        const std::size_t seen = ring_.consume_events(
            [this](const relay::RelayEvent& event) { handle_event(event); }, kBatch);
        needs_flush_ = needs_flush_ || seen != 0;
        needs_publish_ = needs_publish_ || seen != 0;
        const auto now = base::Clock::now();
        do_due_work(now);
        if (seen == kBatch) {
            continue;
        }
        if (seen != 0) {
            std::this_thread::sleep_for(kBatchSleep);
        } else if (ending) {
            break;
        } else {
            if (worlds_ != nullptr) {
                worlds_->set_worker_idle(true);
            }
            ring_.sleep_until(next_due_time(now), [this] {
                return is_ending_ || are_summaries_requested_ || is_flight_recording_requested_;
            });
            if (worlds_ != nullptr) {
                worlds_->set_worker_idle(false);
            }
        }
    }
    inspector_.close_all_sessions(base::now_utc(), "shutdown");
    pipeline_.write_remaining_data(base::now_utc());
}

void Worker::do_due_work(base::Clock::time_point now) {
    if (page_feed_ != nullptr) {
        page_feed_->flush_to_page(now);
    }
    if (now - flushed_at_ >= kFlushInterval) {
        flushed_at_ = now;
        needs_flush_ = false;
        pipeline_.flush(base::now_utc());
        is_flight_recorder_busy_ = flight_ != nullptr;
    }
    if (flight_ != nullptr &&
        (is_flight_recording_requested_.exchange(false) || is_flight_recorder_busy_)) {
        is_flight_recorder_busy_ = flight_->on_time(base::now_utc());
        needs_flush_ = needs_flush_ || flight_->is_busy();
    }
    if (shared_page_feed_ != nullptr && needs_publish_ && now - published_at_ >= kPublishInterval) {
        published_at_ = now;
        publish_status_view();
    }
    if (are_summaries_requested_.exchange(false)) {
        inspector_.emit_summaries();
        needs_flush_ = true;
    }
}

/// Returns the next time at which the worker has to work even without events.
base::Clock::time_point Worker::next_due_time(base::Clock::time_point now) const {
    auto due = is_flight_recorder_busy_ ? now : now + kMaxSleep;
    if (needs_flush_) {
        due = std::min(due, flushed_at_ + kFlushInterval);
    }
    if (shared_page_feed_ != nullptr && needs_publish_) {
        due = std::min(due, published_at_ + kPublishInterval);
    }
    if (page_feed_ != nullptr && page_feed_->has_pending_data()) {
        due = std::min(due, now + kFlushInterval); // the page was not ready at the last attempt
    }
    return due;
}

void Worker::publish_status_view() {
    pipeline_.fill_status_view(view_);
    // try_publish_view() fails while the page reads; the worker tries again later.
    needs_publish_ = !shared_page_feed_->try_publish_view(worker_index_, view_);
}

std::string_view Worker::server_name(const relay::RelayEvent& event) const {
    return facts_ == nullptr || event.server_index >= facts_->servers.size()
               ? std::string_view{}
               : facts_->servers[event.server_index].name_view();
}

void Worker::open_session(const relay::RelayEvent& event) {
    std::optional<inspect::SessionCheckpoint> checkpoint;
    if (previous_checkpoints_ != nullptr) {
        if (const auto found = previous_checkpoints_->find(event.session);
            found != previous_checkpoints_->end()) {
            checkpoint = found->second;
            restored_sessions_.insert(event.session);
        }
    }
    inspector_.on_open(
        event.session, event.time,
        record::client_address_text(base::to_string(event.client), config_->pseudonym_key),
        base::to_string(event.server), std::move(checkpoint), server_name(event));
}

void Worker::close_session(const relay::RelayEvent& event) {
    if (resync_requester_) {
        resync_requester_->forget_session(event.session);
    }
    if (event.reason == relay::CloseReason::handed_over) {
        if (auto checkpoint = inspector_.make_checkpoint(event.session)) {
            checkpoints_to_save_.emplace(event.session, *std::move(checkpoint));
        }
    }
    inspector_.on_close(event.session, event.time, close_reason_name(event.reason));
}

void Worker::handle_event(const relay::RelayEvent& event) {
    if (event.kind == relay::EventKind::new_observer) {
        has_reached_own_events_ = event.session == observer_number_;
        return;
    }
    if (!has_reached_own_events_) {
        return; // an event for an earlier observer
    }
    switch (event.kind) {
    case relay::EventKind::open:
        open_session(event);
        break;
    case relay::EventKind::datagram:
        inspector_.on_datagram(event.session, event.time, direction_of(event), event.bytes,
                               event.next);
        if (resync_requester_ && event.direction == relay::Direction::s2c) {
            resync_requester_->on_server_datagram(event.session, event.time,
                                                  inspector_.wants_full_snapshot(event.session));
        }
        break;
    case relay::EventKind::close:
        close_session(event);
        break;
    case relay::EventKind::gap:
        if (event.gap != relay::GapReason::new_observer ||
            restored_sessions_.erase(event.session) == 0) {
            inspector_.on_missed_datagrams(event.session, event.time, event.lost,
                                           gap_reason_name(event.gap));
        }
        break;
    case relay::EventKind::resync:
        inspector_.on_full_snapshot_request(event.session, event.time);
        break;
    case relay::EventKind::new_observer:
        break; // handled above
    }
}

} // namespace tw::pipeline
