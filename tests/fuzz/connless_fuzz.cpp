#include "proxy/wire/connless.h"
#include "proxy/wire/packet.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

/// Repeats a server's answer to another request. The result must be no longer than a datagram, and be
/// the answer to that request.
void check_repeated_answer(std::span<const std::byte> datagram) {
    using namespace tw::wire;
    std::array<std::byte, kMaxDatagramSize> out{};
    static_cast<void>(read_info_request(datagram));
    for (const auto kind : {InfoRequestKind::plain, InfoRequestKind::extended}) {
        const InfoRequest asked{.kind = kind, .token = 0};
        const InfoRequest other{.kind = kind, .token = 200};
        const auto part = classify_info_part(datagram, asked);
        const std::size_t size = part ? write_info_part(datagram, other, out) : 0;
        if (size > datagram.size() + 2 ||
            (size != 0 && classify_info_part(std::span{out}.first(size), other) != part)) {
            std::abort();
        }
    }
}

} // namespace

/// The input is a connless packet: four bytes of the extended header, then the payload. The number of
/// values must be bounded by the number of bytes, and brackets must be balanced.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using tw::wire::FieldValue;
    constexpr std::size_t kExtraSize = 4;
    const auto bytes = std::as_bytes(std::span{data, size});
    check_repeated_answer(bytes);
    tw::wire::Packet packet;
    packet.kind = tw::wire::PacketKind::connless;
    packet.connless_extra = bytes.first(std::min(size, kExtraSize));
    packet.payload = bytes.subspan(packet.connless_extra.size());
    const auto* const spec = tw::wire::find_connless(packet.payload, tw::wire::Dialect::six);
    if (spec == nullptr) {
        return 0;
    }
    tw::wire::DecodedFields fields;
    tw::wire::decode_connless(*spec, packet, fields);
    int depth = 0;
    for (const auto& value : fields.values) {
        depth += value.kind == FieldValue::Kind::array_begin ||
                         value.kind == FieldValue::Kind::object_begin
                     ? 1
                     : 0;
        depth -= value.kind == FieldValue::Kind::end ? 1 : 0;
        if (depth < 0) {
            std::abort();
        }
    }
    if (depth != 0 || fields.values.size() > 3 * size + 16) {
        std::abort();
    }
    return 0;
}
