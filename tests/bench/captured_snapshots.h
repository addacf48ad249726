#pragma once

#include "snapshot/parts.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tw::bench {

/// One snapshot of a capture, its parts reassembled.
struct CapturedSnapshot {
    std::size_t session = 0;
    snapshot::Tick tick = 0;
    snapshot::Tick delta_tick = snapshot::kNoBase;
    std::optional<std::int32_t> crc; ///< nullopt: an empty message, which repeats its base
    std::vector<std::byte> body;
};

struct Capture {
    std::size_t num_sessions = 0;
    std::vector<CapturedSnapshot> snapshots; ///< of all sessions, in order of arrival
};

/// Returns the snapshots in tests/data/captures/NAME. Throws std::runtime_error.
Capture read_snapshots(const std::string& name);

} // namespace tw::bench
