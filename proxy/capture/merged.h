#pragma once

#include "proxy/wire/packet_scratch.h"

#include <cstddef>
#include <optional>
#include <span>

namespace tw::capture {

/// Datagrams that one frame may hold (UDP_MAX_SEGMENTS of Linux).
inline constexpr std::size_t kMaxMerged = 128;

/// The size of the datagrams that a payload is made of, where the capturing host merged several of one
/// flow into a frame (generic receive offload): all have this size but the last, which may be shorter.
/// Nothing: it is one datagram, or its content does not show for sure where the parts begin.
///
/// Each part has to be a packet of chunks of one connection, complete up to its last byte.
/// Source:  Linux udp_gro_receive_segment.
[[nodiscard]] std::optional<std::size_t> find_merged_size(std::span<const std::byte> payload,
                                                          wire::PacketScratch& scratch);

} // namespace tw::capture
