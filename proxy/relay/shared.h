#pragma once

#include "proxy/relay/admission.h"
#include "proxy/relay/answers.h"
#include "proxy/relay/gate.h"
#include "proxy/relay/observation.h"
#include "proxy/relay/upstream.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tw::relay {

/// What is known of sessions over all threads and servers.
struct SessionNumbers {
    std::atomic<std::uint32_t> last_session{0}; ///< that the observer hears of
    std::atomic<std::uint32_t> last_number{0};
    std::atomic<std::uint32_t> last_request{0}; ///< the same, of who asks without a connection
    std::atomic<int> session_error{0}; ///< errno of the last session that could not be opened
};

/// What all relay threads share of one server.
struct Shared {
    SessionNumbers* numbers;
    UpstreamFactory upstreams;
    std::size_t max_sessions;
    std::chrono::milliseconds idle_timeout;
    ServerIndex index = 0;
    Prove prove = nullptr;
    Repeating repeating{};
    AdmissionLimits limits{};
    AdmissionPools pools{0, 1}; ///< of each thread
    std::atomic<std::size_t> sessions{0};
    std::atomic<bool> let_go{false}; ///< it does not go on where others are handed over to
};

} // namespace tw::relay
