#include "proxy/admin/log_ring.h"

#include <algorithm>

namespace tw::admin {

void LogRing::add(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
        lines_.emplace_back(line);
        bytes_ += line.size() + sizeof(std::string);
        ++last_;
        while (bytes_ > most_bytes_) {
            bytes_ -= lines_.front().size() + sizeof(std::string);
            lines_.pop_front();
        }
    }
}

void LogRing::clear() {
    lines_.clear();
    bytes_ = 0;
}

std::vector<std::string_view> LogRing::look(std::uint64_t& number, const LineFilter& filter,
                                            Clock::time_point until) const {
    std::vector<std::string_view> found;
    const std::uint64_t first = last_ - lines_.size();
    for (number = std::max(number, first); number < last_;) {
        const std::string_view line = lines_[static_cast<std::size_t>(number - first)];
        if (!filter || filter(line)) {
            found.push_back(line);
        }
        ++number;
        if (Clock::now() >= until) {
            break;
        }
    }
    return found;
}

std::size_t keep_newest(std::vector<std::string_view>& lines, std::size_t most,
                        std::size_t most_bytes) {
    std::size_t kept = 0;
    for (std::size_t bytes = 0; kept < std::min(lines.size(), most); ++kept) {
        bytes += lines[lines.size() - 1 - kept].size() + 1;
        if (bytes > most_bytes) {
            break;
        }
    }
    const std::size_t gone = lines.size() - kept;
    lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(gone));
    return gone;
}

} // namespace tw::admin
