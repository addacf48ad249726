#pragma once

#include "snapshot/item.h"
#include "snapshot/snapshot.h"
#include "tests/support/message_builder.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tw::test {

using Bytes = std::vector<std::byte>;
using Ints = std::vector<std::int32_t>;
using Lines = std::vector<std::string>;

/// Returns these bytes.
template <typename... Byte>
[[nodiscard]] Bytes bytes(Byte... values) {
    return {static_cast<std::byte>(values)...};
}

/// Returns the bytes of a token or a UUID.
template <std::size_t kSize>
[[nodiscard]] Bytes bytes_of(const std::array<std::uint8_t, kSize>& values) {
    const auto bytes = std::as_bytes(std::span{values});
    return {bytes.begin(), bytes.end()};
}

/// A snapshot in the form that tests use.
using Items = std::map<snapshot::ItemKey, Ints>;

inline const Items kOnePickup{{{4, 1}, {10, 20, 0, 0}}};
inline const Items kMovedPickup{{{4, 1}, {11, 20, 0, 0}}};
inline const Items kPickupAndEvent{{{4, 1}, {10, 20, 0, 0}}, {{13, 2}, {1, 2}}};
inline const Items kPickupAndPlayer{{{4, 1}, {10, 20, 0, 0}}, {{10, 2}, {1, 2, 0, 0, 30}}};

/// Begins the message with this name.
[[nodiscard]] MessageBuilder message(std::string_view name,
                                     snapshot::Dialect dialect = snapshot::Dialect::six);

/// Returns the descriptor item that gives a type number its UUID.
[[nodiscard]] std::pair<snapshot::ItemKey, Ints> descriptor(std::uint16_t number,
                                                            std::string_view object);

[[nodiscard]] snapshot::Snapshot to_snapshot(const Items& items);

[[nodiscard]] inline std::shared_ptr<const snapshot::Snapshot> to_shared(const Items& items) {
    return std::make_shared<const snapshot::Snapshot>(to_snapshot(items));
}

[[nodiscard]] Items to_items(const snapshot::SnapshotView& view);
[[nodiscard]] std::int32_t checksum_of(const Items& items);
/// Returns the body of the delta between two snapshots.
[[nodiscard]] Bytes delta_body(const Items& from, const Items& to,
                               snapshot::Dialect dialect = snapshot::Dialect::six);
/// Returns a body of these ints, valid or not.
[[nodiscard]] Bytes body_of(const std::vector<std::int32_t>& ints);

/// Snapshot messages. `base`: the tick of the base, or snapshot::kNoBase for a full snapshot.
[[nodiscard]] Bytes snap_empty(snapshot::Tick tick, snapshot::Tick base);
[[nodiscard]] Bytes snap_single(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                                std::span<const std::byte> body,
                                snapshot::Dialect dialect = snapshot::Dialect::six);
[[nodiscard]] Bytes snap_part(snapshot::Tick tick, snapshot::Tick base, std::int32_t num_parts,
                              std::int32_t part, std::int32_t crc, std::span<const std::byte> data);
/// Returns the parts of a body, in order, split as servers do.
[[nodiscard]] std::vector<Bytes> snap_parts(snapshot::Tick tick, snapshot::Tick base,
                                            std::int32_t crc, std::span<const std::byte> body);
/// Returns a server's messages with a body: one, or several if the body needs several parts.
[[nodiscard]] std::vector<Bytes> snap_messages(snapshot::Tick tick, snapshot::Tick base,
                                               std::int32_t crc, const Bytes& body,
                                               snapshot::Dialect dialect = snapshot::Dialect::six);
/// Returns a server's message with the delta between two snapshots.
[[nodiscard]] Bytes snap_between(snapshot::Tick tick, snapshot::Tick base, const Items& from,
                                 const Items& to,
                                 snapshot::Dialect dialect = snapshot::Dialect::six);

} // namespace tw::test
