#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tw::record {

/// What became of a run's records on their way to a bus. bus_rows() names each.
struct BusTotals {
    std::uint64_t published = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t dropped = 0;
    std::uint64_t waiting = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t reconnects = 0;
    std::uint64_t connected = 0;
};

/// How a number changes.
enum class BusNumber : bool { counter, gauge };

struct BusRow {
    std::string_view metric; ///< without the prefix
    std::string_view result; ///< the label; empty: none
    BusNumber kind;
    std::string_view sentence; ///< of the metric; the same where several rows are one metric
    std::uint64_t BusTotals::*value;
};

/// Rows of one metric follow each other.
[[nodiscard]] std::span<const BusRow> bus_rows() noexcept;

} // namespace tw::record
