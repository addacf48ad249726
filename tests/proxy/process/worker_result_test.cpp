#include "proxy/pipeline/worker_result.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using pipeline::WorkerResult;

namespace {

const std::vector<filter::Expectation>& expected() {
    static const std::vector<filter::Expectation> expectations{
        filter::Expectation::parse("message").value(),
        filter::Expectation::parse("snapshot").value()};
    return expectations;
}

/// The result of a worker that inspected the session with this number at the relay.
WorkerResult worker(std::uint32_t number) {
    WorkerResult result{.expectations = expected()};
    result.totals.snapshots = number;
    result.sessions = 1;
    result.ledger.charge(wire::Direction::s2c, record::ByteGroup::packet, record::BytePart::whole,
                         "packet",
                         {.count = 1, .bytes = number, .bits = 8 * std::uint64_t{number}});
    result.demo_losses.late = number;
    result.capture_losses = number;
    result.checkpoints[number] = {};
    return result;
}

} // namespace

TEST_CASE("the results of workers add up in any order") {
    WorkerResult all{.expectations = expected()};
    all.merge(worker(2));
    WorkerResult other = worker(5);
    const record::MessageRecord message{};
    other.expectations.front().evaluate(&message);
    all.merge(std::move(other));

    CHECK(all.totals.snapshots == 7);
    CHECK(all.sessions == 2);
    CHECK(all.ledger.total(wire::Direction::s2c) ==
          record::ByteCount{.count = 2, .bytes = 7, .bits = 56});
    CHECK(all.demo_losses.late == 7);
    CHECK(all.capture_losses == 7);
    CHECK(all.checkpoints.size() == 2);
    REQUIRE(all.expectations.size() == 2);
    CHECK(all.expectations[0].met());
    CHECK_FALSE(all.expectations[1].met());
}
