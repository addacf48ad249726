#pragma once

#include "proxy/record/interface.h"
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
#include <utility>

namespace tw::sink {

/// A number of records or packets that are missing from a recording.
struct Loss {
    std::uint64_t count = 0; ///< records or packets
    std::int64_t since = 0;  ///< nanoseconds since 1970-01-01 UTC
    std::string_view cause;
};

/// The unfinished end of a file that was removed.
struct CutEnd {
    std::uint64_t bytes = 0;
    std::uint64_t units = 0; ///< whole records or packets in it; more may have been unreadable
};

/// The units of a recording: lines of records, or blocks of a capture. A recording is cut only between
/// units. Every text passed to these functions starts at the first byte of a unit.
class Framing : public record::Interface {
  public:
    /// Returns the bytes that start each file. They also separate the units of one run from those of an
    /// earlier run in the same file.
    [[nodiscard]] virtual std::string head() const { return {}; }

    /// Returns the bytes that start a segment: those of head(), or a unit that names the segment. `now`
    /// is in nanoseconds since 1970.
    [[nodiscard]] virtual std::string
    segment_head(std::string_view /*name*/, std::uint64_t /*number*/, std::int64_t /*now*/) const {
        return head();
    }

    /// Returns the size of the fewest units at the start that have at least `size` bytes together, or
    /// of all units if they have fewer.
    [[nodiscard]] virtual std::size_t size_of_first_units(std::string_view text,
                                                          std::size_t size) const = 0;
    /// Returns the size of all whole units in the text.
    [[nodiscard]] virtual std::size_t size_of_whole_units(std::string_view text) const = 0;
    /// Returns the number of records or packets in the text.
    [[nodiscard]] virtual std::uint64_t count_units(std::string_view text) const = 0;

    /// Returns the file offset at which the last whole unit ends; nullopt if the file cannot be read.
    [[nodiscard]] virtual std::optional<std::uint64_t>
    find_last_unit_end(int file, std::uint64_t size) const = 0;

    /// Returns the text that completes an unfinished last unit; empty if more than its end is missing.
    [[nodiscard]] virtual std::string_view missing_end(std::string_view /*text*/) const {
        return {};
    }

    /// True if the file holds data of another kind, which appended units would spoil.
    [[nodiscard]] virtual bool is_foreign_file(int /*file*/) const { return false; }

    /// Like is_foreign_file(), for the first bytes of some data.
    [[nodiscard]] virtual bool is_foreign(std::string_view /*begin*/) const { return false; }

    /// Returns a unit that takes the place of the missing ones.
    [[nodiscard]] virtual std::string loss_unit(const Loss& loss, std::int64_t now) const = 0;

    /// The name of units in messages, such as "records".
    [[nodiscard]] virtual std::string_view unit_name() const = 0;
};

[[nodiscard]] const Framing& record_lines();
/// The framing of pcapng files as CaptureBlocks writes them.
[[nodiscard]] const Framing& capture_units();

/// The destination of records or of a capture: a file, a pipe, segments in a folder, or a message bus.
/// One thread calls the virtual functions. Any thread may read the state and leave a request, which the
/// writing thread fulfils with the next data or in on_time().
class OutputFile : public Output {
  public:
    using Clock = std::chrono::steady_clock;

    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    ~OutputFile() override { switch_to(-1); }

    /// Does what is due at this time. Must be called regularly, also without new data.
    virtual void on_time(Clock::time_point /*now*/) {}

    /// False if earlier data is not written yet. No further data is accepted then; on_time() tries to
    /// write again.
    [[nodiscard]] virtual bool ready() const { return true; }

    /// True if the next segment is due. The writer then calls cut() as soon as the data that follows
    /// can be read on its own.
    [[nodiscard]] virtual bool cut_due(Clock::time_point /*now*/) { return false; }

    /// Starts the next segment. Returns false if that is not possible now; on_time() then tries again.
    virtual bool cut() { return true; }

    /// Writes the data that is held back, and drops what cannot be written. No further call is allowed.
    virtual void finish() {}

    // Requests from any thread:

    /// Takes over another open file and continues there from the next whole unit on. Clears the error
    /// but keeps the loss count. Not for outputs with segments.
    void switch_to(int descriptor);

    /// Starts the next segment soon.
    void request_cut() { cut_wanted_ = true; }

    /// Removes an unfinished unit from the end of the file. No other process may write to the file then.
    void remove_unfinished_unit() { repair_wanted_ = true; }

    /// Makes writes no longer wait for a slow reader.
    void stop_waiting() { hurried_ = true; }

    // The state, for any thread:

    /// The path as the user gave it.
    [[nodiscard]] const std::string& path() const { return path_; }

    /// The framing of the data that is written.
    [[nodiscard]] const Framing& units() const { return *units_; }

    /// The preferred size of a write in bytes. Less data may wait until on_time() is due.
    [[nodiscard]] std::size_t portion() const { return portion_; }

    /// True if the output is written in segments; see cut_due().
    [[nodiscard]] bool segmented() const { return segmented_; }

    /// The errno of a failure; 0 if there is none.
    [[nodiscard]] int error() const { return error_; }

    [[nodiscard]] bool failed() const { return error_ != 0; }

