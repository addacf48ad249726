#include "proxy/sink/segment_names.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace tw::sink {

namespace {

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

/// Precondition: is_time(text). Seconds since 1970-01-01 UTC.
std::int64_t read_time(std::string_view text) {
    const auto number = [text](std::size_t at, std::size_t digits) {
        int value = 0;
        std::from_chars(text.data() + at, text.data() + at + digits, value);
        return value;
    };
    std::tm time{};
    time.tm_year = number(0, 4) - 1900;
    time.tm_mon = number(4, 2) - 1;
    time.tm_mday = number(6, 2);
    time.tm_hour = number(9, 2);
    time.tm_min = number(11, 2);
    time.tm_sec = number(13, 2);
    return ::timegm(&time); // of what is no date, the date it spills over into
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
    segment.begun = read_time(front.substr(time));
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

} // namespace tw::sink
