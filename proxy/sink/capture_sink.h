#pragma once

#include "proxy/record/records.h"
#include "proxy/sink/file_queue.h"
#include "proxy/sink/pcapng.h"
#include "proxy/sink/udp_frame.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tw::sink {

/// Writes the datagrams of sessions as a capture, each once, on the leg it came in by and between the
/// addresses of client and server. What was found in one stands in its comment. Has to get every
/// record, and every datagram before it is looked at and after that.
class CaptureSink final : public record::RecordSink {
  public:
    /// `files` has to outlive it; `file` may serve several.
    CaptureSink(FileQueue& files, FileQueue::File file) : files_{&files}, file_{file} {}

    /// What a capture begins with.
    [[nodiscard]] static std::vector<std::byte> head();

    void on_record(const record::Record& record) override;
    void on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram);
    void on_datagram_end();
    /// Hands over what is gathered.
    void flush();
    /// What was said since the last datagram stands behind it. Nothing follows.
    void finish(record::Timestamp time);

    /// Datagrams that found no room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    static constexpr std::size_t kBlockBytes = std::size_t{64} << 10U;
    /// Of those before, the oldest are forgotten: what they still send gets an address for tests.
    static constexpr std::size_t kMaxSessions = 65'536;
    /// More would be said of no honest packet.
    static constexpr std::size_t kMaxComments = 16;

    struct Ends {
        FrameEndpoint client;
        FrameEndpoint server;
    };

    void take(const record::SessionRecord& record);
    void take(const record::FindingRecord& record);
    void comment(std::string text);

    FileQueue* files_;
    FileQueue::File file_;
    PcapngEncoder encoder_;
    std::map<std::uint32_t, Ends> sessions_;
    record::RecordHead head_;             ///< of the datagram at hand
    std::span<const std::byte> datagram_; ///< valid until its end
    std::vector<std::string> comments_;   ///< of the datagram at hand, or the next one
    std::vector<std::byte> frame_;        ///< kept for its memory
    std::vector<std::byte> gathered_;
    std::uint64_t gathered_packets_ = 0;
    std::uint64_t lost_ = 0;
};

/// How many bytes of a pcapng file are whole blocks; behind them is what was never finished. 0 for
/// what cannot be read, and for no such file.
[[nodiscard]] std::uint64_t whole_capture_bytes(int descriptor);

} // namespace tw::sink
