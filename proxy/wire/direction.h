#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::wire {

/// Which way a datagram goes: from the client to the server, or back.
enum class Direction : std::uint8_t { c2s, s2c };

/// For arrays with a place for each direction.
[[nodiscard]] constexpr std::size_t index_of(Direction direction) {
    return static_cast<std::size_t>(direction);
}

[[nodiscard]] constexpr Direction opposite(Direction direction) {
    return direction == Direction::c2s ? Direction::s2c : Direction::c2s;
}

} // namespace tw::wire
