#include "proxy/inspect/snapshots/attribution.h"

#include "proxy/wire/connless.h"
#include "proxy/wire/huffman.h"

#include <algorithm>

namespace tw::inspect {

using record::ByteGroup;
using record::BytePart;

namespace {

constexpr unsigned kBitsPerByte = 8;

/// Stores in `bit_counts` how many bits each byte takes on the network. Returns the sum of these
/// bits.
std::uint64_t count_bits_per_byte(std::span<const std::byte> bytes, bool compressed,
                                  std::uint8_t* bit_counts) {
    if (!compressed) {
        std::fill_n(bit_counts, bytes.size(), std::uint8_t{kBitsPerByte});
        return bytes.size() * kBitsPerByte;
    }
    const auto& lengths = wire::huffman_code_lengths();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bit_counts[i] = lengths[std::to_integer<std::size_t>(bytes[i])];
        sum += bit_counts[i];
    }
    return sum;
}

void set_message_name(const wire::MessageHeader* head, std::string& out) {
    if (head == nullptr) {
        out = "invalid id";
    } else if (head->spec != nullptr) {
        out = head->spec->name;
    } else if (head->uuid) {
        const auto text = snapshot::format_uuid(*head->uuid);
        out.assign(text.data(), text.size());
    } else {
        out = (head->system ? "system " : "game ") + std::to_string(head->number);
    }
}

/// Returns the name of an item type. `buffer`: memory for a name that must be composed.
std::string_view type_name(const record::ItemTypes& types, std::uint16_t type,
                           std::string& buffer) {
    if (const snapshot::ObjectSpec* object = types.object(type); object != nullptr) {
        return object->name;
    }
    if (type == snapshot::kDescriptorType) {
        return "type descriptor";
    }
    if (const record::ItemTypes::TypeInfo* entry = types.find(type); entry != nullptr) {
        const auto text = snapshot::format_uuid(entry->uuid);
        buffer.assign(text.data(), text.size());
    } else {
        buffer = "type " + std::to_string(type);
    }
    return buffer;
}

/// The name under which the bytes of a delta are counted while parts of the delta are missing.
constexpr std::string_view kIncompleteSnapshotName = "incomplete snapshot";

} // namespace

record::ByteCount PayloadBitCounter::count_next_bytes(std::size_t count) {
    record::ByteCount taken{.count = 1, .bytes = 0, .bits = 0};
    const auto part = bit_counts_.subspan(offset_, std::min(count, bytes_left()));
    for (const std::uint8_t bits : part) {
        taken.bits += bits;
    }
    taken.bytes = part.size();
    offset_ += part.size();
    return taken;
}

void ByteAttribution::on_datagram(const record::RecordHeader& head,
                                  std::span<const std::byte> datagram) {
    direction_ = head.direction.value_or(wire::Direction::c2s);
    datagram_size_ = datagram.size();
    header_size_ = 0;
    acceptance_stage_ = AcceptanceStage::malformed;
    payload_counter_ = PayloadBitCounter{{}};
    in_message_ = false;
}

void ByteAttribution::on_packet(const wire::Packet& packet) {
    acceptance_stage_ = AcceptanceStage::rejected;
    const auto book = [this](std::string_view name, std::size_t bytes) {
        add_bytes_at({.container = AttributedBytes::Container::datagram,
                      .offset = header_size_,
                      .name = name,
                      .count = {1, bytes, bytes * kBitsPerByte}});
        header_size_ += bytes;
    };
    if (packet.kind == wire::PacketKind::connless) {
        book("connless header", wire::connless_header_size(packet.dialect));
        count_payload_bits(packet);
        const wire::ConnlessSpec* spec = wire::find_connless(packet.payload, packet.dialect);
        add_bytes(ByteGroup::connless, BytePart::whole, spec == nullptr ? "unknown" : spec->name,
                  payload_counter_.count_next_bytes(payload_counter_.bytes_left()));
        return;
    }
    book("header", wire::kHeaderSize);
    if (packet.header_token || packet.seven_header) {
        book("header token", wire::kTokenSize);
    }
    count_payload_bits(packet);
}

