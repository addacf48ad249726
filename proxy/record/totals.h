#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

/// How totals say what they are. A struct of totals is a template over its cells: with numbers in
/// them it holds the totals, with rows it describes them. So one line is all there is to a counter:
/// its member, its key, what it counts. Merging, JSON, filters, reports, metrics and the check of
/// RECORDS.md walk these lines.
namespace tw::record {

/// What a total is about; reports show those of one topic together, in this order.
enum class Topic : std::uint8_t {
    traffic,
    rejected,
    other_packets, ///< without chunks
    chunks,
    dropped_chunks,
    order,
    compression,
    outcome, ///< what became of snapshots
    missing, ///< snapshots that never came
    shape,   ///< what the snapshots were like
    session,
    live, ///< of a live run; a capture has none
};

/// A counter.
struct CounterRow {
    std::string_view key{};
    Topic topic = Topic::traffic;
    std::string_view sentence{};
    std::string_view metric{}; ///< its name there, without the prefix; empty: none of its own
    bool share = false;        ///< counts snapshots: reports show which part of all these are
};

/// A spread of numbers.
struct SpreadRow {
    std::string_view key{};
    std::string_view sentence{};
    std::string_view metric{};
    double metric_unit = 1;  ///< what one of its numbers is in the metric's unit
    std::uint64_t limit = 0; ///< what the protocol allows; 0: anything
};

/// One cell of a struct of totals: the row where that describes them, nothing yet where it holds
/// them.
template <typename Cell, typename Row>
constexpr Cell cell(const Row& row) {
    if constexpr (std::is_same_v<Cell, Row>) {
        return row;
    } else {
        return Cell{};
    }
}

template <typename Cell>
constexpr Cell counter(std::string_view key, Topic topic, std::string_view sentence,
                       std::string_view metric = {}) {
    return cell<Cell>(CounterRow{key, topic, sentence, metric});
}

/// A counter of snapshots.
template <typename Cell>
constexpr Cell snapshot_counter(std::string_view key, Topic topic, std::string_view sentence,
                                std::string_view metric = {}) {
    return cell<Cell>(CounterRow{key, topic, sentence, metric, true});
}

/// The cells of some totals, in the order of their lines.
template <template <typename> class Totals, typename Cell>
[[nodiscard]] constexpr auto cells_of(const Totals<Cell>& totals) {
    return std::bit_cast<std::array<Cell, sizeof totals / sizeof(Cell)>>(totals);
}

/// What describes these cells.
template <template <typename> class Totals, typename Row>
[[nodiscard]] const auto& rows_of() {
    static const auto rows = cells_of<Totals, Row>(Totals<Row>{});
    return rows;
}

template <template <typename> class Totals>
[[nodiscard]] const auto& counters_of() {
    return rows_of<Totals, CounterRow>();
}

template <template <typename> class Totals>
[[nodiscard]] const auto& spreads_of() {
    return rows_of<Totals, SpreadRow>();
}

/// A counter and what it says.
struct Counted {
    const CounterRow* row;
    std::uint64_t value;
};

/// Those of one topic together, for reports.
template <template <typename> class Totals>
[[nodiscard]] std::vector<Counted> counts_by_topic(const Totals<std::uint64_t>& totals) {
    const auto cells = cells_of<Totals>(totals);
    std::vector<Counted> counts;
    for (std::size_t i = 0; i < cells.size(); ++i) {
        counts.push_back({&counters_of<Totals>()[i], cells[i]});
    }
    std::stable_sort(counts.begin(), counts.end(), [](const Counted& a, const Counted& b) {
        return a.row->topic < b.row->topic;
    });
    return counts;
}

/// Adds the cells of `other` to those of `totals`, one by one.
template <template <typename> class Totals, typename Cell>
constexpr void merge_cells(Totals<Cell>& totals, const Totals<Cell>& other) {
    auto cells = cells_of<Totals>(totals);
    const auto more = cells_of<Totals>(other);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if constexpr (std::is_integral_v<Cell>) {
            cells[i] += more[i];
        } else {
            cells[i].merge(more[i]);
        }
    }
    totals = std::bit_cast<Totals<Cell>>(cells);
}

} // namespace tw::record
