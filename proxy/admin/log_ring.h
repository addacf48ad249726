#pragma once

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
    static constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;

    /// Lines, each with a newline behind it. The oldest make way.
    void add(std::string_view lines);

    void clear();

    /// `use(number, line)` for all behind that number, oldest first, until it says false.
    template <typename Use>
    void for_each_behind(std::uint64_t number, Use&& use) const {
        const std::uint64_t first = last_ - lines_.size();
        for (std::uint64_t at = number > first ? number : first; at < last_; ++at) {
            if (!use(at + 1, std::string_view{lines_[static_cast<std::size_t>(at - first)]})) {
                return;
            }
        }
    }

    [[nodiscard]] std::uint64_t size() const { return lines_.size(); }

    /// How many behind that number made way before anybody could look.
    [[nodiscard]] std::uint64_t gone_behind(std::uint64_t number) const {
        const std::uint64_t first = last_ - lines_.size();
        return number < first ? first - number : 0;
    }

    /// Number of the newest; 0: none came yet.
    [[nodiscard]] std::uint64_t last() const { return last_; }

  private:
    std::deque<std::string> lines_;
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
};

/// Leaves the last so many lines, of so many bytes together. Returns how many had to go.
std::size_t keep_newest(std::vector<std::string_view>& lines, std::size_t most,
                        std::size_t most_bytes);

} // namespace tw::admin
