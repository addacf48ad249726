#include "proxy/sink/capture_sink.h"

#include <utility>

namespace tw::sink {

void CaptureSink::on_datagram_end() {
    if (!wanted_) {
        return; // what was said of it stands with the next one
    }
    if (!blocks_.end_datagram(gathered_)) {
        ++lost_;
        return;
    }
    ++gathered_packets_;
    if (gathered_.size() >= kBlockBytes) {
        flush();
    }
}

void CaptureSink::flush() {
    const std::uint64_t packets = std::exchange(gathered_packets_, 0);
    if (!gathered_.empty() && !files_->append(file_, std::exchange(gathered_, {}))) {
        lost_ += packets;
    }
}

void CaptureSink::finish(record::Timestamp time) {
    blocks_.finish(time, gathered_);
    flush();
}

} // namespace tw::sink
