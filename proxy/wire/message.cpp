#include "proxy/wire/message.h"

#include "proxy/wire/message_layouts.h"
#include "proxy/wire/secrets.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tw::wire {

namespace {

constexpr std::int32_t kMaxMessageNumber = 65535;

tl::unexpected<WireError> invalid_id(std::size_t offset) {
    return tl::unexpected{WireError{.code = WireErrc::message_id_invalid, .offset = offset}};
}

/// Decodes the header of a message that is identified by an id. Builds the result in place, because
/// copying a MessageHeader would slow down decoding.
Result<MessageHeader> decode_classic_id(std::span<const std::byte> payload, std::uint32_t first,
                                        std::size_t used, snapshot::Dialect dialect) {
    Result<MessageHeader> head{tl::in_place};
    head->system = (first & 1U) != 0;
    head->number = static_cast<std::uint16_t>(first >> 1U);
    head->dialect = dialect;
    head->spec = find_message(head->system, head->number, dialect);
    head->header_size = used;
    head->body = payload.subspan(used);
    return head;
}

Result<MessageHeader> decode_uuid(std::span<const std::byte> payload, std::uint32_t first,
                                  std::size_t used, snapshot::Dialect dialect) {
    snapshot::Uuid uuid{};
    if (payload.size() - used < uuid.size()) {
        return invalid_id(used);
    }
    std::memcpy(uuid.data(), payload.data() + used, uuid.size());
    Result<MessageHeader> head{tl::in_place};
    head->system = (first & 1U) != 0;
    head->uuid = uuid;
    head->dialect = dialect;
    // The system bit is ignored, because some bots also set it on game messages with a UUID.
    head->spec = find_message(uuid);
    head->header_size = used + uuid.size();
    head->body = payload.subspan(head->header_size);
    return head;
}

std::span<const MessageField> fields_of(const MessageSpec& spec, std::span<const std::byte> body) {
    const bool tunings =
        spec.id == MessageId::sv_tune_params && spec.dialect == snapshot::Dialect::seven;
    return tunings ? table::seven_tuning_fields(body) : spec.fields;
}

} // namespace

Result<MessageHeader> decode_message_header(std::span<const std::byte> payload,
                                            snapshot::Dialect dialect) {
    std::int32_t first = 0;
    const std::size_t used = snapshot::decode_varint(payload.data(), payload.size(), first);
    // The int contains the system bit in its lowest bit, and the id in the other bits.
    if (used == 0 || first < 0 || first >> 1 > kMaxMessageNumber) {
        return invalid_id(0);
    }
    const auto bits = static_cast<std::uint32_t>(first);
    return bits > 1 ? decode_classic_id(payload, bits, used, dialect)
                    : decode_uuid(payload, bits, used, dialect);
}

void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out) {
    decode_fields(spec, body, out, HarmlessCommands{});
}

void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const HarmlessCommands& shown) {
    FieldDecoder{body, {}, out, spec.dialect}.decode_all(fields_of(spec, body));
    mark_secrets(spec, out, shown);
}

Result<MessageHeader> decode_message_header(std::span<const std::byte> payload,
                                            snapshot::Dialect dialect, const MessageSet& messages) {
    Result<MessageHeader> head = decode_message_header(payload, dialect);
    if (head && !messages.custom().empty()) {
        const MessageSpec* const own =
            head->uuid ? messages.find_added(*head->uuid)
                       : messages.find_added(head->system, head->number, dialect);
        head->spec = own == nullptr ? head->spec : own;
    }
    return head;
}

namespace {

/// Returns true only if the bytes are exactly `count` valid ints. For speed, counts the bytes that
/// end an int instead of decoding. Returns false if an int could be longer than kMaxVarintBytes.
bool has_valid_varints(const std::byte* at, const std::byte* end, std::ptrdiff_t count) {
    constexpr std::byte kMore{0x80}; // another byte of the same int follows
    const std::ptrdiff_t size = end - at;
    if (size - count >= static_cast<std::ptrdiff_t>(snapshot::kMaxVarintBytes)) {
        return false;
    }
    const auto ends =
        std::count_if(at, end, [](std::byte byte) { return (byte & kMore) == std::byte{}; });
    return ends == count && (size == 0 || (end[-1] & kMore) == std::byte{});
}

} // namespace

