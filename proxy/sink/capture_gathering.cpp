#include "proxy/sink/capture_gathering.h"

namespace tw::sink {

void CaptureGathering::end_datagram() {
    if (!blocks_.end_datagram(gathered_)) {
        ++lost_;
        return;
    }
    ++packets_;
    if (gathered_.size() >= kBlockBytes) {
        flush();
    }
}

void CaptureGathering::flush() {
    const std::uint64_t packets = std::exchange(packets_, 0);
    if (!gathered_.empty() && !put_(gathered_)) {
        lost_ += packets;
    }
    gathered_.clear();
}

void CaptureGathering::finish(record::Timestamp time) {
    blocks_.finish(time, gathered_);
    flush();
}

void CaptureGathering::forget() {
    std::vector<std::byte> said;
    blocks_.finish(0, said);
}

} // namespace tw::sink