    /// Whether the error is ENOSPC because less disk space is free than has to stay free.
    [[nodiscard]] bool is_disk_scarce() const { return scarce_; }

    /// The number of records or packets that were lost.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

    /// The number of bytes that this process wrote to a disk; 0 for other outputs.
    [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }

    /// True if the path no longer refers to the open file, so that switch_to() would help.
    [[nodiscard]] bool moved() const { return moved_; }

    /// Returns what was cut off the ends of files since the last call.
    [[nodiscard]] CutEnd take_cut() {
        return {.bytes = cut_bytes_.exchange(0), .units = cut_units_.exchange(0)};
    }

    /// Returns the number of seconds by which the wall clock was set since the last call while
    /// recording; 0 for small corrections.
    [[nodiscard]] std::int64_t take_clock_jump() { return clock_jump_.exchange(0); }

  protected:
    explicit OutputFile(std::string path, const Framing& units = record_lines(),
                        std::size_t portion = 1, bool segmented = false)
        : path_{std::move(path)}, units_{&units}, portion_{portion}, segmented_{segmented} {}

    std::atomic<int> next_{-1}; ///< the next descriptor to write to; negative if there is none
    std::atomic<bool> cut_wanted_{false};
    std::atomic<bool> repair_wanted_{false};
    std::atomic<bool> hurried_{false};
    std::atomic<int> error_{0};
    std::atomic<bool> scarce_{false};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> written_bytes_{0};
    std::atomic<bool> moved_{false};
    std::atomic<std::uint64_t> cut_bytes_{0};
    std::atomic<std::uint64_t> cut_units_{0};
    std::atomic<std::int64_t> clock_jump_{0};

  private:
    std::string path_;
    const Framing* units_;
    std::size_t portion_;
    bool segmented_;
};

/// Appends data to a file, or to standard output for "-". After the first error, it only counts the lost
/// data, until switch_to() gives it another file. It waits some seconds for a pipe's reader to appear,
/// and later for a slow reader. After stop_waiting(), a reader that takes nothing for a while is treated
/// as gone.
class FileOutput final : public OutputFile {
  public:
    /// How long to wait for a pipe's reader to appear.
    static constexpr std::chrono::seconds kReaderTime{20};

    /// Opens the file and empties it.
    /// Errors: throws std::system_error if the file cannot be opened, with ETIMEDOUT for a pipe
    /// without a reader.
    explicit FileOutput(const std::string& path, const Framing& units = record_lines(),
                        std::chrono::milliseconds reader_time = kReaderTime);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;

    void write(std::string_view block) override;

    /// Opens or creates the file for appending; the result is for switch_to(). Returns a negative value
    /// and sets errno if the file cannot be opened. Does not wait.
    [[nodiscard]] static int open_again(const std::string& path);

  private:
    void learn_kind();
    [[nodiscard]] bool wait_for_reader() const;
    [[nodiscard]] std::size_t room() const;
    void put(std::string_view block);
    void change_file();

    int descriptor_ = -1;
    bool waits_ = false;       ///< writes to a pipe or terminal wait for the reader
    std::size_t capacity_ = 0; ///< size in bytes of the pipe's empty buffer
    bool whole_ = true;        ///< the data written so far ends with a whole unit
};

/// Writes to an output file on its own thread. The queue is bounded. If the disk cannot keep up or is
/// full, whole blocks are dropped and counted; the caller never waits. A notice, made by the file's
/// framing, takes the place of dropped blocks.
///
/// If the output has segments, the next one starts when all producers of records have reached it. Until
/// then, there are two queues.
class QueuedOutput final : public Output {
  public:
    /// Half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    /// `makers`: the number of producers that call arrive(). `progress`: counts the bytes passed on,
    /// including lost ones; may be null. `target` and `progress` must outlive the object.
    explicit QueuedOutput(OutputFile& target, unsigned makers = 0,
                          std::atomic<std::uint64_t>* progress = nullptr);
    /// Writes what is queued, finishes the output file, then ends the thread.
    ~QueuedOutput() override;
    QueuedOutput(const QueuedOutput&) = delete;
    QueuedOutput& operator=(const QueuedOutput&) = delete;

    void write(std::string_view block) override { write_in(segment(), block); }

    [[nodiscard]] std::uint32_t segment() const override {
        return segment_.load(std::memory_order_acquire);
    }

    void write_in(std::uint32_t segment, std::string_view block) override;
    void arrive(std::uint32_t segment) override;
    /// The number of records or packets that were dropped.
    [[nodiscard]] std::uint64_t dropped() const;

    /// Writes all queued data. No further write is allowed. To be called at most once; otherwise the
    /// destructor does it.
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
    std::string writing_;               ///< data taken from the queue, which is being written
    std::size_t handed_ = 0;            ///< number of bytes of `writing_` passed to the output file
    std::uint64_t dropped_ = 0;
    std::optional<Loss> loss_; ///< a loss for which no notice was written yet
    bool stop_ = false;
    bool switching_ = false; ///< the next segment was announced but has not started
    unsigned arrived_ = 0;
    std::atomic<std::uint32_t> segment_; ///< the segment of the records that are made now
    std::thread thread_;
};

} // namespace tw::sink
