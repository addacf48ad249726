#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::wire {

/// The acknowledged tick of an input message that acknowledges no snapshot. The server then sends a
/// full snapshot.
inline constexpr std::int32_t kNoSnapshot = -1;

/// Copies a client's packet to `out`, uncompressed, and makes the final input message of the copy
/// acknowledge the snapshot of `tick`. The rest of the packet stays the same. Returns the size of
/// the copy in bytes, or zero if the packet is not rewritten.
///
/// Zero:    no input in the packet acknowledges a snapshot; the final input already acknowledges
///          `tick` or a later tick; the packet is not exactly as 0.6 clients write it (0.7 packets
///          are never rewritten); or `out` is too small.
/// Source:  DDNet's CNetBase::SendPacket (packet), CClient::SendInput (acknowledgement).
[[nodiscard]] std::size_t rewrite_acknowledgement(std::span<const std::byte> datagram,
                                                  std::int32_t tick, std::span<std::byte> out);

/// If a server's packet contains a part of a full snapshot, returns the snapshot's tick; otherwise
/// nullopt.
[[nodiscard]] std::optional<std::int32_t>
find_full_snapshot_tick(std::span<const std::byte> datagram);

} // namespace tw::wire
