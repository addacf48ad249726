#include "proxy/inspect/attribution.h"

#include "proxy/inspect/delta_account.h"
#include "proxy/wire/connless.h"
#include "proxy/wire/huffman.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <limits>
#include <string>

namespace tw::inspect {

using wire::MessageId;

namespace {

constexpr unsigned kBitsPerByte = 8;

std::string_view control_name(wire::ControlKind kind) {
    static constexpr std::array<std::string_view, 6> kNames{"keepalive", "connect", "connectaccept",
                                                            "accept",    "close",   "unknown"};
    return kNames[static_cast<std::size_t>(kind)];
}

/// The name of a message; `room` holds it where it is made up.
std::string_view message_name(const wire::MessageHead& head, std::string& room) {
    if (head.spec != nullptr) {
        return head.spec->name;
    }
    if (head.uuid) {
        const auto text = snapshot::format_uuid(*head.uuid);
        room.assign(text.data(), text.size());
    } else {
        room = (head.system ? "system " : "game ") + std::to_string(head.number);
    }
    return room;
}

bool is_snapshot(const wire::MessageHead& head) {
    return head.spec != nullptr &&
           (head.spec->id == MessageId::snap || head.spec->id == MessageId::snap_single);
}

} // namespace

record::ByteCount PricedBytes::take(std::size_t count) {
    record::ByteCount taken{.count = 1, .bytes = 0, .bits = 0};
    for (const std::uint8_t bits : hand_over(count)) {
        ++taken.bytes;
        taken.bits += bits;
    }
    return taken;
}

std::span<const std::uint8_t> PricedBytes::hand_over(std::size_t count) {
    const auto taken = bits_.subspan(offset_, std::min(count, left()));
    offset_ += taken.size();
    return taken;
}

void Attribution::begin(wire::Direction direction, std::span<const std::byte> datagram) {
    direction_ = direction;
    datagram_size_ = datagram.size();
    stage_ = Stage::malformed;
    payload_ = PricedBytes{{}};
}

void Attribution::on_packet(const wire::Packet& packet) {
    stage_ = Stage::packet;
    const auto book = [this](std::string_view name, std::uint64_t bytes) {
        charge(record::ByteGroup::packet, record::BytePart::whole, name,
               {1, bytes, bytes * kBitsPerByte});
        datagram_size_ -= bytes;
    };
    if (packet.kind == wire::PacketKind::seven) {
        charge(record::ByteGroup::unused, record::BytePart::whole, "0.7",
               {1, datagram_size_, datagram_size_ * kBitsPerByte});
        datagram_size_ = 0;
        return;
    }
    if (packet.kind == wire::PacketKind::connless) {
        book("connless header", wire::kConnlessHeaderSize);
        price(packet);
        const wire::ConnlessSpec* spec = wire::find_connless(packet.payload);
        charge(record::ByteGroup::connless, record::BytePart::whole,
               spec == nullptr ? "unknown" : spec->name, payload_.take(payload_.left()));
        return;
    }
    book("header", wire::kHeaderSize);
    if (packet.header_token) {
        book("header token", wire::kTokenSize);
    }
    price(packet);
}

void Attribution::price(const wire::Packet& packet) {
    const auto prices = std::span{prices_}.first(packet.payload.size());
    payload_ = PricedBytes{prices};
    if (!packet.compressed) {
        std::fill(prices.begin(), prices.end(), std::uint8_t{kBitsPerByte});
        return;
    }
    std::uint64_t codes = 0;
    for (std::size_t i = 0; i < prices.size(); ++i) {
        prices[i] = wire::huffman_code_length(packet.payload[i]);
        codes += prices[i];
    }
    // No byte of the payload: the end symbol, what fills its last byte, and old writers' zero byte.
    charge(record::ByteGroup::packet, record::BytePart::whole, "compression end",
           {1, 0, datagram_size_ * kBitsPerByte - codes});
}

void Attribution::on_control(const wire::Control& control) {
    using Kind = wire::ControlKind;
    const bool handshake = control.kind == Kind::connect || control.kind == Kind::connectaccept;
    const std::size_t token =
        control.token && !handshake ? std::min(wire::kTokenSize, payload_.left()) : 0;
    charge(record::ByteGroup::control, record::BytePart::whole, control_name(control.kind),
           payload_.take(payload_.left() - token));
    charge(record::ByteGroup::packet, record::BytePart::whole, "token", payload_.take(token));
}

void Attribution::on_accepted(bool with_token, bool damaged) {
    stage_ = Stage::accepted;
    with_token_ = with_token;
    damaged_ = damaged;
}

void Attribution::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                           const record::TypeNames& types) {
    if (taken == wire::VitalClass::next) {
        charge(record::ByteGroup::chunk, record::BytePart::whole,
               chunk.vital ? "vital header" : "header", payload_.take(chunk.header_size));
        charge_message(chunk, types);
        return;
    }
    const auto head = wire::decode_message_head(chunk.payload);
    std::string room;
    charge(taken == wire::VitalClass::old ? record::ByteGroup::duplicate
                                          : record::ByteGroup::behind_gap,
           record::BytePart::whole, head ? message_name(*head, room) : "invalid id",
           payload_.take(chunk.header_size + chunk.payload.size()));
}

