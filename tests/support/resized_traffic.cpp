#include "tests/support/resized_traffic.h"

#include "proxy/wire/packet.h"
#include "snapshot/delta.h"
#include "tests/support/damage.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <utility>

namespace tw::test {

using snapshot::ItemKey;
using snapshot::Tick;

namespace {

/// Returns a hash of some numbers, the same on every machine.
std::uint32_t mix_hash(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    std::uint32_t value = 0x9E3779B9U; // the golden ratio, as in boost::hash_combine
    for (const std::uint32_t each : {a, b, c, d}) {
        value ^= each + 0x9E3779B9U + (value << 6U) + (value >> 2U);
        value *= 0x85EBCA6BU; // MurmurHash3's finalizer
        value ^= value >> 13U;
    }
    return value;
}

std::int32_t added_int(AddedInts kind, ItemKey key, std::size_t index, Tick tick) {
    const auto place = static_cast<std::uint32_t>(index);
    switch (kind) {
    case AddedInts::zero:
        return 0;
    case AddedInts::small:
        return static_cast<std::int32_t>(1 + index - snapshot::kAgreedSizes[key.type]);
    case AddedInts::item_id:
        return key.id;
    case AddedInts::arbitrary:
        return static_cast<std::int32_t>(mix_hash(key.type, key.id, place, 0));
    case AddedInts::tick:
        return tick;
    case AddedInts::flickering:
        return static_cast<std::int32_t>(
            mix_hash(key.type, key.id, place, static_cast<std::uint32_t>(tick)));
    }
    return 0;
}

} // namespace

std::vector<std::int32_t> resize_item(ItemKey key, std::vector<std::int32_t> data, Tick tick,
                                      const ModSizes& mod) {
    if (mod.differs(key.type)) {
        while (data.size() < mod.sizes[key.type]) {
            data.push_back(added_int(mod.added[key.type], key, data.size(), tick));
        }
        data.resize(mod.sizes[key.type]);
    }
    return data;
}

Bytes ordered_delta(const Items& from, const Items& to, const std::vector<ItemKey>& order,
                    const snapshot::AgreedSizes& sizes) {
    std::vector<std::int32_t> deleted;
    for (const auto& [key, unused] : from) {
        if (!to.contains(key)) {
            deleted.push_back(static_cast<std::int32_t>(key.packed()));
        }
    }
    std::map<ItemKey, std::vector<std::int32_t>> updates;
    for (const auto& [key, data] : to) {
        std::vector<std::int32_t> ints = data;
        if (const auto base = from.find(key); base != from.end()) {
            for (std::size_t i = 0; i < ints.size(); ++i) {
                ints[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(ints[i]) -
                                                    static_cast<std::uint32_t>(base->second[i]));
            }
            if (std::ranges::all_of(ints, [](std::int32_t value) { return value == 0; })) {
                continue;
            }
        }
        updates[key] = std::move(ints);
    }
    std::vector<std::int32_t> body{static_cast<std::int32_t>(deleted.size()),
                                   static_cast<std::int32_t>(updates.size()), 0};
    body.insert(body.end(), deleted.begin(), deleted.end());
    const auto append = [&](ItemKey key, const std::vector<std::int32_t>& ints) {
        body.insert(body.end(), {key.type, key.id});
        if (snapshot::agreed_size(key.type, sizes) == 0) {
            body.push_back(static_cast<std::int32_t>(ints.size()));
        }
        body.insert(body.end(), ints.begin(), ints.end());
    };
    for (const ItemKey key : order) {
        if (const auto update = updates.find(key); update != updates.end()) {
            append(key, update->second);
            updates.erase(update);
        }
    }
    for (const auto& [key, ints] : updates) {
        append(key, ints);
    }
    return body_of(body);
}

/// Reads a capture and collects its datagrams and snapshots.
class ResizedTraffic::CaptureReader final : public TypedRecordSink<CaptureReader>,
                                            public inspect::Observer {
  public:
    explicit CaptureReader(ResizedTraffic& traffic) : traffic_{&traffic} {}

    void begin(const TrafficDatagram& datagram) {
        traffic_->sent_.push_back({.datagram = datagram, .first = traffic_->snapshots_.size()});
        chunks_.clear();
        num_chunks_ = 0;
        num_snapshots_ = 0;
    }

    void on(const record::SnapshotRecord& each) {
        if (each.rebuilt && each.types->dialect() == snapshot::Dialect::six) {
            CapturedSnapshot& told = traffic_->snapshots_.emplace_back();
            told.session = each.head.session;
            told.tick = each.tick;
            told.base = each.delta_tick;
            told.items = to_snapshot(to_items(each.items));
        }
    }

    void on_packet(const wire::Packet& packet) override {
        packet_ = packet;
        counted_ = false;
    }

    void on_accepted_payload(const inspect::AcceptedPayload& chunks) override {
        counted_ = packet_.dialect == wire::Dialect::six && !chunks.is_last_chunk_truncated;
        token_ = std::nullopt;
        if (chunks.ends_with_token) {
            token_.emplace();
            const auto bytes = packet_.payload.last(wire::kTokenSize);
            std::ranges::transform(bytes, token_->begin(), [](std::byte byte) {
                return std::to_integer<std::uint8_t>(byte);
            });
        }
    }

    void on_chunk(const wire::Chunk& chunk, wire::VitalClass /*taken*/,
                  const wire::MessageHeader* head) override {
        if (head != nullptr && head->spec != nullptr && wire::is_snapshot(head->spec->id)) {
            ++num_snapshots_;
            return;
        }
        ++num_chunks_;
        wire::append_chunk(chunks_, chunk.vital, chunk.sequence, chunk.resend, chunk.payload,
                           wire::Dialect::six);
    }

    void on_delta(const inspect::ObservedDelta& delta) override {
        if (delta.outcome == inspect::DeltaOutcome::accepted &&
            delta.types->dialect() == snapshot::Dialect::six) {
            for (const snapshot::DeltaUpdate& update : delta.decoded_delta->updates) {
                traffic_->snapshots_.back().order.push_back(update.key);
            }
        }
    }

    void on_datagram_end() override {
        CapturedPacket& sent = traffic_->sent_.back();
        sent.count = traffic_->snapshots_.size() - sent.first;
        if (!counted_ || num_snapshots_ == 0) {
            return;
        }
        sent.rebuilt = true;
        sent.keep = num_chunks_ != 0;
        sent.ack = packet_.ack;
        sent.token = token_;
        sent.header_token = packet_.header_token;
        if (sent.keep) {
            sent.datagram.bytes =
                wire::encode_packet({.ack = packet_.ack,
                                     .resend = packet_.resend,
                                     .num_chunks = num_chunks_,
                                     .chunks = chunks_,
                                     .token = token_,
                                     .header_token = packet_.header_token,
                                     .compression = wire::Compression::if_shorter});
        }
    }

  private:
    ResizedTraffic* traffic_;
    wire::Packet packet_;
    bool counted_ = false; ///< the current packet is of 0.6 and its chunks are accepted
    std::optional<wire::Token> token_;
    Bytes chunks_; ///< chunks of the packet except snapshots
    std::uint8_t num_chunks_ = 0;
    std::size_t num_snapshots_ = 0;
};

ResizedTraffic::ResizedTraffic(const std::string& capture) {
    CaptureReader reading{*this};
    inspect::Observers observers;
    observers.add_observer(reading);
    TrafficInspector run{{.emits_message_records = false, .observers = &observers}, reading};
    for (const TrafficDatagram& datagram : read_traffic(capture)) {
        reading.begin(datagram);
        run.on_datagram(datagram);
    }
    run.finish();
}

std::vector<TrafficDatagram> ResizedTraffic::traffic_of(const ModSizes& mod,
                                                        ModClients clients) const {
    constexpr record::Timestamp kFullEvery = 1'000'000'000;
    std::vector<TrafficDatagram> traffic;
    std::map<std::pair<std::uint32_t, Tick>, Items> told;
    std::map<std::uint32_t, record::Timestamp> last_full;
    for (const CapturedPacket& sent : sent_) {
        if (sent.keep) {
            traffic.push_back(sent.datagram);
        }
        for (std::size_t i = sent.first; sent.rebuilt && i < sent.first + sent.count; ++i) {
            const CapturedSnapshot& each = snapshots_[i];
            Tick base = each.base;
            if (clients == ModClients::stock) {
                const auto [last, first] = last_full.try_emplace(each.session, sent.datagram.time);
                if (!first && sent.datagram.time - last->second < kFullEvery) {
                    continue;
                }
                last->second = sent.datagram.time;
                base = snapshot::kNoBase;
            }
            const auto from = told.find({each.session, base});
            if (base != snapshot::kNoBase && from == told.end()) {
                continue;
            }
            Items items;
            const snapshot::SnapshotView view = each.items.view();
            for (std::size_t item = 0; item < view.size(); ++item) {
                const auto [key, data] = view[item];
                items[key] = resize_item(key, {data.begin(), data.end()}, each.tick, mod);
            }
            const Bytes body = ordered_delta(base == snapshot::kNoBase ? Items{} : from->second,
                                             items, each.order, mod.sizes);
            const std::int32_t crc = checksum_of(items);
            const std::vector<Bytes> messages =
                body == body_of({0, 0, 0}) ? std::vector<Bytes>{snap_empty(each.tick, base)}
                                           : snap_messages(each.tick, base, crc, body);
            for (const Bytes& message : messages) {
                Bytes chunk;
                wire::append_chunk(chunk, false, 0, false, message, wire::Dialect::six);
                traffic.push_back(
                    {.session = sent.datagram.session,
                     .direction = sent.datagram.direction,
                     .time = sent.datagram.time,
                     .bytes = wire::encode_packet({.ack = sent.ack,
                                                   .num_chunks = 1,
                                                   .chunks = chunk,
                                                   .token = sent.token,
                                                   .header_token = sent.header_token,
                                                   .compression = wire::Compression::if_shorter})});
            }
            told[{each.session, each.tick}] = std::move(items);
            told.erase(told.lower_bound({each.session, 0}),
                       told.lower_bound({each.session, each.tick - snapshot::kHistoryTicks}));
        }
    }
    return traffic;
}

std::map<std::uint16_t, std::size_t> ResizedTraffic::types_seen(std::size_t times) const {
    std::map<std::pair<std::uint16_t, std::uint32_t>, std::size_t> seen;
    for (const CapturedSnapshot& told : snapshots_) {
        std::uint16_t last = 0;
        for (const std::uint32_t packed : told.items.view().keys()) {
            const std::uint16_t type = ItemKey::from_packed(packed).type;
            if (type != std::exchange(last, type)) {
                ++seen[{type, told.session}];
            }
        }
    }
    std::map<std::uint16_t, std::size_t> types;
    for (const auto& [where, count] : seen) {
        types[where.first] += count >= times ? 1U : 0U;
    }
    return types;
}

ModSizes random_mod(std::mt19937& random, const std::vector<std::uint16_t>& types,
                    std::size_t changed) {
    ModSizes mod;
    while (changed != 0) {
        const std::uint16_t type = types[random_below(random, types.size())];
        if (mod.differs(type)) {
            continue;
        }
        constexpr std::array kChanges{-1, 1, 2, 3};
        mod.sizes[type] = static_cast<std::uint8_t>(
            snapshot::kAgreedSizes[type] + kChanges[random_below(random, kChanges.size())]);
        mod.added[type] = static_cast<AddedInts>(random_below(random, kAddedInts));
        --changed;
    }
    return mod;
}

} // namespace tw::test
