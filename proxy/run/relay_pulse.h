#pragma once

#include "proxy/relay/observation.h"

#include <array>
#include <chrono>
#include <cstdint>

namespace tw::run {

/// Tells from the relay's totals, looked at now and then, whether each of its threads turns.
class RelayPulse {
  public:
    using Time = std::chrono::steady_clock::time_point;

    /// A thread that has not turned for so long hangs: it turns once a second at least.
    static constexpr std::chrono::seconds kPatience{5};

    /// To be called once a second, at most.
    void look(Time now, const relay::Observation& observation, unsigned threads);

    /// Whether all threads turned lately. False before the first look.
    [[nodiscard]] bool beats(Time now) const noexcept;

  private:
    struct Thread {
        std::uint64_t turns = 0;
        Time moved{};
    };

    std::array<Thread, relay::kMaxThreads> threads_{};
    unsigned num_threads_ = 0;
};

} // namespace tw::run
