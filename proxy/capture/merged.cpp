#include "proxy/capture/merged.h"

#include "proxy/wire/chunk.h"
#include "proxy/wire/huffman.h"
#include "proxy/wire/packet.h"
#include "proxy/wire/seven.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tw::capture {

namespace {

using Bytes = std::span<const std::byte>;

/// What the packets of one connection and direction have in common.
struct Flow {
    std::optional<wire::Token> token;
    std::uint16_t ack = 0;
};

/// Acknowledgements of datagrams that arrive together.
constexpr unsigned kMaxAckSteps = 32;

std::uint16_t ack_at(Bytes payload, std::size_t at) {
    constexpr unsigned kHighBits = 3;
    return static_cast<std::uint16_t>((std::to_integer<unsigned>(payload[at]) & kHighBits) << 8U |
                                      std::to_integer<unsigned>(payload[at + 1]));
}

/// Cheap, and wrong now and then: whether a header of the payload's flow may stand at a place.
bool may_begin_at(Bytes payload, std::size_t at) {
    constexpr std::byte kSixKind{0x3c};   // bits other than resend, compression, acknowledgement
    constexpr std::byte kSevenKind{0xe4}; // the same of 0.7
    constexpr unsigned kManyChunks = 32;
    if (std::to_integer<unsigned>(payload[at + 2]) > kManyChunks ||
        wire::sequence_steps(ack_at(payload, 0), ack_at(payload, at)) > kMaxAckSteps) {
        return false;
    }
    const std::byte differs = payload[0] ^ payload[at];
    return (differs & kSixKind) == std::byte{0} ||
           ((differs & kSevenKind) == std::byte{0} &&
            at + wire::kSevenHeaderSize <= payload.size() &&
            std::ranges::equal(payload.subspan(wire::kHeaderSize, wire::kTokenSize),
                               payload.subspan(at + wire::kHeaderSize, wire::kTokenSize)));
}

bool may_be_merged(Bytes payload) {
    constexpr std::size_t kLeast = wire::kHeaderSize + 1;
    for (std::size_t at = kLeast; at + kLeast <= payload.size(); ++at) {
        if (may_begin_at(payload, at)) {
            return true;
        }
    }
    return false;
}

/// A compressed payload as its sender may have written it.
std::array<std::vector<std::byte>, 2> compressed_again(Bytes payload) {
    return {wire::huffman_compress(payload, wire::HuffmanEnding::without_zero_byte),
            wire::huffman_compress(payload, wire::HuffmanEnding::with_zero_byte)};
}

/// Bytes behind the chunks of a packet; nothing where it is no packet of chunks.
std::optional<Bytes> find_rest(const wire::Packet& packet) {
    if (packet.kind != wire::PacketKind::chunks) {
        return std::nullopt;
    }
    wire::ChunkReader reader{packet.payload, packet.num_chunks, packet.dialect};
    while (reader.next()) {
    }
    return reader.error() ? std::nullopt : std::optional{reader.rest()};
}

/// What may stand behind the last chunk: nothing, or DDNet's token.
bool ends_well(const wire::Packet& packet, Bytes rest) {
    return packet.num_chunks != 0
               ? rest.empty() ||
                     (packet.dialect == wire::Dialect::six && rest.size() == wire::kTokenSize)
               : packet.dialect == wire::Dialect::six && rest.size() == wire::kTokenSize;
}

/// A packet of chunks from its first byte to its last one.
std::optional<Flow> flow_of(Bytes datagram, wire::Protocol protocol, wire::PacketScratch& scratch) {
    const auto packet = wire::decode_packet(datagram, protocol, scratch);
    const auto rest = packet ? find_rest(*packet) : std::nullopt;
    if (!rest || !ends_well(*packet, *rest)) {
        return std::nullopt;
    }
    if (packet->compressed) {
        const Bytes sent = datagram.subspan(wire::header_size(*packet));
        if (std::ranges::none_of(compressed_again(packet->payload), [&](const auto& again) {
                return std::ranges::equal(again, sent);
            })) {
            return std::nullopt;
        }
    }
    Flow flow{.token = packet->header_token, .ack = packet->ack};
    if (!rest->empty()) {
        std::memcpy(flow.token.emplace().data(), rest->data(), wire::kTokenSize);
    }
    return flow;
}

/// Where the first packet of a payload may end, by its content.
std::vector<std::size_t> ends_of_first(Bytes payload, wire::Protocol protocol,
                                       wire::PacketScratch& scratch) {
    const auto packet = wire::decode_packet(
        payload.first(std::min(payload.size(), wire::kMaxDatagramSize)), protocol, scratch);
    const auto rest = packet ? find_rest(*packet) : std::nullopt;
    if (!rest) {
        return {};
    }
    const std::size_t header = wire::header_size(*packet);
    if (!packet->compressed) {
        const std::size_t end = header + packet->payload.size() - rest->size();
        return {end, end + wire::kTokenSize};
    }
    std::vector<std::size_t> ends;
    for (const auto& again : compressed_again(packet->payload)) {
        ends.push_back(header + again.size());
    }
    return ends;
}

/// Whether packets of one flow, each of this size but the last, are all there is.
bool consists_of(Bytes payload, std::size_t size, wire::Protocol protocol,
                 wire::PacketScratch& scratch) {
    std::optional<Flow> before;
    for (std::size_t at = 0; at < payload.size(); at += size) {
        const auto flow =
            flow_of(payload.subspan(at, std::min(size, payload.size() - at)), protocol, scratch);
        if (!flow || (before && (before->token != flow->token ||
                                 wire::sequence_steps(before->ack, flow->ack) > kMaxAckSteps))) {
            return false;
        }
        before = flow;
    }
    return true;
}

} // namespace

std::optional<std::size_t> find_merged_size(Bytes payload, wire::PacketScratch& scratch) {
    if (payload.size() < 2 * wire::kHeaderSize || !may_be_merged(payload)) {
        return std::nullopt;
    }
    std::optional<std::size_t> found;
    for (const wire::Protocol protocol : {wire::Protocol::six, wire::Protocol::seven}) {
        for (const std::size_t size : ends_of_first(payload, protocol, scratch)) {
            const bool several = size < payload.size() && size <= wire::kMaxDatagramSize &&
                                 payload.size() <= size * kMaxMerged;
            if (!several || size == found || !consists_of(payload, size, protocol, scratch)) {
                continue;
            }
            if (found) {
                return std::nullopt;
            }
            found = size;
        }
    }
    return found;
}

} // namespace tw::capture
