#include "proxy/capture/frame_reader.h"

#include "proxy/wire/huffman.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <pcap/pcap.h>

namespace tw::capture {

/// Returns the entry of the fragment's datagram, or a free entry. If no entry is free, replaces the
/// oldest complete datagram, or if none is complete, the oldest datagram.
FragmentReassembly::PartialDatagram&
FragmentReassembly::find_or_replace_entry(const Fragment& fragment) {
    const auto worth = [](const PartialDatagram& partial) {
        return std::tuple{partial.is_used, !partial.is_complete, partial.first_time};
    };
    PartialDatagram* least = nullptr;
    for (PartialDatagram& partial : partials_) {
        const std::int64_t age = fragment.time - partial.first_time;
        // Entries with a later time expire, too. Otherwise they would never expire after the clock
        // was set back.
        partial.is_used = partial.is_used && age <= kTimeoutNs && age >= -kTimeoutNs;
        if (partial.is_used && partial.id == fragment.id && partial.source == fragment.source &&
            partial.destination == fragment.destination) {
            return partial;
        }
        least = least == nullptr || worth(partial) < worth(*least) ? &partial : least;
    }
    begin_datagram(*least, fragment);
    return *least;
}

void FragmentReassembly::begin_datagram(PartialDatagram& partial, const Fragment& fragment) {
    partial = {.is_used = true,
               .source = fragment.source,
               .destination = fragment.destination,
               .id = fragment.id,
               .first_time = fragment.time,
               .bytes = std::move(partial.bytes)};
}

/// Returns whether a fragment repeats a part of a complete datagram. Compares the bytes, because a
/// busy host soon uses an id for another datagram.
bool FragmentReassembly::repeats_complete_datagram(const PartialDatagram& partial,
                                                   const Fragment& fragment) {
    const auto bytes = std::span<const std::byte>{partial.bytes}.first(*partial.size);
    return compare_fragment(partial, fragment) == FragmentRelation::repeats &&
           std::ranges::equal(fragment.bytes,
                              bytes.subspan(fragment.offset, fragment.bytes.size()));
}

FragmentReassembly::FragmentRelation
FragmentReassembly::compare_fragment(const PartialDatagram& partial, const Fragment& fragment) {
    const std::size_t begin = fragment.offset;
    const std::size_t end = begin + fragment.bytes.size();
    constexpr std::size_t kUnit = 8; // every fragment except the last ends at a multiple of 8 bytes
    if (fragment.bytes.empty() || end > kMaxBytes || (fragment.more && end % kUnit != 0)) {
        return FragmentRelation::contradicts;
    }
    const auto fragments = std::span{partial.fragments}.first(partial.num_fragments);
    for (const FragmentRange& known : fragments) {
        if (known.begin == begin && known.end == end) {
            return FragmentRelation::repeats;
        }
        if (known.begin < end && begin < known.end) {
            return FragmentRelation::contradicts;
        }
        if (!fragment.more && known.end > end) {
            return FragmentRelation::contradicts;
        }
    }
    const bool behind_the_end = partial.size && end > *partial.size;
    const bool second_end = !fragment.more && partial.size && *partial.size != end;
    return behind_the_end || second_end || partial.num_fragments == kMaxFragments
               ? FragmentRelation::contradicts
               : FragmentRelation::is_new;
}

std::optional<FragmentReassembly::ReassembledDatagram>
FragmentReassembly::add_fragment(const Fragment& fragment) {
    PartialDatagram& partial = find_or_replace_entry(fragment);
    if (partial.is_invalid) {
        return std::nullopt;
    }
    if (partial.is_complete && !repeats_complete_datagram(partial, fragment)) {
        begin_datagram(partial, fragment);
    }
    const FragmentRelation fit = compare_fragment(partial, fragment);
    if (fit != FragmentRelation::is_new) {
        partial.is_invalid = fit == FragmentRelation::contradicts;
        repeats_ += fit == FragmentRelation::repeats ? 1 : 0;
        return std::nullopt;
    }
    const std::size_t end = fragment.offset + fragment.bytes.size();
    if (partial.bytes.size() < end) {
        partial.bytes.resize(end);
    }
    std::ranges::copy(fragment.bytes,
                      partial.bytes.begin() + static_cast<std::ptrdiff_t>(fragment.offset));
    partial.fragments[partial.num_fragments++] = {.begin = fragment.offset, .end = end};
    partial.bytes_received += fragment.bytes.size();
    if (!fragment.more) {
        partial.size = end;
    }
    if (!partial.size || partial.bytes_received != *partial.size) {
        return std::nullopt;
    }
    partial.is_complete = true;
    return ReassembledDatagram{.bytes =
                                   std::span<const std::byte>{partial.bytes}.first(*partial.size),
                               .num_fragments = partial.num_fragments};
}

namespace {

using Bytes = std::span<const std::byte>;

/// The properties that all packets of one connection and direction share.
struct Flow {
    std::optional<wire::Token> token;
    std::uint16_t ack = 0;
};

/// The largest difference of acknowledgements between merged datagrams.
constexpr unsigned kMaxAckSteps = 32;

std::uint16_t ack_at(Bytes payload, std::size_t at) {
    constexpr unsigned kHighBits = 3;
    return static_cast<std::uint16_t>((std::to_integer<unsigned>(payload[at]) & kHighBits) << 8U |
                                      std::to_integer<unsigned>(payload[at + 1]));
}

/// The bits of a 0.6 packet header's first byte that are the same in all packets of a flow. The
/// other bits are those of resend, compression and acknowledgement.
constexpr std::byte kSixFlowBits{0x3c};
constexpr std::byte kSevenFlowBits{0xe4}; ///< these bits of a 0.7 packet header
constexpr unsigned kMaxLikelyChunks = 32;

/// Returns true if the packets at the positions `before` and `at` look like packets of one flow, in
/// this order. The check is quick, and some other payloads pass it.
bool may_be_next_packet(Bytes payload, std::size_t before, std::size_t at) {
    if (wire::sequence_distance(ack_at(payload, before), ack_at(payload, at)) > kMaxAckSteps) {
        return false;
    }
    const std::byte differs = payload[before] ^ payload[at];
    return (differs & kSixFlowBits) == std::byte{0} ||
           ((differs & kSevenFlowBits) == std::byte{0} &&
            at + wire::kSevenHeaderSize <= payload.size() &&
            std::ranges::equal(payload.subspan(before + wire::kHeaderSize, wire::kTokenSize),
                               payload.subspan(at + wire::kHeaderSize, wire::kTokenSize)));
}

/// Returns true if a payload looks like packets of this size. The check is quick, and some other
/// payloads pass it.
bool may_consist_of_packets(Bytes payload, std::size_t size) {
    if (std::to_integer<unsigned>(payload[size + 2]) > kMaxLikelyChunks) {
        return false;
    }
    for (std::size_t at = size; at + wire::kHeaderSize <= payload.size(); at += size) {
        if (!may_be_next_packet(payload, at - size, at)) {
            return false;
        }
    }
    return true;
}

constexpr std::size_t kBlock = 32;

/// Returns true if a packet may begin at one of the first kBlock positions of `bytes`. If not,
/// may_consist_of_packets() is false for all these positions. Has no branches and is not inlined,
/// so that compilers use vector instructions. `first`: the payload's first two bytes.
/// Precondition: `bytes` has at least kBlock + 2 bytes.
[[gnu::noinline]] bool may_contain_packet_start(const std::uint8_t* bytes,
                                                const std::uint8_t* first) {
    constexpr auto kSix = std::to_integer<std::uint8_t>(kSixFlowBits);
    constexpr auto kSeven = std::to_integer<std::uint8_t>(kSevenFlowBits);
    const std::uint8_t kind = first[0];
    const std::uint8_t ack = first[1];
    std::uint8_t found = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
        const auto differs = static_cast<std::uint8_t>(bytes[i] ^ kind);
        const unsigned same_kind =
            ((differs & kSix) == 0 ? 1U : 0U) | ((differs & kSeven) == 0 ? 1U : 0U);
        // Compared with the merged frame's first packet, the two high bits of this acknowledgement
        // are the same or one more, and its low byte is a little higher.
        const unsigned high_bits_fit = ((bytes[i] - kind) & 2) == 0 ? 1U : 0U;
        const auto ahead = static_cast<std::uint8_t>(bytes[i + 1] - ack);
        const unsigned low_byte_fits = ahead <= kMaxAckSteps ? 1U : 0U;
        const unsigned few_chunks = bytes[i + 2] <= kMaxLikelyChunks ? 1U : 0U;
        found |= static_cast<std::uint8_t>(same_kind & high_bits_fit & low_byte_fits & few_chunks);
    }
    return found != 0;
}

bool may_be_merged(Bytes payload) {
    constexpr std::size_t kLeast = wire::kHeaderSize + 1;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(payload.data());
    for (std::size_t block = kLeast; block + kLeast <= payload.size(); block += kBlock) {
        const std::size_t end = std::min(block + kBlock, payload.size() - kLeast + 1);
        if (payload.size() >= kLeast + kBlock &&
            !may_contain_packet_start(bytes + std::min(block, payload.size() - kBlock - 2),
                                      bytes)) {
            continue;
        }
        for (std::size_t at = block; at < end; ++at) {
            if (may_consist_of_packets(payload, at)) {
                return true;
            }
        }
    }
    return false;
}

/// Returns the bytes after a packet's chunks; nullopt if it has no valid chunks.
std::optional<Bytes> bytes_after_chunks(const wire::Packet& packet) {
    if (packet.kind != wire::PacketKind::chunks) {
        return std::nullopt;
    }
    wire::ChunkReader reader{packet.payload, packet.num_chunks, packet.dialect};
    while (reader.next()) {
    }
    return reader.error() ? std::nullopt : std::optional{reader.rest()};
}

/// Returns the flow of a datagram; nullopt unless the datagram is a complete packet with chunks.
std::optional<Flow> flow_of(Bytes datagram, wire::Protocol protocol, wire::PacketScratch& scratch) {
    const auto packet = wire::decode_packet(datagram, protocol, scratch);
    const auto rest = packet ? bytes_after_chunks(*packet) : std::nullopt;
    // Only DDNet's token may follow the last chunk.
    const bool is_complete =
        rest && ((packet->num_chunks != 0 && rest->empty()) ||
                 (packet->dialect == wire::Dialect::six && rest->size() == wire::kTokenSize));
    const auto compressed_as = [&](wire::HuffmanEnding ending) {
        return std::ranges::equal(wire::huffman_compress(packet->payload, ending),
                                  datagram.subspan(wire::header_size(*packet)));
    };
    if (!is_complete ||
        (packet->compressed && !compressed_as(wire::HuffmanEnding::without_zero_byte) &&
         !compressed_as(wire::HuffmanEnding::with_zero_byte))) {
        return std::nullopt;
    }
    Flow flow{.token = packet->header_token, .ack = packet->ack};
    if (!rest->empty()) {
        std::memcpy(flow.token.emplace().data(), rest->data(), wire::kTokenSize);
    }
    return flow;
}

/// Returns the positions at which the first packet of a payload may end according to its content.
std::vector<std::size_t> find_possible_packet_ends(Bytes payload, wire::Protocol protocol,
                                                   wire::PacketScratch& scratch) {
    const auto packet = wire::decode_packet(
        payload.first(std::min(payload.size(), wire::kMaxDatagramSize)), protocol, scratch);
    const auto rest = packet ? bytes_after_chunks(*packet) : std::nullopt;
    if (!rest) {
        return {};
    }
    const std::size_t header = wire::header_size(*packet);
    if (!packet->compressed) {
        const std::size_t end = header + packet->payload.size() - rest->size();
        return {end, end + wire::kTokenSize};
    }
    const std::size_t end = header + wire::huffman_compressed_size(packet->payload);
    return {end, end + 1}; // older senders add a zero byte to compressed data
}

/// Returns true if the payload consists of packets of one flow, all of this size except the last
/// one.
bool consists_of_packets(Bytes payload, std::size_t size, wire::Protocol protocol,
                         wire::PacketScratch& scratch) {
    std::optional<Flow> before;
    for (std::size_t at = 0; at < payload.size(); at += size) {
        const auto flow =
            flow_of(payload.subspan(at, std::min(size, payload.size() - at)), protocol, scratch);
        if (!flow || (before && (before->token != flow->token ||
                                 wire::sequence_distance(before->ack, flow->ack) > kMaxAckSteps))) {
            return false;
        }
        before = flow;
    }
    return true;
}

} // namespace

