#pragma once

#include "proxy/base/keyed_hash.h"
#include "proxy/web/http_server.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace tw::web {

/// An error in a text that a user typed.
struct Complaint {
    std::string message;    ///< one line
    std::size_t offset = 0; ///< position in the text, in bytes
};

/// True if the filter accepts a record, given as its JSON line.
using LineFilter = std::function<bool(std::string_view line)>;
/// Compiles a filter expression.
using MakeLineFilter = std::function<tl::expected<LineFilter, Complaint>(const std::string& text)>;

/// What a viewer requests. A key that a message does not contain keeps its value.
struct ViewerRequests {
    /// The session to watch; 0 for the merged snapshots of all sessions; kNothing for neither.
    std::optional<std::uint32_t> watch{};
    std::optional<int> pace{};        ///< frames a second
    std::optional<std::string> log{}; ///< filter of the log; empty accepts every record
    std::optional<bool> log_on{};
    std::optional<bool> bytes{};
    bool again = false; ///< the next frame shall be a whole one

    static constexpr std::uint32_t kNothing = 0xffffffff;
};

/// Parses a viewer's message: {"watch": 1, "pace": 20, "log": "type == finding", "bytes": true,
/// "again": true}. "watch" may be "all" or null, "log" may be null.
/// Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<ViewerRequests, std::string>
parse_viewer_requests(std::string_view text);

/// The latest records as JSON lines, numbered from 1.
class LogRing {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

    explicit LogRing(std::size_t most_bytes = kMaxBytes) : most_bytes_{most_bytes} {}

    /// Adds lines, each followed by a newline. The oldest lines are dropped.
    void add(std::string_view lines);

    void clear();

    /// Returns the lines after `number` that the filter accepts, the oldest first; an empty filter
    /// accepts all. The views are valid until the next change. Stops at `until`, but looks at least
    /// at one line. Sets `number` to the last line looked at.
    [[nodiscard]] std::vector<std::string_view>
    look(std::uint64_t& number, const LineFilter& filter, Clock::time_point until) const;

    [[nodiscard]] std::uint64_t size() const { return lines_.size(); }

    /// Number of lines after `number` that were dropped already.
    [[nodiscard]] std::uint64_t gone_behind(std::uint64_t number) const {
        const std::uint64_t first = last_ - lines_.size();
        return number < first ? first - number : 0;
    }

    /// Number of the newest line; 0 before the first.
    [[nodiscard]] std::uint64_t last() const { return last_; }

  private:
    std::size_t most_bytes_;
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
};

/// Keeps the last `most` lines with at most `most_bytes` bytes together. Returns the number of
/// lines removed.
std::size_t keep_newest(std::vector<std::string_view>& lines, std::size_t most,
                        std::size_t most_bytes);

/// Time for filtering in one round of the server's thread, shared by all viewers of the log. A
/// viewer with a slower filter waits longer.
inline constexpr std::chrono::milliseconds kLookTime{5};

/// Returns the share of kLookTime that each of `many` viewers gets.
[[nodiscard]] inline LogRing::Clock::duration look_share(std::size_t many) {
    return LogRing::Clock::duration{kLookTime} / static_cast<std::int64_t>(many == 0 ? 1 : many);
}

/// The requests that wait for the records of the next seconds.
class RecordRequests {
  public:
    using Clock = LogRing::Clock;

    struct Wish {
        LineFilter filter{};
        std::size_t limit = 0;     ///< the most lines of the response; the newest are kept
        Clock::time_point until{}; ///< when the response is due
        base::Source peer{};
        Respond respond;
    };

    void add(Wish wish);

    void clear() { waiting_.clear(); }

    [[nodiscard]] std::size_t size() const { return waiting_.size(); }

    [[nodiscard]] std::size_t of_peer(const base::Source& peer) const;

    /// Filters new lines for all requests.
    void look(const LogRing& log);
    /// Answers the requests whose time has come, once all their lines were filtered. If that takes
    /// too long, the response says so.
    void answer(const LogRing& log, Clock::time_point now);

  private:
    struct Waiting {
        Wish wish;
        std::uint64_t seen = 0; ///< number of the last line filtered
        LogRing found;
    };

    void look(const LogRing& log, Waiting& waiting) const;

    std::vector<Waiting> waiting_;
};

} // namespace tw::web
