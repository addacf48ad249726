#include "proxy/record/stats.h"

#include <bit>
#include <set>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::record;

namespace {

/// Returns totals in which each cell has a different number.
template <template <typename> class Totals>
Totals<std::uint64_t> numbered_totals(std::uint64_t first) {
    auto cells = members_as_array<Totals>(Totals<std::uint64_t>{});
    for (std::size_t i = 0; i < cells.size(); ++i) {
        cells[i] = first + i;
    }
    return std::bit_cast<Totals<std::uint64_t>>(cells);
}

template <template <typename> class Totals>
void check_sums(const Totals<std::uint64_t>& totals, std::uint64_t first) {
    const auto cells = members_as_array<Totals>(totals);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        CAPTURE(counter_rows<Totals>()[i].key);
        CHECK(cells[i] == first + 2 * i);
    }
}

/// Collects the keys of the rows. Checks that each row has a unique key and a sentence.
template <typename Rows>
void check_rows(const Rows& rows, std::set<std::string_view>& keys) {
    for (const auto& row : rows) {
        CAPTURE(row.key);
        CHECK(keys.insert(row.key).second);
        CHECK(row.sentence.ends_with('.'));
    }
}

} // namespace

TEST_CASE("merging adds every counter and merges every distribution") {
    DirectionStats direction;
    static_cast<DirectionCounters<std::uint64_t>&>(direction) =
        numbered_totals<DirectionCounters>(1);
    direction.jitter_us.add(5);
    DirectionStats other;
    static_cast<DirectionCounters<std::uint64_t>&>(other) = numbered_totals<DirectionCounters>(100);
    other.jitter_us.add(-3);

    SessionStats stats;
    static_cast<SnapshotCounters<std::uint64_t>&>(stats) = numbered_totals<SnapshotCounters>(1);
    static_cast<SessionCounters<std::uint64_t>&>(stats) = numbered_totals<SessionCounters>(1);
    stats.findings[3] = 4;
    stats.directions[1] = direction;
    SessionStats more;
    static_cast<SnapshotCounters<std::uint64_t>&>(more) = numbered_totals<SnapshotCounters>(1000);
    static_cast<SessionCounters<std::uint64_t>&>(more) = numbered_totals<SessionCounters>(7);
    more.ack_lag_ticks.add(2);
    more.findings[3] = 5;
    more.directions[1] = other;

    stats.merge(more);
    check_sums<SnapshotCounters>(stats, 1001);
    check_sums<SessionCounters>(stats, 8);
    check_sums<DirectionCounters>(stats.directions[1], 101);
    CHECK(stats.directions[1].jitter_us.min == -3);
    CHECK(stats.directions[1].jitter_us.max == 5);
    CHECK(stats.directions[1].jitter_us.count == 2);
    CHECK(stats.ack_lag_ticks.sum == 2);
    CHECK(stats.items.count == 0);
    CHECK(stats.findings[3] == 9);
}

TEST_CASE("merging an empty distribution changes nothing") {
    Distribution distribution;
    distribution.add(4);
    distribution.merge(Distribution{});
    CHECK(distribution.count == 1);
    CHECK(distribution.min == 4);
    CHECK(distribution.mean() == 4);
    CHECK(Distribution{}.mean() == 0);
}

TEST_CASE("every total has a unique key and a sentence") {
    std::set<std::string_view> keys;
    check_rows(counter_rows<DirectionCounters>(), keys);
    check_rows(distribution_rows<PerDirectionDistributions>(), keys);
    keys.clear();
    check_rows(counter_rows<SnapshotCounters>(), keys);
    check_rows(distribution_rows<SnapshotDistributions>(), keys);
    keys.clear();
    check_rows(distribution_rows<SessionDistributions>(), keys);
    check_rows(counter_rows<SessionCounters>(), keys);
    keys.clear();
    check_rows(counter_rows<ImpairmentCounters>(), keys);
}

TEST_CASE("each row describes the member that it initialises") {
    SessionStats stats;
    stats.missed = 3;
    stats.gap_lost = 4;
    for (const CounterValue& counted : counts_by_topic<SnapshotCounters>(stats)) {
        CHECK(counted.value == (counted.row->key == "missed" ? 3 : 0));
    }
    CHECK(counts_by_topic<SessionCounters>(stats).back().row->key == "gap_lost");
    CHECK(counts_by_topic<SessionCounters>(stats).back().value == 4);
}

TEST_CASE("reports group counters by topic, in the order of declaration") {
    std::vector<std::string_view> keys;
    for (const CounterValue& counted : counts_by_topic<SnapshotCounters>(SessionStats{})) {
        keys.push_back(counted.row->key);
    }
    CHECK(keys == std::vector<std::string_view>{"total", "verified", "mismatched", "undecodable",
                                                "unknown_base", "incomplete", "missed",
                                                "ticks_skipped", "frozen_ms", "repeated", "full",
                                                "empty", "parts", "delta_bytes"});
}
