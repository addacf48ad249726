#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/bus/spool_folder.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tw::bus {

/// A JSON line of a record. Each run of twscope numbers its lines from 1.
struct NumberedLine {
    std::uint64_t number = 0;
    std::string_view text; ///< without the newline
};

/// Stores a run's JSON lines, in limited memory or in a spool, until the bus has stored them in its
/// stream. A spool consists of append-only files ("segments") and a state file. The process that
/// holds the lock of the state file owns the run. The lock ends with the process.
///
/// One thread appends lines. Another thread reads the lines, publishes them and calls
/// settle_lines().
class Backlog {
  public:
    /// The limit of memory in bytes: enough for the lines of one minute of a server with 64
    /// players.
    static constexpr std::size_t kMaxMemory = std::size_t{32} << 20U;

    /// Creates a backlog in memory. `run`: a UUID. `server`: the server's name in subjects.
    Backlog(std::string run, std::string server, std::size_t max_memory = kMaxMemory);
    /// Creates the spool of a new run.
    /// Errors: throws std::system_error.
    Backlog(SpoolFolder& folder, std::string run, std::string server, std::string stream);
    /// Takes over the spool of any run other than `own_run`; null if no spool can be taken over:
    /// another process owns it, its lines are for another stream, or it cannot be read.
    [[nodiscard]] static std::unique_ptr<Backlog> take_over_other_spool(SpoolFolder& folder,
                                                                        const std::string& own_run,
                                                                        const std::string& stream);
    /// Removes the files whose lines are all in the stream or lost.
    ~Backlog();
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;

    /// Returns the run's UUID. The id of a line's message consists of the UUID and the line's
    /// number.
    [[nodiscard]] const std::string& run_id() const { return run_; }

    /// Returns the server's name as it is written in subjects.
    [[nodiscard]] const std::string& server_name() const { return state_.server; }

    /// Returns false while the memory is full, or while appended lines could not be written to the
    /// disk.
    [[nodiscard]] bool has_room() const;

    /// Appends complete lines. Call this function only if has_room() is true.
    void append_lines(std::string_view block);

    /// Tries again to write the lines that could not be written to the disk.
    void retry_writing() { append_lines({}); }

    /// The state of the lines at one moment.
    struct Status {
        /// errno of the latest attempt to write to the disk; 0 if that attempt succeeded.
        int error = 0;
        std::uint64_t last_line = 0; ///< number of the latest appended line; 0 without a line
        /// Number of the last line of this run that was dropped to make room.
        std::uint64_t last_dropped_line = 0;
        /// Number of lines that were dropped or are missing, including lines of earlier runs.
        std::uint64_t lost_lines = 0;
        /// Number of lines that were not published and would be lost if this process ended.
        std::uint64_t unsaved_lines = 0;
        std::uint64_t last_settled_line =
            0; ///< number of the last line that settle_lines() settled
        /// The `sequence` of the latest settle_lines(); nullopt if no line was ever published.
        std::optional<std::uint64_t> settled_sequence{};
    };

    [[nodiscard]] Status status() const;

    /// Counts the lines that are still to be published, including the lines of earlier runs in the
    /// spool's folder. LineTotals::bytes counts whole segments, which may also contain published
    /// lines.
    [[nodiscard]] LineTotals count_waiting_lines() const;

    /// Finds the line with the number `from`, or, if it is lost, the next line that is not lost.
    /// The text is valid until the next call. Returns false if no such line was appended yet.
    [[nodiscard]] bool find_line(std::uint64_t from, NumberedLine& line);

    /// Marks all lines up to the number `line` as settled: they are in the stream, or lost. Later
    /// lines have sequence numbers above `sequence` in the stream.
    void settle_lines(std::uint64_t line, std::uint64_t sequence);

  private:
    struct Segment {
        std::uint64_t first = 0; ///< number of the first line
        std::uint64_t bytes = 0; ///< size of the lines
        std::string text;        ///< the lines; empty if the segment is a file
    };

    using Segments = std::deque<Segment>;

    Backlog(SpoolFolder& folder, std::string run, int state_file);
    void load_segments();
    void write_unwritten_lines();
    [[nodiscard]] bool start_segment_if_full(std::size_t coming);
    [[nodiscard]] int write_state();
    [[nodiscard]] std::uint64_t num_unsettled_lines() const;
    [[nodiscard]] std::uint64_t last_line_of_segment(Segments::const_iterator segment) const;
    [[nodiscard]] std::uint64_t size_of_segments() const;

    [[nodiscard]] std::string segment_path(std::uint64_t first) const {
        return folder_->path_of({.run = run_, .first = first});
    }

    void remove_first_segment();
    [[nodiscard]] bool read_next_lines(std::uint64_t from);
    [[nodiscard]] bool read_segment_lines(const Segment& segment);
    void count_missing_lines(std::uint64_t from, std::uint64_t last);

    SpoolFolder* folder_ = nullptr; ///< null if the lines are in memory
    std::size_t max_memory_ = 0;
    std::string run_;
    base::UniqueFd state_file_; ///< locked by the process that owns the run
    mutable std::mutex mutex_;
    SpoolState state_;
    /// True if the state file was written. Without a state file, a later run cannot find the lines.
    bool has_state_file_ = false;
    bool is_folder_removed_ = false; ///< true if the folder was removed while in use
    Segments segments_;
    base::UniqueFd file_; ///< the last segment's file; invalid for a run that was taken over
    std::uint64_t last_line_ = 0; ///< number of the last line in the segments
    std::string
        unwritten_lines_; ///< lines after `last_line_` that could not be written to the disk
    int error_ = 0;
    std::uint64_t refused_lines_ = 0; ///< number of lines appended after the folder was removed
    std::uint64_t last_dropped_line_ = 0;
    std::uint64_t losses_counted_until_ = 0; ///< lost lines up to this number are counted

    // The members below are used only by the reading thread.
    base::UniqueFd read_file_;
    /// Number of the first line of the segment being read; 0 if no segment is being read.
    std::uint64_t read_segment_first_ = 0;
    std::uint64_t read_offset_ = 0;       ///< byte offset in the segment at which `buffer_` ends
    std::string buffer_;                  ///< a piece of the segment being read
    std::size_t buffer_offset_ = 0;       ///< offset of line `next_read_line_` in `buffer_`
    std::uint64_t next_read_line_ = 0;    ///< number of the next line in `buffer_`
    std::uint64_t segment_last_line_ = 0; ///< number of the last line of the segment being read
};

} // namespace tw::bus
