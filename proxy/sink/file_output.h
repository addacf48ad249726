#pragma once

#include "proxy/record/stats.h"
#include "proxy/sink/output.h"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tw::sink {

/// What is missing where it should have been written.
struct Loss {
    std::uint64_t count = 0; ///< records, or packets
    std::int64_t since = 0;  ///< nanoseconds since 1970-01-01 UTC
    std::string_view cause;
};

/// What a recording consists of: lines of records, or blocks of a capture. It is cut only between them.
/// Texts that are asked about begin with a whole one.
class Framing {
  public:
    Framing() = default;
    Framing(const Framing&) = delete;
    Framing& operator=(const Framing&) = delete;
    Framing(Framing&&) = delete;
    Framing& operator=(Framing&&) = delete;
    virtual ~Framing() = default;

    /// What each file of them begins with, and what goes on behind those of another run.
    [[nodiscard]] virtual std::string head() const { return {}; }

    /// Bytes of the first units that are `size` bytes together, or a bit more; of all where they are
    /// less.
    [[nodiscard]] virtual std::size_t front(std::string_view text, std::size_t size) const = 0;
    /// Bytes of the units that are whole.
    [[nodiscard]] virtual std::size_t whole(std::string_view text) const = 0;
    /// Records, or packets, that are lost with the text.
    [[nodiscard]] virtual std::uint64_t count(std::string_view text) const = 0;

    /// Where the last whole unit of a file ends; nothing when it cannot be read.
    [[nodiscard]] virtual std::optional<std::uint64_t> end_in(int file,
                                                              std::uint64_t size) const = 0;

    /// What the text lacks to be a whole unit, if it lacks nothing but its end; empty: it lacks more.
    [[nodiscard]] virtual std::string_view missing_end(std::string_view /*text*/) const {
        return {};
    }

    /// Whether something is in the file that would be spoilt by them.
    [[nodiscard]] virtual bool foreign(int /*file*/) const { return false; }

    /// The same of a text that begins so.
    [[nodiscard]] virtual bool is_foreign(std::string_view /*begin*/) const { return false; }

    /// Stands where some are missing.
    [[nodiscard]] virtual std::string loss(const Loss& loss, std::int64_t now) const = 0;

    /// "records", for people.
    [[nodiscard]] virtual std::string_view name() const = 0;
};

[[nodiscard]] const Framing& record_lines();
/// Of pcapng, as CaptureBlocks makes them.
[[nodiscard]] const Framing& capture_units();

/// Where records or a capture end: a file, a pipe, segments in a folder. One thread writes; what only asks, and
/// what only leaves word, may come from any thread.
class OutputFile : public Output {
  public:
    using Clock = std::chrono::steady_clock;

    /// What is written there.
    [[nodiscard]] virtual const Framing& units() const { return record_lines(); }

    /// To be called from time to time by the thread that writes, also when there is nothing to write.
    virtual void on_time(Clock::time_point /*now*/) {}

    /// So many bytes at a time suit it best. Fewer may wait until on_time is due.
    [[nodiscard]] virtual std::size_t portion() const { return 1; }

    /// False: what was handed over is not written yet, and nothing more is taken; on_time tries again.
    [[nodiscard]] virtual bool ready() const { return true; }

    /// Whether it is written in segments: see cut_due.
    [[nodiscard]] virtual bool segmented() const { return false; }

    /// It is time for the next segment. Who writes calls cut() as soon as what follows can be read
    /// alone.
    [[nodiscard]] virtual bool cut_due(Clock::time_point /*now*/) { return false; }

    /// False: not now; on_time tries again what stood in the way.
    virtual bool cut() { return true; }

    /// Writes what is held back, and gives up what cannot be written. Nothing comes behind it.
    virtual void finish() {}

    /// Goes on in another file, which it takes over, from the next whole unit on: what was wrong with
    /// the one before is forgotten, but not what was lost. Where there are segments, in the next one.
    virtual void switch_to(int descriptor) = 0;
    /// Cuts off what was never finished. Nobody else may write there any more.
    virtual void go_behind_last_unit() = 0;
    /// From now on nothing is waited for that does not come at once.
    virtual void stop_waiting() = 0;

    /// The file does not stand under its name any more, and switch_to would help.
    [[nodiscard]] virtual bool moved() const { return false; }

    /// Bytes of something unfinished that were cut off, since the last call.
    [[nodiscard]] virtual std::uint64_t take_cut_bytes() { return 0; }

    /// Seconds by which the wall clock was set while it recorded, since the last call; 0: by hardly any.
    [[nodiscard]] virtual std::int64_t take_clock_jump() { return 0; }

