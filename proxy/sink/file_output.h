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

/// Records or packets that are missing from a recording.
struct Loss {
    std::uint64_t count = 0; ///< records or packets
    std::int64_t since = 0;  ///< nanoseconds since 1970-01-01 UTC
    std::string_view cause;
};

/// How a recording is divided into units: lines of records, or blocks of a capture. A recording is
/// cut only between units. Every text passed to these functions starts at a unit's first byte.
class Framing {
  public:
    Framing() = default;
    Framing(const Framing&) = delete;
    Framing& operator=(const Framing&) = delete;
    Framing(Framing&&) = delete;
    Framing& operator=(Framing&&) = delete;
    virtual ~Framing() = default;

    /// The bytes that start each file, and that separate one run's units from those of an earlier
    /// run.
    [[nodiscard]] virtual std::string head() const { return {}; }

    /// The bytes that start a segment: those of head(), or a unit that names the segment. `now`: in
    /// nanoseconds since 1970.
    [[nodiscard]] virtual std::string
    segment_head(std::string_view /*name*/, std::uint64_t /*number*/, std::int64_t /*now*/) const {
        return head();
    }

    /// Returns the length of the first units that have at least `size` bytes together, or of all
    /// units if they have less.
    [[nodiscard]] virtual std::size_t front(std::string_view text, std::size_t size) const = 0;
    /// Returns the length of the whole units.
    [[nodiscard]] virtual std::size_t whole(std::string_view text) const = 0;
    /// Returns the number of records or packets in the text.
    [[nodiscard]] virtual std::uint64_t count(std::string_view text) const = 0;

    /// Returns the file offset at which the last whole unit ends, or nullopt if the file cannot be
    /// read.
    [[nodiscard]] virtual std::optional<std::uint64_t> end_in(int file,
                                                              std::uint64_t size) const = 0;

    /// Returns the end that completes the text to a whole unit, or an empty text if more than an
    /// end is missing.
    [[nodiscard]] virtual std::string_view missing_end(std::string_view /*text*/) const {
        return {};
    }

    /// True if the file holds other data, which appended units would spoil.
    [[nodiscard]] virtual bool foreign(int /*file*/) const { return false; }

    /// Like foreign(), for data that starts with this text.
    [[nodiscard]] virtual bool is_foreign(std::string_view /*begin*/) const { return false; }

    /// Returns the unit that stands in place of missing ones.
    [[nodiscard]] virtual std::string loss(const Loss& loss, std::int64_t now) const = 0;

    /// The name of the units for messages, such as "records".
    [[nodiscard]] virtual std::string_view name() const = 0;
};

[[nodiscard]] const Framing& record_lines();
/// Framing of pcapng files as CaptureBlocks makes them.
[[nodiscard]] const Framing& capture_units();

/// The destination of records or a capture: a file, a pipe, or segments in a folder. One thread
/// writes. The accessors and the functions that only leave a request may be called from any thread.
class OutputFile : public Output {
  public:
    using Clock = std::chrono::steady_clock;

    /// The framing of what is written.
    [[nodiscard]] virtual const Framing& units() const { return record_lines(); }

    /// Does timed work. The writing thread calls it regularly, also if there is nothing to write.
    virtual void on_time(Clock::time_point /*now*/) {}

    /// The preferred size of a write in bytes. Less may wait until on_time() is due.
    [[nodiscard]] virtual std::size_t portion() const { return 1; }

    /// False if earlier data is not written yet. Nothing more is accepted then; on_time() tries
    /// again.
    [[nodiscard]] virtual bool ready() const { return true; }

    /// The bytes that this process wrote to a disk; 0 for other outputs.
    [[nodiscard]] virtual std::uint64_t written_bytes() const { return 0; }

    /// True if the output is written in segments; see cut_due().
    [[nodiscard]] virtual bool segmented() const { return false; }

    /// True if the next segment is due. The writer calls cut() as soon as the data that follows can
    /// be read alone.
    [[nodiscard]] virtual bool cut_due(Clock::time_point /*now*/) { return false; }

    /// Starts the next segment. Returns false if that is not possible now; on_time() tries again.
    virtual bool cut() { return true; }

    /// Writes what is held back and drops what cannot be written. No call may follow.
    virtual void finish() {}

    /// Takes over another file and continues there from the next whole unit on. Clears the error;
    /// keeps the loss count. An output with segments starts the next segment instead.
    virtual void switch_to(int descriptor) = 0;
    /// Cuts off an unfinished unit at the end. No other process may write to the file any more.
    virtual void go_behind_last_unit() = 0;
    /// From now on a write does not wait for a slow reader.
    virtual void stop_waiting() = 0;

