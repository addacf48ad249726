#pragma once

#include "proxy/capture/demo_header.h"
#include "proxy/inspect/inspector.h"
#include "proxy/record/records.h"

#include <string>

namespace tw::capture {

/// How a demo ended, and when.
struct DemoPlayed {
    record::Timestamp first = 0;
    record::Timestamp last = 0;
    DemoError error{}; ///< why it could not be read to its end
};

/// Inspects a demo as one session: its map, snapshots and messages by tick. Times count from its
/// timestamp. What cannot be read any further is a finding, after all that was.
[[nodiscard]] DemoPlayed play_demo(const DemoHead& demo, const std::string& name,
                                   inspect::Inspector& inspector);

} // namespace tw::capture
