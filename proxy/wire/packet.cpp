#include "proxy/wire/packet.h"

#include "proxy/wire/text.h"

#include <cassert>

namespace tw::wire {

namespace {

/// Whether two payloads refer to the same bytes in memory and have the same maximum size.
bool is_same_payload(const CompressedPayload& left, const CompressedPayload& right) {
    return left.bytes.data() == right.bytes.data() && left.bytes.size() == right.bytes.size() &&
           left.max_size == right.max_size;
}

bool is_within(std::span<const std::byte> part, std::span<const std::byte> whole) {
    return part.data() >= whole.data() && part.data() + part.size() == whole.data() + whole.size();
}

} // namespace

void PacketScratch::begin_datagram(std::span<const std::byte> datagram,
                                   std::span<const std::byte> next) {
    // Forget the announced datagram if another one follows: the memory may have been reused.
    if (announced_ && !is_within(announced_->payload.bytes, datagram)) {
        announced_.reset();
    }
    next_ = next;
}

Result<std::span<const std::byte>> PacketScratch::decompress(const CompressedPayload& payload) {
    if (announced_ && is_same_payload(announced_->payload, payload)) {
        current_ = 1 - current_;
        const Result<std::size_t> size = announced_->size;
        announced_.reset();
        return decompressed_payload(size);
    }
    PayloadBuffer& room = buffers_[current_];
    const HuffmanPayload asked{payload.bytes,
                               std::span{room}.first(std::min(payload.max_size, room.size()))};
    const auto next = announced_ ? CompressedPayload{} : guess_compressed_payload(next_);
    if (next.bytes.empty()) {
        return decompressed_payload(huffman_decompress(asked.in, asked.out));
    }
    PayloadBuffer& other = buffers_[1 - current_];
    const auto sizes =
        huffman_decompress(asked, {next.bytes, std::span{other}.first(next.max_size)});
    announced_ = AnnouncedPayload{next, sizes[1]};
    return decompressed_payload(sizes[0]);
}

Result<std::span<const std::byte>>
PacketScratch::decompressed_payload(const Result<std::size_t>& size) const {
    if (!size) {
        return tl::unexpected{size.error()};
    }
    return std::span{buffers_[current_]}.first(*size);
}

namespace {

/// The flag bits in the first byte of the header of a packet that is not connless, for one dialect.
struct HeaderBits {
    std::uint32_t compressed;
    std::uint32_t resend;
    std::uint32_t control;
    std::uint32_t token; ///< set if a token follows the header
};

constexpr HeaderBits kSixBits{.compressed = 0x80, .resend = 0x40, .control = 0x10, .token = 0x08};
constexpr HeaderBits kSevenBits{.compressed = 0x10, .resend = 0x08, .control = 0x04, .token = 0};
constexpr std::uint32_t kAckHighBits = 0x03; ///< the same in both dialects

/// Decodes the three bytes with which every header begins.
void read_header(std::span<const std::byte> datagram, const HeaderBits& bits, Packet& packet) {
    const std::uint32_t first = byte_at(datagram, 0);
    packet.kind = (first & bits.control) != 0 ? PacketKind::control : PacketKind::chunks;
    packet.compressed = (first & bits.compressed) != 0;
    packet.resend = (first & bits.resend) != 0;
    packet.ack = static_cast<std::uint16_t>((first & kAckHighBits) << 8U | byte_at(datagram, 1));
    packet.num_chunks = std::to_integer<std::uint8_t>(datagram[2]);
}

/// The version in the low two bits of a connless 0.7 packet's first byte. 0.6 does not use these
/// bits.
constexpr std::uint32_t kSevenConnlessVersion = 1;

bool is_seven_datagram(std::uint32_t first, std::span<const std::byte> datagram, Protocol known) {
    if ((first & kConnlessBit) != 0) {
        return (first & kAckHighBits) == kSevenConnlessVersion;
    }
    // All 0.7 control packets have this bit, and no 0.6 program sets it. So the bit means 0.7 even
    // during a 0.6 connection. A 0.6 handshake ends a 0.7 connection, for example if the client
    // switches servers.
    return (first & kSevenBits.control) != 0 ||
           (known == Protocol::seven && !is_six_handshake(datagram));
}

Result<Packet> decode_six_connless(std::span<const std::byte> datagram) {
    if (datagram.size() < kConnlessHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Packet packet;
    packet.kind = PacketKind::connless;
    packet.payload = datagram.subspan(kConnlessHeaderSize);
    if (byte_at(datagram, 0) == 'x' && byte_at(datagram, 1) == 'e') {
        packet.connless_extra = datagram.subspan(2, kConnlessHeaderSize - 2);
    }
    return packet;
}

/// Decompresses the payload of a packet if it is compressed. If that fails, or if a control packet
/// is empty, replaces the packet with the error.
void decompress_payload(Result<Packet>& packet, std::size_t header_size, std::size_t max_size,
                        PacketScratch& scratch) {
    if (packet->compressed) {
        const auto plain = scratch.decompress({packet->payload, max_size});
        if (!plain) {
            const WireError& error = plain.error();
            packet = tl::unexpected{WireError{error.code, header_size + error.offset}};
            return;
        }
        packet->payload = *plain;
    }
    if (packet->kind == PacketKind::control && packet->payload.empty()) {
        packet = tl::unexpected{WireError{WireErrc::control_empty, header_size}};
    }
}

/// Decodes a 0.6 packet that is not connless. Builds the result in place, because copying a Packet
/// would slow down decoding.
Result<Packet> decode_connected(std::span<const std::byte> datagram, PacketScratch& scratch,
                                HeaderTokenBit token_bit) {
    Result<Packet> packet{tl::in_place};
    read_header(datagram, kSixBits, *packet);
    std::size_t header_size = kHeaderSize;
    if ((byte_at(datagram, 0) & kSixBits.token) != 0 && token_bit == HeaderTokenBit::read) {
        if (datagram.size() < kHeaderSize + kTokenSize) {
            packet = tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
            return packet;
        }
        packet->header_token = token_at(datagram, kHeaderSize);
        header_size += kTokenSize;
    }
    packet->payload = datagram.subspan(header_size);
    decompress_payload(packet, header_size, kMaxPayloadSize, scratch);
    return packet;
}

} // namespace

Result<Packet> decode_packet(std::span<const std::byte> datagram, Protocol known,
                             PacketScratch& scratch, HeaderTokenBit token_bit) {
    if (datagram.size() < kHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    if (datagram.size() > kMaxDatagramSize) {
        return tl::unexpected{WireError{WireErrc::too_long, kMaxDatagramSize}};
    }
    const std::uint32_t first = byte_at(datagram, 0);
    if (is_seven_datagram(first, datagram, known)) {
        return decode_seven_packet(datagram, scratch);
    }
    if (is_connless(datagram)) {
        return decode_six_connless(datagram);
    }
    return decode_connected(datagram, scratch, token_bit);
}

CompressedPayload guess_compressed_payload(std::span<const std::byte> datagram) {
    if (datagram.size() < kHeaderSize + kTokenSize || datagram.size() > kMaxDatagramSize) {
        return {};
    }
    const std::uint32_t first = byte_at(datagram, 0);
    if ((first & (kConnlessBit | kSevenBits.control)) != 0) {
        return {};
    }
    if ((first & kSixBits.compressed) != 0) {
        const std::size_t token = (first & kSixBits.token) != 0 ? kTokenSize : 0;
        return {datagram.subspan(kHeaderSize + token), kMaxPayloadSize};
    }
    const auto seven = decode_seven_header(datagram);
    return seven && seven->compressed ? CompressedPayload{seven->payload, kSevenMaxPayloadSize}
                                      : CompressedPayload{};
}

std::optional<Packet> decode_control_with_seven_header(std::span<const std::byte> datagram) {
    auto packet = decode_seven_header(datagram);
    if (!packet || packet->kind != PacketKind::control || packet->payload.empty() ||
        datagram.size() > kMaxDatagramSize) {
        return std::nullopt;
    }
    packet->dialect = Dialect::six;
    packet->header_token.reset();
    packet->seven_header = true;
    return packet;
}

VitalClass classify_sequence(std::uint16_t last, std::uint16_t sequence) {
    const unsigned ahead = sequence_distance(last, sequence);
    if (ahead == 1) {
        return VitalClass::next;
    }
    return ahead == 0 || ahead >= kSequenceModulus / 2 ? VitalClass::old : VitalClass::gap;
}

namespace {

/// In a 0.6 CONNECT, these bytes ask for a DDNet token. A server that supports tokens puts the same
/// bytes into its CONNECTACCEPT. In 0.7, DDNet's client writes them in place of a token when it
/// repeats its CONNECT.
constexpr Token kTokenMagic{'T', 'K', 'E', 'N'};

/// The number of bytes with which a 0.6.5 client pads its CONNECT, so that no answer is larger than
/// the request.
constexpr std::size_t kVanillaConnectPadding = 512;
/// The offset of the client's token in the padding of a 0.6.5 CONNECT, in bytes.
constexpr std::size_t kVanillaConnectTokenOffset = 4;

using Bytes = std::span<const std::byte>;

bool ends_with(Bytes data, const std::optional<Token>& token) {
    return token && data.size() >= kTokenSize && token_at(data.last(kTokenSize), 0) == *token;
}

std::string_view text_before_nul(Bytes data) {
    const std::string_view text = as_text(data);
    return text.substr(0, text.find('\0'));
}

void decode_handshake(Bytes data, const Packet& packet, Control& control) {
    if (data.size() >= kTokenMagic.size() && token_at(data, 0) == kTokenMagic) {
        control.has_token_magic = true;
        if (data.size() >= kTokenMagic.size() + kTokenSize) {
            control.token = token_at(data, kTokenMagic.size());
        }
        return;
    }
    if (control.kind == ControlKind::connect && data.size() >= kVanillaConnectPadding) {
        control.token = token_at(data, kVanillaConnectTokenOffset);
        control.vanilla_token = true;
    } else if (control.kind == ControlKind::connectaccept && packet.header_token &&
               data.size() >= kTokenSize) {
        control.token = token_at(data, 0);
        control.vanilla_token = true;
    }
}

/// Decodes a CLOSE: an optional text with NUL, then an optional token. If the data ends with the
/// bytes in `known`, they are the token. Otherwise four bytes after the NUL are the token. Four
/// bytes without a text are also the token, unless they are a text of three bytes and a NUL
/// (libtw2's rule).
void decode_close(Bytes data, const std::optional<Token>& known, Control& control) {
    if (ends_with(data, known)) {
        control.token = known;
        control.reason = text_before_nul(data.first(data.size() - kTokenSize));
        return;
    }
    if (data.size() == kTokenSize) {
        if (data[3] == std::byte{0} && is_utf8(data.first(3))) {
            control.reason = text_before_nul(data);
        } else {
            control.token = token_at(data, 0);
        }
        return;
    }
    control.reason = text_before_nul(data);
    if (data.size() == control.reason.size() + 1 + kTokenSize) {
        control.token = token_at(data.last(kTokenSize), 0);
    }
}

} // namespace

std::string_view control_name(ControlKind kind) {
    static constexpr std::array<std::string_view, 7> kNames{
        "keepalive", "connect", "connectaccept", "accept", "close", "", "token"};
    return kNames[static_cast<std::size_t>(kind)];
}

Control decode_control(const Packet& packet, std::optional<Token> known_token) {
    if (packet.dialect == Dialect::seven) {
        return decode_seven_control(packet);
    }
    Control control;
    if (packet.payload.empty()) {
        return control;
    }
    control.raw_kind = std::to_integer<std::uint8_t>(packet.payload[0]);
    if (control.raw_kind < static_cast<std::uint8_t>(ControlKind::unknown)) {
        control.kind = static_cast<ControlKind>(control.raw_kind);
    }
    const Bytes data = packet.payload.subspan(1);
    switch (control.kind) {
    case ControlKind::keepalive:
    case ControlKind::accept:
        if (data.size() == kTokenSize) {
            control.token = token_at(data, 0);
        }
        break;
    case ControlKind::connect:
    case ControlKind::connectaccept:
        decode_handshake(data, packet, control);
        break;
    case ControlKind::close:
        if (packet.header_token) {
            control.reason = text_before_nul(data); // in 0.6.5, no token follows
        } else {
            decode_close(data, known_token, control);
        }
        break;
    case ControlKind::unknown:
    case ControlKind::token:
        break;
    }
    return control;
}

namespace {

/// The kinds of control packets by their numbers in 0.7.
constexpr std::array kSevenKinds{ControlKind::keepalive, ControlKind::connect, ControlKind::accept,
                                 ControlKind::unknown,   ControlKind::close,   ControlKind::token};

Result<Packet> decode_seven_connless(std::span<const std::byte> datagram) {
    const std::size_t header = connless_header_size(Dialect::seven);
    if (datagram.size() < header) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Packet packet;
    packet.kind = PacketKind::connless;
    packet.dialect = Dialect::seven;
    packet.header_token = token_at(datagram, 1);
    packet.payload = datagram.subspan(header);
    return packet;
}

void read_seven_header(std::span<const std::byte> datagram, Packet& packet) {
    read_header(datagram, kSevenBits, packet);
    packet.dialect = Dialect::seven;
    packet.header_token = token_at(datagram, kHeaderSize);
    packet.payload = datagram.subspan(kSevenHeaderSize);
}

} // namespace

std::optional<Packet> decode_seven_header(std::span<const std::byte> datagram) {
    if (datagram.size() < kSevenHeaderSize || is_connless(datagram)) {
        return std::nullopt;
    }
    std::optional<Packet> packet{std::in_place};
    read_seven_header(datagram, *packet);
    return packet;
}

Result<Packet> decode_seven_packet(std::span<const std::byte> datagram, PacketScratch& scratch) {
    if (is_connless(datagram)) {
        return decode_seven_connless(datagram);
    }
    if (datagram.size() < kSevenHeaderSize) {
        return tl::unexpected{WireError{WireErrc::too_short, datagram.size()}};
    }
    Result<Packet> packet{tl::in_place};
    read_seven_header(datagram, *packet);
    decompress_payload(packet, kSevenHeaderSize, kSevenMaxPayloadSize, scratch);
    return packet;
}

Control decode_seven_control(const Packet& packet) {
    Control control;
    if (packet.payload.empty()) {
        return control;
    }
    control.raw_kind = std::to_integer<std::uint8_t>(packet.payload[0]);
    control.kind = control.raw_kind < kSevenKinds.size() ? kSevenKinds[control.raw_kind]
                                                         : ControlKind::unknown;
    const auto data = packet.payload.subspan(1);
    const bool announces =
        control.kind == ControlKind::connect || control.kind == ControlKind::token;
    if (announces && data.size() >= kTokenSize) {
        control.has_token_magic = token_at(data, 0) == kTokenMagic;
        if (!control.has_token_magic) {
            control.token = token_at(data, 0);
        }
    } else if (control.kind == ControlKind::accept && data.size() == kTokenSize) {
        control.token = token_at(data, 0);
    } else if (control.kind == ControlKind::close) {
        control.reason = text_before_nul(data);
    }
    return control;
}

bool may_be_seven_chunks(std::span<const std::byte> datagram, PacketScratch& scratch) {
    if (datagram.empty() || (byte_at(datagram, 0) & (kSixBits.compressed | kSixBits.resend)) != 0) {
        return false;
    }
    const auto packet = decode_seven_packet(datagram, scratch);
    if (!packet || packet->kind != PacketKind::chunks || packet->num_chunks == 0) {
        return false;
    }
    ChunkReader reader{packet->payload, packet->num_chunks, Dialect::seven};
    while (reader.next()) {
    }
    return !reader.error() && reader.rest().empty();
}

bool is_six_handshake(std::span<const std::byte> datagram) {
    constexpr std::size_t kKind = kHeaderSize;
    if (datagram.size() <= kKind || (byte_at(datagram, 0) & ~kAckHighBits) != kSixBits.control ||
        byte_at(datagram, 2) != 0) {
        return false;
    }
    const std::uint32_t kind = byte_at(datagram, kKind);
    const bool magic = datagram.size() >= kKind + 1 + 2 * kTokenSize &&
                       token_at(datagram, kKind + 1) == kTokenMagic;
    switch (static_cast<ControlKind>(kind)) {
    case ControlKind::connect:
        return magic || datagram.size() == kKind + 1 ||
               datagram.size() == kKind + 1 + kVanillaConnectPadding;
    case ControlKind::connectaccept:
        return magic || datagram.size() == kKind + 1;
    case ControlKind::accept:
        return datagram.size() == kKind + 1 + kTokenSize;
    default:
        return false;
    }
}

namespace {

using Buffer = std::vector<std::byte>;

void append_u8(Buffer& out, std::uint32_t value) {
    out.push_back(static_cast<std::byte>(value));
}

void append_token(Buffer& out, const Token& token) {
    const auto bytes = std::as_bytes(std::span{token});
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_text(Buffer& out, std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text});
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_header(Buffer& out, std::uint32_t flags, std::uint16_t ack, std::uint8_t num_chunks) {
    assert(ack < kSequenceModulus);
    append_u8(out, flags | std::uint32_t{ack} >> 8U);
    append_u8(out, ack & 0xFFU);
    append_u8(out, num_chunks);
}

} // namespace

Buffer encode_packet(const PacketSpec& spec) {
    assert(spec.dialect == Dialect::six || spec.header_token);
    const HeaderBits& bits = spec.dialect == Dialect::six ? kSixBits : kSevenBits;
    Buffer payload(spec.chunks.begin(), spec.chunks.end());
    if (spec.token) {
        append_token(payload, *spec.token);
    }
    std::uint32_t flags = (spec.resend ? bits.resend : 0U) | (spec.header_token ? bits.token : 0U);
    if (spec.compression != Compression::never) {
        Buffer compressed = huffman_compress(payload, spec.ending);
        if (spec.compression == Compression::always || compressed.size() < payload.size()) {
            payload.swap(compressed);
            flags |= bits.compressed;
        }
    }
    Buffer out;
    append_header(out, flags, spec.ack, spec.num_chunks);
    if (spec.header_token) {
        append_token(out, *spec.header_token);
    }
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

Buffer encode_control(const ControlSpec& spec) {
    Buffer out;
    if (spec.seven_token) {
        append_header(out, kSevenBits.control, spec.ack, 0);
        append_token(out, *spec.seven_token);
        const auto* const kind = std::ranges::find(kSevenKinds, spec.kind);
        append_u8(out, static_cast<std::uint32_t>(kind - kSevenKinds.begin()));
    } else {
        append_header(out, kSixBits.control, spec.ack, 0);
        append_u8(out, static_cast<std::uint32_t>(spec.kind));
    }
    if (spec.reason) {
        append_text(out, *spec.reason);
        append_u8(out, 0);
    }
    if (spec.token) {
        if (!spec.seven_token &&
            (spec.kind == ControlKind::connect || spec.kind == ControlKind::connectaccept)) {
            append_text(out, "TKEN");
        }
        append_token(out, *spec.token);
    }
    return out;
}

void append_chunk(Buffer& out, bool vital, std::uint16_t sequence, bool resend,
                  std::span<const std::byte> payload, Dialect dialect) {
    const unsigned low_bits = size_bits_in_second_byte(dialect);
    assert(payload.size() >> low_bits < 64 && sequence < kSequenceModulus);
    const std::uint32_t low_mask = (1U << low_bits) - 1;
    const auto size = static_cast<std::uint32_t>(payload.size());
    append_u8(out, (resend ? 0x80U : 0U) | (vital ? 0x40U : 0U) | size >> low_bits);
    const std::uint32_t sequence_high =
        vital ? std::uint32_t{sequence} >> 2U & 0xFFU & ~low_mask : 0U;
    append_u8(out, sequence_high | (size & low_mask));
    if (vital) {
        append_u8(out, sequence & 0xFFU);
    }
    out.insert(out.end(), payload.begin(), payload.end());
}

Buffer encode_connless(std::span<const std::byte> payload, std::optional<Token> extra) {
    Buffer out;
    if (extra) {
        append_text(out, "xe");
        append_token(out, *extra);
    } else {
        out.assign(kConnlessHeaderSize, std::byte{0xFF});
    }
    out.insert(out.end(), payload.begin(), payload.end());
    return out;
}

} // namespace tw::wire
