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

/// What the segments of a recording are called: `FOLDER/NAME-20261121T161530Z-0001.jsonl.zst`, after
/// the time at which each begins (UTC) and its number, which is their order.
struct SegmentNames {
    std::string folder; ///< without a slash at its end
    std::string name;
    std::string suffix; ///< ".jsonl.zst"

    [[nodiscard]] std::string path(std::int64_t utc, std::uint64_t number) const;
};

[[nodiscard]] inline bool is_capture_suffix(std::string_view suffix) {
    return suffix.starts_with(".pcapng");
}

/// A segment that is there.
struct Segment {
    std::string file;   ///< in its folder
    std::string name;   ///< of the recording that it belongs to
    std::string suffix; ///< ".jsonl.zst"
    std::uint64_t number = 0;
    std::int64_t begun = 0; ///< seconds since 1970-01-01 UTC, by the clock of its time

    /// Of a capture, and not of records.
    [[nodiscard]] bool is_capture() const { return is_capture_suffix(suffix); }
};

/// Reads a name; nothing when a file of this name is no segment.
[[nodiscard]] std::optional<Segment> parse_segment(std::string_view file);

/// The segments of a folder, recording by recording, in the order in which they were begun; of one
/// recording, where `names` says which, compressed or not. A folder that cannot be read has none.
[[nodiscard]] std::vector<Segment> segments_in(const std::string& folder,
                                               const SegmentNames* names = nullptr);

/// What is kept of a recording; zero: without a limit.
struct KeepLimits {
    std::chrono::seconds age{0};
    std::uint64_t bytes = 0;

    [[nodiscard]] bool any() const { return age.count() != 0 || bytes != 0; }
};

/// A segment, by the wall clock of its time.
struct DatedSegment {
    std::uint64_t number = 0;
    std::int64_t begun = 0;   ///< as its name says; seconds since 1970-01-01 UTC
    std::int64_t written = 0; ///< when last
};

/// How long ago the segments of a recording ended. Those of this run by a clock that does not jump;
/// earlier ones by the times they bear, followed from one to the next: a step backwards, or one of more
/// than a month (and more than the age that is kept), is a clock that was set, and counts as no time.
class SegmentAges {
  public:
    using Clock = std::chrono::steady_clock;

    /// Longer pauses of a recording are taken for a clock that was set.
    static constexpr std::chrono::seconds kLongestPause = std::chrono::hours{30 * 24};

    explicit SegmentAges(std::chrono::seconds kept_age = {})
        : longest_pause_{std::max(kept_age, kLongestPause)} {}

    /// This run begins the segment. The oldest of more than kMaxOwn are forgotten.
    void begin(std::uint64_t number, Clock::time_point now);

    /// Seconds since each ended, `segments` being in the order of their numbers; 0 for the last, which
    /// is being written.
    [[nodiscard]] std::vector<std::int64_t> of(std::span<const DatedSegment> segments,
                                               Clock::time_point now) const;

    /// Seconds from the end of one segment to the beginning of a later one; nothing is counted where the
    /// clock was set.
    [[nodiscard]] std::int64_t counted(std::int64_t from, std::int64_t to) const;

  private:
    static constexpr std::size_t kMaxOwn = 65536;

    std::chrono::seconds longest_pause_;
    std::map<std::uint64_t, Clock::time_point> own_; ///< when this run began each
};

/// Deletes the oldest segments beyond the limits, and while less than `least_free` bytes are free on
/// their disk. Never one that ended within the last hour, and never `current`. Returns how many.
std::size_t delete_old_segments(Disk& disk, const SegmentNames& names, const KeepLimits& limits,
                                std::uint64_t least_free, const SegmentAges& ages,
                                SegmentAges::Clock::time_point now, std::string_view current);

} // namespace tw::sink
