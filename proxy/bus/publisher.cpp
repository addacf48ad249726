#include "proxy/bus/publisher.h"

#include "proxy/base/log.h"
#include "proxy/base/numbers.h"
#include "proxy/bus/subjects.h"
#include "proxy/record/json.h"
#include "proxy/record/terminal_text.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::bus {

namespace {

/// The error code of nats-server for a message that is longer than the stream permits.
constexpr std::int64_t kTooLongErrorCode = 10054;

} // namespace

PublishAnswer parse_publish_answer(std::string_view json) {
    PublishAnswer answer;
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(json, error);
    const auto* const object = error ? nullptr : value.if_object();
    if (object == nullptr) {
        answer.error = "its answer is invalid";
        return answer;
    }
    if (const auto* const said = object->if_contains("error")) {
        const boost::json::object none;
        const auto& details = said->is_object() ? said->get_object() : none;
        answer.is_too_long = record::number_of(details, "err_code") == kTooLongErrorCode;
        const std::string_view reason = record::text_of(details, "description");
        answer.error = reason.empty() ? "it gives no reason" : reason;
        return answer;
    }
    const std::int64_t sequence = record::number_of(*object, "seq").value_or(0);
    answer.sequence = sequence > 0 ? static_cast<std::uint64_t>(sequence) : 0;
    if (answer.sequence == 0) {
        answer.error = "its answer has no sequence number";
    }
    return answer;
}

void SendWindow::begin_connection(std::uint64_t settled, std::uint64_t sequence) {
    lines_.clear();
    last_settled_line_ = settled;
    sequence_ = sequence;
    lines_in_flight_ = 0;
}

void SendWindow::mark_line_sent() {
    lines_.emplace_back();
    ++lines_in_flight_;
}

void SendWindow::skip_next_line(std::uint64_t sequence) {
    lines_.push_back({.is_settled = true, .sequence = sequence});
    advance_settled_line();
}

void SendWindow::skip_lines_before(std::uint64_t next) {
    begin_connection(next - 1, settled_sequence());
}

bool SendWindow::acknowledge_line(std::uint64_t line, std::uint64_t sequence) {
    if (line <= last_settled_line_ || line >= next_line_number() ||
        lines_[line - last_settled_line_ - 1].is_settled) {
        return false;
    }
    lines_[line - last_settled_line_ - 1] = {.is_settled = true, .sequence = sequence};
    --lines_in_flight_;
    advance_settled_line();
    return true;
}

void SendWindow::advance_settled_line() {
    while (!lines_.empty() && lines_.front().is_settled) {
        ++last_settled_line_;
        sequence_ = lines_.front().sequence == 0 ? sequence_ : lines_.front().sequence;
        lines_.pop_front();
    }
}

std::uint64_t SendWindow::settled_sequence() const {
    std::uint64_t least = sequence_;
    for (const TrackedLine& each : lines_) {
        least = each.sequence == 0 ? least : std::min(least, each.sequence - 1);
    }
    return least;
}

namespace {

/// If a server acknowledges nothing for this time, the connection is closed.
constexpr std::chrono::seconds kAnswerTimeout{10};
constexpr std::chrono::milliseconds kSettleInterval{100};

} // namespace

void BacklogSender::look_up_stored_lines(std::uint64_t until) {
    link_->require_ok(natsInbox_Create(NatsResult{inbox_}));
    link_->require_ok(natsConnection_SubscribeSync(NatsResult{answers_}, link_->connection(),
                                                   fmt::format("{}.*", inbox_.get()).c_str()));
    const Backlog::Status status = backlog_->status();
    const std::uint64_t sequence = status.settled_sequence.value_or(until);
    if (status.settled_sequence) {
        stored_lines_ = find_stored_lines(
            *link_, *stream_,
            fmt::format("{}.{}.>", *stream_, server_part_to_subscribe(backlog_->server_name())),
            backlog_->run_id(), sequence, until);
    } else { // lines sent from now on get sequence numbers above `until`
        backlog_->settle_lines(status.last_settled_line, until);
    }
    window_.begin_connection(status.last_settled_line, sequence);
    last_answer_ = Clock::now();
}

void BacklogSender::send_and_receive(std::chrono::milliseconds timeout) {
    if (link_->is_broken()) {
        link_->require_ok(NATS_CONNECTION_CLOSED);
    }
    send_lines();
    process_answers(timeout);
    settle_old_lines(Clock::now());
}

