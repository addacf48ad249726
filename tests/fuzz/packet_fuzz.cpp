#include "proxy/wire/packet.h"
#include "tests/fuzz/demand.h"

#include <cstddef>
#include <cstdint>
#include <span>

/// The first byte says what is known about the session, the next four are its token, and the rest is a
/// datagram. All views must lie inside the datagram or the scratch buffer.
namespace {

using namespace tw::wire;
using tw::fuzz::demand;
using tw::fuzz::lies_in;

void check_control(const Packet& packet, const Token& token) {
    for (const std::optional<Token> known : {std::optional<Token>{}, std::optional{token}}) {
        const Control control = decode_control(packet, known);
        demand(control.raw_kind == std::to_integer<std::uint8_t>(packet.payload[0]));
        demand(lies_in(std::as_bytes(std::span{control.reason}), packet.payload));
        demand(control.reason.find('\0') == std::string_view::npos);
        demand(control.reason.empty() || control.kind == ControlKind::close);
        demand(!control.vanilla_token || control.token);
    }
}

void check_chunks(const Packet& packet) {
    ChunkReader reader{packet.payload, packet.num_chunks, packet.dialect};
    std::size_t end = 0;
    std::size_t count = 0;
    while (const auto chunk = reader.next()) {
        ++count;
        demand(lies_in(chunk->payload, packet.payload));
        demand(chunk->offset == end);
        demand(chunk->header_size == (chunk->vital ? 3 : 2));
        demand(chunk->sequence < kSequenceModulus);
        end += chunk->header_size + chunk->payload.size();
    }
    demand(reader.rest().size() == packet.payload.size() - end);
    demand(reader.error() ? reader.error()->offset == end : count == packet.num_chunks);
}

void check_packet(const Packet& packet, std::span<const std::byte> block) {
    demand(packet.ack < kSequenceModulus);
    demand(packet.payload.size() <= kMaxPayloadSize);
    demand(lies_in(packet.payload, block));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kPrefix = 1 + kTokenSize;
    if (size < kPrefix) {
        return 0;
    }
    const auto known = static_cast<Protocol>(data[0] % 3);
    const Token token{data[1], data[2], data[3], data[4]};
    const auto datagram = std::as_bytes(std::span{data + kPrefix, size - kPrefix});
    PacketScratch scratch;
    const auto packet = decode_packet(datagram, known, scratch);
    if (!packet) {
        demand(packet.error().code != WireErrc::none);
        demand(packet.error().offset <= datagram.size());
        return 0;
    }
    check_packet(*packet, packet->compressed ? std::as_bytes(std::span{&scratch, 1}) : datagram);
    demand(lies_in(packet->connless_extra, datagram));
    if (packet->kind == PacketKind::control) {
        check_control(*packet, token);
    } else if (packet->kind == PacketKind::chunks) {
        check_chunks(*packet);
    }
    return 0;
}