bool is_certainly_valid(const MessageSpec& spec, std::span<const std::byte> body) {
    const std::byte* at = body.data();
    const std::byte* const end = at + body.size();
    std::int32_t value = 0; // the integer just before the current field, or 0
    const auto read_int = [&] {
        const std::size_t used =
            snapshot::decode_varint(at, static_cast<std::size_t>(end - at), value);
        at += used;
        return used != 0;
    };
    for (const MessageField& field : fields_of(spec, body)) {
        switch (field.type) {
        case FieldType::integer:
        case FieldType::boolean:
        case FieldType::tick:
            if (!read_int() || value < field.min || value > field.max) {
                return false;
            }
            break;
        case FieldType::string:
            at = std::find(at, end, std::byte{0});
            if (at == end) {
                return false;
            }
            ++at;
            value = 0;
            break;
        case FieldType::raw:
            if (value < 0 || value > end - at) {
                return false;
            }
            at += value;
            value = 0;
            break;
        case FieldType::object:
            // In a player_input, every value is in range. Other objects are rare, so they are not
            // examined.
            if (value < 0 || field.object != "player_input" ||
                !has_valid_varints(at, end, value / 4)) {
                return false;
            }
            at = end;
            value = 0;
            break;
        default:
            return false;
        }
    }
    return at == end;
}

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

namespace {

using snapshot::DecodeErrc;
using Kind = FieldValue::Kind;

constexpr std::size_t kUuidSize = 16;
constexpr std::size_t kSha256Size = 32;
constexpr std::size_t kAddressSize = 16; ///< bytes of an IPv6 address, or of a mapped IPv4 address

constexpr MessageField kIntElement{.type = FieldType::integer};

std::span<const std::byte> as_bytes(std::string_view text) {
    return std::as_bytes(std::span{text.data(), text.size()});
}

std::int64_t big_endian(std::span<const std::byte> bytes) {
    std::int64_t value = 0;
    for (const std::byte byte : bytes) {
        value = value * 256 + std::to_integer<std::int64_t>(byte);
    }
    return value;
}

const snapshot::ObjectSpec* find_object_by_name(std::string_view name, snapshot::Dialect dialect) {
    // A shortcut, because most client messages are inputs. player_input is type 1 in both dialects.
    if (name == "player_input") {
        return snapshot::find_object(1, dialect);
    }
    const auto table = snapshot::object_table();
    const auto found = std::find_if(table.begin(), table.end(), [&](const auto& object) {
        return object.name == name && object.dialect == dialect;
    });
    return found == table.end() ? nullptr : &*found;
}

} // namespace

void FieldDecoder::decode_all(std::span<const MessageField> fields) {
    out_.values.clear();
    out_.trailing = {};
    out_.error.reset();
    for (const auto& spec : fields) {
        if (spec.optional && in_.remaining() == 0) {
            add_missing_field(spec);
        } else {
            decode_field(spec);
        }
        if (in_.failed()) {
            out_.error = in_.error();
            return;
        }
    }
    out_.trailing = in_.rest();
}

void FieldDecoder::decode_field(const MessageField& spec) {
    const std::size_t offset = in_.offset();
    switch (spec.type) {
    case FieldType::integer:
    case FieldType::boolean:
    case FieldType::tick:
        return decode_integer(spec);
    case FieldType::string:
        return decode_string(spec);
    case FieldType::raw:
        return decode_raw(spec, Kind::raw, previous_integer());
    case FieldType::uuid:
        return decode_raw(spec, Kind::uuid, kUuidSize);
    case FieldType::sha256:
        return decode_raw(spec, Kind::raw, kSha256Size);
    case FieldType::object: {
        const std::int64_t bytes = previous_integer();
        if (bytes < 0) {
            return in_.fail(DecodeErrc::length_out_of_range);
        }
        return decode_object(spec, spec.name, bytes / 4);
    }
    case FieldType::objects:
        return decode_objects(spec);
    case FieldType::decimal_string:
        return decode_decimal(spec);
    case FieldType::u8:
        return put_integer(spec, in_.u8(), offset);
    case FieldType::u16_be:
        return put_integer(spec, big_endian(in_.raw(2)), offset);
    case FieldType::request_token: {
        const std::int64_t high = big_endian(extra_.first(std::min<std::size_t>(extra_.size(), 2)));
        return put_integer(spec, high * 256 + in_.u8(), offset);
    }
    case FieldType::raw_until_end:
        return decode_raw(spec, Kind::raw, static_cast<std::int64_t>(in_.remaining()));
    case FieldType::array:
        return decode_array(spec);
    case FieldType::server_addresses:
        return decode_addresses(spec);
    }
}

