#include "proxy/report/stats_report.h"
#include "proxy/sink/json_buffer.h"
#include "snapshot/item.h"

namespace tw::report {

namespace {

/// Writes objects and arrays; puts the commas.
class Json {
  public:
    void open(char bracket) {
        separate();
        out_.append(bracket);
        fresh_ = true;
    }

    void close(char bracket) {
        out_.append(bracket);
        fresh_ = false;
    }

    void key(std::string_view name) {
        separate();
        out_.append_string(name);
        out_.append(':');
        fresh_ = true; // the value needs no comma
    }

    void open(std::string_view name, char bracket) {
        key(name);
        open(bracket);
    }

    void string(std::string_view text) {
        separate();
        out_.append_string(text);
    }

    void number(std::string_view name, std::uint64_t value) {
        key(name);
        separate();
        out_.append_int(static_cast<std::int64_t>(value));
    }

    void number(std::string_view name, std::int64_t value) {
        key(name);
        separate();
        out_.append_int(value);
    }

    void fixed(std::string_view name, double value) {
        key(name);
        separate();
        out_.append_fixed(value);
    }

    [[nodiscard]] std::string_view view() const { return out_.view(); }

  private:
    void separate() {
        if (!fresh_) {
            out_.append(',');
        }
        fresh_ = false;
    }

    sink::JsonBuffer out_;
    bool fresh_ = true;
};

void write_spread(Json& json, std::string_view name, const record::Spread& spread) {
    json.open(name, '{');
    json.number("count", spread.count);
    if (spread.count != 0) {
        json.number("min", spread.min);
        json.fixed("mean", spread.mean());
        json.number("max", spread.max);
    }
    json.close('}');
}

void write_ledger(Json& json, const record::Ledger& ledger, wire::Direction direction) {
    json.open("attribution", '[');
    for (const record::LedgerRow& row : ledger.rows(direction)) {
        json.open('{');
        json.key("group");
        json.string(record::byte_group_name(row.group));
        json.key("name");
        json.string(row.name);
        if (row.part != record::BytePart::whole) {
            json.key("part");
            json.string(record::byte_part_name(row.part));
        }
        json.number("count", row.total.count);
        json.number("bytes", row.total.bytes);
        json.number("bits", row.total.bits);
        json.close('}');
    }
    json.close(']');
}

void write_direction(Json& json, const StatsReport& report, wire::Direction direction) {
    const bool s2c = direction == wire::Direction::s2c;
    const record::DirectionStats& stats = report.totals->directions[s2c ? 1 : 0];
    json.open(s2c ? "s2c" : "c2s", '{');
    for (const auto& [name, counter] : kDirectionCounters) {
        json.number(name, stats.*counter);
    }
    json.fixed("compression_ratio", share(stats.compressed_bytes, stats.decompressed_bytes));
    write_spread(json, "jitter_us", stats.jitter_us);
    const record::ByteCount total = report.ledger->total(direction);
    json.number("attributed_bits", total.bits);
    write_ledger(json, *report.ledger, direction);
    json.close('}');
}

void write_snapshots(Json& json, const record::SessionStats& totals) {
    json.open("snapshots", '{');
    for (const auto& [name, counter] : kSnapshotCounters) {
        json.number(name, totals.*counter);
    }
    json.fixed("full_share", share(totals.full, totals.snapshots));
    write_spread(json, "items", totals.items);
    json.number("items_limit", std::uint64_t{snapshot::kMaxItems});
    write_spread(json, "size_bytes", totals.snapshot_bytes);
    json.number("size_bytes_limit", std::uint64_t{snapshot::kMaxSnapshotBytes});
    write_spread(json, "delta_distance", totals.delta_distance);
    write_spread(json, "interval_us", totals.snapshot_interval_us);
    json.close('}');
}

} // namespace

std::string stats_json(const StatsReport& report) {
    Json json;
    json.open('{');
    json.number("v", std::uint64_t{1});
    json.open("captures", '[');
    for (const std::string& capture : report.captures) {
        json.string(capture);
    }
    json.close(']');
    json.number("sessions", std::uint64_t{report.sessions});
    json.number("duration_us", report.duration_ns / 1000);
    write_direction(json, report, wire::Direction::c2s);
    write_direction(json, report, wire::Direction::s2c);
    write_snapshots(json, *report.totals);
    write_spread(json, "ack_lag_ticks", report.totals->ack_lag_ticks);
    write_spread(json, "input_margin_ms", report.totals->input_margin_ms);
    json.number("map_changes", report.totals->map_changes);
    json.open("findings", '{');
    for (const record::FindingInfo& info : record::finding_table()) {
        const auto count = report.totals->findings[static_cast<std::size_t>(info.id)];
        if (count != 0) {
            json.number(info.name, count);
        }
    }
    json.close('}');
    json.close('}');
    return std::string{json.view()} + '\n';
}

} // namespace tw::report
