#pragma once

#include "proxy/wire/message.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tw::bench {

/// The length of the handshake in the captures.
inline constexpr std::int64_t kHandshake = 1'000'000'000;

/// One datagram of a session.
struct Step {
    std::int64_t at = 0; ///< time since the session began, in ns
    wire::Direction direction = wire::Direction::c2s;
    std::size_t heard = 0;     ///< number of earlier steps in the other direction
    std::size_t snapshots = 0; ///< number of snapshots that it completes
    std::vector<std::byte> bytes;
};

using Script = std::vector<Step>;

/// Returns the sessions of tests/data/captures/CAPTURE, each from its handshake to an added close. Keeps only
/// every `inputs`th of the client's inputs after the handshake. Throws std::runtime_error.
[[nodiscard]] std::vector<Script> read_scripts(const std::string& capture, unsigned inputs);

} // namespace tw::bench