std::optional<std::size_t> find_coalesced_datagram_size(Bytes payload,
                                                        wire::PacketScratch& scratch) {
    if (payload.size() < 2 * wire::kHeaderSize || !may_be_merged(payload)) {
        return std::nullopt;
    }
    std::optional<std::size_t> found;
    for (const wire::Protocol protocol : {wire::Protocol::six, wire::Protocol::seven}) {
        for (const std::size_t size : find_possible_packet_ends(payload, protocol, scratch)) {
            const bool several = size < payload.size() && size <= wire::kMaxDatagramSize &&
                                 payload.size() <= size * kMaxCoalescedDatagrams;
            if (!several || size == found ||
                !consists_of_packets(payload, size, protocol, scratch)) {
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

/// The position of the IP packet in the frames of a link type.
struct LinkLayout {
    int link;
    std::size_t header;      ///< number of bytes before the IP packet
    std::size_t protocol_at; ///< offset of the EtherType; kNoProtocol if the IP version decides
};

namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint16_t kEtherIpv4 = 0x0800;
constexpr std::uint16_t kEtherIpv6 = 0x86dd;
/// The EtherTypes of VLAN tags: 802.1Q, 802.1ad, and two older types for double tagging.
constexpr std::array<std::uint16_t, 4> kVlanEtherTypes{0x8100, 0x88a8, 0x9100, 0x9200};
constexpr std::size_t kChecksumAt = 6; ///< offset of the checksum in the UDP header

std::uint16_t read_be16(Bytes bytes, std::size_t at) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[at]) << 8U |
                                      std::to_integer<unsigned>(bytes[at + 1]));
}

std::uint8_t read_u8(Bytes bytes, std::size_t at) {
    return std::to_integer<std::uint8_t>(bytes[at]);
}

constexpr std::uint8_t kIpv6Fragment = 44;
constexpr std::size_t kIpv6Header = 40;
constexpr std::size_t kFragmentHeader = 8;

constexpr std::size_t kNoProtocol = SIZE_MAX;
constexpr auto kLinks = std::to_array<LinkLayout>({
    {DLT_EN10MB, 14, 12},
    {DLT_NULL, 4, kNoProtocol},
    {DLT_LOOP, 4, kNoProtocol},
    {DLT_RAW, 0, kNoProtocol},
    {DLT_IPV4, 0, kNoProtocol},
    {DLT_IPV6, 0, kNoProtocol},
    {DLT_LINUX_SLL, 16, 14},
    {DLT_LINUX_SLL2, 20, 0},
});

const LinkLayout* find_link_layout(int link) {
    const auto* const found = std::ranges::find(kLinks, link, &LinkLayout::link);
    return found == kLinks.end() ? nullptr : found;
}

} // namespace

