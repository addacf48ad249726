#include "proxy/sink/capture_sink.h"

#include "proxy/record/describe_finding.h"
#include "proxy/record/terminal_text.h"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tw::sink {

namespace {

constexpr std::uint32_t kClients = 0;
constexpr std::uint32_t kServer = 1;

/// For what has no address, or one that is not shown: a network for tests (RFC 2544).
FrameEndpoint stand_in(std::uint32_t session) {
    constexpr std::uint16_t kPort = 49152;
    return {.address = {198, 18, static_cast<std::uint8_t>(session >> 8U),
                        static_cast<std::uint8_t>(session)},
            .port = static_cast<std::uint16_t>(kPort + (session >> 16U) % 16384)};
}

} // namespace

std::vector<std::byte> CaptureSink::head() {
    std::vector<std::byte> head;
    const PcapngEncoder encoder;
    encoder.section("twscope", head);
    encoder.interface({.name = "clients", .description = "between clients and twscope"}, head);
    encoder.interface({.name = "server", .description = "between twscope and the server"}, head);
    return head;
}

void CaptureSink::on_record(const record::Record& record) {
    std::visit(
        [this](const auto* concrete) {
            if constexpr (requires { take(*concrete); }) {
                take(*concrete);
            }
        },
        record);
}

void CaptureSink::take(const record::SessionRecord& record) {
    const std::uint32_t session = record.head.session;
    switch (record.event) {
    case record::SessionEvent::open:
        sessions_[session] = {.client = parse_endpoint(record.client).value_or(stand_in(session)),
                              .server = parse_endpoint(record.server).value_or(stand_in(0))};
        if (sessions_.size() > kMaxSessions) {
            sessions_.erase(sessions_.begin());
        }
        comment(fmt::format("session {}: {} to {}", session, record.client, record.server));
        break;
    case record::SessionEvent::established:
        comment(fmt::format("session {}: established, {}", session, record.protocol));
        break;
    case record::SessionEvent::close:
        comment(
            fmt::format("session {}: closed: {}", session, record::terminal_text(record.reason)));
        break;
    }
}

void CaptureSink::take(const record::FindingRecord& record) {
    comment(record::describe(record));
}

void CaptureSink::comment(std::string text) {
    if (comments_.size() < kMaxComments) {
        comments_.push_back("twscope: " + std::move(text));
    }
}

void CaptureSink::on_datagram(const record::RecordHead& head, std::span<const std::byte> datagram) {
    head_ = head;
    datagram_ = datagram;
}

void CaptureSink::on_datagram_end() {
    const auto found = sessions_.find(head_.session);
    if (datagram_.size() > kMaxFramePayload) {
        ++lost_;
        return;
    }
    const bool to_server = head_.direction == wire::Direction::c2s;
    const Ends ends = found != sessions_.end()
                          ? found->second
                          : Ends{.client = stand_in(head_.session), .server = stand_in(0)};
    make_udp_frame(to_server ? ends.client : ends.server, to_server ? ends.server : ends.client,
                   datagram_, frame_);
    using Direction = PcapngPacket::Direction;
    encoder_.packet({.interface = to_server ? kClients : kServer,
                     .time = static_cast<std::uint64_t>(head_.time),
                     .frame = frame_,
                     .direction = to_server ? Direction::inbound : Direction::outbound,
                     .comments = comments_},
                    gathered_);
    ++gathered_packets_;
    comments_.clear();
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
    if (!comments_.empty()) {
        encoder_.statistics(kClients, static_cast<std::uint64_t>(time), comments_, gathered_);
        comments_.clear();
    }
    flush();
}

std::uint64_t whole_capture_bytes(int descriptor) {
    struct stat found {};

    if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
        return 0;
    }
    const auto size = static_cast<std::uint64_t>(found.st_size);
    constexpr std::uint64_t kSmallestBlock = 12;
    std::uint64_t at = 0;
    std::array<std::uint32_t, 2> head{}; // type, length; in our own byte order
    while (size - at >= kSmallestBlock &&
           ::pread(descriptor, head.data(), sizeof head, static_cast<off_t>(at)) == sizeof head &&
           head[1] >= kSmallestBlock && head[1] % 4 == 0 && head[1] <= size - at) {
        at += head[1];
    }
    return at;
}

} // namespace tw::sink
