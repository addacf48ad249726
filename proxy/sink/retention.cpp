#include "proxy/sink/retention.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace tw::sink {

namespace {

/// Whoever asks for one day by mistake still has the last hour.
constexpr std::int64_t kNeverDeletedSeconds = 3600;

std::int64_t seconds_between(SegmentAges::Clock::time_point from,
                             SegmentAges::Clock::time_point to) {
    return std::chrono::duration_cast<std::chrono::seconds>(to - from).count();
}

struct Found {
    std::string path;
    std::uint64_t size;
};

/// Those of a recording, oldest first, and when each was written.
std::vector<Found> find_segments(Disk& disk, const SegmentNames& names,
                                 std::vector<DatedSegment>& dated) {
    std::vector<Found> found;
    for (const Segment& segment : segments_in(names.folder, &names)) {
        std::string path = names.folder + '/' + segment.file;
        if (const auto facts = disk.facts(path); facts && facts->regular) {
            dated.push_back({segment.number, segment.begun, facts->written});
            found.push_back({std::move(path), facts->size});
        }
    }
    return found;
}

} // namespace

void SegmentAges::begin(std::uint64_t number, Clock::time_point now) {
    own_.insert_or_assign(number, now);
    if (own_.size() > kMaxOwn) {
        own_.erase(own_.begin());
    }
}

std::int64_t SegmentAges::counted(std::int64_t from, std::int64_t to) const {
    const bool after = to >= from;
    const auto step = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
    return after && step <= static_cast<std::uint64_t>(longest_pause_.count())
               ? static_cast<std::int64_t>(step)
               : 0;
}

std::vector<std::int64_t> SegmentAges::of(std::span<const DatedSegment> segments,
                                          Clock::time_point now) const {
    std::vector<std::int64_t> ages(segments.size(), 0);
    std::int64_t begun = 0; ///< how long ago the segment behind the one at hand did
    for (std::size_t i = segments.size(); i-- > 0;) {
        const DatedSegment& each = segments[i];
        const bool last = i + 1 == segments.size();
        const auto own = own_.find(each.number);
        const bool of_this_run = !own_.empty() && each.number >= own_.begin()->first;
        // A file that was copied since says nothing of its end.
        const std::int64_t limit = last ? each.written : segments[i + 1].begun;
        const std::int64_t end =
            each.written >= each.begun && each.written <= limit ? each.written : limit;
        if (!last) {
            ages[i] = begun + (of_this_run ? 0 : counted(end, limit));
        }
        begun = own != own_.end() ? seconds_between(own->second, now)
                                  : ages[i] + (of_this_run ? 0 : counted(each.begun, end));
    }
    return ages;
}

std::size_t delete_old_segments(Disk& disk, const SegmentNames& names, const KeepLimits& limits,
                                std::uint64_t least_free, const SegmentAges& ages,
                                SegmentAges::Clock::time_point now, std::string_view current) {
    if (!limits.any()) {
        return 0;
    }
    std::vector<DatedSegment> dated;
    const std::vector<Found> found = find_segments(disk, names, dated);
    const std::vector<std::int64_t> seconds = ages.of(dated, now);
    std::uint64_t bytes =
        std::accumulate(found.begin(), found.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Found& each) { return sum + each.size; });
    std::uint64_t free = least_free == 0 ? 0 : disk.free_bytes(names.folder);
    std::size_t deleted = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const bool old = limits.age.count() != 0 && seconds[i] > limits.age.count();
        const bool much = limits.bytes != 0 && bytes > limits.bytes;
        const bool full = free < least_free;
        if ((old || much || full) && seconds[i] >= kNeverDeletedSeconds &&
            found[i].path != current && disk.remove(found[i].path)) {
            bytes -= found[i].size;
            free += found[i].size;
            ++deleted;
        }
    }
    return deleted;
}

} // namespace tw::sink
