#pragma once

#include "proxy/relay/admission.h"
#include "proxy/relay/gate.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/resync.h"
#include "proxy/relay/upstream.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

/// What all relay threads share.
struct Shared {
    Observation* observation;
    UpstreamFactory upstreams;
    std::size_t max_sessions;
    std::chrono::milliseconds idle_timeout;
    Prove prove = nullptr;
    AdmissionLimits limits{};
    Resync resync{};
    AdmissionPools pools{0, 1}; ///< of each thread
    std::atomic<std::size_t> sessions{0};
    std::atomic<std::uint32_t> last_session{0};
    std::atomic<std::uint32_t> last_number{0};
    std::atomic<int> session_error{0}; ///< errno of the last session that could not be opened
};

} // namespace tw::relay