void FrameReader::set_link_type(int link) {
    if (link_layout_ == nullptr || link_layout_->link != link) {
        link_layout_ = find_link_layout(link);
    }
}

bool FrameReader::supports_link_type(int link) {
    return find_link_layout(link) != nullptr;
}

std::string FrameReader::describe_unsupported_link(int link) {
    const char* const name = pcap_datalink_val_to_name(link);
    return "link type " + (name != nullptr ? name : std::to_string(link)) +
           " is not supported (Ethernet, loopback, raw IP and Linux cooked are)";
}

std::int64_t FrameReader::clamped_time(std::int64_t seconds, std::int64_t nanoseconds) {
    using record::kNanosecondsPerSecond;
    return std::clamp<std::int64_t>(seconds, 0, record::kLastInputSecond) * kNanosecondsPerSecond +
           std::clamp<std::int64_t>(nanoseconds, 0, kNanosecondsPerSecond - 1);
}

bool FrameReader::read_frame(Bytes frame, std::size_t sent, CapturedDatagram& datagram) {
    datagram.frame = ++counts_.frames;
    is_frame_truncated_ = frame.size() < sent;
    datagram.is_truncated = false;
    const bool is_datagram = parse_link_layer(frame, datagram);
    counts_.datagrams += is_datagram && !datagram.is_truncated ? 1 : 0;
    return is_datagram;
}