    /// As it was given.
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// errno of the failure, 0 while all is well.
    [[nodiscard]] virtual int error() const = 0;
    /// Records, or packets.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;

    /// What became of records on their way there; nothing: it is no bus.
    [[nodiscard]] virtual std::optional<record::BusTotals> bus_totals() const {
        return std::nullopt;
    }

    [[nodiscard]] bool failed() const { return error() != 0; }
};

/// A file, or standard output for "-". Opened once and written to, behind whatever else is written
/// there; on the first error it stops, until it goes on in another one: what could not be written is
/// counted. A pipe's reader is waited for, for some seconds at first, and later until `stop_waiting`.
class FileOutput final : public OutputFile {
  public:
    /// How long it takes until somebody reads a pipe: whoever made it starts both.
    static constexpr std::chrono::seconds kReaderTime{20};

    /// What was in the file is gone.
    /// Errors: throws std::system_error when the file cannot be opened, ETIMEDOUT for a pipe that nobody
    /// reads.
    explicit FileOutput(const std::string& path, const Framing& units = record_lines(),
                        std::chrono::milliseconds reader_time = kReaderTime);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    void switch_to(int descriptor) override;

    /// What switch_to takes: the file of this name behind what is in it, made when it is not there.
    /// Negative, with errno, when it cannot be opened; nobody is waited for.
    [[nodiscard]] static int open_again(const std::string& path);

    void go_behind_last_unit() override {}

    [[nodiscard]] const Framing& units() const override { return *units_; }

    /// From now on a reader that takes nothing for a while has left.
    void stop_waiting() override { hurried_ = true; }

    [[nodiscard]] const std::string& path() const override { return path_; }

    [[nodiscard]] int error() const override { return error_; }

    [[nodiscard]] std::uint64_t lost() const override { return lost_; }

  private:
    void learn_kind();
    [[nodiscard]] bool wait_for_reader() const;
    [[nodiscard]] std::size_t room() const;
    void put(std::string_view block);
    void change_file();

    std::string path_;
    const Framing* units_;
    int descriptor_ = -1;
    bool waits_ = false;        ///< for who reads it: a pipe, a terminal
    std::size_t capacity_ = 0;  ///< bytes that it takes while nothing waits in it
    bool whole_ = true;         ///< what was written ends with a whole unit
    std::atomic<int> next_{-1}; ///< to go on in; negative: none
    std::atomic<bool> hurried_{false};
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_{0};
};

/// Hands on to a target on a thread of its own. The queue is bounded: when the disk cannot keep up, or
/// is full, whole blocks are dropped and counted, and nobody waits. What the target's units say of a loss
/// stands where they would.
///
/// Where the target is written in segments, the next one begins when all makers of records have
/// arrived in it; until then two queues fill.
class QueuedOutput final : public Output {
  public:
    /// Half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    /// `makers`: how many say that they have arrived. `progress` counts bytes handed on, lost ones
    /// included; null: nobody asks. Both have to outlive it.
    explicit QueuedOutput(OutputFile& target, unsigned makers = 0,
                          std::atomic<std::uint64_t>* progress = nullptr);
    /// Writes what is queued, finishes the target, then ends the thread.
    ~QueuedOutput() override;
    QueuedOutput(const QueuedOutput&) = delete;
    QueuedOutput& operator=(const QueuedOutput&) = delete;
    QueuedOutput(QueuedOutput&&) = delete;
    QueuedOutput& operator=(QueuedOutput&&) = delete;

    void write(std::string_view block) override { write_in(segment(), block); }

    [[nodiscard]] std::uint32_t segment() const override {
        return segment_.load(std::memory_order_acquire);
    }

    void write_in(std::uint32_t segment, std::string_view block) override;
    void arrive(std::uint32_t segment) override;
    /// Records, or packets.
    [[nodiscard]] std::uint64_t dropped() const;

    /// Writes all that is queued. Nothing may come behind it. Once; the destructor does it, too.
    void finish();

  private:
    using Clock = OutputFile::Clock;

    void run();
    void drop(std::string_view block);
    void tell_of_loss(std::string& queue);
    void turn(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void hand_on();
    void write_rest();
    void hand_on_or_lose();

    OutputFile* target_;
    unsigned makers_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::array<std::string, 2> queues_; ///< for the segment being written, and for the next one
    std::string writing_;               ///< taken from the queue
    std::size_t handed_ = 0;            ///< of it to the target
    std::uint64_t dropped_ = 0;
    std::optional<Loss> loss_; ///< not reported yet
    bool stop_ = false;
    bool turning_ = false; ///< the next segment was announced
    unsigned arrived_ = 0;
    std::atomic<std::uint32_t> segment_; ///< what is made now belongs there
    std::thread thread_;
};

} // namespace tw::sink
