// The records that count: summaries of a session or a run, and what an impairment is set to.

#include "proxy/sink/json_lines.h"

#include <array>
#include <string_view>

namespace tw::sink {

namespace {

constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};

} // namespace

void JsonLines::write(const record::SummaryRecord& record) {
    const record::SessionStats& stats = *record.stats;
    head("summary", record.head);
    if (record.head.session == 0) {
        number("sessions", record.sessions);
    }
    const auto count = [&](std::string_view name, std::uint64_t value) {
        number(name, static_cast<std::int64_t>(value));
    };
    const auto spread = [&](std::string_view name, const record::Spread& value) {
        key(name);
        out_.append('{');
        count("count", value.count);
        if (value.count != 0) {
            number("min", value.min);
            key("mean");
            out_.append_fixed(value.mean());
            number("max", value.max);
        }
        out_.append('}');
    };
    for (std::size_t i = 0; i < kDirections.size(); ++i) {
        const record::DirectionStats& direction = stats.directions[i];
        key(kDirections[i]);
        out_.append('{');
        count("datagrams", direction.datagrams);
        count("bytes", direction.bytes);
        count("malformed", direction.malformed);
        count("control", direction.control);
        count("connless", direction.connless);
        count("compressed", direction.compressed);
        count("compressed_bytes", direction.compressed_bytes);
        count("decompressed_bytes", direction.decompressed_bytes);
        count("chunks", direction.chunks);
        count("messages", direction.messages);
        count("vital", direction.vital);
        count("resent", direction.resent);
        count("duplicates", direction.duplicates);
        count("gaps", direction.gaps);
        count("recovered", direction.recovered);
        count("reordered", direction.reordered);
        count("resend_requests", direction.resend_requests);
        count("wrong_token", direction.wrong_token);
        spread("jitter_us", direction.jitter_us);
        out_.append('}');
    }
    key("snapshots");
    out_.append('{');
    count("total", stats.snapshots);
    count("verified", stats.verified);
    count("mismatched", stats.mismatched);
    count("undecodable", stats.undecodable);
    count("unknown_base", stats.unknown_base);
    count("incomplete", stats.incomplete);
    count("repeated", stats.repeated);
    count("full", stats.full);
    count("empty", stats.empty);
    count("parts", stats.parts);
    count("delta_bytes", stats.delta_bytes);
    count("missed", stats.missed);
    count("ticks_skipped", stats.ticks_skipped);
    spread("items", stats.items);
    spread("size_bytes", stats.snapshot_bytes);
    spread("delta_distance", stats.delta_distance);
    spread("interval_us", stats.snapshot_interval_us);
    out_.append('}');
    spread("ack_lag_ticks", stats.ack_lag_ticks);
    spread("input_margin_ms", stats.input_margin_ms);
    count("map_changes", stats.map_changes);
    count("gap_lost", stats.gap_lost);
    key("findings");
    out_.append('{');
    for (const record::FindingInfo& info : record::finding_table()) {
        const std::uint64_t number_found = stats.findings[static_cast<std::size_t>(info.id)];
        if (number_found != 0) {
            count(info.name, number_found);
        }
    }
    out_.append('}');
    if (record.impaired) {
        impaired(*record.impaired);
    }
}

void JsonLines::impaired(const std::array<record::FateStats, 2>& directions) {
    key("impaired");
    out_.append('{');
    for (std::size_t i = 0; i < directions.size(); ++i) {
        key(kDirections[i]);
        out_.append('{');
        number("datagrams", static_cast<std::int64_t>(directions[i].datagrams));
        number("lost", static_cast<std::int64_t>(directions[i].lost));
        number("rate_dropped", static_cast<std::int64_t>(directions[i].rate_dropped));
        number("queue_full", static_cast<std::int64_t>(directions[i].queue_full));
        number("duplicated", static_cast<std::int64_t>(directions[i].duplicated));
        number("reordered", static_cast<std::int64_t>(directions[i].reordered));
        out_.append('}');
    }
    out_.append('}');
}

void JsonLines::write(const record::ImpairmentRecord& record) {
    head("impairment", record.head);
    text("settings", record.settings);
    number("seed", static_cast<std::int64_t>(record.seed));
    for (std::size_t i = 0; i < record.directions.size(); ++i) {
        const record::ImpairedDirection& direction = record.directions[i];
        key(kDirections[i]);
        out_.append('{');
        number("delay_us", direction.delay_us);
        number("jitter_us", direction.jitter_us);
        number("loss_ppm", direction.loss_ppm);
        number("dup_ppm", direction.dup_ppm);
        number("reorder_ppm", direction.reorder_ppm);
        if (direction.burst) {
            key("burst");
            out_.append_fixed(*direction.burst);
        }
        if (direction.rate_bps) {
            number("rate_bps", static_cast<std::int64_t>(*direction.rate_bps));
        }
        out_.append('}');
    }
}

} // namespace tw::sink
