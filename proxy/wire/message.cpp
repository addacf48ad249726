#include "proxy/wire/message.h"

#include "proxy/wire/field_decoder.h"
#include "proxy/wire/secrets.h"
#include "snapshot/varint.h"

#include <algorithm>

namespace tw::wire {
namespace {

constexpr std::int32_t kMaxMessageNumber = 65535;

tl::unexpected<WireError> invalid_id(std::size_t offset) {
    return tl::unexpected{WireError{.code = WireErrc::message_id_invalid, .offset = offset}};
}

} // namespace

Result<MessageHead> decode_message_head(std::span<const std::byte> payload) {
    std::int32_t first = 0;
    const std::size_t used = snapshot::decode_varint(payload.data(), payload.size(), first);
    // Message and system bit share one int: a negative one is a negative id.
    if (used == 0 || first < 0 || first >> 1 > kMaxMessageNumber) {
        return invalid_id(0);
    }
    MessageHead head;
    head.system = (first & 1) != 0;
    head.number = static_cast<std::uint16_t>(first >> 1);
    head.head_size = used;
    if (head.number != 0) {
        head.spec = find_message(head.system, head.number);
    } else {
        auto& uuid = head.uuid.emplace();
        if (payload.size() - used < uuid.size()) {
            return invalid_id(used);
        }
        std::transform(payload.begin() + static_cast<std::ptrdiff_t>(used),
                       payload.begin() + static_cast<std::ptrdiff_t>(used + uuid.size()),
                       uuid.begin(),
                       [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
        head.head_size = used + uuid.size();
        // One bot library sends game messages with the system bit: the UUID alone decides.
        head.spec = find_message(uuid);
    }
    head.body = payload.subspan(head.head_size);
    return head;
}

void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out) {
    FieldDecoder{body, {}, out}.run(spec.fields);
    mark_secrets(spec, out);
}

} // namespace tw::wire
