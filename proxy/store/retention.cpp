#include "proxy/store/retention.h"

#include "proxy/base/clock.h"
#include "proxy/base/numbers.h"

#include <ctime>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::store {

namespace {

/// The pattern of a time in a file name, such as "20261121T161530Z"; d stands for a digit.
constexpr std::string_view kTimePattern = "ddddddddTddddddZ";
constexpr std::size_t kMinNumberDigits = 4;

} // namespace

bool matches_pattern(std::string_view text, std::string_view pattern) {
    return std::ranges::equal(text, pattern, [](char got, char wanted) {
        return wanted == 'd' ? got >= '0' && got <= '9' : got == wanted;
    });
}

std::string SegmentNames::path(std::int64_t utc, std::uint64_t number) const {
    return fmt::format("{}/{}-{}-{:04}{}", folder, name,
                       base::format_utc(utc, base::kFileNameTimeFormat), number, suffix);
}

std::optional<Segment> parse_segment_name(std::string_view file) {
    const std::string_view stem = file.substr(0, file.find('.', file.find_last_of('-') + 1));
    const std::size_t dash = stem.rfind('-');
    if (dash == std::string_view::npos || stem.size() == file.size()) {
        return std::nullopt;
    }
    const std::string_view digits = stem.substr(dash + 1);
    const std::string_view front = stem.substr(0, dash);
    Segment segment{
        .file = std::string{file}, .name = {}, .suffix = std::string{file.substr(stem.size())}};
    const auto number = base::parse_number<std::uint64_t>(digits);
    if (digits.size() < kMinNumberDigits || !number || front.size() < kTimePattern.size() + 2) {
        return std::nullopt;
    }
    segment.number = *number;
    const std::string time{front.substr(front.size() - kTimePattern.size())};
    segment.name = front.substr(0, front.size() - time.size() - 1);
    std::tm begun{};
    if (front[segment.name.size()] != '-' || !matches_pattern(time, kTimePattern) ||
        ::strptime(time.c_str(), base::kFileNameTimeFormat, &begun) == nullptr) {
        return std::nullopt;
    }
    segment.started_at = ::timegm(&begun);
    return segment;
}

std::vector<Segment> list_segments(const std::string& folder, const SegmentNames* names) {
    std::vector<Segment> segments;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator entry{folder, error}; !error && entry != end;
         entry.increment(error)) {
        auto segment = parse_segment_name(entry->path().filename().string());
        if (segment &&
            (names == nullptr || (segment->name == names->name &&
                                  segment->is_capture() == is_capture_suffix(names->suffix)))) {
            segments.push_back(*std::move(segment));
        }
    }
    // Times are not compared, because the clock may have been set back.
    std::ranges::sort(segments, [](const Segment& left, const Segment& right) {
        return std::tie(left.name, left.number, left.file) <
               std::tie(right.name, right.number, right.file);
    });
    return segments;
}

namespace {

/// Segments that ended less than this many seconds ago are never deleted, even if a user sets a
/// limit much too low.
constexpr std::int64_t kMinDeletionAgeSeconds = 3600;

/// Returns the segments of a recording, the oldest first, with the times and sizes of their files.
std::vector<Segment> list_segments_with_sizes(Disk& disk, const SegmentNames& names) {
    std::vector<Segment> found;
    for (Segment& segment : list_segments(names.folder, &names)) {
        const auto status = disk.file_status(names.folder + '/' + segment.file);
        if (status && status->is_regular) {
            segment.modified_at = status->modified_at;
            segment.size = status->size;
            found.push_back(std::move(segment));
        }
    }
    return found;
}

} // namespace

void SegmentAges::on_segment_start(std::uint64_t number, Clock::time_point now) {
    start_times_.insert_or_assign(number, now);
    if (start_times_.size() > kMaxOwnSegments) {
        start_times_.erase(start_times_.begin());
    }
}

std::int64_t SegmentAges::plausible_seconds_between(std::int64_t from, std::int64_t to) const {
    const bool after = to >= from;
    const auto step = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    return after && step <= static_cast<std::uint64_t>(longest_pause_.count())
               ? static_cast<std::int64_t>(step)
               : 0;
}

std::vector<std::int64_t> SegmentAges::compute_ages(std::span<const Segment> segments,
                                                    Clock::time_point now) const {
    std::vector<std::int64_t> ages(segments.size(), 0);
    std::int64_t begun = 0; // time from the start of the next segment until now
    for (std::size_t i = segments.size(); i-- > 0;) {
        const Segment& each = segments[i];
        const bool last = i + 1 == segments.size();
        const auto own = start_times_.find(each.number);
        const bool of_this_run =
            !start_times_.empty() && each.number >= start_times_.begin()->first;
        // Copying a file may change its modification time, so impossible times are replaced.
        const std::int64_t limit = last ? each.modified_at : segments[i + 1].started_at;
        const std::int64_t end = each.modified_at >= each.started_at && each.modified_at <= limit
                                     ? each.modified_at
                                     : limit;
        if (!last) {
            ages[i] = begun + (of_this_run ? 0 : plausible_seconds_between(end, limit));
        }
        begun = own != start_times_.end()
                    ? std::chrono::duration_cast<std::chrono::seconds>(now - own->second).count()
                    : ages[i] + (of_this_run ? 0 : plausible_seconds_between(each.started_at, end));
    }
    return ages;
}

std::size_t delete_old_segments(Disk& disk, const SegmentNames& names,
                                const RetentionLimits& limits, std::uint64_t min_free_bytes,
                                const SegmentAges& ages, SegmentAges::Clock::time_point now,
                                std::string_view current) {
    if (!limits.has_limit()) {
        return 0;
    }
    const std::vector<Segment> found = list_segments_with_sizes(disk, names);
    const std::vector<std::int64_t> seconds = ages.compute_ages(found, now);
    std::uint64_t bytes =
        std::accumulate(found.begin(), found.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Segment& each) { return sum + each.size; });
    std::uint64_t free = min_free_bytes == 0 ? 0 : disk.free_bytes(names.folder);
    std::size_t deleted = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const bool old = limits.age.count() != 0 && seconds[i] > limits.age.count();
        const bool much = limits.bytes != 0 && bytes > limits.bytes;
        const bool full = free < min_free_bytes;
        const std::string path = names.folder + '/' + found[i].file;
        if ((old || much || full) && seconds[i] >= kMinDeletionAgeSeconds && path != current &&
            disk.remove(path)) {
            bytes -= found[i].size;
            free += found[i].size;
            ++deleted;
        }
    }
    return deleted;
}

} // namespace tw::store
