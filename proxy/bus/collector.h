#pragma once

#include "proxy/bus/link.h"
#include "proxy/record/interface.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::bus {

/// A collector's position: all records of the stream up to `last` are written.
struct StreamPosition {
    std::int64_t created = 0; ///< the stream's creation time; a recreated stream has another
    std::uint64_t last = 0;   ///< sequence number of the latest record that was written
    std::string batch{};      ///< name of the batch that contains this record

    friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// Returns the position as a text. Layout: "CREATED LAST BATCH".
[[nodiscard]] std::string position_text(const StreamPosition& position);
/// Parses the result of position_text(). Returns nullopt if the text is invalid, or has the layout
/// "BATCH CREATED RANGES" of an earlier version.
[[nodiscard]] std::optional<StreamPosition> parse_position(std::string_view text);

/// Stores the position of one consumer in the stream STREAM-collected, as the last message on the
/// consumer's own subject. A collector can add a message only if it knows the previous message.
/// Therefore, a collector that another collector has replaced cannot set a position.
/// Errors of all functions: BusError.
class PositionStore {
  public:
    /// Reads the position. Creates the stream STREAM-collected if it does not exist.
    PositionStore(const BusConnection& link, const std::string& stream,
                  const std::string& consumer);

    /// Returns the position; `created` is 0 if no position was set.
    [[nodiscard]] const StreamPosition& current_position() const { return current_; }

    /// Sets the position. Returns false, and changes nothing, if another collector has set the
    /// position meanwhile.
    [[nodiscard]] bool set_position(const StreamPosition& position);

    /// Returns whether a position with this batch was ever set. If not, makes the server reject
    /// delayed messages that would set such a position later.
    [[nodiscard]] bool is_batch_committed(const std::string& batch);

  private:
    void read_last_position();

    const BusConnection* link_;
    std::string stream_;
    std::string subject_;
    /// The sequence number of the message that contains the position; 0 without a position.
    std::uint64_t message_sequence_ = 0;
    StreamPosition current_;
};

/// Chooses how many bytes a collector requests from the stream at a time. Slow connections need
/// small requests, because other answers of the bus arrive only after the requested bytes.
class AdaptiveFetchSize {
  public:
    static constexpr std::int64_t kMinBytes = std::int64_t{256} << 10U;
    static constexpr std::int64_t kMaxBytes = std::int64_t{4} << 20U;
    /// A size in bytes that is larger than any message that a server permits.
    static constexpr std::int64_t kSingleMessageBytes = std::int64_t{64} << 20U;

    [[nodiscard]] std::int64_t request_bytes() const { return bytes_; }

    /// Adapts the size to a request that returned `bytes` bytes. `has_more`: true if the stream
    /// contains more data.
    void adapt_size(std::int64_t bytes, bool has_more) {
        const std::int64_t wanted = !has_more            ? bytes_
                                    : bytes < bytes_ / 2 ? bytes_ / 2
                                                         : 2 * bytes_;
        bytes_ = std::clamp(wanted, kMinBytes, kMaxBytes);
    }

    /// Makes the next request ask for a single message. Call this function if the next message is
    /// longer than request_bytes().
    void limit_to_single_message() { bytes_ = kSingleMessageBytes; }

    [[nodiscard]] bool is_limited_to_single_message() const {
        return bytes_ == kSingleMessageBytes;
    }

  private:
    std::int64_t bytes_ = kMaxBytes;
};

/// A record from the stream.
struct CollectedRecord {
    std::string server; ///< server name as in the subject
    /// Id of the twscope run that published the record; empty if another program published it.
    std::string run{};
    std::string line;
};

/// Receives collected records in batches, each batch completely or not at all.
class BatchSink : public record::InterfaceBase {
  public:
    /// Returns the name of the batch that was neither confirmed nor rolled back; empty if there is
    /// none. An earlier process may have written it.
    [[nodiscard]] virtual std::string unconfirmed_batch() const = 0;
    /// Writes a batch of records. Returns 0 or errno. After an error, no record was written.
    [[nodiscard]] virtual int write_batch(const std::string& batch,
                                          const std::vector<CollectedRecord>& records) = 0;
    /// Makes the latest batch permanent.
    virtual void confirm_batch() = 0;
    /// Removes the unconfirmed batch. Returns 0 or errno. After an error, the batch stays
    /// unconfirmed.
    [[nodiscard]] virtual int roll_back_batch() = 0;

