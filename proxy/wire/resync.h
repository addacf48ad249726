#pragma once

#include "proxy/wire/packet.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tw::wire {

/// What an input acknowledges that knows no snapshot: the server's next one is then whole.
inline constexpr std::int32_t kNoSnapshot = -1;

/// Writes a client's packet anew into `out` so that its last input acknowledges the snapshot of
/// `tick`. All else stays: header, order and sequences of chunks, the other bytes of the input, the
/// token; but what was compressed is not any more. Returns how many bytes it takes.
///
/// Zero:    there is no input that acknowledges a snapshot, or it acknowledges that one or a later
///          one already, or anything about the packet is not as clients of 0.6 write it (of 0.7's,
///          whose chunks look alike, nothing is written), or there is no room.
/// Source:  protocol sheet, sections 1.2, 4.1, 6.7 and 9.1.
[[nodiscard]] std::size_t acknowledge(std::span<const std::byte> datagram, std::int32_t tick,
                                      std::span<std::byte> out);

/// The tick of the snapshot in a server's packet that builds on none, or of which a part is in it.
[[nodiscard]] std::optional<std::int32_t> find_whole_snapshot(std::span<const std::byte> datagram);

} // namespace tw::wire
