#include "proxy/capture/capture_sink.h"

#include "proxy/record/terminal_text.h"
#include "proxy/wire/text.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::capture {

namespace {

class CaptureBlockFormat final : public store::RecordingFormat {
  public:
    [[nodiscard]] std::string file_header() const override {
        return std::string{wire::as_text(CaptureEncoder::encode_start())};
    }

    [[nodiscard]] std::size_t size_of_whole_entries(std::string_view text,
                                                    std::size_t size) const override {
        BlockIterator walk{text};
        while (walk.bytes_of_returned_blocks() < size && walk.next()) {
        }
        return walk.bytes_of_returned_blocks() < size ? text.size()
                                                      : walk.bytes_of_returned_blocks();
    }

    [[nodiscard]] std::size_t size_of_complete_entries(std::string_view text) const override {
        BlockIterator walk{text};
        while (walk.next()) {
        }
        return walk.bytes_of_returned_blocks();
    }

    [[nodiscard]] std::uint64_t count_entries(std::string_view text) const override {
        std::uint64_t packets = 0;
        BlockIterator walk{text};
        while (const auto block = walk.next()) {
            packets += block->type == kPcapngPacketBlock ? 1U : 0U;
        }
        return packets;
    }

    [[nodiscard]] std::optional<std::uint64_t>
    find_last_entry_end(int file, std::uint64_t /*size*/) const override {
        return complete_blocks_size(file);
    }

    [[nodiscard]] bool is_foreign_file(int file) const override {
        const std::string own = file_header();
        std::string first(own.size(), '\0');
        const ssize_t read = ::pread(file, first.data(), first.size(), 0);
        first.resize(static_cast<std::size_t>(std::max<ssize_t>(read, 0)));
        // If a file longer than the header has no complete block, another program wrote it.
        const auto section = PcapngBlock::read(own);
        const bool is_broken =
            section && first.size() >= section->size && complete_blocks_size(file) == 0;
        return is_foreign_data(first) || is_broken;
    }

    [[nodiscard]] bool is_foreign_data(std::string_view begin) const override {
        constexpr std::size_t kOrderAt = 8; // offset after a block's type and length
        const std::string own = file_header();
        // The block type is equal in both byte orders, so the byte-order mark is compared, too.
        const auto is_same = [&](std::size_t at) {
            const std::string_view mine = std::string_view{own}.substr(at, sizeof(std::uint32_t));
            return begin.size() < at || mine.starts_with(begin.substr(at, sizeof(std::uint32_t)));
        };
        return !is_same(0) || !is_same(kOrderAt);
    }

    [[nodiscard]] std::string loss_notice(const store::RecordingLoss& loss,
                                          std::int64_t now) const override {
        CaptureEncoder blocks;
        blocks.add_comment(fmt::format("{} missing here ({})",
                                       record::count_with_noun(loss.count, "packet[s] [is|are]"),
                                       loss.cause));
        std::vector<std::byte> block;
        blocks.append_remaining_comments(now, block);
        return std::string{wire::as_text(block)};
    }

    [[nodiscard]] std::string_view content_name() const override { return "a pcapng capture"; }
};

} // namespace

const store::RecordingFormat& capture_format() {
    static const CaptureBlockFormat format;
    return format;
}

void CaptureBlockBuffer::end_datagram() {
    if (!encoder_.end_datagram(collected_)) {
        ++num_lost_;
        return;
    }
    ++num_datagrams_;
    if (collected_.size() >= kBlockBytes) {
        flush();
    }
}

void CaptureBlockBuffer::flush() {
    const std::uint64_t packets = std::exchange(num_datagrams_, 0);
    if (!collected_.empty() && !write_(collected_)) {
        num_lost_ += packets;
    }
    collected_.clear();
}

void CaptureBlockBuffer::flush_with_comments(record::Timestamp time) {
    encoder_.append_remaining_comments(time, collected_);
    flush();
}

CaptureSink::CaptureSink(sink::Output& output, DatagramChoice choice)
    : output_{&output}, choice_{choice}, segment_{output.current_segment()},
      block_buffer_{[this](std::span<const std::byte> blocks) {
          output_->write_to_segment(segment_, wire::as_text(blocks));
          return true;
      }} {}

void CaptureSink::on_datagram(const record::RecordHeader& head,
                              std::span<const std::byte> datagram) {
    if (output_->current_segment() != segment_) {
        begin_segment();
    }
    is_selected_ = choice_ == DatagramChoice::all;
    if (!is_selected_) {
        block_buffer_.encoder().defer_comments_to_next_datagram();
    }
    block_buffer_.encoder().on_datagram(head, datagram);
}

void CaptureSink::on_datagram_end() {
    if (!is_selected_) {
        block_buffer_.encoder().skip_datagram();
        return;
    }
    block_buffer_.end_datagram();
    num_lost_ += block_buffer_.take_lost_count();
}

void CaptureSink::begin_segment() {
    block_buffer_.flush();
    segment_ = output_->current_segment();
    output_->advance_to_segment(segment_);
    block_buffer_.encoder().on_new_file();
}

void CaptureSink::flush() {
    if (output_->current_segment() != segment_) {
        begin_segment();
    }
    block_buffer_.flush();
}

void CaptureSink::write_remaining_data(record::Timestamp time) {
    if (choice_ == DatagramChoice::selected) {
        block_buffer_.encoder().defer_comments_to_next_datagram();
    }
    block_buffer_.flush_with_comments(time);
}

} // namespace tw::capture
