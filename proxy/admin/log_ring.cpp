#include "proxy/admin/log_ring.h"

namespace tw::admin {

void LogRing::add(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(line.size() < lines.size() ? line.size() + 1 : line.size());
        lines_.emplace_back(line);
        bytes_ += line.size() + sizeof(std::string);
        ++last_;
        while (bytes_ > kMaxBytes) {
            bytes_ -= lines_.front().size() + sizeof(std::string);
            lines_.pop_front();
        }
    }
}

void LogRing::clear() {
    lines_.clear();
    bytes_ = 0;
}

} // namespace tw::admin
