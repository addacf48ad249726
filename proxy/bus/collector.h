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

/// How many bytes are asked for at once: as many as the line carries while they are waited for. What is
/// asked for and has not come yet stands before every answer of the bus.
class FetchSize {
  public:
    static constexpr std::int64_t kLeast = std::int64_t{256} << 10U;
    static constexpr std::int64_t kMost = std::int64_t{4} << 20U;
    /// More than a message may have anywhere.
    static constexpr std::int64_t kMessage = std::int64_t{64} << 20U;

    [[nodiscard]] std::int64_t bytes() const { return bytes_; }

    /// So many came, and more were there to be sent.
    void came(std::int64_t bytes, bool more) {
        if (!more) {
            bytes_ = std::min(bytes_, kMost);
        } else if (bytes < bytes_ / 2) {
            bytes_ = std::clamp(bytes_ / 2, kLeast, kMost);
        } else {
            bytes_ = std::clamp(2 * bytes_, kLeast, kMost);
        }
    }

    /// The first message alone is longer: it is asked for alone.
    void too_small() { bytes_ = kMessage; }

    [[nodiscard]] bool is_for_one() const { return bytes_ == kMessage; }

    /// How many messages are asked for.
    [[nodiscard]] int messages(int most) const { return is_for_one() ? 1 : most; }

  private:
    std::int64_t bytes_ = kMost;
};

/// Files that batches are appended to, each batch whole or not at all, whatever ends the process: what
/// a batch begins with stands in a journal before anything is written, and until the batch counts.
class CollectedFiles {
  public:
    /// The journal is a hidden file in this folder. One process at a time.
    /// Errors: throws std::system_error, also when another one is there.
    explicit CollectedFiles(std::filesystem::path folder, sink::Disk& disk = sink::system_disk());
    ~CollectedFiles();
    CollectedFiles(const CollectedFiles&) = delete;
    CollectedFiles& operator=(const CollectedFiles&) = delete;
    CollectedFiles(CollectedFiles&&) = delete;
    CollectedFiles& operator=(CollectedFiles&&) = delete;

    /// The batch that was not finished when the process before this one ended; empty: none.
    [[nodiscard]] const std::string& unfinished() const { return batch_; }

    /// Appends these texts to the files of these names in the folder; folders are made. Returns 0, or
    /// errno: then nothing is changed, or the batch is unfinished.
    [[nodiscard]] int append(const std::string& batch,
                             const std::map<std::string, std::string>& texts);

    /// The batch counts.
    void keep();
    /// It does not: takes it back. Returns 0, or errno: then something of it is there still, and it stays
    /// unfinished.
    [[nodiscard]] int take_back();

  private:
    void read_journal();
    [[nodiscard]] int write_journal();
    [[nodiscard]] int write(const std::string& name, std::string_view text);
    [[nodiscard]] int cut(const std::string& name, std::uint64_t size);

    std::filesystem::path folder_;
    sink::Disk* disk_;
    int journal_ = -1; ///< locked
    std::string batch_;
    std::map<std::string, std::uint64_t> sizes_; ///< of the files before the batch
};

/// One record from the bus.
struct Collected {
    std::string server; ///< as it stands in the subject
    std::string run{};  ///< of the twscope that published it; empty: something else did
    std::string line;
};

/// Where collected records go, a batch at a time: whole or not at all.
class BatchSink {
  public:
    BatchSink() = default;
    BatchSink(const BatchSink&) = delete;
    BatchSink& operator=(const BatchSink&) = delete;
    BatchSink(BatchSink&&) = delete;
    BatchSink& operator=(BatchSink&&) = delete;
    virtual ~BatchSink() = default;

    /// The batch of which it is not known whether it counts, also of a process before this one; empty: none.
    [[nodiscard]] virtual std::string unfinished() const = 0;
    /// Writes a batch down. 0, or errno: then nothing of it is there.
    [[nodiscard]] virtual int write(const std::string& batch,
                                    const std::vector<Collected>& records) = 0;
    /// It counts.
    virtual void keep() = 0;
    /// It does not. 0, or errno: then it stays unfinished.
    [[nodiscard]] virtual int take_back() = 0;
};

struct CollectOptions {
    Access access{};
    std::string stream = kStream;
    std::string consumer{}; ///< durable, shared by all collectors of this name
    bool until_end = false; ///< ends when all that is there is written down
    /// Why nothing comes; empty: something does again, or could.
    std::function<void(const std::string& why)> on_trouble = [](const std::string& /*why*/) {};
};

/// Takes records from a stream and hands them to a sink, each once, whoever is killed in between: see
/// CommitLog.
class Collector {
  public:
    /// `sink` has to outlive it.
    Collector(CollectOptions options, BatchSink& sink)
        : options_{std::move(options)}, sink_{&sink} {}

    /// Until `stopped`, or the end where that is asked for; tries again for ever, whatever happens to
    /// the bus.
    void run(const std::function<bool()>& stopped);

    /// Whether the stream was reached at any time.
    [[nodiscard]] bool ever_connected() const { return ever_connected_; }

    /// The bus was reached, and has no such stream.
    [[nodiscard]] bool lacks_stream() const { return lacks_stream_; }

    /// Whether all that was there had been written down.
    [[nodiscard]] bool reached_end() const { return reached_end_; }

    /// Records that the stream dropped before anybody had written them down.
    [[nodiscard]] std::uint64_t missed() const { return missed_; }

  private:
    using Batch = std::map<std::uint64_t, NatsMessage>; ///< by place in the stream

    [[nodiscard]] Tried<void> serve(const std::function<bool()>& stopped);
    [[nodiscard]] Tried<void> collect(const Link& link, CommitLog& log,
                                      natsSubscription* subscription,
                                      const std::function<bool()>& stopped);
    [[nodiscard]] Tried<StreamFacts> find_stream(const Link& link);
    [[nodiscard]] Tried<void> recover(const Link& link);
    [[nodiscard]] Tried<NatsSubscription> subscribe(const Link& link) const;
    [[nodiscard]] Tried<Batch> fetch(const Link& link, natsSubscription* subscription,
                                     const Committed& committed);
    [[nodiscard]] Tried<void> write_down(CommitLog& log, Batch& batch);
    [[nodiscard]] Tried<void> take_back();
    [[nodiscard]] Tried<bool> at_end(const Link& link, CommitLog& log);
    [[nodiscard]] Tried<void> count_missed(CommitLog& log, std::uint64_t floor);
    void print_error(const std::string& what);
    void went_on();

    CollectOptions options_;
    BatchSink* sink_;
    FetchSize size_;
    std::string complaint_; ///< the last one
    bool troubled_ = true;  ///< as on_trouble was told, and as it begins
    std::string others_;    ///< streams that are there instead, in words
    bool ever_connected_ = false;
    bool lacks_stream_ = false;
    bool reached_end_ = false;
    std::int64_t created_ = 0;       ///< of the stream, see StreamFacts
    std::uint64_t looked_until_ = 0; ///< place in it up to which missed_ counts
    std::uint64_t missed_ = 0;
};

/// The name of a batch says in which log it stands: STREAM.CONSUMER.ID.
[[nodiscard]] std::string batch_name(const std::string& stream, const std::string& consumer,
                                     const std::string& id);
/// The log of a batch; nothing: it is no such name.
[[nodiscard]] std::optional<CommitLog::Options> log_of(const std::string& batch);

} // namespace tw::bus
