#include "proxy/sink/capture_sink.h"

namespace tw::sink {

void CaptureBlockBuffer::end_datagram() {
    if (!blocks_.end_datagram(gathered_)) {
        ++lost_;
        return;
    }
    ++packets_;
    if (gathered_.size() >= kBlockBytes) {
        flush();
    }
}

void CaptureBlockBuffer::flush() {
    const std::uint64_t packets = std::exchange(packets_, 0);
    if (!gathered_.empty() && !put_(gathered_)) {
        lost_ += packets;
    }
    gathered_.clear();
}

void CaptureBlockBuffer::finish(record::Timestamp time) {
    blocks_.finish(time, gathered_);
    flush();
}

void CaptureBlockBuffer::discard_comments() {
    std::vector<std::byte> said;
    blocks_.finish(0, said);
}

CaptureSink::CaptureSink(Output& output, DatagramChoice choice)
    : output_{&output}, choice_{choice}, segment_{output.segment()},
      block_buffer_{[this](std::span<const std::byte> blocks) {
          output_->write_to_segment(segment_,
                                    {reinterpret_cast<const char*>(blocks.data()), blocks.size()});
          return true;
      }} {}

void CaptureSink::on_datagram(const record::RecordHeader& head,
                              std::span<const std::byte> datagram) {
    if (output_->segment() != segment_) {
        begin_segment();
    }
    is_selected_ = choice_ == DatagramChoice::all;
    if (!is_selected_) {
        block_buffer_.blocks().defer_comments_to_next_datagram();
    }
    block_buffer_.blocks().on_datagram(head, datagram);
}

void CaptureSink::on_datagram_end() {
    if (!is_selected_) {
        block_buffer_.blocks().skip_datagram();
        return;
    }
    block_buffer_.end_datagram();
    lost_ += block_buffer_.take_lost_count();
}

void CaptureSink::begin_segment() {
    block_buffer_.flush();
    segment_ = output_->segment();
    output_->advance_to_segment(segment_);
    block_buffer_.blocks().on_new_file();
}

void CaptureSink::flush() {
    if (output_->segment() != segment_) {
        begin_segment();
    }
    block_buffer_.flush();
}

void CaptureSink::finish(record::Timestamp time) {
    if (choice_ == DatagramChoice::selected) {
        block_buffer_.blocks().defer_comments_to_next_datagram();
    }
    block_buffer_.finish(time);
}

} // namespace tw::sink
