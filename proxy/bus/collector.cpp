#include "proxy/bus/collector.h"

#include "proxy/base/log.h"
#include "proxy/bus/subjects.h"
#include "proxy/record/terminal_text.h"

#include <chrono>
#include <sstream>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::bus {

namespace {

/// The number of positions that the stream stores for each consumer. Batches with older positions
/// cannot be found.
constexpr std::int64_t kMaxPositions = 100'000;

std::string_view message_data(natsMsg* message) {
    return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

} // namespace

std::string position_text(const StreamPosition& position) {
    return fmt::format("{} {} {}", position.created, position.last, position.batch);
}

std::optional<StreamPosition> parse_position(std::string_view text) {
    StreamPosition position;
    std::istringstream in{std::string{text}};
    in >> position.created >> position.last >> position.batch;
    return in && position_text(position) == text ? std::optional{position} : std::nullopt;
}

PositionStore::PositionStore(const BusConnection& link, const std::string& stream,
                             const std::string& consumer)
    : link_{&link}, stream_{stream + kPositionStreamSuffix}, subject_{fmt::format("{}.{}", stream_,
                                                                                  consumer)} {
    if (!link.find_stream(stream_)) {
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = stream_.c_str();
        config.Description = "what collectors of twscope have written";
        config.MaxMsgsPerSubject = kMaxPositions;
        link.create_stream(config, stream_ + ".*");
    }
    read_last_position();
}

void PositionStore::read_last_position() {
    current_ = {};
    message_sequence_ = 0;
    read_messages(*link_, {.stream = stream_, .subjects = subject_},
                  [this](natsMsg* message, const jsMsgMetaData& metadata) {
                      current_ = parse_position(message_data(message)).value_or(StreamPosition{});
                      message_sequence_ = metadata.Sequence.Stream;
                      return true;
                  });
}

bool PositionStore::set_position(const StreamPosition& position) {
    const std::string text = position_text(position);
    jsPubOptions expected;
    jsPubOptions_Init(&expected);
    expected.ExpectLastSubjectSeq = message_sequence_;
    expected.ExpectNoMessage = message_sequence_ == 0;
    std::unique_ptr<jsPubAck, NatsDeleter<jsPubAck_Destroy>> answer;
    jsErrCode code{};
    const natsStatus status =
        js_Publish(NatsResult{answer}, link_->stream_api(), subject_.c_str(), text.data(),
                   static_cast<int>(text.size()), &expected, &code);
    if (status == NATS_OK) {
        current_ = position;
        message_sequence_ = answer->Sequence;
        return true;
    }
    if (code != JSStreamWrongLastSequenceErr) {
        link_->require_ok(status, "writing to", stream_);
    }
    const std::uint64_t before = message_sequence_;
    read_last_position();
    if (message_sequence_ <= before) {
        throw BusError{fmt::format("{} was emptied or recreated", stream_)};
    }
    return false;
}

bool PositionStore::is_batch_committed(const std::string& batch) {
    while (true) {
        bool found = false;
        read_messages(*link_, {.stream = stream_, .subjects = subject_, .from = 1},
                      [&](natsMsg* message, const jsMsgMetaData& /*metadata*/) {
                          found = message_data(message).find(batch) != std::string_view::npos;
                          return !found;
                      });
        if (found) {
            return true;
        }
        // Sets the same position again, as a new message. The server accepts a position only from
        // a collector that knows the latest message. From now on, it rejects delayed positions of
        // the previous collector.
        if (set_position(
                {.created = current_.created, .last = current_.last, .batch = make_run_id()})) {
            return false;
        }
    }
}

namespace {

constexpr int kMaxBatchRecords = 1000; ///< the limit of records in a batch
/// The time in milliseconds to wait for a batch.
constexpr std::int64_t kBatchTimeoutMs = 500;
constexpr std::chrono::milliseconds kRetryPause{500};
/// The interval at which dropped records are counted while records arrive without a pause.
constexpr std::chrono::seconds kMissedCheckInterval{10};
/// The interval at which a waiting collector checks whether the other collector still requests
/// records. A working collector requests records every kBatchTimeoutMs, except while it writes.
constexpr std::chrono::milliseconds kConsumerCheckInterval{250};
/// Another collector counts as gone after this many consecutive checks in which it requested no
/// records.
constexpr int kMaxQuietChecks = 2;
/// The number of checks that replaces kMaxQuietChecks while the other collector may still write the
/// records that it has received.
constexpr int kMaxQuietChecksWhileWriting = 20;
/// The value of NATS_LIMIT_REACHED, which version 3.4 of the library does not declare.
constexpr auto kNatsLimitReached = static_cast<natsStatus>(NATS_MISSED_HEARTBEAT + 1);

/// Owns a list of messages and the messages in the list.
class FetchedMessages {
  public:
    FetchedMessages() = default;

