#include "proxy/record/json.h"
#include "proxy/report/stats_report.h"

namespace tw::report {

namespace json = boost::json;

namespace {

template <template <typename> class Totals>
void add_counters(json::object& object, const Totals<std::uint64_t>& totals) {
    for (const record::Counted& counted : record::counts_by_topic<Totals>(totals)) {
        if (counted.row->topic != record::Topic::live) {
            object.emplace(counted.row->key, counted.value);
        }
    }
}

json::array ledger_json(const record::Ledger& ledger, wire::Direction direction) {
    json::array rows;
    for (const record::LedgerRow& row : ledger.rows(direction)) {
        json::object object{{"group", record::byte_group_name(row.group)}, {"name", row.name}};
        if (row.part != record::BytePart::whole) {
            object.emplace("part", record::byte_part_name(row.part));
        }
        object.emplace("count", row.total.count);
        object.emplace("bytes", row.total.bytes);
        object.emplace("bits", row.total.bits);
        rows.push_back(std::move(object));
    }
    return rows;
}

json::object direction_json(const StatsReport& report, wire::Direction direction) {
    const record::DirectionStats& stats =
        report.totals->directions[direction == wire::Direction::s2c ? 1 : 0];
    json::object object;
    add_counters<record::DirectionCounters>(object, stats);
    object.emplace("compression_ratio", share(stats.compressed_bytes, stats.decompressed_bytes));
    record::add_spreads<record::DirectionSpreads>(object, stats);
    object.emplace("attributed_bits", report.ledger->total(direction).bits);
    object.emplace("attribution", ledger_json(*report.ledger, direction));
    return object;
}

json::object snapshots_json(const record::SessionStats& totals) {
    json::object object;
    add_counters<record::SnapshotCounters>(object, totals);
    object.emplace("full_share", share(totals.full, totals.snapshots));
    record::add_spreads<record::SnapshotSpreads>(object, totals);
    return object;
}

} // namespace

std::string stats_json(const StatsReport& report) {
    const record::SessionStats& totals = *report.totals;
    json::object object{{"v", 1},
                        {"captures", json::array(report.captures.begin(), report.captures.end())},
                        {"sessions", report.sessions},
                        {"duration_us", report.duration_ns / 1000},
                        {"c2s", direction_json(report, wire::Direction::c2s)},
                        {"s2c", direction_json(report, wire::Direction::s2c)},
                        {"snapshots", snapshots_json(totals)}};
    record::add_spreads<record::SessionSpreads>(object, totals);
    add_counters<record::SessionCounters>(object, totals);
    object.emplace("findings", record::findings_json(totals.findings));
    return record::json_text(object) + '\n';
}

} // namespace tw::report
