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

/// States that all records of a stream up to a sequence number are written.
struct StreamPosition {
    std::int64_t created = 0; ///< creation time of the stream; a recreated stream starts again at 1
    std::uint64_t last = 0;   ///< sequence number of the last record written
    std::string batch{};      ///< name of the batch with that record

    friend bool operator==(const StreamPosition&, const StreamPosition&) = default;
};

/// Returns a position as a text. Layout: "CREATED LAST BATCH".
[[nodiscard]] std::string position_text(const StreamPosition& position);
/// Parses the result of position_text(); nullopt if the text is invalid or by an earlier version, which
/// wrote "BATCH CREATED RANGES".
[[nodiscard]] std::optional<StreamPosition> read_position(std::string_view text);

/// Stores the position of one consumer, as the last message of the consumer's own subject in the stream
/// STREAM-collected. A collector can add a message only if it knows the previous one. A collector that
/// was replaced by another one therefore fails to set its position, and rolls its batch back.
class PositionStore {
  public:
    /// Creates the store's stream if it does not exist, and reads the position.
    [[nodiscard]] static BusResult<PositionStore>
    open(const BusConnection& link, const std::string& stream, const std::string& consumer);

    /// The position; its `created` is 0 if there is none.
    [[nodiscard]] const StreamPosition& current() const { return current_; }

    /// Sets the position. Returns false, and changes nothing, if another collector has set it meanwhile.
    [[nodiscard]] BusResult<bool> set_position(const StreamPosition& position);

    /// Returns true if a position with this batch was ever set. After false it never will be: this call
    /// makes the server reject any message in flight that sets such a position.
    [[nodiscard]] BusResult<bool> find_batch(const std::string& batch);

  private:
    PositionStore(const BusConnection& link, const std::string& stream,
                  const std::string& consumer);

    [[nodiscard]] BusResult<void> make_stream() const;
    [[nodiscard]] BusResult<void> read_last();

    const BusConnection* link_;
    std::string stream_;
    std::string subject_;
    std::uint64_t message_ = 0; ///< sequence number of the position's message; 0 if there is none
    StreamPosition current_;
};

/// Chooses how many bytes to request from the stream at once, according to the speed of the
/// connection. All other answers of the bus wait until the requested bytes have arrived, so a request
/// must not be too large.
class FetchSize {
  public:
    static constexpr std::int64_t kLeast = std::int64_t{256} << 10U;
    static constexpr std::int64_t kMost = std::int64_t{4} << 20U;
    /// A size in bytes that is larger than any message that a server permits.
    static constexpr std::int64_t kSingleMessageBytes = std::int64_t{64} << 20U;

    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

    /// Adapts the size after a request that returned `bytes` bytes. `more`: the stream has more data.
    void on_fetched(std::int64_t bytes, bool more) {
        if (!more) {
            bytes_ = std::min(bytes_, kMost);
        } else if (bytes < bytes_ / 2) {
            bytes_ = std::clamp(bytes_ / 2, kLeast, kMost);
        } else {
            bytes_ = std::clamp(2 * bytes_, kLeast, kMost);
        }
    }

    /// Makes the next request ask for a single message, because that is longer than bytes().
    void request_single_message() { bytes_ = kSingleMessageBytes; }

    [[nodiscard]] bool is_single_message() const { return bytes_ == kSingleMessageBytes; }

    /// The number of messages to request: 1, or `most`.
    [[nodiscard]] int message_count(int most) const { return is_single_message() ? 1 : most; }

  private:
    std::int64_t bytes_ = kMost;
};

/// One record from the bus.
struct CollectedRecord {
    std::string server; ///< server name as in the subject
    /// Id of the twscope run that published the record; empty if another program published it.
    std::string run{};
    std::string line;
};

/// Receives collected records in batches, each batch completely or not at all.
class BatchSink : public record::Interface {
  public:
    /// The batch that was neither confirmed nor rolled back, possibly of an earlier process; empty
    /// if there is no such batch.
    [[nodiscard]] virtual std::string unconfirmed_batch() const = 0;
    /// Writes a batch. Returns 0 or errno; after an error, nothing was written.
    [[nodiscard]] virtual int write(const std::string& batch,
                                    const std::vector<CollectedRecord>& records) = 0;
    /// Confirms the batch, so that it stays written.
    virtual void confirm_batch() = 0;
    /// Removes the batch. Returns 0 or errno; after an error, the batch stays unconfirmed.
    [[nodiscard]] virtual int roll_back_batch() = 0;
};