/// Finds the next line to send. Returns false if all lines were sent or the window is full.
bool BacklogSender::find_next_line(std::string_view& line) {
    NumberedLine found;
    if (!backlog_->find_line(window_.next_line_number(), found)) {
        return false;
    }
    if (found.number > window_.next_line_number()) { // the lines between these numbers are lost
        if (window_.lines_in_flight() != 0) {
            return false;
        }
        window_.skip_lines_before(found.number);
    }
    line = found.text;
    return true;
}

void BacklogSender::send_lines() {
    std::string_view line;
    while (window_.has_room() && (has_unsent_lines_ = find_next_line(line))) {
        if (window_.lines_in_flight() == 0) {
            last_answer_ = Clock::now();
        }
        const auto stored = stored_lines_.find(window_.next_line_number());
        if (stored != stored_lines_.end()) {
            window_.skip_next_line(stored->second);
            stored_lines_.erase(stored);
        } else {
            send_line(line);
        }
    }
}

void BacklogSender::send_line(std::string_view line) {
    const std::uint64_t number = window_.next_line_number();
    const std::string subject =
        fmt::format("{}.{}.{}", *stream_, subject_server_of_line(backlog_->server_name(), line),
                    subject_type_of_line(line));
    const std::string reply = fmt::format("{}.{}", inbox_.get(), number);
    NatsMessage message;
    link_->require_ok(natsMsg_Create(NatsResult{message}, subject.c_str(), reply.c_str(),
                                     line.data(), static_cast<int>(line.size())));
    link_->require_ok(natsMsgHeader_Set(message.get(), kMessageIdHeader,
                                        message_id(backlog_->run_id(), number).c_str()));
    const natsStatus status = natsConnection_PublishMsg(link_->connection(), message.get());
    if (status == NATS_MAX_PAYLOAD) {
        count_refused_line(
            fmt::format("a record of {} bytes, more than the bus accepts", line.size()),
            "max_payload of nats-server, or record fewer items");
        window_.skip_next_line(0);
        return;
    }
    link_->require_ok(status);
    window_.mark_line_sent();
    ++totals_->published;
}

/// Counts a line that is too long. Logs only the 1st, 2nd, 4th, … such line.
void BacklogSender::count_refused_line(std::string_view what, std::string_view limit) {
    const std::uint64_t refused = ++totals_->refused;
    if (std::has_single_bit(refused)) {
        log::error("dropped {} ({} so far); raise {}", what, refused, limit);
    }
}

void BacklogSender::process_answers(std::chrono::milliseconds timeout) {
    std::uint64_t waiting = 1;
    while (window_.lines_in_flight() != 0 && waiting != 0) {
        NatsMessage answer;
        const natsStatus status =
            natsSubscription_NextMsg(NatsResult{answer}, answers_.get(), timeout.count());
        if (status == NATS_TIMEOUT && link_->last_error().empty()) {
            break;
        }
        // The library returns this status for the answer "no responders".
        if (status == NATS_NO_RESPONDERS) {
            throw BusError{fmt::format(
                "no stream accepts {}.{}.*: give {} these subjects, or publish to another stream",
                *stream_, server_part_to_subscribe(backlog_->server_name()), *stream_)};
        }
        link_->require_ok(status);
        process_answer(answer.get());
        std::ignore = natsSubscription_QueuedMsgs(answers_.get(), &waiting);
    }
    if (window_.lines_in_flight() != 0 && Clock::now() - last_answer_ > kAnswerTimeout) {
        throw BusError{fmt::format("no acknowledgements: {}", link_->error_text(NATS_TIMEOUT))};
    }
}

void BacklogSender::process_answer(natsMsg* answer) {
    last_answer_ = Clock::now();
    const std::string_view subject = natsMsg_GetSubject(answer);
    const std::uint64_t line =
        base::parse_number<std::uint64_t>(subject.substr(subject.rfind('.') + 1)).value_or(0);
    const PublishAnswer said = parse_publish_answer(
        {natsMsg_GetData(answer), static_cast<std::size_t>(natsMsg_GetDataLength(answer))});
    if (said.is_too_long) {
        count_refused_line(fmt::format("a record longer than the stream {} accepts", *stream_),
                           "its max_msg_size");
        std::ignore = window_.acknowledge_line(line, 0);
        return;
    }
    if (said.sequence == 0) {
        throw BusError{fmt::format("the stream {} rejects records: {}", *stream_, said.error)};
    }
    if (window_.acknowledge_line(line, said.sequence)) {
        ++totals_->acknowledged;
    }
}

