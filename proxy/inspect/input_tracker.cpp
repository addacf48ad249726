#include "proxy/inspect/input_tracker.h"

namespace tw::inspect {

void InputTracker::on_input(const wire::InputBody& input, Reporter& reporter) {
    if (const auto deviation = jitter_.arrived(input.intended_tick, reporter.head().time)) {
        reporter.direction_stats().jitter_us.add(*deviation);
    }
}

void InputTracker::on_timing(const wire::InputTimingBody& timing, Reporter& reporter) {
    reporter.stats.input_margin_ms.add(timing.time_left);
}

} // namespace tw::inspect