void FieldDecoder::add_missing_field(const MessageField& spec) {
    if (!spec.default_value) {
        return;
    }
    const auto kind = spec.type == FieldType::boolean ? Kind::boolean : Kind::integer;
    put_value(
        {.kind = kind, .name = spec.name, .integer = *spec.default_value, .names = spec.names},
        in_.offset());
}

void FieldDecoder::decode_integer(const MessageField& spec) {
    const std::size_t offset = in_.offset();
    put_integer(spec, in_.var_int(), offset);
}

void FieldDecoder::put_integer(const MessageField& spec, std::int64_t value, std::size_t offset) {
    if (in_.failed()) {
        return;
    }
    put_value({.kind = spec.type == FieldType::boolean ? Kind::boolean : Kind::integer,
               .secrecy = spec.secrecy,
               .name = spec.name,
               .integer = value,
               .names = spec.names,
               .out_of_range = value < spec.min || value > spec.max},
              offset);
}

void FieldDecoder::decode_string(const MessageField& spec) {
    const std::size_t offset = in_.offset();
    const std::string_view text = in_.string();
    if (in_.failed()) {
        return;
    }
    put_value(
        {.kind = Kind::string, .secrecy = spec.secrecy, .name = spec.name, .bytes = as_bytes(text)},
        offset);
}

void FieldDecoder::decode_raw(const MessageField& spec, Kind kind, std::int64_t size) {
    const std::size_t offset = in_.offset();
    const auto bytes = in_.raw(size);
    if (in_.failed()) {
        return;
    }
    put_value({.kind = kind, .secrecy = spec.secrecy, .name = spec.name, .bytes = bytes}, offset);
}

void FieldDecoder::decode_decimal(const MessageField& spec) {
    const std::size_t offset = in_.offset();
    const std::string_view text = in_.string();
    if (in_.failed()) {
        return;
    }
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    const bool malformed = parsed.ec != std::errc{} || parsed.ptr != end;
    if (malformed) {
        return put_value({.kind = Kind::string,
                          .secrecy = spec.secrecy,
                          .name = spec.name,
                          .bytes = as_bytes(text),
                          .out_of_range = true},
                         offset);
    }
    put_integer(spec, value, offset);
}

void FieldDecoder::decode_array(const MessageField& spec) {
    const bool until_end = spec.count == MessageField::kUntilEnd;
    const auto left = static_cast<std::int64_t>(in_.remaining());
    const std::int64_t count = until_end ? left : spec.count != 0 ? spec.count : previous_integer();
    if (count < 0 || count > left) {
        return in_.fail(DecodeErrc::length_out_of_range); // an element has at least one byte
    }
    begin_nested(Kind::array_begin, spec.name);
    MessageField element = spec;
    element.name = {};
    element.type = spec.element;
    for (std::int64_t i = 0; i < count && !in_.failed(); ++i) {
        if (until_end && in_.remaining() == 0) {
            break;
        }
        if (spec.members.empty()) {
            decode_field(element);
        } else {
            decode_struct(spec.members);
        }
    }
    end_nested();
}

void FieldDecoder::decode_struct(std::span<const MessageField> members) {
    begin_nested(Kind::object_begin, {});
    for (const MessageField& member : members) {
        decode_field(member);
    }
    end_nested();
}

void FieldDecoder::decode_object(const MessageField& spec, std::string_view name,
                                 std::int64_t ints) {
    begin_nested(Kind::object_begin, name);
    std::int64_t used = 0;
    if (const auto* known = find_object_by_name(spec.object, dialect_)) {
        for (const auto& field_spec : known->fields) {
            if (in_.failed() || used + field_spec.count > ints) {
                break;
            }
            decode_object_field(field_spec, field_spec.count);
            used += field_spec.count;
        }
    }
    if (used < ints && !in_.failed()) {
        begin_nested(Kind::array_begin, table::kSurplus.name);
        for (; used < ints && !in_.failed(); ++used) {
            decode_integer(kIntElement);
        }
        end_nested();
    }
    end_nested();
}