/// Removes from the backlog the lines that were acknowledged at least kAcknowledgedKeepTime ago.
void BacklogSender::settle_old_lines(Clock::time_point now) {
    if (now - last_settling_ < kSettleInterval) {
        return;
    }
    last_settling_ = now;
    const std::uint64_t newest = acknowledged_lines_.empty() ? backlog_->status().last_settled_line
                                                             : acknowledged_lines_.back().settled;
    if (window_.last_settled_line() > newest) {
        acknowledged_lines_.push_back({.time = now,
                                       .settled = window_.last_settled_line(),
                                       .sequence = window_.settled_sequence()});
    }
    std::optional<AcknowledgedLines> due;
    while (!acknowledged_lines_.empty() &&
           now - acknowledged_lines_.front().time >= kAcknowledgedKeepTime) {
        due = acknowledged_lines_.front();
        acknowledged_lines_.pop_front();
    }
    if (due) {
        backlog_->settle_lines(due->settled, due->sequence);
    }
}

namespace {

constexpr std::chrono::milliseconds kFirstRetryPause{100};
constexpr std::chrono::milliseconds kMaxRetryPause{1600};
/// The longest time to wait for acknowledgements before new lines are read.
constexpr std::chrono::milliseconds kAnswerWait{5};
/// The interval of checks for a broken connection.
constexpr std::chrono::milliseconds kIdleCheckInterval{250};
/// How long finish_publishing() waits after the deadline, because the thread notices it later.
constexpr std::chrono::milliseconds kDeadlineGrace{150};
/// The interval at which the publisher searches for spools of runs that have ended.
constexpr std::chrono::seconds kSpoolSearchInterval{5};
constexpr unsigned kMiBShift = 20;

} // namespace

Publisher::Publisher(PublishOptions options) : options_{std::move(options)} {
    for (const std::string& url : options_.access.urls) {
        bus_urls_ += (bus_urls_.empty() ? "" : ",") + url_without_password(url);
    }
    if (options_.spool.empty()) {
        backlog_.emplace(make_run_id(), options_.server);
    } else {
        folder_.emplace(options_.spool, options_.spool_bytes);
        folder_->report_unpublished_files(options_.stream);
        backlog_.emplace(*folder_, make_run_id(), options_.server, options_.stream);
    }
}

Publisher::~Publisher() {
    finish_publishing(std::chrono::milliseconds{0});
}

void Publisher::wake_thread() {
    {
        const std::lock_guard lock{mutex_};
        is_woken_ = true;
        if (!thread_.joinable() && !is_stopping_) {
            is_ended_ = false;
            thread_ = std::thread{[this, owner = shared_from_this()] {
                run();
                const std::lock_guard ending{mutex_};
                is_ended_ = true;
                thread_ended_.notify_one();
            }};
        }
    }
    wakeup_.notify_one();
}

void Publisher::finish_publishing(std::chrono::milliseconds timeout) {
    std::unique_lock lock{mutex_};
    if (!is_stopping_) {
        is_stopping_ = true;
        deadline_ = Clock::now() + timeout;
    }
    wakeup_.notify_one();
    if (!thread_ended_.wait_until(lock, deadline_ + kDeadlineGrace, [this] { return is_ended_; })) {
        thread_.detach();
        return;
    }
    lock.unlock();
    if (thread_.joinable()) {
        thread_.join();
        close_bus_library();
    }
}

bool Publisher::is_past_deadline() {
    const std::lock_guard lock{mutex_};
    return is_stopping_ && Clock::now() >= deadline_;
}

/// Logs once that publishing works again after an error.
void Publisher::report_recovery(const BacklogSender& sender) {
    if (!last_error_.empty() &&
        (sender.is_idle() || totals_.acknowledged != acknowledged_before_)) {
        log::info("publishing to {} again", bus_urls_);
        last_error_.clear();
    }
}

