#pragma once

#include "proxy/admin/wishes.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tw::admin {

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

} // namespace tw::admin
