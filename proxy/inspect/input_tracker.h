#pragma once

#include "proxy/inspect/cadence.h"
#include "proxy/inspect/reporter.h"
#include "proxy/wire/bodies.h"

namespace tw::inspect {

/// How evenly a client's inputs arrive, and how early the server says they do.
class InputTracker {
  public:
    void on_input(const wire::InputBody& input, Reporter& reporter);
    static void on_timing(const wire::InputTimingBody& timing, Reporter& reporter);

    /// Ticks start again.
    void restart() { jitter_ = {}; }

  private:
    ArrivalJitter jitter_;
};

} // namespace tw::inspect