/// Logs how the limits of an existing stream differ from the requested ones. The stream's limits
/// are not changed.
void Publisher::log_limit_differences(const StreamLimits& there) {
    StreamLimits asked = options_.limits;
    asked.duplicate_window = there.duplicate_window;
    if (std::exchange(has_compared_limits_, true) || options_.limits == StreamLimits{} ||
        asked == there) {
        return;
    }
    const auto shown = [](const StreamLimits& limits) {
        return fmt::format(
            "{} s, {} MiB, {}", limits.age.count(), limits.bytes >> kMiBShift,
            record::count_with_noun(static_cast<std::uint64_t>(limits.replicas), "replica[s]"));
    };
    log::warn("the stream {} already exists with other limits ({}) than requested ({}); 'nats "
              "stream edit' changes them",
              options_.stream, shown(there), shown(asked));
}

void Publisher::run() {
    auto pause = kFirstRetryPause;
    while (true) {
        const auto begun = Clock::now();
        std::string error;
        try {
            publish_over_connection();
        } catch (const BusError& failure) {
            error = failure.what();
        }
        totals_.connected = false;
        earlier_backlog_.reset(); // from now on, the earlier run's files may be dropped
        if (error.empty()) {
            return;
        }
        if (last_error_ != error && !is_past_deadline()) {
            log::warn("cannot publish records to {}: {}; trying again", bus_urls_, error);
            last_error_ = error;
        }
        if (Clock::now() - begun > kMaxRetryPause) {
            pause = kFirstRetryPause;
        }
        for (const auto until = Clock::now() + pause; Clock::now() < until;) {
            if (is_past_deadline()) {
                return;
            }
            std::this_thread::sleep_for(kFirstRetryPause / 2);
        }
        pause = std::min(2 * pause, kMaxRetryPause);
    }
}

void Publisher::publish_over_connection() {
    const BusConnection link{options_.access,
                             fmt::format("twscope {}", server_part_to_subscribe(options_.server))};
    log_limit_differences(link.find_or_create_stream(options_.stream, options_.limits).limits);
    if (is_past_deadline()) {
        return;
    }
    totals_.connected = true;
    ++totals_.connections;
    acknowledged_before_ = totals_.acknowledged;
    if (totals_.connections == 1) {
        log::info("publishing to {} as {}.{}", bus_urls_, options_.stream,
                  server_part_to_subscribe(options_.server));
    }
    do {
        publish_earlier_backlogs(link);
    } while (!publish_backlog(link, *backlog_));
}

/// Publishes the lines of earlier runs, with the message ids of these runs.
void Publisher::publish_earlier_backlogs(const BusConnection& link) {
    for (; !is_past_deadline() && take_over_earlier_backlog(); earlier_backlog_.reset()) {
        const Backlog::Status status = earlier_backlog_->status();
        const std::uint64_t waiting = status.last_line - status.last_settled_line;
        if (waiting != 0) {
            log::info("publishing {} that an earlier run left in the spool",
                      record::count_with_noun(waiting, "record[s]"));
        }
        std::ignore = publish_backlog(link, *earlier_backlog_);
    }
}

/// Takes over the backlog of an earlier run, unless this process already has one. Returns false if
/// there is no such backlog.
bool Publisher::take_over_earlier_backlog() {
    last_search_ = Clock::now();
    if (!earlier_backlog_ && folder_) {
        earlier_backlog_ =
            Backlog::take_over_other_spool(*folder_, backlog_->run_id(), options_.stream);
    }
    return earlier_backlog_ != nullptr;
}

bool Publisher::publish_backlog(const BusConnection& link, Backlog& backlog) {
    if (is_past_deadline()) {
        return true;
    }
    const StreamStatus stream = link.find_or_create_stream(options_.stream, options_.limits);
    BacklogSender sender{link, options_.stream, backlog, totals_};
    sender.look_up_stored_lines(stream.last);
    while (!is_past_deadline()) {
        // Checks is_stopping_ before sending, so that all lines appended before the stop are sent.
        std::unique_lock lock{mutex_};
        const bool last = is_stopping_ || &backlog != &*backlog_;
        lock.unlock();
        sender.send_and_receive(kAnswerWait);
        report_recovery(sender);
        if (sender.is_idle()) {
            if (last) {
                sender.settle_acknowledged_lines();
                return true;
            }
            if (Clock::now() - last_search_ > kSpoolSearchInterval && take_over_earlier_backlog()) {
                return false;
            }
            lock.lock();
            wakeup_.wait_for(lock, kIdleCheckInterval,
                             [this] { return is_woken_ || is_stopping_; });
            is_woken_ = false;
        }
    }
    if (!folder_) {
        sender.settle_acknowledged_lines(); // in memory, unsettled lines would count as lost
    }
    return true;
}

} // namespace tw::bus
