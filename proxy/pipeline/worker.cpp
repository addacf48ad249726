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
               const RingInput& post, std::atomic<std::uint32_t>& numbers, std::size_t index)
    : ring_{post.ring}, observer_{post.observer}, facts_{post.facts}, config_{&config},
      expectations_{config.expectations}, board_{outputs.board}, index_{index},
      inspector_{inspect_options(outputs), maps, sinks_, numbers} {
    record::RecordSink& asked = config.views == ViewChoice::world
                                    ? static_cast<record::RecordSink&>(without_snapshots_)
                                    : asked_;
    sinks_.add(asked);
    if (outputs.worlds != nullptr) {
        worlds_ = &outputs.worlds->queue(static_cast<unsigned>(index));
        const bool messages = config.makes_worlds() && config.demos && config.demos->messages;
        sinks_.add(
            world_feed_.emplace(outputs.worlds->input(static_cast<unsigned>(index)), messages));
    }
    if (outputs.console != nullptr) {
        add_filtered(sinks_, console_.emplace(*outputs.console), config.console_filter,
                     filtered_console_);
    }
    if (outputs.records != nullptr) {
        json_.emplace(config.json, *outputs.records);
        message_limit_.emplace(*json_, config.message_bytes);
        add_filtered(asked_, limited_json_.emplace(*message_limit_), config.filter, filtered_json_);
    }
    if (board_ != nullptr) {
        sinks_.add(live_.emplace(config.mod->objects));
        sinks_.add(contexts_.emplace(config.mod->objects));
        if (feed_) {
            sinks_.add(*feed_);
        }
    }
    if (outputs.resync) {
        resync_.emplace(outputs.resync);
    }
    if (!config.expectations.empty()) {
        asked_.add(expectations_);
    }
    if (config.demos && config.views != ViewChoice::world) {
        sinks_.add(demos_.emplace(*config.demos, *outputs.files));
    }
    const auto encode_current_checkpoint = [this] {
        return inspector_.encode_current_checkpoint();
    };
    if (capture_) {
        capture_->repeat_states(encode_current_checkpoint);
        sinks_.add(*capture_);
        if (config.capture_filter) {
            sinks_.add(
                filtered_capture_.emplace(*config.capture_filter, wanted_.emplace(*capture_)));
        }
    }
    if (flight_) {
        flight_->repeat_states(encode_current_checkpoint);
        sinks_.add(*flight_);
    }
    if (page_recorder_) {
        page_recorder_->repeat_states(encode_current_checkpoint);
        sinks_.add(*page_recorder_);
    }
}

inspect::Options Worker::inspect_options(const Outputs& outputs) {
    if (config_->stats) {
        observers_.add(attribution_);
    }
    if (outputs.capture != nullptr) {
        using Choice = sink::CaptureSink::Choice;
        capture_.emplace(*outputs.capture, config_->capture_filter ? Choice::wanted : Choice::all);
        observers_.add(capture_observer_.emplace(*capture_));
    }
    if (outputs.feed != nullptr) {
        feed_.emplace(*outputs.feed, index_, config_->mod->objects);
        observers_.add(feed_->ledger());
    }
    if (config_->flight) {
        flight_.emplace(*config_->flight, config_->flight->bytes / outputs.workers,
                        *outputs.flight);
        observers_.add(flight_observer_.emplace(*flight_));
    }
    if (outputs.page_recordings != nullptr) {
        page_recorder_.emplace(*outputs.page_recordings);
        observers_.add(page_observer_.emplace(*page_recorder_));
    }
    inspect::Options own = config_->inspect;
    own.objects = &config_->mod->objects;
    own.described = &config_->mod->messages;
    own.shown_commands = &config_->shown_commands;
    own.observers = &observers_;
    return own;
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
    result_.totals = inspector_.totals();
    result_.sessions = inspector_.sessions_seen();
    result_.expectations = expectations_.list();
    result_.demo_losses = demos_ ? demos_->losses() : sink::DemoLosses{};
    result_.capture_losses = capture_ ? capture_->lost() : 0;
    result_.messages_left_out = message_limit_ ? message_limit_->left_out() : 0;
    result_.flight = flight_ ? flight_->tally() : sink::FlightTally{};
    return std::move(result_);
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
    if (demos_) {
        demos_->finish();
    }
    if (capture_) {
        capture_->finish(base::now_utc());
    }
    if (flight_) {
        flight_->finish(base::now_utc());
    }
    if (page_recorder_) {
        page_recorder_->finish(base::now_utc());
    }
    if (json_) {
        limited_json_->finish();
        message_limit_->finish();
        json_->flush();
    }
}

void Worker::do_what_is_due(base::Clock::time_point now) {
    if (feed_) {
        feed_->hand_over(now);
    }
    if (now - flushed_ >= kFlushEvery) {
        flushed_ = now;
        to_flush_ = false;
        if (json_) {
            json_->flush();
        }
        if (capture_) {
            capture_->flush();
        }
        if (page_recorder_) {
            page_recorder_->on_time(base::now_utc());
        }
        writing_ = flight_.has_value();
    }
    if (flight_ && (flight_wanted_.exchange(false) || writing_)) {
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
    if (feed_ && feed_->pending()) {
        due = std::min(due, now + kFlushEvery); // the page was busy
    }
    return due;
}

void Worker::publish() {
    live_->fill(view_, inspector_);
    contexts_->fill(view_);
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
            result_.checkpoints.emplace(event.session, *std::move(checkpoint));
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
