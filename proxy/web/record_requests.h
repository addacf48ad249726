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
    std::optional<std::uint32_t> watched_session{};
    std::optional<int> frame_rate{};         ///< frames a second
    std::optional<std::string> log_filter{}; ///< filter of the log; empty to accept every record
    std::optional<bool> wants_log{};         ///< true if the viewer wants to receive records
    std::optional<bool> wants_traffic{};     ///< true if the viewer wants to receive traffic totals
    bool wants_full_frame = false;           ///< true if the next frame must contain all items

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

    explicit LogRing(std::size_t max_bytes = kMaxBytes) : max_bytes_{max_bytes} {}

    /// Adds lines, each followed by a newline. Drops the oldest lines if the limit is exceeded.
    void add_lines(std::string_view lines);

    void clear();

    /// Filters the lines after line `number`, until the time `until`. Returns the lines that the
    /// filter accepts, the oldest first; an empty filter accepts all lines. Sets `number` to the
    /// number of the last line that was filtered.
    [[nodiscard]] std::vector<std::string_view>
    find_lines(std::uint64_t& number, const LineFilter& filter, Clock::time_point until) const;

    [[nodiscard]] std::uint64_t size() const { return lines_.size(); }

    /// Returns the number of lines after line `number` that were already dropped.
    [[nodiscard]] std::uint64_t dropped_count_after(std::uint64_t number) const {
        const std::uint64_t first = last_number_ - lines_.size();
        return number < first ? first - number : 0;
    }

    /// Returns the number of the newest line; 0 before the first line.
    [[nodiscard]] std::uint64_t last_number() const { return last_number_; }

  private:
    std::size_t max_bytes_;
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_number_ = 0;
};

/// Removes the oldest lines until at most `max_lines` lines and `max_bytes` bytes are left. Returns
/// the number of removed lines.
std::size_t keep_newest_lines(std::vector<std::string_view>& lines, std::size_t max_lines,
                              std::size_t max_bytes);

/// The time limit for filtering in one update of the viewers. All viewers of the log share it.
inline constexpr std::chrono::milliseconds kMaxFilterTime{5};

/// Returns the part of kMaxFilterTime for each of `viewers` viewers.
[[nodiscard]] inline LogRing::Clock::duration filter_time_per_viewer(std::size_t viewers) {
    return LogRing::Clock::duration{kMaxFilterTime} /
           static_cast<std::int64_t>(viewers == 0 ? 1 : viewers);
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

    /// Filters the new lines of the log for each request.
    void filter_lines(const LogRing& log);
    /// Answers the requests that are due and whose lines are all filtered. Answers a request with
    /// an error if filtering takes too long.
    void answer_due_requests(const LogRing& log, Clock::time_point now);

  private:
    struct WaitingRequest {
        RecordRequest request;
        std::uint64_t last_filtered_line = 0; ///< number of the latest line that was filtered
        LogRing found;                        ///< the lines that the filter accepted
    };

    void filter_lines(const LogRing& log, WaitingRequest& waiting) const;

    std::vector<WaitingRequest> waiting_;
};

} // namespace tw::web