bool FrameReader::count_non_udp_frame() {
    ++counts_.other_frames;
    return false;
}

bool FrameReader::count_truncated_frame() {
    ++counts_.truncated;
    return false;
}

/// Counts a frame that ends within its headers.
bool FrameReader::count_incomplete_frame() {
    return is_frame_truncated_ ? count_truncated_frame() : count_non_udp_frame();
}

bool FrameReader::parse_link_layer(Bytes frame, CapturedDatagram& datagram) {
    if (link_layout_ == nullptr) {
        return count_non_udp_frame();
    }
    std::size_t header = link_layout_->header;
    if (frame.size() < header) {
        return count_incomplete_frame();
    }
    if (link_layout_->protocol_at != kNoProtocol) {
        std::uint16_t protocol = read_be16(frame, link_layout_->protocol_at);
        constexpr int kMaxTags = 2;
        for (int tags = 0; tags < kMaxTags && std::ranges::count(kVlanEtherTypes, protocol) != 0;
             ++tags) {
            if (frame.size() < header + 4) {
                return count_incomplete_frame();
            }
            protocol = read_be16(frame, header + 2);
            header += 4;
        }
        if (protocol != kEtherIpv4 && protocol != kEtherIpv6) {
            return count_non_udp_frame();
        }
    }
    return parse_ip(frame.subspan(header), datagram);
}

