#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/capture_blocks.h"
#include "proxy/sink/datagram_sink.h"
#include "proxy/sink/file_queue.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tw::sink {

/// Writes the datagrams of sessions as a capture.
class CaptureSink final : public record::RecordSink, public DatagramSink {
  public:
    /// Which datagrams are written: all, or those somebody wants.
    enum class Choice : std::uint8_t { all, wanted };

    /// `files` has to outlive it; `file` may serve several.
    CaptureSink(FileQueue& files, FileQueue::File file, Choice choice = Choice::all)
        : files_{&files}, file_{file}, choice_{choice} {}

    /// The datagram at hand is wanted.
    void want() { wanted_ = true; }

    void on_record(const record::Record& record) override { blocks_.on_record(record); }

    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) override {
        wanted_ = choice_ == Choice::all;
        blocks_.on_datagram(head, datagram);
    }

    void on_datagram_end() override;
    /// Hands over what is gathered.
    void flush();
    /// What was said since the last datagram stands behind it. Nothing follows.
    void finish(record::Timestamp time);

    /// Datagrams that found no room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;

    FileQueue* files_;
    FileQueue::File file_;
    Choice choice_;
    bool wanted_ = true;
    CaptureBlocks blocks_;
    std::vector<std::byte> gathered_;
    std::uint64_t gathered_packets_ = 0;
    std::uint64_t lost_ = 0;
};

} // namespace tw::sink
