#pragma once

#include "proxy/filter/expectation.h"
#include "proxy/record/ledger.h"
#include "proxy/record/stats.h"
#include "proxy/run/legacy_file.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/flight_recorder.h"

#include <cstdint>
#include <vector>

namespace tw::run {

/// What came of a worker's run; merged, of all workers of a run. What a worker is to report at its
/// end is a line here, another in merge, and a third in Worker::take_result.
struct WorkerResult {
    record::SessionStats totals{};
    std::uint32_t sessions = 0;
    record::Ledger ledger{}; ///< where the bytes went; empty unless that was asked for
    std::vector<filter::Expectation> expectations{};
    sink::DemoLosses demo_losses{};      ///< what demos could not hold
    std::uint64_t capture_losses = 0;    ///< datagrams that the capture lacks
    std::uint64_t messages_left_out = 0; ///< of the records, by their limit
    sink::FlightTally flight{};          ///< what the flight recorder did
    Legacies legacies{}; ///< of sessions that go on in another relay, for the observer there

    /// Precondition: `other` had the same expectations.
    void merge(WorkerResult other) {
        totals.merge(other.totals);
        sessions += other.sessions;
        ledger.merge(other.ledger);
        filter::merge(expectations, other.expectations);
        demo_losses.merge(other.demo_losses);
        capture_losses += other.capture_losses;
        messages_left_out += other.messages_left_out;
        flight.merge(other.flight);
        legacies.merge(other.legacies);
    }
};

} // namespace tw::run
