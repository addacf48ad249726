#pragma once

#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::wire {

/// The acknowledged tick in an input that acknowledges no snapshot. The server's next snapshot is then
/// full.
inline constexpr std::int32_t kNoSnapshot = -1;

/// Rewrites a client's packet so that its last input acknowledges the snapshot of `tick`. The
/// header, the order and sequence numbers of chunks, the input's other bytes and the token stay the
/// same. The result is not compressed. Returns its size, or zero if the packet is not rewritten.
///
/// Zero:    no input in the packet acknowledges a snapshot; the last input acknowledges `tick` or a
///          later tick already; the packet is not exactly as 0.6 clients write it (0.7 packets are
///          never rewritten); or `out` is too small.
/// Source:  DDNet's CNetBase::SendPacket (packet), CClient::SendInput (acknowledgement).
[[nodiscard]] std::size_t acknowledge(std::span<const std::byte> datagram, std::int32_t tick,
                                      std::span<std::byte> out);

/// The tick of a full snapshot, or of a part of a full snapshot, in a server's packet; nullopt if
/// the packet contains no such part.
[[nodiscard]] std::optional<std::int32_t> find_whole_snapshot(std::span<const std::byte> datagram);

} // namespace tw::wire
