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

/// The format of times in file names, such as "20261121T161530Z"; d stands for a digit.
constexpr std::string_view kTimePattern = "ddddddddTddddddZ";
constexpr std::size_t kLeastDigits = 4;

/// Reads a time in kTimePattern. Returns seconds since 1970-01-01 UTC; nullopt if it is no time.
std::optional<std::int64_t> read_time(const std::string& text) {
    std::tm time{};
    const bool is_time = matches_pattern(text, kTimePattern) &&
                         ::strptime(text.c_str(), base::kFileNameTimeFormat, &time) != nullptr;
    return is_time ? std::optional<std::int64_t>{::timegm(&time)} : std::nullopt;
}

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
    if (digits.size() < kLeastDigits || !number || front.size() < kTimePattern.size() + 2) {
        return std::nullopt;
    }
    segment.number = *number;
    const std::size_t time = front.size() - kTimePattern.size();
    const auto begun = read_time(std::string{front.substr(time)});
    if (front[time - 1] != '-' || !begun) {
        return std::nullopt;
    }
    segment.name = front.substr(0, time - 1);
    segment.begun = *begun;
    return segment;
}

std::vector<Segment> segments_in(const std::string& folder, const SegmentNames* names) {
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
    // Sorted by number, not by time, because the clock may have been set back.
    std::ranges::sort(segments, [](const Segment& left, const Segment& right) {
        return std::tie(left.name, left.number, left.file) <
               std::tie(right.name, right.number, right.file);
    });
    return segments;
}

namespace {

/// Segments that ended less than this many seconds ago are never deleted, so that a mistake in a
/// limit does not delete the last hour.
constexpr std::int64_t kNeverDeletedSeconds = 3600;

std::int64_t seconds_between(SegmentAges::Clock::time_point from,
                             SegmentAges::Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

/// Returns the segments of a recording, the oldest first, with the times and sizes of their files.
std::vector<Segment> find_segments(Disk& disk, const SegmentNames& names) {
    std::vector<Segment> found;
    for (Segment& segment : segments_in(names.folder, &names)) {
        const auto facts = disk.file_facts(names.folder + '/' + segment.file);
        if (facts && facts->regular) {
            segment.written = facts->written;
            segment.size = facts->size;
            found.push_back(std::move(segment));
        }
    }
    return found;
}

} // namespace

void SegmentAges::on_segment_start(std::uint64_t number, Clock::time_point now) {
    own_.insert_or_assign(number, now);
    if (own_.size() > kMaxOwnSegments) {
        own_.erase(own_.begin());
    }
}

std::int64_t SegmentAges::seconds_elapsed(std::int64_t from, std::int64_t to) const {
    const bool after = to >= from;
    const auto step = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    return after && step <= static_cast<std::uint64_t>(longest_pause_.count())
               ? static_cast<std::int64_t>(step)
               : 0;
}

std::vector<std::int64_t> SegmentAges::ages_of(std::span<const Segment> segments,
                                               Clock::time_point now) const {
    std::vector<std::int64_t> ages(segments.size(), 0);
    std::int64_t begun = 0; // time from the start of the next segment until now
    for (std::size_t i = segments.size(); i-- > 0;) {
        const Segment& each = segments[i];
        const bool last = i + 1 == segments.size();
        const auto own = own_.find(each.number);
        const bool of_this_run = !own_.empty() && each.number >= own_.begin()->first;
        // Copying a file may change its modification time, so impossible times are replaced.
        const std::int64_t limit = last ? each.written : segments[i + 1].begun;
        const std::int64_t end =
            each.written >= each.begun && each.written <= limit ? each.written : limit;
        if (!last) {
            ages[i] = begun + (of_this_run ? 0 : seconds_elapsed(end, limit));
        }
        begun = own != own_.end() ? seconds_between(own->second, now)
                                  : ages[i] + (of_this_run ? 0 : seconds_elapsed(each.begun, end));
    }
    return ages;
}

std::size_t delete_old_segments(Disk& disk, const SegmentNames& names,
                                const RetentionLimits& limits, std::uint64_t least_free,
                                const SegmentAges& ages, SegmentAges::Clock::time_point now,
                                std::string_view current) {
    if (!limits.has_limit()) {
        return 0;
    }
    const std::vector<Segment> found = find_segments(disk, names);
    const std::vector<std::int64_t> seconds = ages.ages_of(found, now);
    std::uint64_t bytes =
        std::accumulate(found.begin(), found.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Segment& each) { return sum + each.size; });
    std::uint64_t free = least_free == 0 ? 0 : disk.free_bytes(names.folder);
    std::size_t deleted = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const bool old = limits.age.count() != 0 && seconds[i] > limits.age.count();
        const bool much = limits.bytes != 0 && bytes > limits.bytes;
        const bool full = free < least_free;
        const std::string path = names.folder + '/' + found[i].file;
        if ((old || much || full) && seconds[i] >= kNeverDeletedSeconds && path != current &&
            disk.remove(path)) {
            bytes -= found[i].size;
            free += found[i].size;
            ++deleted;
        }
    }
    return deleted;
}

} // namespace tw::store
