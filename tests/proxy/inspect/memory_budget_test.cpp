// Covers: proxy/inspect/inspector.cpp
#include "proxy/inspect/session.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_sink.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::MemoryBudget;
using test::TrafficInspector;

namespace {

constexpr std::size_t kKiB = 1024;

/// Collects the sessions of the findings about freed memory.
struct MemoryFindings final : test::TypedRecordSink<MemoryFindings> {
    void on(const record::FindingRecord& finding) {
        if (finding.id == record::FindingId::inspect_gap) {
            CHECK(finding.name == "memory");
            dropped_sessions.push_back(finding.head.session);
        }
    }

    std::vector<std::uint32_t> dropped_sessions;
};

struct BudgetResult {
    record::SessionStats totals;
    std::vector<std::uint32_t> dropped_sessions;
    std::size_t peak_bytes = 0; ///< maximum use
    std::size_t bytes_at_end = 0;
};

BudgetResult inspect_with_limit(std::size_t limit) {
    MemoryBudget memory{limit};
    MemoryFindings witness;
    BudgetResult result;
    {
        TrafficInspector inspector{{.memory_budget = &memory}, witness};
        for (const auto& datagram : test::read_traffic("bench-4.pcap.gz")) {
            inspector.on_datagram(datagram);
            result.peak_bytes = std::max(result.peak_bytes, memory.used_bytes());
        }
        inspector.finish();
        result.totals = inspector.inspector().totals();
        result.bytes_at_end = memory.used_bytes();
    }
    result.dropped_sessions = witness.dropped_sessions;
    return result;
}

} // namespace

TEST_CASE("within the memory budget no session loses its state") {
    const BudgetResult roomy = inspect_with_limit(MemoryBudget::kDefaultBytes);
    CHECK(roomy.dropped_sessions.empty());
    CHECK(roomy.peak_bytes > 100 * kKiB);
    CHECK(roomy.bytes_at_end == 0);
    CHECK(roomy.totals.verified > 0);

    // The budget is smaller than all histories, but enough for the bases that are still needed.
    const BudgetResult trimmed = inspect_with_limit(roomy.peak_bytes * 3 / 4);
    CHECK(trimmed.dropped_sessions.empty());
    CHECK(trimmed.peak_bytes < roomy.peak_bytes);
    CHECK(trimmed.totals.verified == roomy.totals.verified);
}

TEST_CASE("above the memory budget sessions free their state and report it") {
    const std::size_t limit = 96 * kKiB;
    const BudgetResult tight = inspect_with_limit(limit);
    CHECK_FALSE(tight.dropped_sessions.empty());
    // A few datagrams add memory before it is measured again.
    CHECK(tight.peak_bytes < 2 * limit);
    CHECK(tight.bytes_at_end == 0);
}

TEST_CASE("a checkpoint's memory is charged with the next datagram") {
    MemoryBudget memory;
    MemoryFindings witness;
    TrafficInspector inspector{{.memory_budget = &memory}, witness};
    const test::TrafficDatagram datagram{.session = 1, .bytes = std::vector<std::byte>(3)};
    inspector.on_datagram(datagram);
    inspector.on_datagram(datagram);
    const std::size_t before = memory.used_bytes();
    inspect::SessionCheckpoint checkpoint{.map = {}, .token_form = inspect::TokenForm::none};
    constexpr std::int32_t kInts = 16'000;
    for (snapshot::Tick tick = 1; tick <= 100; ++tick) {
        checkpoint.snapshots.push_back({.tick = tick, .num_items = 1, .block = {0x10001, kInts}});
        checkpoint.snapshots.back().block.resize(2 + std::size_t{kInts}, tick);
    }
    inspector.inspector().restore_session(1, std::move(checkpoint));
    inspector.on_datagram(datagram);
    CHECK(memory.used_bytes() - before > 6000 * kKiB);
    inspector.finish();
    CHECK(memory.used_bytes() == 0);
}

TEST_CASE("a shared value counts in the budget until its last owner releases it") {
    MemoryBudget memory{1000};
    auto value = inspect::make_shared_in_budget(&memory, std::vector<int>(10), 900);
    CHECK(memory.used_bytes() == 900);
    CHECK(memory.is_nearly_full());
    CHECK_FALSE(memory.is_exceeded());
    auto other = value;
    value.reset();
    CHECK(memory.used_bytes() == 900);
    CHECK(other->size() == 10);
    other.reset();
    CHECK(memory.used_bytes() == 0);
    CHECK(inspect::make_shared_in_budget(nullptr, 7, 900).use_count() == 1);
}
