#include "proxy/run/drop_window.h"

#include <utility>

namespace tw::run {

void DropWindow::look(Timestamp now, std::uint64_t total) {
    if (total > total_) {
        begin_ = open_ ? begin_ : looked_;
        open_ = true;
        end_ = now;
        untold_ += total - total_;
        total_ = total;
    }
    looked_ = now;
}

std::optional<std::uint64_t> DropWindow::reached(Timestamp time) {
    if (!open_ || time <= begin_) {
        return std::nullopt;
    }
    if (time > end_) {
        open_ = entered_ = false;
        return std::exchange(untold_, 0);
    }
    if (entered_) {
        return std::nullopt;
    }
    entered_ = true;
    return std::exchange(untold_, 0);
}

} // namespace tw::run