bool FrameReader::parse_ip(Bytes packet, CapturedDatagram& datagram) {
    if (packet.empty()) {
        return count_incomplete_frame();
    }
    switch (read_u8(packet, 0) >> 4U) {
    case 4:
        return parse_ipv4(packet, datagram);
    case 6:
        return parse_ipv6(packet, datagram);
    default:
        return count_non_udp_frame();
    }
}

bool FrameReader::parse_ipv4(Bytes packet, CapturedDatagram& datagram) {
    constexpr std::size_t kMinHeader = 20;
    if (packet.size() < kMinHeader) {
        return count_incomplete_frame();
    }
    const std::size_t header = std::size_t{read_u8(packet, 0) & 15U} * 4U;
    if (header < kMinHeader || read_u8(packet, 9) != kIpProtocolUdp) {
        return count_non_udp_frame();
    }
    if (packet.size() < header) {
        return count_incomplete_frame();
    }
    datagram.source.address = address_from_bytes(packet.subspan(12, 4));
    datagram.destination.address = address_from_bytes(packet.subspan(16, 4));
    constexpr unsigned kMoreFragments = 0x2000;
    constexpr unsigned kFragmentOffset = 0x1fff;
    const unsigned place = read_be16(packet, 6);
    if ((place & (kMoreFragments | kFragmentOffset)) == 0) {
        return parse_udp(packet.subspan(header), datagram);
    }
    // Short frames are padded; only the IP header says where the packet ends.
    const std::size_t total = read_be16(packet, 2);
    if (total < header) {
        return count_non_udp_frame();
    }
    if (total > packet.size()) {
        return count_truncated_frame();
    }
    return reassemble_datagram({.id = read_be16(packet, 4),
                                .offset = std::size_t{place & kFragmentOffset} * 8,
                                .more = (place & kMoreFragments) != 0,
                                .bytes = packet.subspan(header, total - header)},
                               datagram);
}

bool FrameReader::parse_ipv6(Bytes packet, CapturedDatagram& datagram) {
    if (packet.size() < kIpv6Header) {
        return count_incomplete_frame();
    }
    datagram.source.address = address_from_bytes(packet.subspan(8, 16));
    datagram.destination.address = address_from_bytes(packet.subspan(24, 16));
    std::uint8_t next = read_u8(packet, 6);
    std::size_t at = kIpv6Header;
    while (next == 0 || next == 43 || next == 60) { // hop-by-hop, routing, destination options
        if (packet.size() < at + 8) {
            return count_incomplete_frame();
        }
        next = read_u8(packet, at);
        at += (std::size_t{read_u8(packet, at + 1)} + 1) * 8;
    }
    if (next != kIpProtocolUdp && next != kIpv6Fragment) {
        return count_non_udp_frame();
    }
    if (packet.size() < at) {
        return count_incomplete_frame();
    }
    if (next == kIpv6Fragment) {
        const std::size_t end = kIpv6Header + read_be16(packet, 4);
        if (end > packet.size()) {
            return count_truncated_frame();
        }
        return end < at ? count_non_udp_frame()
                        : parse_ipv6_fragment(packet.subspan(at, end - at), datagram);
    }
    return parse_udp(packet.subspan(at), datagram);
}

