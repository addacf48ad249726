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

/// Counts the records and findings about freed memory.
struct MemoryFindings final : test::TypedRecordSink<MemoryFindings> {
    void on(const record::FindingRecord& finding) {
        if (finding.id == record::FindingId::inspect_gap) {
            CHECK(finding.name == "memory");
            shed.push_back(finding.head.session);
        }
    }

    std::vector<std::uint32_t> shed; ///< sessions
};

struct BudgetRun {
    record::SessionStats totals;
    std::vector<std::uint32_t> shed;
    std::size_t most = 0; ///< used at once
    std::size_t left = 0; ///< when all is over
};

BudgetRun run(std::size_t limit) {
    MemoryBudget memory{limit};
    MemoryFindings witness;
    BudgetRun result;
    {
        TrafficInspector inspector{{.memory_budget = &memory}, witness};
        for (const auto& datagram : test::read_traffic("bench-4.pcap.gz")) {
            inspector.on_datagram(datagram);
            result.most = std::max(result.most, memory.used_bytes());
        }
        inspector.finish();
        result.totals = inspector.inspector().totals();
        result.left = memory.used_bytes();
    }
    result.shed = witness.shed;
    return result;
}

} // namespace

TEST_CASE("within the memory budget no state is freed") {
    const BudgetRun roomy = run(MemoryBudget::kDefaultBytes);
    CHECK(roomy.shed.empty());
    CHECK(roomy.most > 100 * kKiB);
    CHECK(roomy.left == 0);
    CHECK(roomy.totals.verified > 0);

    // The budget is smaller than all histories, but enough for the bases that are still needed.
    const BudgetRun trimmed = run(roomy.most * 3 / 4);
    CHECK(trimmed.shed.empty());
    CHECK(trimmed.most < roomy.most);
    CHECK(trimmed.totals.verified == roomy.totals.verified);
}

TEST_CASE("above the memory budget sessions free their state and report it") {
    const std::size_t limit = 96 * kKiB;
    const BudgetRun tight = run(limit);
    CHECK_FALSE(tight.shed.empty());
    // A few datagrams add memory before it is measured again.
    CHECK(tight.most < 2 * limit);
    CHECK(tight.left == 0);
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
