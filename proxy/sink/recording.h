#pragma once

#include "proxy/base/descriptors.h"
#include "proxy/sink/file_output.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/retention.h"
#include "proxy/sink/zstd_frames.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::sink {

/// The result of repairing an existing file.
struct Repair {
    enum class Result : std::uint8_t {
        done,    ///< the file ends with a whole unit, or it cannot be read and was not changed
        foreign, ///< the file holds other data
        /// The file ends with more unfinished compressed data than any live recording has.
        too_much,
        failed, ///< the unfinished data could not be removed (see errno)
    };

    Result result = Result::done;
    CutEnd cut{};
};

/// Repairs the end of a file so that units can be appended: cuts off an unfinished line, block or
/// compressed frame. A last line that lacks only its newline gets one.
[[nodiscard]] Repair repair_end(Disk& disk, int file, const Framing& units, bool compressed);

/// When written data is synced to the disk.
enum class SyncPolicy : std::uint8_t {
    none,         ///< the system decides
    segment,      ///< at the end of each file
    every_second, ///< one second after the data was written
};

/// The limits of a segment; zero for no limit.
struct RotateLimits {
    std::chrono::seconds age{0};
    std::uint64_t bytes = 0; ///< bytes in the file, which may be compressed
};

/// Destination and limits of a recording.
struct RecordingOptions {
    std::string path; ///< path of the single file; for segments, the path as the user gave it
    bool compressed = false;
    const Framing* units = &record_lines(); ///< the kind of units
    Readers readers = Readers::all;
    std::optional<SegmentNames> segments{};
    RotateLimits rotate{};
    KeepLimits keep{};
    /// The number of bytes that stay free on the disk. Old segments are deleted for this if deleting is
    /// allowed; otherwise writing stops. 0 for no such limit.
    std::uint64_t least_free = 0;
    SyncPolicy sync = SyncPolicy::none;
    /// A compressed frame is ended at this many bytes of text.
    std::uint64_t frame_text = kMaxFrameText;
    /// How long to wait at the start for another process that writes to the recording: a killed
    /// twscope's observer still writes what it has.
    std::chrono::milliseconds patience{3000};
};

/// A recording on a disk: one file to which data is appended, or segments. All data can be read at any
/// time, except the last second of compressed data.
///
/// Data is written unit by unit, or in zstd frames of up to a second if it is compressed. If a unit does
/// not fit on the disk, its written part is removed and it waits, so nothing is lost as long as the writer
/// can wait. So readers, and a process that continues after a crash, find whole units only.
///
/// The file that is written is locked, so that no second process writes to the recording. The lock ends
/// with the process.
class Recording final : public OutputFile {
  public:
    enum class Begin : std::uint8_t {
        empty,  ///< empty the file; with segments, start a new one
        behind, ///< continue after the last whole unit
        shared, ///< like `behind`, but wait, because another process still writes to the file
    };

    /// Opens the file, or the first segment. Errors: throws std::system_error if the file cannot be
    /// opened, std::runtime_error if it holds data of another kind, which appended units would spoil,
    /// or if another process writes to the recording. Begin::shared allows another process.
    Recording(RecordingOptions options, Begin begin, Disk& disk = system_disk());
    ~Recording() override;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    /// Data that is written while ready() is false is lost.
    void write(std::string_view block) override;
    void on_time(Clock::time_point now) override;

    [[nodiscard]] bool ready() const override { return !failed(); }

    [[nodiscard]] bool cut_due(Clock::time_point now) override;
    bool cut() override;
    void finish() override;

  private:
    void open(Begin begin);
    void go_on();
    void count_segments();
    [[nodiscard]] bool open_segment();
    [[nodiscard]] base::UniqueFd await_writer() const;
    [[nodiscard]] bool has_other_writer() const;
    [[nodiscard]] bool lock();
    /// Repairs the end of the file so that units can be appended.
    [[nodiscard]] Repair::Result repair();
    /// Explains why no data can be appended.
    [[nodiscard]] std::string complaint(Repair::Result result) const;
    void begin_file();
    [[nodiscard]] std::string frame_of(std::string_view text);

    [[nodiscard]] bool frame_open() const { return frames_ && frames_->text_bytes() != 0; }

    void end_frame();
    /// Writes the current unit. Returns false if that is not possible now.
    bool put();
    [[nodiscard]] bool was_emptied();
    bool write_unit();
    void take_back();
    void execute_requests();
    void change_file(int next);
    void check_path();
    void check_clock();
    void free_disk_space();
    void delete_segments();
    void sync();
    void leave_file();

    RecordingOptions options_;
    Disk* disk_;
    std::string head_; ///< the bytes that start each file
    int file_ = -1;
    std::string current_; ///< the path of file_
    bool locked_ = false; ///< file_ is locked
    std::optional<FrameWriter> frames_;
    Clock::time_point frame_begun_{};
    std::string unit_; ///< the current unit; its bytes from `written_` on are not written yet
    std::size_t written_ = 0;
    std::uint64_t file_bytes_ = 0; ///< number of bytes in this file
    bool unsynced_ = false;
    std::uint64_t number_ = 0; ///< number of the last segment
    SegmentAges ages_;
    std::int64_t clock_ = 0; ///< wall clock minus steady clock at the last check
    Clock::time_point now_{};
    Clock::time_point opened_{};
    Clock::time_point looked_{};
    Clock::time_point checked_{};
    Clock::time_point tried_{};
};

} // namespace tw::sink
