#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_server.h"
#include "proxy/web/page_data.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// A message from a viewer. A setting that is missing in the message does not change.
struct ViewerMessage {
    /// The number of a session, kNoSession, or 0 for the merged snapshots of all sessions.
    std::optional<std::uint32_t> watch{};
    std::optional<int> pace{};               ///< frames a second
    std::optional<std::string> log_filter{}; ///< filter of the log; empty to accept every record
    std::optional<bool> wants_log{};
    std::optional<bool> wants_traffic{}; ///< receive traffic totals
    bool wants_full_frame = false;       ///< the next frame must contain all items

    static constexpr std::uint32_t kNoSession = 0xffffffff;
};

/// Parses a viewer's message: {"watch": 1, "pace": 20, "log": "type == finding", "bytes": true,
/// "again": true}. "watch" may also be "all" or null; "log" may also be null.
/// Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<ViewerMessage, std::string> parse_viewer_message(std::string_view text);

/// Stores the latest records as JSON lines. Lines are numbered from 1.
class LogRing {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

    explicit LogRing(std::size_t most_bytes = kMaxBytes) : most_bytes_{most_bytes} {}

    /// Adds lines, each followed by a newline. Drops the oldest lines if the limit is exceeded.
    void add_lines(std::string_view lines);

    void clear();

    /// Returns the lines after line `number` that the filter accepts, the oldest first. An empty
    /// filter accepts all lines. Stops at the time `until`. Sets `number` to the last line that was
    /// filtered.
    [[nodiscard]] std::vector<std::string_view>
    find_lines(std::uint64_t& number, const LineFilter& filter, Clock::time_point until) const;

    [[nodiscard]] std::uint64_t size() const { return lines_.size(); }

    /// Returns the number of lines after line `number` that were already dropped.
    [[nodiscard]] std::uint64_t dropped_count_after(std::uint64_t number) const {
        const std::uint64_t first = last_ - lines_.size();
        return number < first ? first - number : 0;
    }

    /// Returns the number of the newest line; 0 before the first line.
    [[nodiscard]] std::uint64_t last_number() const { return last_; }

  private:
    std::size_t most_bytes_;
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
};

/// Removes the oldest lines until at most `most` lines and `most_bytes` bytes are left. Returns the
/// number of removed lines.
std::size_t keep_newest_lines(std::vector<std::string_view>& lines, std::size_t most,
                              std::size_t most_bytes);

/// The time for filtering in one update of the viewers. All viewers of the log share this time.
inline constexpr std::chrono::milliseconds kFilterTime{5};

/// Returns the part of kFilterTime that each viewer gets if there are `num` viewers.
[[nodiscard]] inline LogRing::Clock::duration filter_time_per_viewer(std::size_t num) {
    return LogRing::Clock::duration{kFilterTime} / static_cast<std::int64_t>(num == 0 ? 1 : num);
}

/// Answers requests for the records of the next seconds.
class RecordRequests {
  public:
    using Clock = LogRing::Clock;

    struct RecordRequest {
        LineFilter filter{};
        /// The maximum number of lines of the response; the newest lines are kept.
        std::size_t limit = 0;
        Clock::time_point until{}; ///< time at which the response must be sent
        base::Network peer{};
        Respond respond;
    };

    void add_request(RecordRequest request);

    void clear() { waiting_.clear(); }

    [[nodiscard]] std::size_t size() const { return waiting_.size(); }

    [[nodiscard]] std::size_t count_requests_of(const base::Network& peer) const;

    void filter_lines(const LogRing& log);
    /// Answers the requests that are due and whose lines are all filtered. If filtering takes too
    /// long, the response says so.
    void answer_due_requests(const LogRing& log, Clock::time_point now);

  private:
    struct WaitingRequest {
        RecordRequest request;
        std::uint64_t seen = 0; ///< number of the latest line that was filtered
        LogRing found;
    };

    void filter_lines(const LogRing& log, WaitingRequest& waiting) const;

    std::vector<WaitingRequest> waiting_;
};

} // namespace tw::web
