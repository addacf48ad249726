#include "proxy/admin/record_requests.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace tw::admin {

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20U;
/// How much longer than asked for somebody waits until all was looked at.
constexpr std::chrono::milliseconds kPatience{1500};

std::string body_of(const LogRing& found, std::size_t limit) {
    std::uint64_t from = 0;
    auto lines = found.look(from, {}, LogRing::Clock::time_point::max());
    std::ignore = keep_newest(lines, limit, kMaxAnswerBytes);
    return fmt::format("{}{}", fmt::join(lines, "\n"), lines.empty() ? "" : "\n");
}

} // namespace

void RecordRequests::add(Wish wish) {
    // The ring counts more than the text, but not twice as much.
    waiting_.push_back({.wish = std::move(wish), .found = LogRing{2 * kMaxAnswerBytes}});
}

std::size_t RecordRequests::of_peer(const relay::Source& peer) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        waiting_, [&peer](const Waiting& waiting) { return waiting.wish.peer == peer; }));
}

void RecordRequests::look(const LogRing& log, Waiting& waiting) const {
    const auto until = Clock::now() + look_share(waiting_.size());
    for (const std::string_view line : log.look(waiting.seen, waiting.wish.filter, until)) {
        waiting.found.add(line);
    }
}

void RecordRequests::look(const LogRing& log) {
    for (Waiting& waiting : waiting_) {
        look(log, waiting);
    }
}

void RecordRequests::answer(const LogRing& log, Clock::time_point now) {
    std::erase_if(waiting_, [&](Waiting& waiting) {
        const Wish& wish = waiting.wish;
        if (now < wish.until) {
            return false;
        }
        look(log, waiting);
        if (waiting.seen == log.last()) {
            wish.respond({.content_type = "application/x-ndjson",
                          .body = body_of(waiting.found, wish.limit)});
            return true;
        }
        if (now < wish.until + kPatience) {
            return false;
        }
        wish.respond({.status = 503,
                      .body = "the filter cannot keep up with the records; try a simpler one\n"});
        return true;
    });
}

} // namespace tw::admin
