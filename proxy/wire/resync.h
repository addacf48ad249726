#pragma once

#include "proxy/wire/packet.h"

#include <cstddef>
#include <span>

namespace tw::wire {

/// Writes a client's packet anew into `out` so that its last input acknowledges no snapshot: the
/// server's next one is then whole. All else stays: header, order and sequences of chunks, the other
/// bytes of the input, the token; but what was compressed is not any more. Returns how many bytes it
/// takes.
///
/// Zero:    there is no input that acknowledges a snapshot, or anything about the packet is not as
///          clients of 0.6 write it (of 0.7's, whose chunks look alike, nothing is written), or there
///          is no room.
/// Source:  protocol sheet, sections 1.2, 4.1, 6.7 and 9.1.
[[nodiscard]] std::size_t ask_for_whole_snapshot(std::span<const std::byte> datagram,
                                                 std::span<std::byte> out);

/// Whether a server's packet holds a snapshot that builds on none, or a part of one.
[[nodiscard]] bool holds_whole_snapshot(std::span<const std::byte> datagram);

} // namespace tw::wire