struct CollectOptions {
    BusAccess access{};
    std::string stream = kStream;
    /// Name of the durable consumer. Of several collectors with this name, one works and the others wait.
    std::string consumer{};
    bool until_end = false; ///< the collector ends once all existing records are written
    /// Called with the reason if no records can be received, and with an empty text when records
    /// arrive again.
    std::function<void(const std::string& why)> on_trouble = [](const std::string& /*why*/) {};
};

/// Passes records from a stream to a sink, in order, each exactly once even if a process is killed: a
/// batch is confirmed only if its collector could set the position after it (see PositionStore).
class Collector {
  public:
    /// `sink` has to outlive the collector.
    Collector(CollectOptions options, BatchSink& sink)
        : options_{std::move(options)}, sink_{&sink} {}

    /// Runs until `stopped` returns true, or, if requested, until the end of the stream. If the bus
    /// fails, it retries for ever.
    void run(const std::function<bool()>& stopped);

    [[nodiscard]] bool ever_connected() const { return ever_connected_; }

    /// True if the bus was reached but has no such stream.
    [[nodiscard]] bool lacks_stream() const { return lacks_stream_; }

    /// True if all existing records were written.
    [[nodiscard]] bool reached_end() const { return reached_end_; }

    /// The number of records that the stream dropped before they were collected.
    [[nodiscard]] std::uint64_t missed() const { return missed_; }

  private:
    /// Consecutive messages.
    struct MessageBatch {
        std::vector<NatsMessage> messages{};
        std::uint64_t last = 0; ///< sequence number of the last message
        std::uint64_t missed =
            0; ///< records before or between the messages that the stream dropped
    };

    [[nodiscard]] BusResult<void> collect_over_connection(const std::function<bool()>& stopped);
    [[nodiscard]] BusResult<StreamFacts> find_stream(const BusConnection& link);
    [[nodiscard]] BusResult<void> recover_batch(const BusConnection& link);
    [[nodiscard]] BusResult<ConsumerInfo> find_consumer(const BusConnection& link) const;
    [[nodiscard]] BusResult<bool> wait_for_consumer(const BusConnection& link,
                                                    const std::function<bool()>& stopped);
    [[nodiscard]] BusResult<NatsSubscription> take_over_consumer(const BusConnection& link,
                                                                 const PositionStore& store);
    [[nodiscard]] BusResult<void> collect(const BusConnection& link, PositionStore& store,
                                          natsSubscription* subscription,
                                          const std::function<bool()>& stopped);
    [[nodiscard]] BusResult<MessageBatch> fetch_batch(const BusConnection& link,
                                                      natsSubscription* subscription);
    [[nodiscard]] BusResult<void> add_message(MessageBatch& batch, NatsMessage message);
    [[nodiscard]] BusResult<void> write_batch(PositionStore& store, const MessageBatch& batch);
    [[nodiscard]] BusResult<void> roll_back_batch();
    [[nodiscard]] BusResult<bool> has_reached_end(const BusConnection& link);
    void count_missed(std::uint64_t records);
    void print_error(const std::string& what);
    void report_recovery();

    CollectOptions options_;
    BatchSink* sink_;
    FetchSize size_;
    std::string last_error_;    ///< the last error that was logged
    bool is_in_trouble_ = true; ///< on_trouble was last called with a reason; true at the start
    std::string
        existing_streams_; ///< a text that lists the existing streams, if the wanted one is missing
    bool ever_connected_ = false;
    bool lacks_stream_ = false;
    bool reached_end_ = false;
    bool is_waiting_ = false;        ///< another collector uses the consumer
    StreamFacts stream_;             ///< the stream when its state was last requested
    std::int64_t consumer_made_ = 0; ///< creation time of the consumer while it is this collector's
    std::uint64_t deliveries_ = 0;   ///< number of messages that this consumer has delivered
    std::uint64_t position_ = 0;     ///< sequence number of the last message written
    std::uint64_t missed_ = 0;
};

/// Returns the name of a batch: STREAM.CONSUMER.ID. A later process that finds an unconfirmed batch
/// looks up the position of this consumer to learn whether the batch counts.
[[nodiscard]] std::string batch_name(const std::string& stream, const std::string& consumer,
                                     const std::string& id);

/// The parts of a batch's name.
struct BatchName {
    std::string stream;
    std::string consumer;
};

/// Parses the result of batch_name(); nullopt if the text is not a batch name.
[[nodiscard]] std::optional<BatchName> parse_batch_name(const std::string& batch);

} // namespace tw::bus
