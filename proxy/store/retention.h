#pragma once

#include "proxy/store/file_queue.h"

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

namespace tw::store {

/// Returns whether the text equals the pattern, in which each 'd' stands for any digit.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

/// Makes the file names of a recording's segments: `FOLDER/NAME-20261121T161530Z-0001.jsonl.zst`. A
/// file name contains the segment's start time (UTC) and its number. Segments are ordered by
/// number.
struct SegmentNames {
    std::string folder; ///< without a slash at its end
    std::string name;
    std::string suffix; ///< for example ".jsonl.zst"

    [[nodiscard]] std::string path(std::int64_t utc, std::uint64_t number) const;
};

[[nodiscard]] inline bool is_capture_suffix(std::string_view suffix) {
    return suffix.starts_with(".pcapng");
}

/// A file of a recording that is divided into segments.
struct Segment {
    std::string file;   ///< file name without the folder
    std::string name;   ///< SegmentNames::name of the recording
    std::string suffix; ///< for example ".jsonl.zst"
    std::uint64_t number = 0;
    // Times are of the wall clock, in seconds since 1970-01-01 UTC.
    std::int64_t started_at = 0;  ///< when the segment was started, according to its name
    std::int64_t modified_at = 0; ///< when the file was last modified; 0 if it was not looked up
    std::uint64_t size = 0;       ///< size of the file in bytes; 0 if it was not looked up

    /// Returns true if the segment belongs to a capture; false if it contains records.
    [[nodiscard]] bool is_capture() const { return is_capture_suffix(suffix); }
};

/// Parses a file name; nullopt if it is not the name of a segment.
[[nodiscard]] std::optional<Segment> parse_segment_name(std::string_view file);

/// Returns the segments in a folder, sorted by recording and number. The result is empty if the
/// folder cannot be read. If `names` is not null, returns only the segments of this recording,
/// compressed or not.
[[nodiscard]] std::vector<Segment> list_segments(const std::string& folder,
                                                 const SegmentNames* names = nullptr);

/// Limits of a recording or of its segments; zero: no limit.
struct RetentionLimits {
    std::chrono::seconds age{0};
    std::uint64_t bytes = 0;

    [[nodiscard]] bool has_limit() const { return age.count() != 0 || bytes != 0; }
};

/// Computes how long ago the segments of a recording ended. The ages of this run's segments come
/// from a monotonic clock. The ages of earlier segments are sums of wall-clock times between
/// segments. A time between two segments counts as zero if it is negative, or longer than both a
/// month and `kept_age`, because the clock was then set in between.
class SegmentAges {
  public:
    using Clock = std::chrono::steady_clock;

    explicit SegmentAges(std::chrono::seconds kept_age = {})
        : longest_pause_{std::max<std::chrono::seconds>(kept_age, std::chrono::hours{30 * 24})} {}

    /// Must be called when this run starts a segment. Remembers the last kMaxOwnSegments segments.
    void on_segment_start(std::uint64_t number, Clock::time_point now);

    /// Returns for each segment the number of seconds since its end; 0 for the last segment, which
    /// is being written. Precondition: `segments` is sorted by number.
    [[nodiscard]] std::vector<std::int64_t> compute_ages(std::span<const Segment> segments,
                                                         Clock::time_point now) const;

  private:
    static constexpr std::size_t kMaxOwnSegments = 65536;

    /// Returns the number of seconds from the end of a segment (`from`) to the start of a later
    /// segment (`to`); 0 if the clock was set in between.
    [[nodiscard]] std::int64_t plausible_seconds_between(std::int64_t from, std::int64_t to) const;

    /// If the time between two segments is longer than this, the clock was set in between.
    std::chrono::seconds longest_pause_;
    /// When the segments of this run started, by segment number.
    std::map<std::uint64_t, Clock::time_point> start_times_;
};

/// Deletes the oldest segments until the recording is within the limits, and at least
/// `min_free_bytes` bytes are free on its disk. Never deletes the file `current`, or a segment
/// that ended within the last hour. Deletes nothing if `limits` contains no limit. Returns the
/// number of deleted segments.
std::size_t delete_old_segments(Disk& disk, const SegmentNames& names,
                                const RetentionLimits& limits, std::uint64_t min_free_bytes,
                                const SegmentAges& ages, SegmentAges::Clock::time_point now,
                                std::string_view current);

} // namespace tw::store