void ByteAttribution::count_payload_bits(const wire::Packet& packet) {
    const auto bit_counts = std::span{bit_counts_}.first(packet.payload.size());
    payload_counter_ = PayloadBitCounter{bit_counts};
    const std::uint64_t sum =
        count_bits_per_byte(packet.payload, packet.compressed, bit_counts.data());
    if (packet.compressed) {
        // These bits belong to no byte of the payload: the end symbol, the unused bits of the last
        // byte, and the zero byte that old senders append.
        add_bytes_at({.container = AttributedBytes::Container::datagram,
                      .offset = datagram_size_,
                      .name = "compression end",
                      .count = {1, 0, (datagram_size_ - header_size_) * kBitsPerByte - sum}});
    }
}

void ByteAttribution::on_control(const wire::Control& control) {
    using Kind = wire::ControlKind;
    const bool handshake = control.kind == Kind::connect || control.kind == Kind::connectaccept;
    const std::size_t token =
        control.token && !handshake ? std::min(wire::kTokenSize, payload_counter_.bytes_left()) : 0;
    const std::string_view name = wire::control_name(control.kind);
    add_bytes(ByteGroup::control, BytePart::whole, name.empty() ? "unknown" : name,
              payload_counter_.count_next_bytes(payload_counter_.bytes_left() - token));
    add_bytes(ByteGroup::packet, BytePart::whole, "token",
              payload_counter_.count_next_bytes(token));
}

void ByteAttribution::on_accepted_payload(const AcceptedPayload& chunks) {
    acceptance_stage_ = AcceptanceStage::accepted;
    accepted_payload_ = chunks;
}

void ByteAttribution::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                               const wire::MessageHeader* head) {
    count_bytes_after_fields();
    set_message_name(head, message_name_);
    if (taken != wire::VitalClass::next) {
        add_bytes(taken == wire::VitalClass::old ? ByteGroup::duplicate : ByteGroup::behind_gap,
                  BytePart::whole, message_name_,
                  payload_counter_.count_next_bytes(chunk.header_size + chunk.payload.size()));
        return;
    }
    add_bytes(ByteGroup::chunk, BytePart::whole, chunk.vital ? "vital header" : "header",
              payload_counter_.count_next_bytes(chunk.header_size));
    if (head == nullptr) {
        add_bytes(ByteGroup::message, BytePart::whole, message_name_,
                  payload_counter_.count_next_bytes(chunk.payload.size()));
        return;
    }
    message_end_ = payload_counter_.offset() + chunk.payload.size();
    in_message_ = true;
    add_bytes(ByteGroup::message, BytePart::head, message_name_,
              payload_counter_.count_next_bytes(head->header_size));
}

void ByteAttribution::on_message_fields(std::size_t bytes) {
    add_bytes(ByteGroup::message, BytePart::fields, message_name_,
              payload_counter_.count_next_bytes(bytes));
}

void ByteAttribution::on_snap_message(const ObservedSnapMessage& part) {
    on_message_fields(part.body.data_offset);
    const record::ByteCount data = payload_counter_.count_next_bytes(part.body.data.size());
    // on_delta() counts the bytes of a complete delta's last part.
    if (part.outcome != SnapMessageOutcome::complete && part.outcome != SnapMessageOutcome::empty) {
        constexpr std::array<std::string_view, 7> kNames{"",
                                                         kIncompleteSnapshotName,
                                                         "",
                                                         "repeated snapshot",
                                                         "snapshot part out of range",
                                                         "snapshot of a stray tick",
                                                         "snapshot of the map before"};
        add_bytes(ByteGroup::unused, BytePart::whole,
                  kNames[static_cast<std::size_t>(part.outcome)], data);
    }
}

void ByteAttribution::on_delta(const ObservedDelta& delta) {
    uncount_incomplete_parts(delta);
    PayloadBitCounter bits{delta_bit_counts_};
    if (delta.outcome == DeltaOutcome::accepted) {
        count_items(delta, bits);
    } else {
        constexpr std::array<std::string_view, 5> kNames{
            "", "repeated snapshot", "snapshot on an unknown base", "undecodable snapshot",
            "snapshot with another checksum"};
        add_delta_bytes(ByteGroup::unused, BytePart::whole,
                        kNames[static_cast<std::size_t>(delta.outcome)], bits.bytes_left(), bits);
    }
}

