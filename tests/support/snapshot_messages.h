#pragma once

#include "snapshot/item.h"
#include "snapshot/snapshot.h"
#include "tests/support/message_builder.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace tw::test {

using Bytes = std::vector<std::byte>;
/// A snapshot as tests write it down.
using Items = std::map<snapshot::ItemKey, std::vector<std::int32_t>>;

/// Starts a message of this name of the message table.
[[nodiscard]] MessageBuilder message(std::string_view name,
                                     snapshot::Dialect dialect = snapshot::Dialect::six);

[[nodiscard]] snapshot::Snapshot to_snapshot(const Items& items);
[[nodiscard]] std::int32_t checksum_of(const Items& items);
/// Body of the delta between two snapshots.
[[nodiscard]] Bytes delta_body(const Items& from, const Items& to,
                               snapshot::Dialect dialect = snapshot::Dialect::six);
/// Body of these ints, whatever they say.
[[nodiscard]] Bytes body_of(const std::vector<std::int32_t>& ints);

/// Snapshot messages. `base` is a tick; snapshot::kNoBase: from nothing.
[[nodiscard]] Bytes snap_empty(snapshot::Tick tick, snapshot::Tick base);
[[nodiscard]] Bytes snap_single(snapshot::Tick tick, snapshot::Tick base, std::int32_t crc,
                                std::span<const std::byte> body,
                                snapshot::Dialect dialect = snapshot::Dialect::six);
[[nodiscard]] Bytes snap_part(snapshot::Tick tick, snapshot::Tick base, std::int32_t num_parts,
                              std::int32_t part, std::int32_t crc, std::span<const std::byte> data);
/// All parts of a body, in order, as servers cut it.
[[nodiscard]] std::vector<Bytes> snap_parts(snapshot::Tick tick, snapshot::Tick base,
                                            std::int32_t crc, std::span<const std::byte> body);
/// The message a server sends that goes from one snapshot to the other.
[[nodiscard]] Bytes snap_between(snapshot::Tick tick, snapshot::Tick base, const Items& from,
                                 const Items& to,
                                 snapshot::Dialect dialect = snapshot::Dialect::six);

} // namespace tw::test
