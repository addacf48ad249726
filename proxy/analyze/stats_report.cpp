#include "proxy/analyze/stats_report.h"

#include "proxy/record/findings.h"
#include "proxy/record/json.h"
#include "proxy/record/roster.h"
#include "proxy/record/terminal_text.h"
#include "proxy/sink/finding_lines.h"
#include "snapshot/item.h"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace tw::analyze {

namespace json = boost::json;

namespace {

using record::ByteCount;
using record::Distribution;

/// Returns part / whole, or 0 if `whole` is 0.
double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Returns a number as "12,345,678".
std::string group_digits(std::uint64_t value) {
    std::string text = fmt::format("{}", value);
    for (std::size_t at = text.size(); at > 3; at -= 3) {
        text.insert(at - 3, 1, ',');
    }
    return text;
}

std::string distribution_text(const Distribution& distribution, double unit) {
    if (distribution.count == 0) {
        return "-";
    }
    return fmt::format("{:.1f} ({:.1f} to {:.1f})", distribution.mean() / unit,
                       static_cast<double>(distribution.min) / unit,
                       static_cast<double>(distribution.max) / unit);
}

struct Table {
    std::string text{};

    void add_row(std::string_view what, const std::string& left, const std::string& right) {
        text += fmt::format("  {:<31} {:>22} {:>22}\n", what, left, right);
    }

