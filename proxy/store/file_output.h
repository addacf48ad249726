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

namespace tw::store {

/// Records or packets that are missing from a recording.
struct RecordingLoss {
    std::uint64_t count = 0; ///< number of missing records or packets
    std::int64_t since = 0;  ///< UTC time in nanoseconds of the first missing record or packet
    std::string_view cause;
};

/// Finds the units of a recording: lines of records, or blocks of a capture. A recording is divided
/// only between units. Each text that is passed to these functions must start with a unit.
class RecordingFormat : public record::InterfaceBase {
  public:
    /// Returns the bytes at the start of each file. They are also written when an existing file is
    /// continued, before the first unit.
    [[nodiscard]] virtual std::string file_header() const { return {}; }

    /// Returns the bytes at the start of a segment: file_header(), or a record or block with the
    /// segment's name and number. `now`: nanoseconds since 1970-01-01 UTC.
    [[nodiscard]] virtual std::string segment_header(std::string_view /*name*/,
                                                     std::uint64_t /*number*/,
                                                     std::int64_t /*now*/) const {
        return file_header();
    }

    /// Returns the size of the first units of a text: as many units as are needed for `size` bytes,
    /// or all units if they have fewer bytes.
    [[nodiscard]] virtual std::size_t size_of_first_units(std::string_view text,
                                                          std::size_t size) const = 0;
    [[nodiscard]] virtual std::size_t size_of_complete_units(std::string_view text) const = 0;
    /// Returns the number of records or packets in the text.
    [[nodiscard]] virtual std::uint64_t count_units(std::string_view text) const = 0;

    /// Returns the file offset at which the last complete unit ends; nullopt if the file cannot be
    /// read. `size`: the size of the file.
    [[nodiscard]] virtual std::optional<std::uint64_t>
    find_last_unit_end(int file, std::uint64_t size) const = 0;

    /// Returns the bytes that complete a text's unfinished last unit, such as a newline; empty if
    /// more of the unit is missing.
    [[nodiscard]] virtual std::string_view
    completion_of_last_unit(std::string_view /*text*/) const {
        return {};
    }

    /// Returns whether a file contains data of another kind, which appended units would damage.
    [[nodiscard]] virtual bool is_foreign_file(int /*file*/) const { return false; }

    /// Returns whether data that begins with these bytes is of another kind.
    [[nodiscard]] virtual bool is_foreign_data(std::string_view /*begin*/) const { return false; }

    /// Returns a unit that is written in place of missing units, with their number and the cause.
    [[nodiscard]] virtual std::string loss_notice(const RecordingLoss& loss,
                                                  std::int64_t now) const = 0;

    /// Returns the name of the units in messages to users, such as "records".
    [[nodiscard]] virtual std::string_view unit_name() const = 0;
};

[[nodiscard]] const RecordingFormat& record_line_format();

/// The state of an output. Any thread may read it.
struct OutputState {
    std::atomic<int> error{0}; ///< errno of the last failure; 0 if the output works
    std::atomic<bool> disk_scarce{
        false};                         ///< writing stopped: less disk is free than must stay free
    std::atomic<std::uint64_t> lost{0}; ///< number of lost records or packets since the start
    std::atomic<std::uint64_t> written_bytes{0}; ///< bytes that this process wrote to disks

    // A reader that reports the following values sets them to 0.
    /// The errno of a failure to open the path again. The output continues in the file that is
    /// open.
    std::atomic<int> reopening_error{0};
    std::atomic<std::uint64_t> cut_bytes{0}; ///< size of the unfinished ends cut off files
    /// Number of complete records or packets that were cut off and could be read.
    std::atomic<std::uint64_t> cut_units{0};
    /// The number of seconds by which the wall clock was set; 0 for small corrections.
    std::atomic<std::int64_t> clock_jump{0};
};

/// The destination of records or of a capture: a file, a pipe, segments in a folder, or a message
/// bus. A single thread calls the virtual functions. Any thread may make a request, which the
/// writing thread carries out with the next data or in on_time().
class OutputFile : public sink::Output {
  public:
    using Clock = std::chrono::steady_clock;

    /// Carries out requests and work that is due at this time, such as syncing. Must be called
    /// regularly, also without new data.
    virtual void on_time(Clock::time_point /*now*/) {}

    /// Returns whether data is accepted. Returns false while earlier data could not be written;
    /// on_time() then tries to write it again.
    [[nodiscard]] virtual bool accepts_data() const { return true; }

    [[nodiscard]] virtual bool has_segments() const { return false; }

    /// Returns whether the next segment is due. If so, the writer must call start_segment() as soon
    /// as the data that follows can be read without the earlier segments.
    [[nodiscard]] virtual bool is_segment_due(Clock::time_point /*now*/) { return false; }

    /// Starts the next segment. Returns false if that is impossible now; the caller must then try
    /// again later.
    virtual bool start_segment() { return true; }

    /// Writes waiting data, and drops data that cannot be written. No other function than
    /// write_loss_notice() may be called afterwards.
    virtual void finish_writing() {}

    /// Writes a RecordingFormat::loss_notice() about lost data, if the disk has room for the unit.
    virtual void write_loss_notice(std::string_view /*unit*/) {}

    /// Requests to open the path again and continue there with the next unit; with segments, to
    /// start the next segment. Clears the error, but not the number of lost units.
    void request_reopening() { reopening_wanted_ = true; }