void ByteAttribution::add_delta_bytes(ByteGroup group, BytePart part, std::string_view name,
                                      std::size_t size, PayloadBitCounter& bits) {
    const std::size_t offset = bits.offset();
    add_bytes_at({.container = AttributedBytes::Container::delta,
                  .offset = offset,
                  .group = group,
                  .part = part,
                  .name = name,
                  .count = bits.count_next_bytes(size)});
}

/// Computes the bits of each byte of a complete delta, and stops counting its earlier parts as
/// "incomplete".
void ByteAttribution::uncount_incomplete_parts(const ObservedDelta& delta) {
    const auto body = delta.delta.body;
    delta_bit_counts_.resize(body.size());
    for (std::size_t at = 0; at < body.size(); at += snapshot::kMaxPartSize) {
        const auto part =
            body.subspan(at, std::min<std::size_t>(snapshot::kMaxPartSize, body.size() - at));
        count_bits_per_byte(part, delta.delta.marked[at / snapshot::kMaxPartSize],
                            delta_bit_counts_.data() + at);
    }
    PayloadBitCounter bits{delta_bit_counts_};
    for (std::int32_t part = 0; part < delta.delta.num_parts; ++part) {
        const record::ByteCount bytes = bits.count_next_bytes(snapshot::kMaxPartSize);
        if (part != delta.last_part) {
            ledger_->subtract_bytes(direction_, ByteGroup::unused, BytePart::whole,
                                    kIncompleteSnapshotName, bytes);
        }
    }
}

void ByteAttribution::count_items(const ObservedDelta& delta, PayloadBitCounter bits) {
    snapshot::IntOffsets offsets{delta.delta.body};
    const auto book_until = [&](std::size_t end_int, ByteGroup group, BytePart part,
                                std::string_view name) {
        add_delta_bytes(group, part, name, offsets.byte_offset(end_int) - bits.offset(), bits);
    };
    std::string buffer;
    std::size_t at = snapshot::kDeltaHeaderInts;
    book_until(at, ByteGroup::delta, BytePart::whole, "counts");
    for (const std::int32_t packed : delta.decoded_delta->deleted) {
        const auto key = snapshot::ItemKey::from_packed(static_cast<std::uint32_t>(packed));
        book_until(++at, ByteGroup::deletion, BytePart::whole,
                   type_name(*delta.types, key.type, buffer));
    }
    for (const snapshot::DeltaUpdate& update : delta.decoded_delta->updates) {
        const std::string_view name = type_name(*delta.types, update.key.type, buffer);
        book_until(update.begin, ByteGroup::item, BytePart::head, name);
        book_until(std::size_t{update.begin} + update.size, ByteGroup::item, BytePart::fields,
                   name);
    }
    add_delta_bytes(ByteGroup::delta, BytePart::whole, "surplus", bits.bytes_left(), bits);
}

void ByteAttribution::count_bytes_after_fields() {
    if (in_message_) {
        add_bytes(ByteGroup::message, BytePart::trailing, message_name_,
                  payload_counter_.count_next_bytes(message_end_ - payload_counter_.offset()));
        in_message_ = false;
    }
}

void ByteAttribution::on_datagram_end() {
    count_bytes_after_fields();
    switch (acceptance_stage_) {
    case AcceptanceStage::malformed:
        add_bytes_at({.container = AttributedBytes::Container::datagram,
                      .group = ByteGroup::unused,
                      .name = "malformed",
                      .count = {1, datagram_size_, datagram_size_ * kBitsPerByte}});
        return;
    case AcceptanceStage::rejected:
        add_bytes(ByteGroup::unused, BytePart::whole, "rejected",
                  payload_counter_.count_next_bytes(payload_counter_.bytes_left()));
        return;
    case AcceptanceStage::accepted:
        break;
    }
    const std::size_t token = accepted_payload_.ends_with_token
                                  ? std::min(wire::kTokenSize, payload_counter_.bytes_left())
                                  : 0;
    add_bytes(ByteGroup::chunk, BytePart::whole,
              accepted_payload_.is_last_chunk_truncated ? "damaged" : "trailing",
              payload_counter_.count_next_bytes(payload_counter_.bytes_left() - token));
    add_bytes(ByteGroup::packet, BytePart::whole, "token",
              payload_counter_.count_next_bytes(token));
}

} // namespace tw::inspect