/// Reads an IPv6 fragment. `packet`: the data from the fragment header on.
bool FrameReader::parse_ipv6_fragment(Bytes packet, CapturedDatagram& datagram) {
    if (packet.size() < kFragmentHeader || read_u8(packet, 0) != kIpProtocolUdp) {
        return count_non_udp_frame();
    }
    constexpr unsigned kMoreFragments = 1;
    constexpr unsigned kFragmentOffset = 0xfff8; // offset in bytes, masked from the field
    const unsigned place = read_be16(packet, 2);
    const Bytes bytes = packet.subspan(kFragmentHeader);
    if ((place & (kMoreFragments | kFragmentOffset)) == 0) {
        // The datagram is complete; its fragment header is unnecessary.
        return parse_udp(bytes, datagram);
    }
    return reassemble_datagram(
        {.id = std::uint32_t{read_be16(packet, 4)} << 16U | read_be16(packet, 6),
         .offset = place & kFragmentOffset,
         .more = (place & kMoreFragments) != 0,
         .bytes = bytes},
        datagram);
}

bool FrameReader::reassemble_datagram(const Fragment& fragment, CapturedDatagram& datagram) {
    Fragment placed = fragment;
    placed.time = datagram.time;
    placed.source = datagram.source.address;
    placed.destination = datagram.destination.address;
    const auto whole = fragments_.add_fragment(placed);
    if (fragments_.num_repeated_fragments() != counts_.repeated_fragments) {
        counts_.repeated_fragments = fragments_.num_repeated_fragments();
        return false;
    }
    ++counts_.incomplete_fragments;
    if (!whole) {
        return false;
    }
    counts_.incomplete_fragments -= whole->num_fragments;
    counts_.extra_fragments += whole->num_fragments - 1;
    return parse_udp(whole->bytes, datagram);
}

bool FrameReader::parse_udp(Bytes segment, CapturedDatagram& datagram) {
    constexpr std::size_t kHeader = 8;
    if (segment.size() < kHeader) {
        return count_incomplete_frame();
    }
    const std::size_t length = read_be16(segment, 4);
    if (length < kHeader) {
        return count_non_udp_frame();
    }
    datagram.source.port = read_be16(segment, 0);
    datagram.destination.port = read_be16(segment, 2);
    if (length > segment.size()) {
        // If the recorder did not truncate the frame, the length is wrong, and every receiver drops
        // the datagram.
        datagram.is_truncated = is_frame_truncated_;
        datagram.payload = {};
        static_cast<void>(count_truncated_frame());
        return datagram.is_truncated;
    }
    datagram.payload = segment.subspan(kHeader, length - kHeader);
    sees_checksums_ = sees_checksums_ || read_be16(segment, kChecksumAt) != 0;
    pass_on_coalesced_datagrams(segment.first(length), datagram);
    return true;
}

/// Passes on the datagrams of a UDP segment. A segment with a correct checksum is one datagram,
/// because merged segments have no correct checksum.
void FrameReader::pass_on_coalesced_datagrams(Bytes segment, CapturedDatagram& datagram) {
    coalesced_.payload = {};
    const auto size = find_coalesced_datagram_size(datagram.payload, scratch_);
    const bool without = size && read_be16(segment, kChecksumAt) == 0;
    if (!size || (without && sees_checksums_) ||
        (!without && udp_checksum(datagram.source, datagram.destination, segment) == 0)) {
        return;
    }
    ++counts_.merged_frames;
    coalesced_ = datagram;
    coalesced_.state = nullptr;
    coalesced_.payload = datagram.payload.subspan(*size);
    coalesced_size_ = *size;
    datagram.payload = datagram.payload.first(*size);
}

bool FrameReader::read_next_coalesced_datagram(CapturedDatagram& datagram) {
    if (coalesced_.payload.empty()) {
        return false;
    }
    datagram = coalesced_;
    datagram.payload =
        coalesced_.payload.first(std::min(coalesced_size_, coalesced_.payload.size()));
    coalesced_.payload = coalesced_.payload.subspan(datagram.payload.size());
    ++counts_.datagrams;
    return true;
}

} // namespace tw::capture
