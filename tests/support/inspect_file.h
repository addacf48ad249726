#pragma once

#include "proxy/capture/capture_run.h"
#include "tests/support/captured_traffic.h"

#include <atomic>
#include <cstdint>
#include <string>

#include <doctest/doctest.h>

namespace tw::test {

/// Inspects an undamaged capture or demo. Returns the totals.
inline record::SessionStats inspect_file(const std::string& path, record::RecordSink& sink) {
    NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, sink, numbers};
    capture::CaptureRun run{{path}, {}};
    run.read_captures(inspector);
    CHECK_FALSE(run.is_damaged());
    return inspector.totals();
}

} // namespace tw::test