    void add_line(std::string_view what, const std::string& value) {
        text += fmt::format("  {:<31} {}\n", what, value);
    }
};

void write_directions(Table& table, const StatsReport& report) {
    const auto& [c2s, s2c] = report.totals->directions;
    table.add_row("", "client to server", "server to client");

    struct Line {
        std::string_view what;
        std::uint64_t record::DirectionStats::*counter;
        bool always; ///< whether the row is shown even if both numbers are zero
    };

    static constexpr Line kLines[] = {
        {"datagrams", &record::DirectionStats::datagrams, true},
        {"bytes", &record::DirectionStats::bytes, true},
        {"messages", &record::DirectionStats::messages, true},
        {"control packets", &record::DirectionStats::control, false},
        {"connless packets", &record::DirectionStats::connless, false},
        {"malformed datagrams", &record::DirectionStats::malformed, false},
        {"with a wrong token", &record::DirectionStats::wrong_token, false},
        {"not accepted", &record::DirectionStats::not_accepted, false},
        {"vital chunks", &record::DirectionStats::vital, true},
        {"  recovered by retransmission", &record::DirectionStats::recovered, true},
        {"  dropped behind a gap", &record::DirectionStats::gaps, true},
        {"  received twice", &record::DirectionStats::duplicates, true},
        {"reordered", &record::DirectionStats::reordered, true},
        {"resend requests", &record::DirectionStats::resend_requests, true},
        {"compressed packets", &record::DirectionStats::compressed, true},
    };
    for (const Line& line : kLines) {
        if (line.always || c2s.*line.counter != 0 || s2c.*line.counter != 0) {
            table.add_row(line.what, group_digits(c2s.*line.counter),
                          group_digits(s2c.*line.counter));
        }
    }
    const auto ratio = [](const record::DirectionStats& stats) {
        return stats.decompressed_bytes == 0
                   ? std::string{"-"}
                   : fmt::format("{:.1f} %",
                                 100 * share(stats.compressed_bytes, stats.decompressed_bytes));
    };
    table.add_row("  compressed to", ratio(c2s), ratio(s2c));
    constexpr double kMillisecond = 1000;
    table.add_row("jitter, ms", distribution_text(c2s.jitter_us, kMillisecond),
                  distribution_text(s2c.jitter_us, kMillisecond));
}

void write_snapshots(Table& table, const record::SessionStats& totals) {
    if (totals.snapshots == 0 && totals.incomplete == 0) {
        return;
    }
    table.text += "\nSnapshots\n";
    for (const auto& [row, count] : record::counts_by_topic<record::SnapshotCounters>(totals)) {
        if (count == 0) {
            continue;
        }
        std::string what{row->key};
        std::ranges::replace(what, '_', ' ');
        table.add_line(what, row->has_share ? fmt::format("{} ({:.1f} %)", group_digits(count),
                                                          100 * share(count, totals.snapshots))
                                            : group_digits(count));
    }
    const auto against = [](const Distribution& distribution, std::uint64_t limit) {
        return fmt::format("{}, at most {:.1f} % of {}", distribution_text(distribution, 1),
                           100 * share(static_cast<std::uint64_t>(distribution.max), limit),
                           group_digits(limit));
    };
    table.add_line("items", against(totals.items, snapshot::kMaxItems));
    table.add_line("size, bytes", against(totals.snapshot_bytes, snapshot::kMaxSnapshotBytes));
    table.add_line("parts each",
                   fmt::format("{:.2f}", static_cast<double>(totals.parts) /
                                             static_cast<double>(
                                                 std::max<std::uint64_t>(1, totals.snapshots))));
    table.add_line("delta distance, ticks", distribution_text(totals.delta_distance, 1));
    table.add_line("interval, ms", distribution_text(totals.snapshot_interval_us, 1000));
    table.add_line("ack lag, ticks", distribution_text(totals.ack_lag_ticks, 1));
    table.add_line("inputs early by, ms", distribution_text(totals.input_margin_ms, 1));
}

/// Returns the sums of the rows with the same group and name, the largest first.
std::vector<std::pair<std::string, ByteCount>>
sum_rows_by_name(const std::vector<record::ByteLedgerRow>& rows) {
    std::map<std::string, ByteCount> things;
    for (const record::ByteLedgerRow& row : rows) {
        std::string what = fmt::format("{} {}", record::byte_group_name(row.group), row.name);
        std::replace(what.begin(), what.begin() + static_cast<std::ptrdiff_t>(what.find(' ')), '_',
                     ' ');
        ByteCount& total = things[what];
        const std::uint64_t count = std::max(total.count, row.total.count);
        total.add(row.total);
        total.count = count;
    }
    std::vector<std::pair<std::string, ByteCount>> merged{things.begin(), things.end()};
    std::ranges::stable_sort(merged, std::ranges::greater{},
                             [](const auto& each) { return each.second.bits; });
    return merged;
}

void write_bytes_by_type(Table& table, const StatsReport& report, wire::Direction direction) {
    const ByteCount all = report.ledger->total(direction);
    if (all.bits == 0) {
        return;
    }
    static constexpr std::string_view kRow = "  {:>7} {:>14} {:>14} {:>11} {:>9}  {}\n";
    const bool is_c2s = direction == wire::Direction::c2s;
    table.text += fmt::format("\nWhere the bytes went, {}\n",
                              is_c2s ? "client to server" : "server to client");
    table.text +=
        fmt::format(kRow, "share", "bytes on wire", "decompressed", "count", "bits each", "what");
    const auto add = [&](const ByteCount& count, std::string_view what, const std::string& number) {
        const auto bits = static_cast<double>(count.bits);
        const std::string each =
            count.count == 0 || number.empty()
                ? ""
                : fmt::format("{:.1f}", bits / static_cast<double>(count.count));
        table.text += fmt::format(kRow, fmt::format("{:.2f} %", 100 * share(count.bits, all.bits)),
                                  fmt::format("{:.1f}", bits / 8), group_digits(count.bytes),
                                  number, each, what);
    };
    for (const auto& [what, total] : sum_rows_by_name(report.ledger->rows(direction))) {
        add(total, what, group_digits(total.count));
    }
    add(all, "all", "");
}

template <template <typename> class Totals>
void add_counters(json::object& object, const Totals<std::uint64_t>& totals) {
    for (const record::CounterValue& counted : record::counts_by_topic<Totals>(totals)) {
        if (counted.row->topic != record::CounterTopic::live_only) {
            object.emplace(counted.row->key, counted.value);
        }
    }
}

json::array ledger_json(const record::ByteLedger& ledger, wire::Direction direction) {
    json::array rows;
    for (const record::ByteLedgerRow& row : ledger.rows(direction)) {
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
    record::add_distributions<record::PerDirectionDistributions>(object, stats);
    object.emplace("attributed_bits", report.ledger->total(direction).bits);
    object.emplace("attribution", ledger_json(*report.ledger, direction));
    return object;
}

json::object snapshots_json(const record::SessionStats& totals) {
    json::object object;
    add_counters<record::SnapshotCounters>(object, totals);
    object.emplace("full_share", share(totals.full, totals.snapshots));
    record::add_distributions<record::SnapshotDistributions>(object, totals);
    return object;
}

} // namespace

std::string stats_table(const StatsReport& report) {
    Table table;
    constexpr double kSecond = 1e9;
    table.text = fmt::format("{}: {}, {:.1f} s\n\n", fmt::join(report.captures, ", "),
                             record::count_with_noun(report.sessions, "session[s]"),
                             static_cast<double>(report.duration_ns) / kSecond);
    write_directions(table, report);
    write_snapshots(table, *report.totals);
    write_bytes_by_type(table, report, wire::Direction::s2c);
    write_bytes_by_type(table, report, wire::Direction::c2s);
    return table.text;
}

std::string stats_json(const StatsReport& report) {
    const record::SessionStats& totals = *report.totals;
    json::object object{{"v", 1},
                        {"captures", json::array(report.captures.begin(), report.captures.end())},
                        {"sessions", report.sessions},
                        {"duration_us", report.duration_ns / 1000},
                        {"c2s", direction_json(report, wire::Direction::c2s)},
                        {"s2c", direction_json(report, wire::Direction::s2c)},
                        {"snapshots", snapshots_json(totals)}};
    record::add_distributions<record::SessionDistributions>(object, totals);
    add_counters<record::SessionCounters>(object, totals);
    object.emplace("findings", record::findings_json(totals.findings));
    return record::json_text(object) + '\n';
}

void PlayerTable::on_record(const record::Record& record) {
    if (const auto* const* const message = std::get_if<const record::MessageRecord*>(&record)) {
        const auto& values = (*message)->values;
        if ((*message)->name == "cl_start_info" && !values.empty() &&
            requested_names_.size() < kMaxSessions) {
            const auto& bytes = values.front().bytes; // the first field is the name
            requested_names_[(*message)->head.session].assign(
                reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        return;
    }
    const auto* const* const received = std::get_if<const record::SnapshotRecord*>(&record);
    if (received == nullptr) {
        return;
    }
    const record::SnapshotRecord& snapshot = **received;
    const auto& [time, session] = std::pair{snapshot.head.time, snapshot.head.session};
    if (sessions_.size() == kMaxSessions && !sessions_.contains(session)) {
        return;
    }
    PlayedSession& played =
        sessions_.try_emplace(session, PlayedSession{.first_time = time}).first->second;
    played.last_time = time;
    ++played.snapshots;
    played.verified += snapshot.rebuilt ? 1 : 0;
    // Reads the name only once a second, because this is slow.
    if (snapshot.rebuilt && time - played.name_read_time >= record::kNanosecondsPerSecond) {
        played.name_read_time = time;
        if (auto player = record::local_player(snapshot)) {
            played.name = std::move(player->name);
        }
    }
}

std::string PlayerTable::text(std::string_view accepted) const {
    if (sessions_.empty()) {
        return {};
    }
    std::string text = fmt::format("{:>7} {:16} {:>8} {:>8} {:>10} {:>9}\n", "session", "player",
                                   "from", "played", "snapshots", accepted);
    for (const auto& [session, played] : sessions_) {
        const auto seconds = (played.last_time - played.first_time) / record::kNanosecondsPerSecond;
        const auto requested = requested_names_.find(session);
        const std::string& name = !played.name.empty() || requested == requested_names_.end()
                                      ? played.name
                                      : requested->second;
        text += fmt::format("{:7} {:16} {:>8} {:>2}:{:02}:{:02} {:10} {:7.1f} %\n", session,
                            record::escape_for_terminal(name),
                            sink::clock_text(played.first_time, false), seconds / 3600,
                            seconds / 60 % 60, seconds % 60, played.snapshots,
                            100 * share(played.verified, played.snapshots));
    }
    if (sessions_.size() == kMaxSessions) {
        text += fmt::format("further sessions than these {} are left out\n", kMaxSessions);
    }
    return text;
}

std::string totals_text(const std::vector<std::string>& captures,
                        const record::SessionStats& totals, std::uint32_t sessions,
                        std::string_view sizes_commands, std::string_view accepted) {
    std::string text = fmt::format(
        "{}: {}, {}\n", fmt::join(captures, ", "), record::count_with_noun(sessions, "session[s]"),
        record::count_with_noun(totals.directions[0].datagrams + totals.directions[1].datagrams,
                                "datagram[s]"));
    text += fmt::format("snapshots: {}, {} {}", totals.snapshots, totals.verified, accepted);
    const std::pair<std::string_view, std::uint64_t> failures[] = {
        {"with a wrong checksum", totals.mismatched},
        {"undecodable", totals.undecodable},
        {"on an unknown base", totals.unknown_base},
        {"incomplete", totals.incomplete},
        {"repeated", totals.repeated},
    };
    for (const auto& [what, count] : failures) {
        if (count != 0) {
            text += fmt::format(", {} {}", count, what);
        }
    }
    text += '\n';
    if (std::ranges::any_of(totals.findings, [](std::uint64_t count) { return count != 0; })) {
        // "in all" also counts repeated findings that have no record.
        text += fmt::format("{:7} {:30} {:>6}\n", "", "finding", "in all");
    }
    for (const record::FindingId id : record::findings_by_importance()) {
        const record::FindingInfo& info = record::finding_info(id);
        if (const auto count = totals.findings[static_cast<std::size_t>(id)]; count != 0) {
            text += fmt::format("{:7} {:30} {:6}  {}\n", record::severity_name(info.severity),
                                info.name, count, info.sentence);
        }
    }
    const auto size_differs = static_cast<std::size_t>(record::FindingId::snapshot_size_differs);
    const bool may_differ =
        totals.undecodable != 0 || (totals.verified == 0 && totals.mismatched != 0);
    if (may_differ && totals.findings[size_differs] == 0) {
        text +=
            fmt::format("{} of {} verified, perhaps because of an object of another size; "
                        "run:\n  {}\n",
                        totals.verified, record::count_with_noun(totals.snapshots, "snapshot[s]"),
                        sizes_commands);
    }
    return text;
}

} // namespace tw::analyze