    /// Called with the records of each batch after confirm_batch().
    virtual void on_batch_confirmed(const std::vector<CollectedRecord>& /*records*/) {}

    /// Called with the reason why no records arrive; with an empty text when they arrive again.
    virtual void set_delay_reason(const std::string& /*reason*/) {}
};

/// The stream that a collector reads, and its consumer.
struct CollectOptions {
    BusAccess access{};
    std::string stream = kDefaultStream;
    /// Name of the durable consumer. If several collectors use the same consumer, one of them
    /// collects and the others wait.
    std::string consumer{};
    bool stops_at_end = false; ///< true to stop when all existing records are written
};

/// Passes the records of a stream to a sink, in order. The sink gets each record exactly once, even
/// if a process is killed: a batch is confirmed only after its position was stored (PositionStore).
class Collector {
  public:
    /// `sink` has to outlive the collector.
    Collector(CollectOptions options, BatchSink& sink)
        : options_{std::move(options)}, sink_{&sink} {}

    struct Result {
        bool has_ever_connected = false;
        bool lacks_stream = false; ///< true if the bus was reached but does not contain the stream
        bool has_reached_end = false; ///< true if all existing records were written
        /// Number of records that the stream dropped before they were collected.
        std::uint64_t missed_records = 0;
    };

    /// Collects until `stopped` returns true, or with `stops_at_end` until the end of the stream.
    /// If the bus fails, tries again without a limit.
    [[nodiscard]] Result collect(const std::function<bool()>& stopped);

  private:
    struct MessageBatch {
        std::vector<NatsMessage> messages{};
        std::uint64_t last = 0; ///< sequence number of the last message
        /// Number of records that the stream dropped before or between these messages.
        std::uint64_t missed_records = 0;
    };

    void collect_over_connection(const std::function<bool()>& stopped);
    [[nodiscard]] StreamStatus find_stream(const BusConnection& link);
    void recover_batch(const BusConnection& link);
    [[nodiscard]] ConsumerInfo find_consumer(const BusConnection& link) const;
    [[nodiscard]] bool wait_for_consumer(const BusConnection& link,
                                         const std::function<bool()>& stopped);
    [[nodiscard]] NatsSubscription take_over_consumer(const BusConnection& link,
                                                      const StreamPosition& position);
    void collect_records(const BusConnection& link, PositionStore& store,
                         natsSubscription* subscription, const std::function<bool()>& stopped);
    [[nodiscard]] MessageBatch fetch_batch(const BusConnection& link,
                                           natsSubscription* subscription);
    void add_message(MessageBatch& batch, NatsMessage message);
    void write_batch(PositionStore& store, const MessageBatch& batch);
    void confirm_batch();
    void roll_back_batch();
    [[nodiscard]] bool is_stream_end_reached(const BusConnection& link);
    void count_missed_records(std::uint64_t records);
    void report_recovery();

    CollectOptions options_;
    BatchSink* sink_;
    std::vector<CollectedRecord> batch_records_; ///< the records of the unconfirmed batch
    AdaptiveFetchSize fetch_size_;
    std::string last_error_; ///< the error that was logged last; empty after recovery
    bool is_idle_ = true;    ///< true until records arrive for the first time, or after an error
    /// Text that lists the existing streams; set if the wanted stream is missing.
    std::string existing_streams_;
    Result result_;
    bool is_waiting_ = false; ///< true while another collector uses the consumer
    StreamStatus stream_;     ///< the state of the stream at the latest request
    std::int64_t consumer_created_ =
        0; ///< creation time of the consumer if this collector created it
    std::uint64_t delivered_messages_ = 0; ///< number of messages that this consumer has delivered
    std::uint64_t position_ = 0; ///< sequence number of the latest message that was written
};

/// Returns the name of a batch: STREAM.CONSUMER.ID. A later process that finds an unconfirmed batch
/// looks up the position of CONSUMER to decide whether to confirm the batch.
[[nodiscard]] std::string batch_name(const std::string& stream, const std::string& consumer,
                                     const std::string& id);

struct BatchName {
    std::string stream;
    std::string consumer;
};

/// Parses the result of batch_name(). Returns nullopt if the text is not a batch name.
[[nodiscard]] std::optional<BatchName> parse_batch_name(const std::string& batch);

} // namespace tw::bus
