#include "proxy/record/bus_totals.h"

namespace tw::record {

namespace {

constexpr auto kCounter = BusNumber::counter;
constexpr auto kGauge = BusNumber::gauge;
constexpr std::string_view kRecords = "Records sent to the bus, again where a connection broke "
                                      "(published), acknowledged by it, and given up (dropped).";

constexpr BusRow kRows[]{
    {"bus_records_total", "published", kCounter, kRecords, &BusTotals::published},
    {"bus_records_total", "acknowledged", kCounter, kRecords, &BusTotals::acknowledged},
    {"bus_records_total", "dropped", kCounter, kRecords, &BusTotals::dropped},
    {"bus_waiting_records", "", kGauge,
     "Records in memory or in the spool, until two seconds after they were acknowledged.",
     &BusTotals::waiting},
    {"bus_waiting_bytes", "", kGauge, "Size of those records.", &BusTotals::waiting_bytes},
    {"bus_reconnects_total", "", kCounter, "Connections to the bus after the first one.",
     &BusTotals::reconnects},
    {"bus_connected", "", kGauge, "1 while connected to the bus.", &BusTotals::connected},
};

} // namespace

std::span<const BusRow> bus_rows() noexcept {
    return kRows;
}

} // namespace tw::record
