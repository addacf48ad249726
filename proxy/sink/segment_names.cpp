#include "proxy/sink/segment_names.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <tuple>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

namespace {

/// Whoever asks for one day by mistake, or has a clock that jumps, still has the last hour.
constexpr std::int64_t kNeverDeletedSeconds = 3600;

/// "20261121T161530Z": digits where this has a d.
constexpr std::string_view kTimeShape = "ddddddddTddddddZ";
constexpr std::size_t kLeastDigits = 4;

bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

bool is_time(std::string_view text) {
    return std::equal(
        text.begin(), text.end(), kTimeShape.begin(), kTimeShape.end(),
        [](char got, char wanted) { return wanted == 'd' ? is_digit(got) : got == wanted; });
}

struct Found {
    std::string path;
    FileFacts facts;
};

/// Oldest first.
std::vector<Found> deletable(Disk& disk, const SegmentNames& names, std::string_view current) {
    std::vector<Found> found;
    for (const Segment& segment : segments_in(names.folder, &names)) {
        std::string path = names.folder + '/' + segment.file;
        if (path == current) {
            continue;
        }
        if (const auto facts = disk.facts(path); facts && facts->regular) {
            found.push_back({std::move(path), *facts});
        }
    }
    return found;
}

} // namespace

std::string SegmentNames::path(std::int64_t utc, std::uint64_t number) const {
    return fmt::format("{}/{}-{:%Y%m%dT%H%M%SZ}-{:04}{}", folder, name,
                       fmt::gmtime(static_cast<std::time_t>(utc)), number, suffix);
}

std::optional<Segment> parse_segment(std::string_view file) {
    const std::string_view stem = file.substr(0, file.find('.', file.find_last_of('-') + 1));
    const std::size_t dash = stem.rfind('-');
    if (dash == std::string_view::npos || stem.size() == file.size()) {
        return std::nullopt;
    }
    const std::string_view digits = stem.substr(dash + 1);
    const std::string_view front = stem.substr(0, dash);
    Segment segment{
        .file = std::string{file}, .name = {}, .suffix = std::string{file.substr(stem.size())}};
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), segment.number);
    if (digits.size() < kLeastDigits || read.ec != std::errc{} ||
        read.ptr != digits.data() + digits.size() || front.size() < kTimeShape.size() + 2) {
        return std::nullopt;
    }
    const std::size_t time = front.size() - kTimeShape.size();
    if (front[time - 1] != '-' || !is_time(front.substr(time))) {
        return std::nullopt;
    }
    segment.name = front.substr(0, time - 1);
    return segment;
}

std::vector<Segment> segments_in(const std::string& folder, const SegmentNames* names) {
    std::vector<Segment> segments;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator entry{folder, error}; !error && entry != end;
         entry.increment(error)) {
        auto segment = parse_segment(entry->path().filename().string());
        if (segment &&
            (names == nullptr || (segment->name == names->name &&
                                  segment->is_capture() == is_capture_suffix(names->suffix)))) {
            segments.push_back(*std::move(segment));
        }
    }
    // A clock may be set back: the numbers of a recording never are.
    std::sort(segments.begin(), segments.end(), [](const Segment& left, const Segment& right) {
        return std::tie(left.name, left.number, left.file) <
               std::tie(right.name, right.number, right.file);
    });
    return segments;
}

std::size_t delete_old_segments(Disk& disk, const SegmentNames& names, const KeepLimits& limits,
                                std::string_view current) {
    if (limits.age.count() == 0 && limits.bytes == 0) {
        return 0;
    }
    const std::vector<Found> found = deletable(disk, names, current);
    const auto own = disk.facts(std::string{current});
    std::uint64_t bytes =
        std::accumulate(found.begin(), found.end(), own ? own->size : 0,
                        [](std::uint64_t sum, const Found& each) { return sum + each.facts.size; });
    const std::int64_t now = disk.utc();
    std::size_t deleted = 0;
    for (const Found& each : found) {
        const std::int64_t age = now - each.facts.written;
        const bool old = limits.age.count() != 0 && age > limits.age.count();
        const bool much = limits.bytes != 0 && bytes > limits.bytes;
        if ((old || much) && age >= kNeverDeletedSeconds && disk.remove(each.path)) {
            bytes -= each.facts.size;
            ++deleted;
        }
    }
    return deleted;
}

} // namespace tw::sink
