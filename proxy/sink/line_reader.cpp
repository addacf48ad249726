#include "proxy/sink/line_reader.h"

#include <algorithm>
#include <cstring>

namespace tw::sink {

bool LineReader::next(std::string_view& line) {
    while (true) {
        const void* const end =
            looked_ < held_ ? std::memchr(room_.data() + looked_, '\n', held_ - looked_) : nullptr;
        if (end != nullptr) {
            const auto stop =
                static_cast<std::size_t>(static_cast<const char*>(end) - room_.data());
            line = {room_.data() + at_, stop - at_};
            at_ = looked_ = stop + 1;
            if (!skipping_) {
                ++lines_;
                line.remove_suffix(line.ends_with('\r') ? 1 : 0); // as Windows ends lines
                return true;
            }
            skipped_ += line.size() + 1;
            skipping_ = false;
            continue;
        }
        looked_ = held_;
        if (!fill()) {
            return false;
        }
    }
}

/// Reads more behind what is held. False: there is no more.
bool LineReader::fill() {
    if (held_ - at_ >= kMaxLineBytes) {
        skipped_ += held_ - at_;
        skipping_ = true;
        at_ = held_;
    }
    if (at_ != 0) {
        std::copy(room_.begin() + static_cast<std::ptrdiff_t>(at_),
                  room_.begin() + static_cast<std::ptrdiff_t>(held_), room_.begin());
        held_ -= at_;
        at_ = 0;
        looked_ = held_;
    }
    if (held_ == room_.size()) {
        room_.resize(std::min(2 * room_.size(), 2 * kMaxLineBytes));
    }
    const std::size_t more = source_.read(std::span{room_}.subspan(held_));
    held_ += more;
    return more != 0;
}

} // namespace tw::sink
