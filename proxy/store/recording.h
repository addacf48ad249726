#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/store/file_output.h"
#include "proxy/store/file_queue.h"
#include "proxy/store/retention.h"
#include "proxy/store/zstd_frames.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::store {

/// When data is synced to the disk.
enum class SyncPolicy : std::uint8_t {
    none,         ///< never; the system decides
    segment,      ///< when a file or segment ends
    every_second, ///< about a second after data was written
};

struct RecordingOptions {
    std::string path; ///< path of the file; for segments, the path as the user gave it
    bool compressed = false;
    const RecordingFormat* format = &record_line_format(); ///< the format of the recording's data
    AllowedReaders readers = AllowedReaders::group;
    std::optional<SegmentNames> segments{};
    /// The age and the file size at which a segment ends.
    RetentionLimits segment_limits{};
    RetentionLimits keep{}; ///< above these limits, old segments are deleted
    /// The number of bytes that must stay free on the disk; 0: no limit. If fewer are free, old
    /// segments are deleted if `keep` has a limit; otherwise writing stops.
    std::uint64_t min_free_bytes = 0;
    SyncPolicy sync = SyncPolicy::none;
    /// A compressed frame ends at this many bytes of text.
    std::uint64_t frame_text_bytes = kFrameTextBytes;
    /// How long the constructor waits for other processes to stop writing to the recording. If
    /// twscope is killed, its observer process continues to write for a moment.
    std::chrono::milliseconds other_writer_timeout{3000};
};

/// A recording on a disk: one file to which data is appended, or segments. Readers can read all
/// data at any time, except the last second of compressed data.
///
/// The file always ends with a complete entry, or with a complete zstd frame of up to a second of
/// entries. If an entry or frame does not fit on the disk, its written part is removed, and the
/// entry or frame waits until there is room.
///
/// The current file stays locked, so that no second process writes to it.
class Recording final : public OutputFile {
  public:
    enum class StartMode : std::uint8_t {
        empty,  ///< empty the file; with segments: start a new segment
        append, ///< continue after the last complete entry
        /// Like `append`, but only after request_repair(), because another process still writes to
        /// the file.
        take_over,
    };

    /// Opens the file, or the first segment. Errors: throws std::system_error if the file cannot be
    /// opened; std::runtime_error if it contains data of another kind, or, except with
    /// StartMode::take_over, if another process writes to the recording.
    Recording(RecordingOptions options, StartMode mode, Disk& disk = system_disk());
    ~Recording() override;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    void write(std::string_view block) override;
    void do_due_work(Clock::time_point now) override;

    [[nodiscard]] bool accepts_data() const override { return !failed(); }

    [[nodiscard]] bool has_segments() const override { return options_.segments.has_value(); }

    [[nodiscard]] bool is_segment_due(Clock::time_point now) override;
    bool start_segment() override;
    void finish_writing() override;
    void write_loss_notice(std::string_view entry) override;

  private:
    enum class RepairResult : std::uint8_t {
        /// Nothing is left to repair. The file now ends with a complete entry, or it is unchanged
        /// because it cannot be read.
        done,
        foreign, ///< the file contains data of another format
        /// The file was not changed, because it ends with more unfinished compressed data than a
        /// recording can have.
        too_much_unfinished,
        failed, ///< the unfinished data could not be removed (see errno)
    };

    void open(StartMode mode);
    void take_over_recording();
    void find_last_segment_number();
    [[nodiscard]] bool open_segment();
    [[nodiscard]] base::UniqueFd wait_for_other_writer() const;
    [[nodiscard]] bool lock_file();
    [[nodiscard]] RepairResult repair();
    [[nodiscard]] RepairResult cut_off_unfinished_frame(const FrameScan& scan);
    void repair_last_segment();
    /// Returns a text for the user that says why no data can be appended.
    [[nodiscard]] std::string repair_error_text(RepairResult result) const;
    void write_file_start();
    [[nodiscard]] std::string compress_frame(std::string_view text);

    /// Compresses the text in `frame_text_`, if any, and appends the frame to `buffer_`.
    void end_frame();
    /// Writes the rest of `buffer_`, in a new segment if none is open. Returns false if that is not
    /// possible now.
    bool write_buffered_data();
    void set_error(int error);
    bool write_buffer_to_file();
    void remove_partial_entry();
    void execute_requests();
    void reopen();
    [[nodiscard]] int switch_to_file_at_path();
    void detect_moved_file();
    void free_disk_space();
    void delete_segments();
    void sync();
    void close_current_file();

    RecordingOptions options_;
    Disk* disk_;
    std::string file_start_;        ///< the bytes that start each file
    bool is_start_missing_ = false; ///< true if file_start_ is in buffer_, not yet in the file
    int file_ = -1;
    std::string current_path_;     ///< the path of file_
    bool has_locked_file_ = false; ///< true if this process has locked file_
    bool is_path_moved_ = false;   ///< true if another file, or none, now has the path of file_
    int blocking_error_ = 0;       ///< why a removed file cannot be created again; 0 if it is there
    int reported_error_ = 0;       ///< the error that was last stored in state.reopening_error
    std::optional<ZstdFrameWriter> frame_writer_;
    std::string
        frame_text_; ///< the text of the next frame; empty if the recording is not compressed
    Clock::time_point frame_started_at_{};
    std::string buffer_;            ///< entries or compressed frames that are being written
    std::size_t written_bytes_ = 0; ///< number of bytes of `buffer_` that are in the file
    std::uint64_t file_bytes_ = 0;  ///< bytes written to the current file after its start
    bool has_unsynced_data_ = false;
    std::uint64_t last_segment_number_ = 0; ///< number of the last segment
    SegmentAges segment_ages_;
    std::int64_t clock_offset_ = 0; ///< wall clock minus steady clock at the last check
    Clock::time_point now_{};
    Clock::time_point opened_at_{};
    Clock::time_point last_check_{};
    Clock::time_point last_try_{};
};

} // namespace tw::store
