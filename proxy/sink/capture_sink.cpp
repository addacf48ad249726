#include "proxy/sink/capture_sink.h"

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

CaptureSink::CaptureSink(Output& output, Choice choice)
    : output_{&output}, choice_{choice}, segment_{output.segment()},
      gathering_{[this](std::span<const std::byte> blocks) {
          output_->write_in(segment_,
                            {reinterpret_cast<const char*>(blocks.data()), blocks.size()});
          return true;
      }} {}

void CaptureSink::on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) {
    if (output_->segment() != segment_) {
        begin_segment();
    }
    wanted_ = choice_ == Choice::all;
    if (!wanted_) {
        gathering_.blocks().keep_for_next_datagram();
    }
    gathering_.blocks().on_datagram(head, datagram);
}

void CaptureSink::on_datagram_end() {
    if (!wanted_) {
        gathering_.blocks().skip_datagram();
        return;
    }
    gathering_.end_datagram();
    lost_ += gathering_.take_lost();
}

void CaptureSink::begin_segment() {
    gathering_.flush();
    segment_ = output_->segment();
    output_->arrive(segment_);
    gathering_.blocks().introduce_again();
}

void CaptureSink::flush() {
    if (output_->segment() != segment_) {
        begin_segment();
    }
    gathering_.flush();
}

void CaptureSink::finish(record::Timestamp time) {
    if (choice_ == Choice::wanted) {
        gathering_.blocks().keep_for_next_datagram();
    }
    gathering_.finish(time);
}

} // namespace tw::sink
