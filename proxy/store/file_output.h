#pragma once

#include "proxy/base/descriptors.h"
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
    std::string_view cause;  ///< for example "disk_full"
};

/// The file format of a recording. A recording consists of entries: lines with records, or blocks
/// of a capture file. No entry is divided between two files. Each text that is passed to these
/// functions must start with an entry.
class RecordingFormat : public record::InterfaceBase {
  public:
    /// Returns the bytes at the start of each file. When an existing file is continued, these bytes
    /// are also written before the first new entry.
    [[nodiscard]] virtual std::string file_header() const { return {}; }

    /// Returns the bytes at the start of a segment: file_header(), or an entry with the segment's
    /// name and number. `now`: nanoseconds since 1970-01-01 UTC.
    [[nodiscard]] virtual std::string segment_header(std::string_view /*name*/,
                                                     std::uint64_t /*number*/,
                                                     std::int64_t /*now*/) const {
        return file_header();
    }

    /// Returns the size of the fewest first entries that together have at least `size` bytes.
    /// Returns the size of the text if all its entries have fewer bytes.
    [[nodiscard]] virtual std::size_t size_of_whole_entries(std::string_view text,
                                                            std::size_t size) const = 0;
    /// Returns the total size of the entries that are complete, without an unfinished last entry.
    [[nodiscard]] virtual std::size_t size_of_complete_entries(std::string_view text) const = 0;
    /// Returns the number of records or packets in the text.
    [[nodiscard]] virtual std::uint64_t count_entries(std::string_view text) const = 0;

    /// Returns the file offset at which the last complete entry ends; nullopt if the file cannot be
    /// read. `size`: the size of the file.
    [[nodiscard]] virtual std::optional<std::uint64_t>
    find_last_entry_end(int file, std::uint64_t size) const = 0;

    /// Returns the bytes that complete a text's unfinished last entry, such as a newline; empty if
    /// the entry cannot be completed.
    [[nodiscard]] virtual std::string_view
    missing_end_of_last_entry(std::string_view /*text*/) const {
        return {};
    }

    /// Returns whether a file contains data of another format, which appended entries would damage.
    [[nodiscard]] virtual bool is_foreign_file(int /*file*/) const { return false; }

    /// Returns whether data that begins with these bytes has another format.
    [[nodiscard]] virtual bool is_foreign_data(std::string_view /*begin*/) const { return false; }

    /// Returns an entry that is written in place of lost entries. It contains their number and the
    /// cause.
    [[nodiscard]] virtual std::string loss_notice(const RecordingLoss& loss,
                                                  std::int64_t now) const = 0;

    /// Returns the name that messages to users give to data of this format, such as "records" or "a
    /// pcapng capture".
    [[nodiscard]] virtual std::string_view content_name() const = 0;
};

/// Returns the format of recordings that consist of records as JSON lines.
[[nodiscard]] const RecordingFormat& record_line_format();

/// The state of an output. Any thread may read it.
struct OutputState {
    std::atomic<int> error{0}; ///< errno of the last failure; 0 if the output works
    /// True if writing stopped because too little disk space is free.
    std::atomic<bool> is_disk_space_low{false};
    /// Number of lost records or packets since the start.
    std::atomic<std::uint64_t> lost_entries{0};
    std::atomic<std::uint64_t> written_bytes{0}; ///< bytes that this process wrote to disks

    /// True if the path no longer names the file that is being written, and a file with that path
    /// cannot be opened or continued.
    std::atomic<bool> is_path_unusable{false};

    // Code that reports one of the following values to the user sets that value to 0.
    /// The errno if the path could not be opened again. The output continues in the file that is
    /// already open.
    std::atomic<int> reopening_error{0};
    /// Total size of the unfinished data that was cut off the ends of files, in bytes.
    std::atomic<std::uint64_t> cut_off_bytes{0};
    /// Number of complete records or packets that were found in the data that was cut off.
    std::atomic<std::uint64_t> num_cut_off_entries{0};
    /// Number of seconds by which the wall clock was set forward; negative if the clock was set
    /// back. Small corrections do not count.
    std::atomic<std::int64_t> clock_jump{0};
};

/// The destination of records or of a capture: a file, a pipe, segments in a folder, or a message
/// bus. A single thread calls the virtual functions. Any thread may make a request, which the
/// writing thread carries out with the next data or in do_due_work().
class OutputFile : public sink::Output {
  public:
    using Clock = std::chrono::steady_clock;

    /// Carries out requests, and other work that is due at the time `now`, such as syncing. Must be
    /// called regularly, also without new data.
    virtual void do_due_work(Clock::time_point /*now*/) {}

    /// Returns whether data is accepted. Returns false while earlier data could not be written;
    /// do_due_work() then tries to write it again.
    [[nodiscard]] virtual bool accepts_data() const { return true; }

    [[nodiscard]] virtual bool has_segments() const { return false; }

    /// Returns whether the next segment is due. If so, the caller of write() must call
    /// start_segment() as soon as readers of the next data do not need the earlier segments.
    [[nodiscard]] virtual bool is_segment_due(Clock::time_point /*now*/) { return false; }

    /// Starts the next segment. Returns false if that is impossible now; the caller must then try
    /// again later.
    virtual bool start_segment() { return true; }

    /// Writes waiting data, and drops data that cannot be written. Afterwards, only
    /// write_loss_notice() may be called.
    virtual void finish_writing() {}

