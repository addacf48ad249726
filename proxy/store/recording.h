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
    /// The age and size at which a segment ends. The size is that of the file, compressed or not.
    RetentionLimits rotate{};
    RetentionLimits keep{}; ///< above these limits, old segments are deleted
    /// The number of bytes that must stay free on the disk; 0: no limit. If fewer are free, old
    /// segments are deleted if `keep` has a limit; otherwise writing stops.
    std::uint64_t least_free = 0;
    SyncPolicy sync = SyncPolicy::none;
    /// A compressed frame ends at this many bytes of text.
    std::uint64_t frame_text = kFrameText;
    /// How long the constructor waits until no other process writes to the recording. The observer
    /// of a killed twscope still writes for a moment.
    std::chrono::milliseconds patience{3000};
};

/// A recording on a disk: one file to which data is appended, or segments. Readers can read all
/// data at any time, except the last second of compressed data.
///
/// Data is written unit by unit. Compressed data is written in zstd frames, each with the data of
/// up to a second. If a unit does not fit on the disk, its written part is removed, and the unit
/// waits until there is room. Therefore the file always ends with a complete unit.
///
/// The current file stays locked, so that no second process writes to it.
class Recording final : public OutputFile {
  public:
    enum class StartMode : std::uint8_t {
        empty,  ///< empty the file; with segments: start a new segment
        append, ///< continue after the last complete unit
        /// Like `append`, but first wait until the process that writes to the file has ended.
        shared,
    };

    /// Opens the file, or the first segment. Errors: throws std::system_error if the file cannot be
    /// opened; std::runtime_error if it contains data of another kind, or, except with
    /// StartMode::shared, if another process writes to the recording.
    Recording(RecordingOptions options, StartMode mode, Disk& disk = system_disk());
    ~Recording() override;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    void write(std::string_view block) override;
    void on_time(Clock::time_point now) override;

    [[nodiscard]] bool accepts_data() const override { return !failed(); }

    [[nodiscard]] bool has_segments() const override { return options_.segments.has_value(); }

    [[nodiscard]] bool is_segment_due(Clock::time_point now) override;
    bool start_segment() override;
    void finish_writing() override;
    void write_loss_notice(std::string_view unit) override;

  private:
    enum class RepairResult : std::uint8_t {
        done,    ///< the file ends with a complete unit, or it cannot be read and was not changed
        foreign, ///< the file contains data of another kind
        /// The file was not changed, because it ends with more unfinished compressed data than a
        /// recording can have.
        too_much_unfinished,
        failed, ///< the unfinished data could not be removed (see errno)
    };

    void open(StartMode mode);
    void continue_recording();
    void count_segments();
    [[nodiscard]] bool open_segment();
    [[nodiscard]] base::UniqueFd wait_for_other_writer() const;
    [[nodiscard]] bool lock_file();
    [[nodiscard]] RepairResult repair();
    [[nodiscard]] RepairResult cut_off_frame(const FrameScan& scan);
    void repair_last_segment();
    /// Returns a text for the user that says why no data can be appended.
    [[nodiscard]] std::string repair_error_text(RepairResult result) const;
    void begin_file();
    [[nodiscard]] std::string compress_frame(std::string_view text);

    /// Compresses the text in `text_`, if any, and appends the frame to the current unit.
    void end_frame();
    /// Writes the rest of the current unit. Returns false if that is not possible now.
    bool write_current_unit();
    void set_error(int error);
    [[nodiscard]] bool was_truncated_elsewhere();
    bool write_unit();
    void remove_written_part();
    void execute_requests();
    void reopen();
    [[nodiscard]] int switch_to_named_file();
    void detect_moved_file();
    void detect_clock_jump();
    void free_disk_space();
    void delete_segments();
    void sync();
    void close_current_file();

    RecordingOptions options_;
    Disk* disk_;
    std::string file_start_; ///< the bytes that start each file
    int file_ = -1;
    std::string current_path_;   ///< the path of file_
    bool is_locked_ = false;     ///< true if this process has locked file_
    bool is_path_moved_ = false; ///< true if the path no longer refers to file_
    int reported_error_ = 0;     ///< the error that was last stored in state.reopening_error
    std::optional<ZstdFrameWriter> frame_writer_;
    std::string text_; ///< the text of the next frame; empty if the recording is not compressed
    Clock::time_point frame_start_{};
    std::string unit_; ///< the current unit; the bytes before `written_` are in the file
    std::size_t written_ = 0;
    std::uint64_t file_bytes_ = 0; ///< size of the current file
    bool has_unsynced_data_ = false;
    std::uint64_t number_ = 0; ///< number of the last segment
    SegmentAges ages_;
    std::int64_t clock_offset_ = 0; ///< wall clock minus steady clock at the last check
    Clock::time_point now_{};
    Clock::time_point opened_at_{};
    Clock::time_point last_check_{};
    Clock::time_point last_try_{};
};

} // namespace tw::store
