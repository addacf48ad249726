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

/// What is wrong with a text that somebody typed.
struct Complaint {
    std::string message;    ///< one line
    std::size_t offset = 0; ///< bytes into the text
};

/// Whether a record, as its JSON line, is wanted.
using LineFilter = std::function<bool(std::string_view line)>;
/// Makes one of a text in the language of filters.
using MakeLineFilter = std::function<tl::expected<LineFilter, Complaint>(const std::string& text)>;

/// What a viewer asks to be shown. A key that a message does not name stays as it was.
struct ViewerRequests {
    std::optional<std::uint32_t> watch{}; ///< a session; 0: the world of all; kNothing: neither
    std::optional<int> pace{};            ///< frames a second
    std::optional<std::string> log{};     ///< filter of the log; empty: all of it
    std::optional<bool> log_on{};
    std::optional<bool> bytes{};
    bool again = false; ///< a frame with all there is, please

    static constexpr std::uint32_t kNothing = 0xffffffff;
};

/// Reads a message of a viewer: {"watch": 1, "pace": 20, "log": "type == finding", "bytes": true,
/// "again": true}; "watch" may be "all" or null, "log" null.
/// Errors: one line that says what is wrong.
[[nodiscard]] tl::expected<ViewerRequests, std::string> read_wishes(std::string_view text);

/// The latest records as JSON lines, numbered from 1.
class LogRing {
  public:
    using Clock = std::chrono::steady_clock;

    static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

    explicit LogRing(std::size_t most_bytes = kMaxBytes) : most_bytes_{most_bytes} {}

    /// Lines, each with a newline behind it. The oldest make way.
    void add(std::string_view lines);

    void clear();

    /// Those behind a line's number that the filter takes (none: all), the oldest first; valid until the
    /// next change. Stops when it is that late, but not before it looked at one; `number` is then that of
    /// the last one looked at, else of the newest.
    [[nodiscard]] std::vector<std::string_view>
    look(std::uint64_t& number, const LineFilter& filter, Clock::time_point until) const;

    [[nodiscard]] std::uint64_t size() const { return lines_.size(); }

    /// How many behind that number made way before anybody could look.
    [[nodiscard]] std::uint64_t gone_behind(std::uint64_t number) const {
        const std::uint64_t first = last_ - lines_.size();
        return number < first ? first - number : 0;
    }

    /// Number of the newest; 0: none came yet.
    [[nodiscard]] std::uint64_t last() const { return last_; }

  private:
    std::size_t most_bytes_;
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
};

/// Leaves the last so many lines, of so many bytes together. Returns how many had to go.
std::size_t keep_newest(std::vector<std::string_view>& lines, std::size_t most,
                        std::size_t most_bytes);

/// What filtering may take of a turn of the server's thread, for all who look at the log together: whose
/// filter takes longer waits longer himself.
inline constexpr std::chrono::milliseconds kLookTime{5};

/// What one of so many may take.
[[nodiscard]] inline LogRing::Clock::duration look_share(std::size_t many) {
    return LogRing::Clock::duration{kLookTime} / static_cast<std::int64_t>(many == 0 ? 1 : many);
}

/// Those who asked for the records that pass by for some time.
class RecordRequests {
  public:
    using Clock = LogRing::Clock;

    struct Wish {
        LineFilter filter{};
        std::size_t limit = 0;     ///< lines; the newest count
        Clock::time_point until{}; ///< it is answered then
        base::Source peer{};
        Respond respond;
    };

    void add(Wish wish);

    void clear() { waiting_.clear(); }

    [[nodiscard]] std::size_t size() const { return waiting_.size(); }

    [[nodiscard]] std::size_t of_peer(const base::Source& peer) const;

    /// Looks through what is new for them.
    void look(const LogRing& log);
    /// Answers those whose time has come, once all was looked at; after some more time says that this
    /// takes too long.
    void answer(const LogRing& log, Clock::time_point now);

  private:
    struct Waiting {
        Wish wish;
        std::uint64_t seen = 0; ///< number of the last line looked at
        LogRing found;
    };

    void look(const LogRing& log, Waiting& waiting) const;

    std::vector<Waiting> waiting_;
};

} // namespace tw::web