    /// True if the path no longer refers to the open file, so that switch_to() would help.
    [[nodiscard]] virtual bool moved() const { return false; }

    /// Returns the bytes of unfinished units cut off since the last call.
    [[nodiscard]] virtual std::uint64_t take_cut_bytes() { return 0; }

    /// Returns the seconds by which the wall clock was set while recording, since the last call. 0
    /// if it was hardly set.
    [[nodiscard]] virtual std::int64_t take_clock_jump() { return 0; }

    /// The path as the user gave it.
    [[nodiscard]] virtual const std::string& path() const = 0;
    /// The errno of a failure, or 0.
    [[nodiscard]] virtual int error() const = 0;
    /// Whether the error is ENOSPC because less disk space is free than has to stay free.
    [[nodiscard]] virtual bool is_disk_scarce() const { return false; }
    /// Records or packets that were lost.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;

    /// What became of records on the way to the message bus; nullopt if the output is no bus.
    [[nodiscard]] virtual std::optional<record::BusTotals> bus_totals() const {
        return std::nullopt;
    }

    [[nodiscard]] bool failed() const { return error() != 0; }
};

/// A file, or standard output for "-". Data is appended. After the first error it stops until
/// switch_to() gives it another file, and counts what could not be written. It waits some seconds
/// for the reader of a pipe to appear, and later for a slow reader until stop_waiting() is called.
class FileOutput final : public OutputFile {
  public:
    /// How long to wait for a pipe's reader to appear.
    static constexpr std::chrono::seconds kReaderTime{20};

    /// Empties the file.
    /// Errors: throws std::system_error if the file cannot be opened, with ETIMEDOUT for a pipe
    /// without a reader.
    explicit FileOutput(const std::string& path, const Framing& units = record_lines(),
                        std::chrono::milliseconds reader_time = kReaderTime);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;
    FileOutput(FileOutput&&) = delete;
    FileOutput& operator=(FileOutput&&) = delete;

    void write(std::string_view block) override;

    void switch_to(int descriptor) override;

    /// Opens or creates the file for appending, to be passed to switch_to(). Returns a negative
    /// value and sets errno if it cannot be opened. Does not wait.
    [[nodiscard]] static int open_again(const std::string& path);

    void go_behind_last_unit() override {}

    [[nodiscard]] const Framing& units() const override { return *units_; }

    /// From now on treats a reader that takes nothing for a while as gone.
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
    bool waits_ = false;        ///< true for a pipe or a terminal: writes wait for the reader
    std::size_t capacity_ = 0;  ///< size in bytes of the pipe's empty buffer
    bool whole_ = true;         ///< the written data ends with a whole unit
    std::atomic<int> next_{-1}; ///< descriptor to continue with; negative if there is none
    std::atomic<bool> hurried_{false};
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_{0};
};

/// Writes to an output file on its own thread. The queue is bounded: if the disk cannot keep up or
/// is full, whole blocks are dropped and counted, and the caller never waits. The file's framing
/// puts a notice in place of dropped blocks.
///
/// If the output has segments, the next one starts when all producers of records have reached it.
/// Until then two queues fill.
class QueuedOutput final : public Output {
  public:
    /// Half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    /// `makers`: the number of producers that call arrive(). `progress`: counts the bytes passed
    /// on, including lost ones; may be null. `target` and `progress` have to outlive the object.
    explicit QueuedOutput(OutputFile& target, unsigned makers = 0,
                          std::atomic<std::uint64_t>* progress = nullptr);
    /// Writes what is queued, finishes the output file, then ends the thread.
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
    /// Records or packets that were dropped.
    [[nodiscard]] std::uint64_t dropped() const;

    /// Writes everything that is queued. No write may follow. Called once; the destructor calls it
    /// if nobody did.
    void finish();

  private:
    using Clock = OutputFile::Clock;

    void run();
    void drop(std::string_view block);
    void append_loss_notice(std::string& queue);
    void switch_segment(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void hand_on();
    void write_rest();
    void hand_on_or_lose();

    OutputFile* target_;
    unsigned makers_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::array<std::string, 2> queues_; ///< one for the current segment, one for the next
    std::string writing_;               ///< data taken from the queue
    std::size_t handed_ = 0;            ///< bytes of `writing_` passed to the output file
    std::uint64_t dropped_ = 0;
    std::optional<Loss> loss_; ///< a loss that was not reported yet
    bool stop_ = false;
    bool switching_ = false; ///< true after the next segment was announced
    unsigned arrived_ = 0;
    std::atomic<std::uint32_t> segment_; ///< the segment of records made now
    std::thread thread_;
};

} // namespace tw::sink
