#pragma once

#include "proxy/sink/udp_frame.h"

#include <algorithm>
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

/// How much of a capture may be states: in the long run a fourth of what is traffic, however short its
/// segments are, and however many sessions they have.
class StateAllowance {
  public:
    /// States of some 200 sessions with 64 players, made in less than a tenth of a second.
    static constexpr std::int64_t kAtOnce = std::int64_t{8} << 20U;
    static constexpr std::int64_t kTraffic = 4; ///< bytes of it for one of a state

    /// Whether there may be another one.
    [[nodiscard]] bool any() const { return left_ > 0; }

    void spend(std::size_t state) { left_ -= kTraffic * static_cast<std::int64_t>(state); }

    void earn(std::size_t datagram) {
        left_ = std::min(left_ + static_cast<std::int64_t>(datagram), kMost);
    }

  private:
    static constexpr std::int64_t kMost = kTraffic * kAtOnce;

    std::int64_t left_ = kMost; ///< bytes of traffic
};

/// Asked when a datagram of a session begins: what is known of it; empty: nothing.
using StateSource = std::function<std::vector<std::byte>()>;

/// Appends the block; nothing where there is too much in it.
void put_session_state(const SessionState& state, std::vector<std::byte>& out);

/// Reads what stands in the block between its lengths; nothing for what is of another version, or cut.
[[nodiscard]] std::optional<SessionState> read_session_state(std::span<const std::byte> body);

} // namespace tw::sink
