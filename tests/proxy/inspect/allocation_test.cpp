#include "tests/support/allocation_count.h"
#include "tests/support/captured_traffic.h"

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;

TEST_CASE("inspection allocates no memory once its buffers are large enough") {
    const auto traffic = test::read_traffic("bench-4.pcap.gz");
    test::NoSink sink;
    test::TrafficInspector run{{.emits_message_records = true}, sink};
    const std::size_t warm = traffic.size() / 3;
    for (std::size_t i = 0; i < warm; ++i) {
        run.on_datagram(traffic[i]);
    }
    std::vector<std::size_t> allocating;
    allocating.reserve(traffic.size());
    for (std::size_t i = warm; i < traffic.size(); ++i) {
        const std::uint64_t before = test::allocation_count();
        run.on_datagram(traffic[i]);
        if (test::allocation_count() != before) {
            allocating.push_back(i);
        }
    }
    // A snapshot history grows by an eighth when its session's snapshots grow. That happens in one
    // of the four sessions.
    CHECK(allocating.size() <= 1);
    CHECK(run.inspector().totals().verified > 0);
}
