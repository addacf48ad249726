#include "tests/support/snapshot_messages.h"

#include "snapshot/cursor.h"
#include "snapshot/delta.h"
#include "snapshot/objects.h"
#include "snapshot/parts.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tw::test {

namespace {

/// Returns the distance from a tick to its base; wraps for invalid values.
std::int32_t distance(snapshot::Tick tick, snapshot::Tick base) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(tick) -
                                     static_cast<std::uint32_t>(base));
}

} // namespace

MessageBuilder message(std::string_view name, snapshot::Dialect dialect) {
    const auto table = wire::message_table();
    const auto found = std::ranges::find_if(table, [&](const auto& spec) {
        return spec.name == name && (spec.number == 0 || spec.dialect == dialect);
    });
    if (found == table.end()) {
        throw std::invalid_argument{"no message is called " + std::string{name}};
    }
    return MessageBuilder{*found};
}

std::pair<snapshot::ItemKey, Ints> descriptor(std::uint16_t number, std::string_view object) {
    const auto table = snapshot::object_table();
    const auto found = std::ranges::find(table, object, &snapshot::ObjectSpec::name);
    Ints data;
    for (std::size_t i = 0; i < found->uuid.size(); i += 4) {
        std::uint32_t word = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            word = word << 8U | found->uuid[i + k];
        }
        data.push_back(static_cast<std::int32_t>(word));
    }
    return {{.type = 0, .id = number}, data};
}

snapshot::Snapshot to_snapshot(const Items& items) {
    snapshot::Snapshot result;
    for (const auto& [key, data] : items) {
        result.append(key, data);
    }
    return result;
}

Items to_items(const snapshot::SnapshotView& view) {
    Items items;
    for (std::size_t i = 0; i < view.size(); ++i) {
        items[view[i].key] = {view[i].data.begin(), view[i].data.end()};
    }
    return items;
}

std::int32_t checksum_of(const Items& items) {
    return to_snapshot(items).view().checksum();
}

Bytes delta_body(const Items& from, const Items& to, snapshot::Dialect dialect) {
    return snapshot::encode_delta(to_snapshot(from).view(), to_snapshot(to).view(),
                                  snapshot::agreed_sizes(dialect));
}

Bytes body_of(const std::vector<std::int32_t>& ints) {
    Bytes body;
    for (const std::int32_t value : ints) {
        snapshot::encode_varint(value, body);
    }
    return body;
}

Bytes snap_empty(snapshot::Tick tick, snapshot::Tick base) {
    return message("snap_empty").number(tick).number(distance(tick, base)).bytes();
}

Bytes snap_single(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                  std::span<const std::byte> body, snapshot::Dialect dialect) {
    return message("snap_single", dialect)
        .number(tick)
        .number(distance(tick, base))
        .number(crc)
        .number(static_cast<std::int32_t>(body.size()))
        .raw(body)
        .bytes();
}

Bytes snap_part(snapshot::Tick tick, snapshot::Tick base, std::int32_t num_parts, std::int32_t part,
                std::int32_t crc, std::span<const std::byte> data) {
    return message("snap")
        .number(tick)
        .number(distance(tick, base))
        .number(num_parts)
        .number(part)
        .number(crc)
        .number(static_cast<std::int32_t>(data.size()))
        .raw(data)
        .bytes();
}

std::vector<Bytes> snap_parts(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                              std::span<const std::byte> body) {
    const std::size_t count = (body.size() + snapshot::kMaxPartSize - 1) / snapshot::kMaxPartSize;
    std::vector<Bytes> parts;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t begin = i * snapshot::kMaxPartSize;
        parts.push_back(snap_part(
            tick, base, static_cast<std::int32_t>(count), static_cast<std::int32_t>(i), crc,
            body.subspan(begin, std::min(snapshot::kMaxPartSize, body.size() - begin))));
    }
    return parts;
}

std::vector<Bytes> snap_messages(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                                 const Bytes& body, snapshot::Dialect dialect) {
    return body.size() <= snapshot::kMaxPartSize
               ? std::vector<Bytes>{snap_single(tick, base, crc, body, dialect)}
               : snap_parts(tick, base, crc, body);
}

Bytes snap_between(snapshot::Tick tick, snapshot::Tick base, const Items& from, const Items& to,
                   snapshot::Dialect dialect) {
    return snap_single(tick, base, checksum_of(to), delta_body(from, to, dialect), dialect);
}

} // namespace tw::test
