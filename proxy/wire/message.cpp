#include "proxy/wire/message.h"

#include "proxy/wire/field_decoder.h"
#include "proxy/wire/message_builders.h"
#include "proxy/wire/message_set.h"
#include "proxy/wire/secrets.h"
#include "snapshot/varint.h"

#include <cstring>

namespace tw::wire {
namespace {

constexpr std::int32_t kMaxMessageNumber = 65535;

tl::unexpected<WireError> invalid_id(std::size_t offset) {
    return tl::unexpected{WireError{.code = WireErrc::message_id_invalid, .offset = offset}};
}

/// The hot path: built in place, since a result is large enough for copies to show.
Result<MessageHead> classic_head(std::span<const std::byte> payload, std::uint32_t first,
                                 std::size_t used, snapshot::Dialect dialect) {
    Result<MessageHead> head{tl::in_place};
    head->system = (first & 1U) != 0;
    head->number = static_cast<std::uint16_t>(first >> 1U);
    head->dialect = dialect;
    head->spec = find_message(head->system, head->number, dialect);
    head->head_size = used;
    head->body = payload.subspan(used);
    return head;
}

Result<MessageHead> extended_head(std::span<const std::byte> payload, std::uint32_t first,
                                  std::size_t used, snapshot::Dialect dialect) {
    snapshot::Uuid uuid{};
    if (payload.size() - used < uuid.size()) {
        return invalid_id(used);
    }
    std::memcpy(uuid.data(), payload.data() + used, uuid.size());
    Result<MessageHead> head{tl::in_place};
    head->system = (first & 1U) != 0;
    head->uuid = uuid;
    head->dialect = dialect;
    // One bot library sends game messages with the system bit: the UUID alone decides.
    head->spec = find_message(uuid);
    head->head_size = used + uuid.size();
    head->body = payload.subspan(head->head_size);
    return head;
}

std::span<const MessageField> fields_of(const MessageSpec& spec, std::span<const std::byte> body) {
    const bool tunings =
        spec.id == MessageId::sv_tune_params && spec.dialect == snapshot::Dialect::seven;
    return tunings ? table::tunings_of_seven(body) : spec.fields;
}

} // namespace

Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                        snapshot::Dialect dialect) {
    std::int32_t first = 0;
    const std::size_t used = snapshot::decode_varint(payload.data(), payload.size(), first);
    // Message and system bit share one int: a negative one is a negative id.
    if (used == 0 || first < 0 || first >> 1 > kMaxMessageNumber) {
        return invalid_id(0);
    }
    const auto bits = static_cast<std::uint32_t>(first);
    return bits > 1 ? classic_head(payload, bits, used, dialect)
                    : extended_head(payload, bits, used, dialect);
}

void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out) {
    decode_fields(spec, body, out, ShownCommands{});
}

void decode_fields(const MessageSpec& spec, std::span<const std::byte> body, DecodedFields& out,
                   const ShownCommands& shown) {
    KeptFields kept{out};
    FieldDecoder{body, {}, kept, spec.dialect}.run(fields_of(spec, body));
    mark_secrets(spec, out, shown);
}

Result<MessageHead> decode_message_head(std::span<const std::byte> payload,
                                        snapshot::Dialect dialect, const MessageSet& messages) {
    Result<MessageHead> head = decode_message_head(payload, dialect);
    if (head && !messages.custom().empty()) {
        const MessageSpec* const own = head->uuid
                                           ? messages.find_own(*head->uuid)
                                           : messages.find_own(head->system, head->number, dialect);
        head->spec = own == nullptr ? head->spec : own;
    }
    return head;
}

bool is_flawless(const MessageSpec& spec, std::span<const std::byte> body) {
    FlawSearch search;
    FieldDecoder{body, {}, search, spec.dialect}.run(fields_of(spec, body));
    return !search.found();
}

} // namespace tw::wire