    /// Requests to remove an unfinished unit from the end of the file. No other process may write
    /// to the file at that time.
    void request_repair() { repair_wanted_ = true; }

    /// Ends the waiting for a slow reader, in current and later writes.
    void stop_waiting_for_reader() { waiting_stopped_ = true; }

    /// Returns the path as the user gave it.
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Returns the format of the written data.
    [[nodiscard]] const RecordingFormat& format() const { return *format_; }

    [[nodiscard]] int error() const { return state.error; }

    [[nodiscard]] bool failed() const { return error() != 0; }

    /// Returns the cause of error() as a text for the user.
    [[nodiscard]] std::string error_text() const;

    [[nodiscard]] std::uint64_t num_lost_units() const { return state.lost; }

    OutputState state;

  protected:
    explicit OutputFile(std::string path, const RecordingFormat& format = record_line_format())
        : path_{std::move(path)}, format_{&format} {}

    std::atomic<bool> reopening_wanted_{false};
    std::atomic<bool> repair_wanted_{false};
    std::atomic<bool> waiting_stopped_{false};

  private:
    std::string path_;
    const RecordingFormat* format_;
};

/// Appends data to a file, or to standard output if the path is "-". After the first error, only
/// counts the lost data, until request_reopening() is called. The constructor waits some seconds
/// until a pipe has a reader; writes wait for a slow reader. After stop_waiting_for_reader(), a
/// reader that reads nothing for a while counts as gone.
class FileOutput final : public OutputFile {
  public:
    /// The longest wait until a pipe has a reader.
    static constexpr std::chrono::seconds kReaderTimeout{20};

    /// Opens the file and empties it.
    /// Errors: throws std::system_error if the file cannot be opened, with ETIMEDOUT for a pipe
    /// without a reader.
    explicit FileOutput(const std::string& path,
                        const RecordingFormat& format = record_line_format(),
                        std::chrono::milliseconds reader_time = kReaderTimeout);
    ~FileOutput() override;
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;

    void write(std::string_view block) override;
    void on_time(Clock::time_point now) override;

  private:
    void detect_file_kind();
    [[nodiscard]] bool wait_for_reader() const;
    [[nodiscard]] std::size_t writable_bytes() const;
    void write_block(std::string_view block);
    void reopen();

    int descriptor_ = -1;
    bool waits_for_reader_ = false; ///< true for a pipe or terminal: writes wait for the reader
    std::size_t pipe_bytes_ = 0;    ///< size of the pipe's buffer in bytes
    bool ends_with_unit_ = true;    ///< true if the written data ends with a complete unit
};

/// Writes to an output file on a separate thread, so that callers never wait. The queue is bounded.
/// If the disk is full or too slow, blocks are dropped and counted. A
/// RecordingFormat::loss_notice() replaces them: it is written before the next block, or at the
/// end.
///
/// If the output has segments, the next segment starts when all producers of records have called
/// advance_to_segment(). Until then, the data of the two segments waits in two queues.
class QueuedOutput final : public sink::Output {
  public:
    /// The most bytes in the queue: half a minute of a busy server's records.
    static constexpr std::size_t kMaxQueueBytes = std::size_t{64} << 20U;

    /// `num_producers`: the number of producers that call advance_to_segment(). `progress`: counts
    /// the bytes written or lost; may be null. `target` and `progress` must outlive the object.
    explicit QueuedOutput(OutputFile& target, unsigned num_producers = 0,
                          std::atomic<std::uint64_t>* progress = nullptr);
    /// Writes the queued data, finishes the output file, and ends the thread.
    ~QueuedOutput() override;
    QueuedOutput(const QueuedOutput&) = delete;
    QueuedOutput& operator=(const QueuedOutput&) = delete;

    void write(std::string_view block) override { write_to_segment(current_segment(), block); }

    [[nodiscard]] std::uint32_t current_segment() const override {
        return segment_.load(std::memory_order_acquire);
    }

    void write_to_segment(std::uint32_t segment, std::string_view block) override;
    void advance_to_segment(std::uint32_t segment) override;
    /// Returns the number of records or packets that were dropped because the queue was full.
    [[nodiscard]] std::uint64_t num_dropped_units() const;

    /// Writes all queued data. No other function may be called afterwards.
    void finish_writing();

  private:
    using Clock = OutputFile::Clock;

    void write_queued_data();
    void drop_block(std::string_view block);
    void add_loss(std::uint64_t count);
    void append_loss_notice(std::string& queue);
    void switch_segment(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void pass_on_data();
    void write_remaining_data();
    void pass_on_or_drop_data();

    OutputFile* target_;
    unsigned num_producers_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    /// The data of the current segment, and of the next segment.
    std::array<std::string, 2> queues_;
    std::string writing_; ///< data that was taken from the queue and is being written
    std::size_t passed_bytes_ =
        0; ///< number of bytes of `writing_` that were passed to the output file
    std::uint64_t dropped_ = 0;
    std::optional<RecordingLoss> loss_; ///< a loss for which no loss_notice() was written yet
    /// When the output file began to accept no data (UTC, ns); 0 while it accepts data.
    std::int64_t failing_since_ = 0;
    bool stop_ = false;
    bool is_segment_announced_ =
        false; ///< true if the next segment was announced but has not started
    unsigned num_advanced_ = 0;
    /// The segment for the data that producers make now.
    std::atomic<std::uint32_t> segment_;
    std::thread thread_;
};

} // namespace tw::store
