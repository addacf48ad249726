#include "proxy/inspect/input_tracker.h"

#include <cstdint>
#include <cstdlib>

namespace tw::inspect {

namespace {

/// The server reckons with the tick that a client names, which may be made up, or of the map before: no
/// game is played that far ahead or behind.
constexpr std::int64_t kMostMarginMs = 10'000;

} // namespace

void InputTracker::on_input(const wire::InputBody& input, Reporter& reporter) {
    if (const auto deviation = jitter_.arrived(input.intended_tick, reporter.head().time)) {
        reporter.direction_stats().jitter_us.add(*deviation);
    }
}

void InputTracker::on_timing(const wire::InputTimingBody& timing, Reporter& reporter) {
    if (std::abs(std::int64_t{timing.time_left}) <= kMostMarginMs) {
        reporter.stats.input_margin_ms.add(timing.time_left);
    }
}

} // namespace tw::inspect
