#pragma once

#include "proxy/bus/commit_log.h"
#include "proxy/bus/link.h"
#include "proxy/sink/file_queue.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::bus {

/// Chooses how many bytes to request from the stream at once, according to the speed of the
/// connection. All other answers of the bus wait until the requested bytes have arrived, so a request
/// must not be too large.
class FetchSize {
  public:
    static constexpr std::int64_t kLeast = std::int64_t{256} << 10U;
    static constexpr std::int64_t kMost = std::int64_t{4} << 20U;
    /// A size in bytes that is larger than any message that a server permits.
    static constexpr std::int64_t kMessage = std::int64_t{64} << 20U;

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
    void request_single_message() { bytes_ = kMessage; }

    [[nodiscard]] bool is_single_message() const { return bytes_ == kMessage; }

    /// The number of messages to request: 1, or `most`.
    [[nodiscard]] int messages(int most) const { return is_single_message() ? 1 : most; }

  private:
    std::int64_t bytes_ = kMost;
};

/// Appends batches to files. Each batch is appended completely or not at all, even if the process is
/// killed: a journal holds the files' sizes before the batch until the batch is confirmed.
class CollectedFiles {
  public:
    /// The journal is a hidden file in this folder. Only one process at a time may use it.
    /// Errors: throws std::system_error, also if another process uses the journal.
    explicit CollectedFiles(std::filesystem::path folder, sink::Disk& disk = sink::system_disk());
    ~CollectedFiles();
    CollectedFiles(const CollectedFiles&) = delete;
    CollectedFiles& operator=(const CollectedFiles&) = delete;
    CollectedFiles(CollectedFiles&&) = delete;
    CollectedFiles& operator=(CollectedFiles&&) = delete;

    /// The unconfirmed batch of an earlier process; empty if there is none.
    [[nodiscard]] const std::string& unfinished() const { return batch_; }

    /// Appends the texts to the files with these names and creates missing folders. Returns 0 or
    /// errno. After an error, either nothing was changed or the batch is left unconfirmed.
    [[nodiscard]] int append(const std::string& batch,
                             const std::map<std::string, std::string>& texts);

    /// Confirms the batch, so that it stays in the files.
    void keep();
    /// Removes the batch from the files. Returns 0 or errno. After an error, parts of the batch may
    /// remain, and it stays unconfirmed.
    [[nodiscard]] int take_back();

  private:
    void read_journal();
    [[nodiscard]] int write_journal();
    [[nodiscard]] int write(const std::string& name, std::string_view text);
    [[nodiscard]] int truncate_file(const std::string& name, std::uint64_t size);

    std::filesystem::path folder_;
    sink::Disk* disk_;
    int journal_ = -1; ///< descriptor of the journal file, which is locked
    std::string batch_;
    std::map<std::string, std::uint64_t> sizes_; ///< size of each file before the batch
};

/// One record from the bus.
struct Collected {
    std::string server; ///< server name as in the subject
    /// Id of the twscope run that published the record; empty if another program published it.
    std::string run{};
    std::string line;
};

/// Receives collected records in batches, each batch completely or not at all.
class BatchSink {
  public:
    BatchSink() = default;
    BatchSink(const BatchSink&) = delete;
    BatchSink& operator=(const BatchSink&) = delete;
    BatchSink(BatchSink&&) = delete;
    BatchSink& operator=(BatchSink&&) = delete;
    virtual ~BatchSink() = default;

    /// The batch that was neither confirmed nor taken back, possibly by an earlier process; empty
    /// if there is none.
    [[nodiscard]] virtual std::string unfinished() const = 0;
    /// Writes a batch. Returns 0 or errno; after an error, nothing was written.
    [[nodiscard]] virtual int write(const std::string& batch,
                                    const std::vector<Collected>& records) = 0;
    /// Confirms the batch, so that it stays written.
    virtual void keep() = 0;
    /// Removes the batch. Returns 0 or errno; after an error, the batch stays unconfirmed.
    [[nodiscard]] virtual int take_back() = 0;
};

struct CollectOptions {
    Access access{};
    std::string stream = kStream;
    /// Name of the durable consumer, shared by all collectors with this name.
    std::string consumer{};
    bool until_end = false; ///< the collector ends when all existing records are written
    /// Called with the reason if no records can be received, and with an empty text when records
    /// arrive again.
    std::function<void(const std::string& why)> on_trouble = [](const std::string& /*why*/) {};
};

/// Passes records from a stream to a sink, each exactly once even if a process is killed (see
/// CommitLog).
class Collector {
  public:
    /// `sink` has to outlive the collector.
    Collector(CollectOptions options, BatchSink& sink)
        : options_{std::move(options)}, sink_{&sink} {}

    /// Runs until `stopped` returns true, or, if requested, until the end of the stream. If the bus
    /// fails, it retries for ever.
    void run(const std::function<bool()>& stopped);

    /// True if the stream was ever reached.
    [[nodiscard]] bool ever_connected() const { return ever_connected_; }

    /// True if the bus was reached but has no such stream.
    [[nodiscard]] bool lacks_stream() const { return lacks_stream_; }

    /// True if all existing records were written.
    [[nodiscard]] bool reached_end() const { return reached_end_; }

    /// The number of records that the stream dropped before they were collected.
    [[nodiscard]] std::uint64_t missed() const { return missed_; }

  private:
    /// Messages by sequence number in the stream.
    using Batch = std::map<std::uint64_t, NatsMessage>;

    [[nodiscard]] BusResult<void> use_connection(const std::function<bool()>& stopped);
    [[nodiscard]] BusResult<void> collect(const BusConnection& link, CommitLog& log,
                                          natsSubscription* subscription,
                                          const std::function<bool()>& stopped);
    [[nodiscard]] BusResult<StreamFacts> find_stream(const BusConnection& link);
    [[nodiscard]] BusResult<void> recover_batch(const BusConnection& link);
    [[nodiscard]] BusResult<NatsSubscription> subscribe(const BusConnection& link) const;
    [[nodiscard]] BusResult<Batch> fetch(const BusConnection& link, natsSubscription* subscription,
                                         const CommittedPlaces& committed);
    [[nodiscard]] BusResult<void> write_batch(CommitLog& log, Batch& batch);
    [[nodiscard]] BusResult<void> take_back();
    [[nodiscard]] BusResult<bool> is_at_end(const BusConnection& link, CommitLog& log);
    [[nodiscard]] BusResult<void> count_missed(CommitLog& log, std::uint64_t floor);
    void print_error(const std::string& what);
    void report_recovery();

    CollectOptions options_;
    BatchSink* sink_;
    FetchSize size_;
    std::string complaint_; ///< the last error that was logged
    bool troubled_ = true;  ///< whether on_trouble was last called with a reason; true at the start
    std::string others_; ///< a text that lists the existing streams, if the wanted one is missing
    bool ever_connected_ = false;
    bool lacks_stream_ = false;
    bool reached_end_ = false;
    std::int64_t created_ = 0;       ///< creation time of the stream, see StreamFacts
    std::uint64_t looked_until_ = 0; ///< missed_ counts losses up to this sequence number
    std::uint64_t missed_ = 0;
};

/// Returns the name of a batch: STREAM.CONSUMER.ID. It says which log the batch belongs to.
[[nodiscard]] std::string batch_name(const std::string& stream, const std::string& consumer,
                                     const std::string& id);
/// Returns the log of the batch with this name; nullopt if the text is not a batch name.
[[nodiscard]] std::optional<CommitLog::Options> log_of(const std::string& batch);

} // namespace tw::bus