    /// Writes a RecordingFormat::loss_notice() about lost data, if the disk has room for it.
    virtual void write_loss_notice(std::string_view /*entry*/) {}

    /// Requests that the path is opened again and the next entry is written there. With segments,
    /// requests that the next segment starts. Clears the error, but not the number of lost entries.
    void request_reopening() { is_reopening_requested_ = true; }

    /// Requests to remove an unfinished entry from the end of the file. No other process may write
    /// to the file at that time.
    void request_repair() { is_repair_requested_ = true; }

    /// Makes the current write and later writes fail instead of waiting for a slow reader.
    void stop_waiting_for_reader() { is_waiting_stopped_ = true; }

    /// Returns the path as the user gave it.
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Returns the format of the written data.
    [[nodiscard]] const RecordingFormat& format() const { return *format_; }

    [[nodiscard]] int error() const { return state.error; }

    [[nodiscard]] bool failed() const { return error() != 0; }

    /// Returns the cause of error() as a text for the user.
    [[nodiscard]] std::string error_text() const;

    /// Returns the number of lost records or packets since the start.
    [[nodiscard]] std::uint64_t num_lost_entries() const { return state.lost_entries; }

    OutputState state;

  protected:
    explicit OutputFile(std::string path, const RecordingFormat& format = record_line_format())
        : path_{std::move(path)}, format_{&format} {}

    std::atomic<bool> is_reopening_requested_{false};
    std::atomic<bool> is_repair_requested_{false};
    std::atomic<bool> is_waiting_stopped_{false};

  private:
    std::string path_;
    const RecordingFormat* format_;
};

/// Appends data to a file, or to standard output if the path is "-". After the first error, only
/// counts the lost data, until request_reopening() is called. If the file is a pipe, the
/// constructor waits some seconds for a reader, and writes wait for a slow reader. After
/// stop_waiting_for_reader(), a write fails if the reader reads nothing for a while.
class FileOutput final : public OutputFile {
  public:
    /// How long the constructor waits for a reader of a pipe.
    static constexpr std::chrono::seconds kReaderTimeout{20};

    /// Opens the file and empties it.
    /// Errors: throws std::system_error if the file cannot be opened, with ETIMEDOUT for a pipe
    /// without a reader.
    explicit FileOutput(const std::string& path,
                        const RecordingFormat& format = record_line_format(),
                        std::chrono::milliseconds reader_time = kReaderTimeout);

    void write(std::string_view block) override;
    void do_due_work(Clock::time_point now) override;

  private:
    void detect_file_kind();
    [[nodiscard]] bool wait_for_reader() const;
    [[nodiscard]] std::size_t writable_bytes() const;
    void write_block(std::string_view block);
    void reopen();

    base::UniqueFd file_;
    bool waits_for_reader_ = false; ///< true for a pipe, socket or terminal
    std::size_t pipe_bytes_ = 0;    ///< size of the pipe's buffer in bytes
    bool ends_with_entry_ = true;   ///< true if the written data ends with a complete entry
};

/// Writes to an output file on a separate thread, so that callers never wait. The queue is bounded.
/// If the disk is full or too slow, blocks are dropped and counted. A
/// RecordingFormat::loss_notice() is written in their place: before the next block, or at the end.
///
/// If the output has segments, the next segment starts when all producers of records have called
/// advance_to_segment(). Until then, the next segment's data waits in a second queue.
class QueuedOutput final : public sink::Output {
  public:
    /// The maximum number of queued bytes, which is half a minute of a busy server's records.
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
        return current_segment_.load(std::memory_order_acquire);
    }

    void write_to_segment(std::uint32_t segment, std::string_view block) override;
    void advance_to_segment(std::uint32_t segment) override;

    /// Returns the number of records or packets that were dropped because the queue was full.
    [[nodiscard]] std::uint64_t num_dropped_entries() const;

    /// Writes all queued data. No other function may be called afterwards.
    void finish_writing();

  private:
    using Clock = OutputFile::Clock;

    void write_queued_data();
    void drop_block(std::string_view block);
    void add_loss(std::uint64_t count);
    void append_loss_notice(std::string& queue);
    void switch_segment(std::unique_lock<std::mutex>& lock, Clock::time_point now);
    void write_accepted_data();
    void write_remaining_data();
    void write_or_drop_data();

    OutputFile* target_;
    unsigned num_producers_;
    std::atomic<std::uint64_t>* progress_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    /// The data for the segment in the output file, and for the announced segment.
    std::array<std::string, 2> queues_;
    std::string writing_; ///< data that was taken from the queue and is being written
    /// Number of bytes of `writing_` that were passed to the output file.
    std::size_t passed_bytes_ = 0;
    std::uint64_t dropped_entries_ = 0;
    /// The loss for which no loss_notice() was written yet.
    std::optional<RecordingLoss> unreported_loss_;
    /// The UTC time in nanoseconds at which the output file stopped accepting data; 0 while the
    /// file accepts data.
    std::int64_t failing_since_ = 0;
    bool is_stopping_ = false;
    /// True if current_segment() was increased, but the output file has not started that segment.
    bool is_segment_announced_ = false;
    unsigned num_advanced_producers_ = 0;
    std::atomic<std::uint32_t> current_segment_;
    std::thread thread_;
};

} // namespace tw::store