    ~FetchedMessages() { natsMsgList_Destroy(&list); }

    FetchedMessages(const FetchedMessages&) = delete;
    FetchedMessages& operator=(const FetchedMessages&) = delete;

    natsMsgList list{};
};

} // namespace

std::string batch_name(const std::string& stream, const std::string& consumer,
                       const std::string& id) {
    return fmt::format("{}.{}.{}", stream, consumer, id);
}

std::optional<BatchName> parse_batch_name(const std::string& batch) {
    const auto first = batch.find('.');
    const auto second = batch.find('.', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) {
        return std::nullopt;
    }
    BatchName origin{.stream = batch.substr(0, first),
                     .consumer = batch.substr(first + 1, second - first - 1)};
    if (!is_subject_token(origin.stream) || !is_subject_token(origin.consumer)) {
        return std::nullopt;
    }
    return origin;
}

Collector::Result Collector::collect(const std::function<bool()>& stopped) {
    while (!stopped()) {
        try {
            collect_over_connection(stopped);
            break;
        } catch (const BusError& error) {
            if (last_error_ != error.what()) {
                log::warn("cannot collect records: {}; trying again", error.what());
                last_error_ = error.what();
            }
            is_idle_ = true;
            sink_->set_delay_reason(last_error_);
        }
        if (result_.lacks_stream && options_.stops_at_end) {
            break;
        }
        std::this_thread::sleep_for(kRetryPause);
    }
    close_bus_library();
    return result_;
}

void Collector::confirm_batch() {
    sink_->confirm_batch();
    sink_->on_batch_confirmed(batch_records_);
    batch_records_.clear();
}

void Collector::roll_back_batch() {
    if (const int error = sink_->roll_back_batch(); error != 0) {
        throw BusError{fmt::format("cannot undo uncommitted output: {}",
                                   std::generic_category().message(error))};
    }
    batch_records_.clear();
}

/// Handles a batch that an earlier process or connection left unconfirmed: confirms the batch if
/// its position was stored; rolls it back otherwise.
void Collector::recover_batch(const BusConnection& link) {
    const std::string batch = sink_->unconfirmed_batch();
    if (batch.empty()) {
        return;
    }
    const BatchName origin = parse_batch_name(batch).value_or(
        BatchName{.stream = options_.stream, .consumer = options_.consumer});
    if (PositionStore{link, origin.stream, origin.consumer}.is_batch_committed(batch)) {
        confirm_batch();
    } else {
        roll_back_batch();
    }
}

/// Returns the state of the stream. A missing stream is an error; it is not created, because its
/// name may be mistyped.
StreamStatus Collector::find_stream(const BusConnection& link) {
    const auto found = link.find_stream(options_.stream);
    if (!std::exchange(result_.lacks_stream, !found) && result_.lacks_stream) {
        const auto names = link.stream_names();
        existing_streams_ =
            names.empty() ? "" : fmt::format(" (there is {})", fmt::join(names, ", "));
    }
    if (result_.lacks_stream) {
        throw BusError{fmt::format(
            "no stream {}: nothing has been published to it yet, or it has another name{}",
            options_.stream, existing_streams_)};
    }
    return *found;
}

void Collector::collect_over_connection(const std::function<bool()>& stopped) {
    const BusConnection link{options_.access, "twscope collect"};
    stream_ = find_stream(link);
    recover_batch(link);
    if (!std::exchange(result_.has_ever_connected, true)) {
        log::info("collecting from the stream {} as {}", options_.stream, options_.consumer);
    }
    if (!wait_for_consumer(link, stopped)) {
        return;
    }
    if (std::exchange(is_waiting_, false)) {
        log::info("taking over the consumer {}", options_.consumer);
    }
    PositionStore store{link, options_.stream, options_.consumer};
    const auto subscription = take_over_consumer(link, store.current_position());
    collect_records(link, store, subscription.get(), stopped);
    // Waits until the last acknowledgement is sent.
    std::ignore = natsConnection_FlushTimeout(link.connection(), kBatchTimeoutMs);
}

/// Returns the state of the consumer; null if it does not exist.
ConsumerInfo Collector::find_consumer(const BusConnection& link) const {
    ConsumerInfo info;
    jsErrCode code{};
    const natsStatus status =
        js_GetConsumerInfo(NatsResult{info}, link.stream_api(), options_.stream.c_str(),
                           options_.consumer.c_str(), nullptr, &code);
    if (code != JSConsumerNotFoundErr) {
        link.require_ok(status, "the consumer", options_.consumer);
    }
    return info;
}

/// Waits while another collector uses the consumer. Returns false if the caller has to stop. Even
/// if the other collector is wrongly assumed to be gone, no record is lost or written twice,
/// because only one of the collectors can set the position.
bool Collector::wait_for_consumer(const BusConnection& link, const std::function<bool()>& stopped) {
    std::uint64_t delivered = 0;
    for (int quiet = 0; !stopped();) {
        const auto info = find_consumer(link);
        if (!info || info->Created == consumer_created_) { // no other collector uses the consumer
            return true;
        }
        const bool busy = info->NumWaiting != 0;
        const bool moved =
            std::exchange(delivered, info->Delivered.Consumer) != info->Delivered.Consumer;
        quiet = busy || moved ? 0 : quiet + 1;
        if (quiet >= (info->NumAckPending == 0 ? kMaxQuietChecks : kMaxQuietChecksWhileWriting)) {
            return true;
        }
        if (busy && !std::exchange(is_waiting_, true)) {
            log::info("another collector has the consumer {}: waiting until it ends",
                      options_.consumer);
            is_idle_ = true;
            sink_->set_delay_reason("another collector has the consumer " + options_.consumer);
        }
        result_.has_reached_end = busy && info->NumPending == 0 && info->NumAckPending == 0;
        if (result_.has_reached_end && options_.stops_at_end) {
            return false;
        }
        std::this_thread::sleep_for(kConsumerCheckInterval);
    }
    return false;
}

/// Deletes the consumer and creates it again at the current position. A collector that used the
/// former consumer receives no more records.
NatsSubscription Collector::take_over_consumer(const BusConnection& link,
                                               const StreamPosition& position) {
    const auto former = find_consumer(link);
    position_ = stream_.first != 0 ? stream_.first - 1 : 0;
    if (position.created == stream_.created) {
        position_ = position.last;
        // Without a stored position, collecting continues after the last acknowledged record.
    } else if (former) {
        position_ = former->AckFloor.Stream;
        // Earlier versions did not store a position, but acknowledged each record.
        const bool is_earlier = former->Config->AckPolicy == js_AckExplicit;
        if (is_earlier && former->NumAckPending != 0) {
            log::warn("{} handed to collectors of an earlier version that did not confirm this, "
                      "and will be collected again",
                      record::count_with_noun(static_cast<std::uint64_t>(former->NumAckPending),
                                              "record[s] [was|were]"));
        }
    }
    jsErrCode code{};
    std::ignore = js_DeleteConsumer(link.stream_api(), options_.stream.c_str(),
                                    options_.consumer.c_str(), nullptr, &code);
    const std::string subjects = options_.stream + ".>";
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Durable = options_.consumer.c_str();
    config.FilterSubject = subjects.c_str();
    config.DeliverPolicy = js_DeliverByStartSequence;
    config.OptStartSeq = position_ + 1;
    config.AckPolicy = js_AckAll;
    ConsumerInfo info;
    link.require_ok(js_AddConsumer(NatsResult{info}, link.stream_api(), options_.stream.c_str(),
                                   &config, nullptr, &code),
                    "the consumer", options_.consumer);
    consumer_created_ = info->Created;
    delivered_messages_ = 0;
    jsSubOptions wishes;
    jsSubOptions_Init(&wishes);
    wishes.Stream = options_.stream.c_str();
    wishes.Consumer = options_.consumer.c_str();
    wishes.ManualAck = true;
    NatsSubscription subscription;
    link.require_ok(js_PullSubscribe(NatsResult{subscription}, link.stream_api(), subjects.c_str(),
                                     nullptr, nullptr, &wishes, &code),
                    "the consumer", options_.consumer);
    return subscription;
}

void Collector::collect_records(const BusConnection& link, PositionStore& store,
                                natsSubscription* subscription,
                                const std::function<bool()>& stopped) {
    auto checked_at = std::chrono::steady_clock::now();
    while (!stopped()) {
        const MessageBatch batch = fetch_batch(link, subscription);
        if (!batch.messages.empty()) {
            write_batch(store, batch);
            report_recovery();
            if (std::chrono::steady_clock::now() - checked_at < kMissedCheckInterval) {
                continue;
            }
        }
        checked_at = std::chrono::steady_clock::now();
        result_.has_reached_end = is_stream_end_reached(link);
        report_recovery();
        if (result_.has_reached_end && options_.stops_at_end) {
            return;
        }
    }
}

/// Logs once that collecting works again after an error.
void Collector::report_recovery() {
    if (!last_error_.empty()) {
        log::info("collecting from the stream {} again", options_.stream);
        last_error_.clear();
    }
    if (std::exchange(is_idle_, false)) {
        sink_->set_delay_reason({});
    }
}

Collector::MessageBatch Collector::fetch_batch(const BusConnection& link,
                                               natsSubscription* subscription) {
    MessageBatch batch{.last = position_};
    FetchedMessages fetched;
    jsFetchRequest request;
    jsFetchRequest_Init(&request);
    request.Batch = fetch_size_.is_limited_to_single_message() ? 1 : kMaxBatchRecords;
    request.MaxBytes = fetch_size_.request_bytes();
    request.Expires = std::chrono::nanoseconds{std::chrono::milliseconds{kBatchTimeoutMs}}.count();
    const natsStatus status = natsSubscription_FetchRequest(&fetched.list, subscription, &request);
    // Version 3.4 of the library has no separate status for a message that is larger than
    // requested; version 3.10 has one.
    if ((status == NATS_ERR || status == kNatsLimitReached) && !link.is_broken() &&
        !fetch_size_.is_limited_to_single_message()) {
        fetch_size_.limit_to_single_message();
        return batch;
    }
    if (status == NATS_TIMEOUT && !link.is_broken()) {
        return batch;
    }
    link.require_ok(status);
    // If another collector has recreated the consumer meanwhile, that collector receives these
    // records.
    const auto info = find_consumer(link);
    if (!info || info->Created != consumer_created_) {
        throw BusError{fmt::format("the consumer {} was recreated", options_.consumer)};
    }
    std::int64_t bytes = 0;
    for (int i = 0; i < fetched.list.Count; ++i) {
        NatsMessage message{std::exchange(fetched.list.Msgs[i], nullptr)};
        bytes += natsMsg_GetDataLength(message.get());
        add_message(batch, std::move(message));
    }
    fetch_size_.adapt_size(bytes, info->NumPending != 0 && fetched.list.Count < kMaxBatchRecords);
    return batch;
}

void Collector::add_message(MessageBatch& batch, NatsMessage message) {
    MessageMetadata place;
    const natsStatus status = natsMsg_GetMetaData(NatsResult{place}, message.get());
    if (status != NATS_OK || place->Sequence.Consumer != ++delivered_messages_) {
        throw BusError{
            fmt::format("another collector used the consumer {}, too", options_.consumer)};
    }
    const std::uint64_t number = place->Sequence.Stream;
    if (number <= batch.last) {
        return; // the message was already delivered
    }
    // In a stream with other subjects, the messages in a gap may have such subjects.
    if (!stream_.has_other_subjects) {
        batch.missed_records += number - batch.last - 1;
    }
    batch.last = number;
    batch.messages.push_back(std::move(message));
}

void Collector::write_batch(PositionStore& store, const MessageBatch& batch) {
    const std::string id = batch_name(options_.stream, options_.consumer, make_run_id());
    batch_records_.clear();
    for (const NatsMessage& message : batch.messages) {
        const char* run = nullptr;
        const bool named = natsMsgHeader_Get(message.get(), kMessageIdHeader, &run) == NATS_OK;
        batch_records_.push_back(
            {.server = std::string{server_of_subject(natsMsg_GetSubject(message.get()))},
             .run = std::string{named ? run_of_message_id(run) : std::string_view{}},
             .line = std::string{message_data(message.get())}});
    }
    if (const int error = sink_->write_batch(id, batch_records_); error != 0) {
        batch_records_.clear();
        throw BusError{std::generic_category().message(error)};
    }
    // After an error here, recover_batch() finds out whether the position was stored.
    if (!store.set_position({.created = stream_.created, .last = batch.last, .batch = id})) {
        roll_back_batch();
        throw BusError{fmt::format("another collector has the consumer {}", options_.consumer)};
    }
    confirm_batch();
    position_ = batch.last;
    count_missed_records(batch.missed_records);
    // Acknowledges all records, to show the progress in the consumer's state.
    std::ignore = natsMsg_Ack(batch.messages.back().get(), nullptr);
}

/// Returns true if all available records are written. Counts the records that the stream dropped.
bool Collector::is_stream_end_reached(const BusConnection& link) {
    const auto info = find_consumer(link);
    if (!info) {
        throw BusError{fmt::format("the consumer {} was deleted", options_.consumer)};
    }
    const StreamStatus stream = find_stream(link);
    const std::uint64_t gone = stream.first != 0 ? stream.first - 1 : 0;
    const bool all_written = info->Delivered.Stream <= position_ || info->Delivered.Stream <= gone;
    if (all_written && gone > position_) {
        count_missed_records(stream.has_other_subjects ? 0 : gone - position_);
        position_ = gone;
    }
    return all_written && info->NumPending == 0;
}

void Collector::count_missed_records(std::uint64_t records) {
    if (records != 0) {
        result_.missed_records += records;
        log::error("{} missing: the stream {} dropped what was not collected yet; raise its "
                   "limits, or collect sooner",
                   record::count_with_noun(records, "record[s] [is|are]"), options_.stream);
    }
}

} // namespace tw::bus