void FieldDecoder::decode_object_field(const snapshot::FieldSpec& spec, std::int64_t ints) {
    if (ints == 1) {
        const std::size_t offset = in_.offset();
        const std::int32_t value = in_.var_int();
        if (in_.failed()) {
            return;
        }
        const bool boolean = spec.kind == snapshot::FieldKind::boolean;
        return put_value({.kind = boolean ? Kind::boolean : Kind::integer,
                          .name = spec.name,
                          .integer = value,
                          .names = spec.names,
                          .out_of_range = boolean && value != 0 && value != 1},
                         offset);
    }
    begin_nested(Kind::array_begin, spec.name);
    for (std::int64_t i = 0; i < ints && !in_.failed(); ++i) {
        decode_integer(kIntElement);
    }
    end_nested();
}

void FieldDecoder::decode_objects(const MessageField& spec) {
    const std::int64_t count = previous_integer();
    const auto* known = find_object_by_name(spec.object, dialect_);
    const std::int64_t ints = known == nullptr ? 1 : std::max<std::int64_t>(known->size, 1);
    if (count < 0 || count * ints > static_cast<std::int64_t>(in_.remaining())) {
        return in_.fail(DecodeErrc::length_out_of_range);
    }
    begin_nested(Kind::array_begin, spec.name);
    for (std::int64_t i = 0; i < count && !in_.failed(); ++i) {
        decode_object(spec, {}, ints);
    }
    end_nested();
}

void FieldDecoder::decode_addresses(const MessageField& spec) {
    constexpr std::size_t kEntrySize = kAddressSize + 2;
    begin_nested(Kind::array_begin, spec.name);
    while (in_.remaining() >= kEntrySize) {
        begin_nested(Kind::object_begin, {});
        decode_raw(table::kAddress, Kind::raw, kAddressSize);
        decode_field(table::kPort);
        end_nested();
    }
    end_nested();
}

void FieldDecoder::begin_nested(Kind kind, std::string_view name) {
    put_value({.kind = kind, .name = name}, in_.offset());
}

void FieldDecoder::end_nested() {
    put_value({.kind = Kind::end}, in_.offset());
}

void FieldDecoder::put_value(FieldValue value, std::size_t offset) {
    value.offset = static_cast<std::uint16_t>(std::min<std::size_t>(offset, UINT16_MAX));
    out_.values.push_back(value);
}

std::int64_t FieldDecoder::previous_integer() const {
    return out_.values.empty() ? 0 : out_.values.back().integer;
}

const MessageSet& MessageSet::standard() {
    static const MessageSet set;
    return set;
}

const MessageSpec* MessageSet::find_added(bool system, std::uint16_t number,
                                          snapshot::Dialect dialect) const {
    const auto found = std::ranges::find_if(custom_, [&](const MessageSpec& spec) {
        return spec.number == number && spec.number != 0 && spec.system == system &&
               spec.dialect == dialect;
    });
    return found == custom_.end() ? nullptr : &*found;
}

// Ignores the system bit, because the UUID alone identifies a message.
const MessageSpec* MessageSet::find_added(const snapshot::Uuid& uuid) const {
    const auto found = std::ranges::find_if(
        custom_, [&](const MessageSpec& spec) { return spec.number == 0 && spec.uuid == uuid; });
    return found == custom_.end() ? nullptr : &*found;
}

bool MessageSet::add(const MessageSpec& message) {
    const bool numbered = message.number != 0;
    const MessageSpec* const own = numbered
                                       ? find_added(message.system, message.number, message.dialect)
                                       : find_added(message.uuid);
    const MessageSpec* const known =
        numbered ? find_message(message.system, message.number, message.dialect)
                 : find_message(message.uuid);
    const bool is_read =
        known != nullptr && (!numbered || known->system || known->id != MessageId::other);
    if (own != nullptr || is_read || custom_.size() == kMaxCustom) {
        return false;
    }
    custom_.push_back(message);
    return true;
}

} // namespace tw::wire
