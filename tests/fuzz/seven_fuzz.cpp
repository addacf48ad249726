#include "proxy/wire/bodies.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/message.h"
#include "proxy/wire/packet.h"
#include "snapshot/delta.h"
#include "tests/fuzz/demand.h"

#include <cstddef>
#include <cstdint>
#include <span>

/// The input is a datagram of 0.7: header, chunks, fields of messages, and deltas. Brackets must be
/// balanced, and every view must lie inside the data from which it was read.
namespace {

using namespace tw::wire;
using tw::fuzz::demand;
using tw::fuzz::lies_in;

void check_fields(const DecodedFields& fields, std::span<const std::byte> body) {
    int depth = 0;
    for (const FieldValue& value : fields.values) {
        const bool begins = value.kind == FieldValue::Kind::array_begin ||
                            value.kind == FieldValue::Kind::object_begin;
        depth += begins ? 1 : 0;
        depth -= value.kind == FieldValue::Kind::end ? 1 : 0;
        demand(depth >= 0);
        demand(value.bytes.empty() || lies_in(value.bytes, body));
    }
    demand(depth == 0);
    demand(fields.values.size() <= 3 * body.size() + 64);
    demand(!fields.error || fields.error->offset <= body.size());
}

void check_bodies(const MessageHeader& head) {
    if (is_snapshot(head.spec->id)) {
        tw::snapshot::Delta delta;
        if (const auto snapshot = decode_snapshot(head.spec->id, head.body)) {
            demand(snapshot->data.empty() || lies_in(snapshot->data, head.body));
            static_cast<void>(decode_delta(snapshot->data, delta, tw::snapshot::kSevenAgreedSizes));
        }
        return;
    }
    if (const auto change = decode_map_change(head.body, Dialect::seven)) {
        demand(change->sha256.empty() || lies_in(change->sha256, head.body));
    }
    static_cast<void>(decode_client_info(head.body));
    static_cast<void>(decode_client_drop(head.body));
    static_cast<void>(find_server_chat(head.body, Dialect::seven));
}

void check_message(std::span<const std::byte> payload) {
    const auto head = decode_message_header(payload, Dialect::seven);
    if (!head || head->spec == nullptr) {
        return;
    }
    DecodedFields fields;
    decode_fields(*head->spec, head->body, fields);
    check_fields(fields, head->body);
    check_bodies(*head);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto datagram = std::as_bytes(std::span{data, size});
    PacketScratch scratch;
    const auto packet = decode_seven_packet(datagram, scratch);
    demand(packet || packet.error().offset <= size);
    const bool fits = may_be_seven_chunks(datagram, scratch);
    if (!packet) {
        demand(!fits);
        return 0;
    }
    const auto again =
        decode_seven_packet(datagram, scratch); // the scratch buffer was used in between
    demand(again && again->dialect == Dialect::seven && again->header_token);
    const auto block = again->compressed ? std::as_bytes(std::span{&scratch, 1}) : datagram;
    demand(lies_in(again->payload, block));
    if (again->kind == PacketKind::connless) {
        if (const auto* const spec = find_connless(again->payload, Dialect::seven)) {
            DecodedFields fields;
            decode_connless(*spec, *again, fields);
            check_fields(fields, again->payload);
        }
        static_cast<void>(find_server_version(again->payload, Dialect::seven));
    } else if (again->kind == PacketKind::control) {
        const Control control = decode_control(*again, std::nullopt);
        demand(lies_in(std::as_bytes(std::span{control.reason}), block));
    } else {
        ChunkReader reader{again->payload, again->num_chunks, Dialect::seven};
        while (const auto chunk = reader.next()) {
            demand(lies_in(chunk->payload, again->payload));
            check_message(chunk->payload);
        }
        demand(!fits || (!reader.error() && reader.rest().empty()));
    }
    return 0;
}
