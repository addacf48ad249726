#pragma once

#include "proxy/sink/file_output.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/retention.h"
#include "proxy/sink/zstd_frames.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tw::sink {

/// What became of a file that others wrote before.
struct Repair {
    enum class Result : std::uint8_t {
        done,     ///< it ends with a whole unit, or cannot be read and stays as it is
        foreign,  ///< something else is in it
        too_much, ///< it ends with more unfinished compressed data than a live recording ever has
        failed, ///< it could not be written; errno says why, and all that could be read can still be
    };

    Result result = Result::done;
    std::uint64_t cut_bytes = 0; ///< of something unfinished
};

/// Makes the end of a file one that can be written behind: what is unfinished is cut off. But for what can be read
/// of it: a last line that lacks only its end gets it, and the whole units in compressed data without an end become
/// frames of their own. Whenever it is interrupted, the next try finds all that could be read before.
[[nodiscard]] Repair mend_end(Disk& disk, int file, const Framing& units, bool compressed);

/// When what was written has to be on the disk, and not only with the system.
enum class SyncPolicy : std::uint8_t {
    none,         ///< whenever the system likes
    segment,      ///< when a file is left for another one, and at the end
    every_second, ///< a second after it was written
};

/// When the next segment begins; zero: never for this reason.
struct RotateLimits {
    std::chrono::seconds age{0};
    std::uint64_t bytes = 0; ///< as they stand in the file
};

/// Where a recording goes.
struct RecordingOptions {
    std::string path; ///< of the one file, or of what is named by the user where there are segments
    bool compressed = false;
    const Framing* units = &record_lines(); ///< what it consists of
    Readers readers = Readers::all;
    std::optional<SegmentNames> segments{};
    RotateLimits rotate{};
    KeepLimits keep{};
    /// Bytes that are to stay free on the disk: old segments go for them where any may be deleted at all,
    /// and then nothing more is written. 0: it may become full.
    std::uint64_t least_free = 0;
    SyncPolicy sync = SyncPolicy::none;
    std::uint64_t frame_text =
        kMaxFrameText; ///< where it is compressed: with so much a frame is ended
};

/// A recording on a disk: one file that is only ever appended to, or segments. What is in it can be
/// read at any time, but for what was written within the last second where it is compressed.
///
/// It is written line by line, or block by block; compressed, in frames of zstd of up to a second. Of what does not
/// fit, what was written is taken back, and it waits: nothing is lost as long as who writes can wait, too.
/// So whoever reads, and whoever goes on after the process was killed, finds whole units.
class Recording final : public OutputFile {
  public:
    enum class Begin : std::uint8_t {
        empty,  ///< what was in the file is gone; of segments there is a new one
        behind, ///< behind the last whole unit in it
        shared, ///< as `behind`, but later: another process writes there still
    };

    /// Errors: throws std::system_error when it cannot be opened, std::runtime_error when what is in the file would
    /// be spoilt.
    Recording(RecordingOptions options, Begin begin, Disk& disk = system_disk());
    ~Recording() override;
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;
    Recording(Recording&&) = delete;
    Recording& operator=(Recording&&) = delete;

    [[nodiscard]] const Framing& units() const override { return *options_.units; }

    /// What comes while it is not ready is lost.
    void write(std::string_view block) override;
    void on_time(Clock::time_point now) override;

    [[nodiscard]] std::size_t portion() const override {
        return frames_ ? std::min<std::size_t>(kWholeFrameText, options_.frame_text) : 1;
    }

    [[nodiscard]] bool ready() const override { return error_ == 0; }

    [[nodiscard]] bool segmented() const override { return options_.segments.has_value(); }

    [[nodiscard]] bool cut_due(Clock::time_point now) override;
    bool cut() override;
    void finish() override;

    void switch_to(int descriptor) override;

    void go_behind_last_unit() override { mend_ = true; }

    void stop_waiting() override { hurried_ = true; }

    [[nodiscard]] bool moved() const override { return moved_; }

    [[nodiscard]] std::uint64_t take_cut_bytes() override { return cut_bytes_.exchange(0); }

    [[nodiscard]] std::int64_t take_clock_jump() override { return clock_jump_.exchange(0); }

    [[nodiscard]] const std::string& path() const override { return options_.path; }

    [[nodiscard]] int error() const override { return error_; }

    [[nodiscard]] std::uint64_t lost() const override { return lost_; }

  private:
    void open(Begin begin);
    [[nodiscard]] bool open_segment();
    /// Makes the file one to write behind.
    [[nodiscard]] Repair::Result mend();
    /// Why it cannot be written behind.
    [[nodiscard]] std::string complaint(Repair::Result result) const;
    void begin_file();

    [[nodiscard]] bool frame_open() const { return frames_ && frames_->text_bytes() != 0; }

    void end_frame();
    /// Writes the unit at hand. False: not now.
    bool put();
    [[nodiscard]] bool was_emptied();
    bool write_unit();
    void take_back();
    void obey();
    void change_file(int next);
    void look_for_file();
    void look_at_clock();
    void look_for_room();
    void delete_segments();
    void sync();
    void leave_file();

    RecordingOptions options_;
    Disk* disk_;
    std::string head_; ///< of each file
    int file_ = -1;
    std::string current_; ///< the path of file_
    std::optional<FrameWriter> frames_;
    Clock::time_point frame_begun_{};
    std::string unit_; ///< not written yet, from `written_` on
    std::size_t written_ = 0;
    std::uint64_t file_bytes_ = 0; ///< written to this file
    bool unsynced_ = false;
    std::uint64_t number_ = 0; ///< of the last segment
    SegmentAges ages_;
    std::int64_t clock_ = 0; ///< the wall clock minus the steady one, when last looked at
    bool scarce_ = false;    ///< less room is left than is to stay free
    Clock::time_point now_{};
    Clock::time_point opened_{};
    Clock::time_point looked_{};
    Clock::time_point checked_{};
    Clock::time_point tried_{};
    std::atomic<bool> cut_wanted_{false};
    std::atomic<int> next_{-1}; ///< to go on in; negative: none
    std::atomic<bool> mend_{false};
    std::atomic<bool> hurried_{false};
    std::atomic<bool> moved_{false};
    std::atomic<int> error_{0};
    std::atomic<std::uint64_t> lost_{0};
    std::atomic<std::uint64_t> cut_bytes_{0};
    std::atomic<std::int64_t> clock_jump_{0};
};

} // namespace tw::sink
