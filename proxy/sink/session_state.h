#pragma once

#include "proxy/sink/udp_frame.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace tw::sink {

/// What a capture says of a session right before a packet of it, so that it can be read from there on:
/// no traffic, but a block of its own, which programs that do not know it skip (CAPTURES.md).
struct SessionState {
    FrameEndpoint client; ///< as the packet behind it has them
    FrameEndpoint server;
    std::span<const std::byte> bytes{}; ///< of the inspector (inspect/legacy_code.h)
};

/// Of the types that are left for local use.
inline constexpr std::uint32_t kStateBlock = 0x80745753;

/// The most bytes of one; libpcap reads no blocks of more than 16 MiB, whatever is in them.
inline constexpr std::size_t kMaxStateBytes = std::size_t{4} << 20U;

/// Asked when a datagram of a session begins: what is known of it; empty: nothing.
using StateSource = std::function<std::vector<std::byte>()>;

/// Appends the block; nothing where there is too much in it.
void put_session_state(const SessionState& state, std::vector<std::byte>& out);

/// Reads what stands in the block between its lengths; nothing for what is of another version, or cut.
[[nodiscard]] std::optional<SessionState> read_session_state(std::span<const std::byte> body);

} // namespace tw::sink