void Attribution::charge_message(const wire::Chunk& chunk, const record::TypeNames& types) {
    const auto head = wire::decode_message_head(chunk.payload);
    if (!head) {
        charge(record::ByteGroup::message, record::BytePart::whole, "invalid id",
               payload_.take(chunk.payload.size()));
        return;
    }
    std::string room;
    const std::string_view name = message_name(*head, room);
    const std::size_t end = payload_.offset() + chunk.payload.size();
    charge(record::ByteGroup::message, record::BytePart::head, name,
           payload_.take(head->head_size));
    if (direction_ == wire::Direction::s2c && is_snapshot(*head) && !chunk.vital) {
        charge_snapshot(*head, types);
    } else {
        std::size_t trailing = 0;
        if (head->spec != nullptr) {
            wire::decode_fields(*head->spec, head->body, fields_);
            trailing = fields_.error ? 0 : fields_.trailing.size();
        }
        charge(record::ByteGroup::message, record::BytePart::fields, name,
               payload_.take(head->body.size() - trailing));
    }
    charge(record::ByteGroup::message, record::BytePart::trailing, name,
           payload_.take(end - payload_.offset()));
}

void Attribution::charge_snapshot(const wire::MessageHead& head, const record::TypeNames& types) {
    snapshot::Cursor in{head.body};
    snapshot::Part part;
    part.tick = in.var_int();
    const std::int64_t base = std::int64_t{part.tick} - in.var_int();
    constexpr std::int64_t kLast = std::numeric_limits<snapshot::Tick>::max();
    part.delta_tick =
        base < 0 ? snapshot::kNoBase : static_cast<snapshot::Tick>(std::min(base, kLast));
    if (head.spec->id == MessageId::snap) {
        part.num_parts = in.var_int();
        part.part = in.var_int();
    }
    part.crc = in.var_int();
    const std::int32_t size = in.var_int();
    const std::size_t fields = in.offset();
    part.data = in.raw(size);
    charge(record::ByteGroup::message, record::BytePart::fields, head.spec->name,
           payload_.take(in.failed() ? head.body.size() : fields));
    if (!in.failed()) {
        charge_part(part, types);
    }
}

void Attribution::charge_part(const snapshot::Part& part, const record::TypeNames& types) {
    const auto unused = [&](std::string_view why) {
        charge(record::ByteGroup::unused, record::BytePart::whole, why,
               payload_.take(part.data.size()));
    };
    if (part.tick < 0) {
        unused("snapshot part out of range");
        return;
    }
    if (is_done(part.tick)) {
        unused("repeated snapshot");
        return;
    }
    const snapshot::PartStatus status = parts_.add(part);
    charge_lost(parts_.lost());
    switch (status) {
    case snapshot::PartStatus::out_of_range:
        unused("snapshot part out of range");
        return;
    case snapshot::PartStatus::duplicate:
    case snapshot::PartStatus::too_old:
        unused("repeated snapshot");
        return;
    case snapshot::PartStatus::incomplete:
    case snapshot::PartStatus::inconsistent:
    case snapshot::PartStatus::complete:
        break;
    }
    const auto body = parts_.assembled().body;
    if (status == snapshot::PartStatus::complete && part.num_parts == 1) {
        charge_delta(body, payload_.hand_over(part.data.size()), types);
    } else {
        OpenTick& open = open_tick(part.tick);
        const std::size_t begin = static_cast<std::size_t>(part.part) * snapshot::kMaxPartSize;
        open.bits.resize(std::max(open.bits.size(), begin + part.data.size()));
        const auto bits = payload_.hand_over(part.data.size());
        std::copy(bits.begin(), bits.end(), open.bits.begin() + static_cast<std::ptrdiff_t>(begin));
        open.total.add(PricedBytes{bits}.take(bits.size()));
        if (status != snapshot::PartStatus::complete) {
            return;
        }
        charge_delta(body, open.bits, types);
        std::erase_if(open_, [&](const OpenTick& each) { return each.tick == part.tick; });
    }
    done_[num_done_++ % kDoneTicks] = part.tick;
}

void Attribution::charge_lost(std::span<const snapshot::LostDelta> lost) {
    for (const snapshot::LostDelta& delta : lost) {
        std::erase_if(open_, [&](const OpenTick& each) {
            if (each.tick != delta.tick) {
                return false;
            }
            // Booked where snapshots come from, whichever side the current datagram is of.
            ledger_->charge(wire::Direction::s2c, record::ByteGroup::unused,
                            record::BytePart::whole, "incomplete snapshot", each.total);
            return true;
        });
    }
}

void Attribution::charge_delta(std::span<const std::byte> body, std::span<const std::uint8_t> bits,
                               const record::TypeNames& types) {
    DeltaAccount{body, PricedBytes{bits}, types, *ledger_}.run();
}

Attribution::OpenTick& Attribution::open_tick(snapshot::Tick tick) {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [tick](const OpenTick& open) { return open.tick == tick; });
    return found != open_.end() ? *found : open_.emplace_back(OpenTick{tick, {}, {}});
}

bool Attribution::is_done(snapshot::Tick tick) const {
    const auto end = done_.begin() + static_cast<std::ptrdiff_t>(std::min(num_done_, kDoneTicks));
    return std::find(done_.begin(), end, tick) != end;
}

void Attribution::end() {
    if (stage_ == Stage::malformed) {
        charge(record::ByteGroup::unused, record::BytePart::whole, "malformed",
               {1, datagram_size_, datagram_size_ * kBitsPerByte});
        return;
    }
    if (stage_ == Stage::packet) {
        charge(record::ByteGroup::unused, record::BytePart::whole, "rejected",
               payload_.take(payload_.left()));
        return;
    }
    const std::size_t token = with_token_ ? std::min(wire::kTokenSize, payload_.left()) : 0;
    charge(record::ByteGroup::chunk, record::BytePart::whole, damaged_ ? "damaged" : "trailing",
           payload_.take(payload_.left() - token));
    charge(record::ByteGroup::packet, record::BytePart::whole, "token", payload_.take(token));
}

void Attribution::restart() {
    charge_lost(parts_.reset());
    num_done_ = 0;
}

} // namespace tw::inspect
