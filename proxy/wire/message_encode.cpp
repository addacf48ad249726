#include "proxy/wire/message_encode.h"

#include "snapshot/varint.h"

#include <cstdint>

namespace tw::wire {

std::vector<std::byte> encode_message(const MessageSpec& spec, std::span<const FieldValue> values) {
    std::vector<std::byte> out;
    snapshot::encode_varint((spec.number << 1) | (spec.system ? 1 : 0), out);
    if (spec.number == 0) {
        const auto uuid = std::as_bytes(std::span{spec.uuid});
        out.insert(out.end(), uuid.begin(), uuid.end());
    }
    for (const FieldValue& value : values) {
        switch (value.kind) {
        case FieldValue::Kind::integer:
        case FieldValue::Kind::boolean:
            snapshot::encode_varint(static_cast<std::int32_t>(value.integer), out);
            break;
        case FieldValue::Kind::string:
            out.insert(out.end(), value.bytes.begin(), value.bytes.end());
            out.push_back(std::byte{0});
            break;
        case FieldValue::Kind::raw:
        case FieldValue::Kind::uuid:
            out.insert(out.end(), value.bytes.begin(), value.bytes.end());
            break;
        case FieldValue::Kind::array_begin:
        case FieldValue::Kind::object_begin:
        case FieldValue::Kind::end:
            break;
        }
    }
    return out;
}

} // namespace tw::wire
