#pragma once

#include "proxy/sink/file_queue.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::sink {

/// The names of a recording's segments: `FOLDER/NAME-20261121T161530Z-0001.jsonl.zst`. A name contains the
/// segment's start time (UTC), and its number, which gives the order.
struct SegmentNames {
    std::string folder; ///< without a slash at its end
    std::string name;
    std::string suffix; ///< for example ".jsonl.zst"

    [[nodiscard]] std::string path(std::int64_t utc, std::uint64_t number) const;
};

[[nodiscard]] inline bool is_capture_suffix(std::string_view suffix) {
    return suffix.starts_with(".pcapng");
}

/// An existing segment.
struct Segment {
    std::string file;   ///< file name without the folder
    std::string name;   ///< name of the recording
    std::string suffix; ///< for example ".jsonl.zst"
    std::uint64_t number = 0;
    /// Start in seconds since 1970-01-01 UTC, by the wall clock at that time.
    std::int64_t begun = 0;

    /// True if the segment belongs to a capture; false for records.
    [[nodiscard]] bool is_capture() const { return is_capture_suffix(suffix); }
};

/// Parses the name of a segment's file; nullopt if it is not one.
[[nodiscard]] std::optional<Segment> parse_segment(std::string_view file);

/// Returns the segments in a folder, grouped by recording and in the order of their start. `names`: return
/// only those of this recording, compressed or not. Empty if the folder cannot be read.
[[nodiscard]] std::vector<Segment> segments_in(const std::string& folder,
                                               const SegmentNames* names = nullptr);

/// How much of a recording is kept; zero for no limit.
struct KeepLimits {
    std::chrono::seconds age{0};
    std::uint64_t bytes = 0;

    [[nodiscard]] bool any() const { return age.count() != 0 || bytes != 0; }
};

/// The times of a segment, by the wall clock at those times.
struct DatedSegment {
    std::uint64_t number = 0;
    std::int64_t begun = 0;   ///< start according to its name, in seconds since 1970-01-01 UTC
    std::int64_t written = 0; ///< time of the last modification
};

/// Computes how long ago the segments of a recording ended. For segments of this run, uses a monotonic
/// clock. For earlier ones, adds the wall-clock times from each segment to the next. If time goes back
/// between two segments, or by more than a month (and more than the kept age) forward, the clock was set,
/// and that step counts as zero.
class SegmentAges {
  public:
    using Clock = std::chrono::steady_clock;

    /// A longer pause means that the clock was set.
    static constexpr std::chrono::seconds kLongestPause = std::chrono::hours{30 * 24};

    explicit SegmentAges(std::chrono::seconds kept_age = {})
        : longest_pause_{std::max(kept_age, kLongestPause)} {}

    /// Notes that this run starts a segment. Beyond kMaxOwn segments, the oldest are forgotten.
    void begin(std::uint64_t number, Clock::time_point now);

    /// Returns the number of seconds since each segment ended. `segments` is sorted by number. The result
    /// is 0 for the last one, which is being written.
    [[nodiscard]] std::vector<std::int64_t> of(std::span<const DatedSegment> segments,
                                               Clock::time_point now) const;

    /// Returns the number of seconds from the end of one segment to the start of a later one; 0 if the
    /// clock was set in between.
    [[nodiscard]] std::int64_t counted(std::int64_t from, std::int64_t to) const;

  private:
    static constexpr std::size_t kMaxOwn = 65536;

    std::chrono::seconds longest_pause_;
    /// Start of each segment of this run, by number.
    std::map<std::uint64_t, Clock::time_point> own_;
};

/// Deletes the oldest segments while the limits are exceeded, or while less than `least_free` bytes are free
/// on their disk. Never deletes `current`, nor a segment that ended within the last hour. Returns the number
/// of deleted segments.
std::size_t delete_old_segments(Disk& disk, const SegmentNames& names, const KeepLimits& limits,
                                std::uint64_t least_free, const SegmentAges& ages,
                                SegmentAges::Clock::time_point now, std::string_view current);

} // namespace tw::sink
