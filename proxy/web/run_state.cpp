#include "proxy/web/run_state.h"

#include "proxy/record/json.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace tw::web {

namespace json = boost::json;

namespace {

using Direction = relay::DirectionTotals<std::uint64_t>;

json::object direction_json(const Direction& direction) {
    return {{"datagrams", direction.datagrams},
            {"bytes", direction.bytes},
            {"dropped", direction.dropped},
            {"refused", direction.send_errors},
            {"copies_lost", direction.copies_lost}};
}

json::object relay_json(const RelayState& relay) {
    json::object new_clients;
    for (const relay::NewClientCounterInfo& row : relay::new_client_counter_table()) {
        new_clients[row.name] = relay.new_clients.*row.value;
    }
    return {{"sessions", relay.sessions_open},
            {"admission", std::move(new_clients)},
            {"opened", relay.sessions_opened},
            {"closed", relay.sessions_closed},
            {"refused", relay.datagrams_without_session},
            {"failed", relay.datagrams_without_socket},
            {"icmp_refused", relay.icmp_refused},
            {"receive_errors", relay.receive_errors},
            {"kernel_dropped", relay.kernel_dropped},
            {"c2s", direction_json(relay.directions[0])},
            {"s2c", direction_json(relay.directions[1])}};
}

json::object direction_json(const SessionView& session, std::size_t direction) {
    return {{"datagrams", session.datagrams[direction]},
            {"bytes", session.bytes[direction]},
            {"recovered", session.recovered[direction]},
            {"jitter_us", session.jitter_us[direction].mean()},
            {"jitter_count", session.jitter_us[direction].count}};
}

json::array sessions_json(const StatusView& view) {
    json::array sessions;
    for (const SessionView& session : view.sessions) {
        json::object told{{"number", session.number},
                          {"client", session.client},
                          {"protocol", session.protocol},
                          {"map", session.map},
                          {"map_id", nullptr}, // null if the map's file is not available
                          {"name", session.name},
                          {"place", session.place},
                          {"score", json::value_from(session.score)},
                          {"score_is_ms", session.is_score_time},
                          {"closed", session.is_closed},
                          {"opened_ms", session.opened_ms},
                          {"c2s", direction_json(session, 0)},
                          {"s2c", direction_json(session, 1)},
                          {"snapshots", session.snapshots},
                          {"verified", session.verified},
                          {"missed", session.missed},
                          {"frozen_ms", session.frozen_ms},
                          {"ack_lag_ticks", session.ack_lag_ticks.mean()},
                          {"ack_lag_count", session.ack_lag_ticks.count},
                          {"largest_snapshot", session.largest_snapshot},
                          {"findings", session.findings}};
        if (session.map_sha256) {
            told["map_id"] = fmt::format("{:02x}", fmt::join(*session.map_sha256, ""));
        }
        if (!session.server_name.empty()) {
            told["server_name"] = session.server_name;
        }
        sessions.push_back(std::move(told));
    }
    return sessions;
}

ServerView server_view_of(const RunState& state, const NamedServerState& server) {
    const auto found = state.view.servers.find(server.name);
    return found == state.view.servers.end() ? ServerView{} : found->second;
}

/// Returns the servers that have names, with their totals.
json::array servers_json(const RunState& state) {
    json::array servers;
    for (const NamedServerState& server : state.servers) {
        const ServerView seen = server_view_of(state, server);
        json::object told{{"name", server.name},
                          {"server", server.address},
                          {"listen", json::array(server.listen.begin(), server.listen.end())},
                          {"silent", server.is_silent},
                          {"players", seen.players},
                          {"findings", seen.findings},
                          {"relay", relay_json(server.relay)}};
        if (server.collected) {
            told["page"] = server.collected->page;
            told["records"] = server.collected->records;
            told["last_ms"] = server.collected->last_record_ms;
        }
        servers.push_back(std::move(told));
    }
    return servers;
}

/// Returns the number of snapshots with each result, and the number of missing snapshots.
json::object snapshots_json(const record::SessionStats& totals) {
    json::object object;
    for (const auto& [row, count] : record::counts_by_topic<record::SnapshotCounters>(totals)) {
        if (row->topic == record::CounterTopic::snapshot_outcome ||
            (row->topic == record::CounterTopic::missing_snapshots && row->has_share)) {
            object.emplace(row->key, count);
        }
    }
    return object;
}

json::array findings_json(const StatusView& view) {
    json::array findings;
    for (const record::FindingInfo& info : record::finding_table()) {
        const std::uint64_t count = view.totals.findings[static_cast<std::size_t>(info.id)];
        if (count != 0) {
            findings.push_back(json::object{{"id", info.name},
                                            {"severity", record::severity_name(info.severity)},
                                            {"sentence", info.sentence},
                                            {"cause", info.cause},
                                            {"count", count}});
        }
    }
    return findings;
}

json::array recent_findings_json(const StatusView& view) {
    json::array recent;
    for (const FindingLine& line : view.findings) {
        json::object told{{"time_ms", line.time_ms},
                          {"session", line.session},
                          {"severity", line.severity},
                          {"text", line.text}};
        if (line.tick) {
            told["tick"] = *line.tick;
        }
        if (std::ranges::any_of(view.finding_contexts, [&](const FindingContext& context) {
                return context.session == line.session && context.tick == line.tick;
            })) {
            told["explained_at"] =
                fmt::format("/api/explain?session={}&tick={}", line.session, *line.tick);
        }
        recent.push_back(std::move(told));
    }
    return recent;
}

/// Returns the totals of the message bus as an object; null if there is no bus.
json::value bus_json(const std::optional<record::BusTotals>& totals) {
    if (!totals) {
        return nullptr;
    }
    json::object object;
    for (const record::BusMetricRow& row : record::bus_metric_rows()) {
        std::string_view key = row.result.empty() ? row.metric : row.result;
        for (const std::string_view around : {"bus_", "_total"}) {
            key.remove_prefix(key.starts_with(around) ? around.size() : 0);
            key.remove_suffix(key.ends_with(around) ? around.size() : 0);
        }
        object[key] = (*totals).*row.value;
    }
    return object;
}

json::object recording_json(const RecordingState& recording) {
    json::object object{{"output", recording.output},
                        {"failed", !recording.error.empty()},
                        {"error", recording.error},
                        {"lost", recording.lost},
                        {"flight", recording.has_flight_recorder},
                        {"bus", bus_json(recording.bus)},
                        {"page", nullptr}};
    if (const auto& page = recording.page) {
        object["page"] =
            json::object{{"captures", page->allows_captures},
                         {"capture_since_ms", json::value_from(page->capture_since_ms)},
                         {"demos_since_ms", json::value_from(page->demos_since_ms)},
                         {"lost", page->lost},
                         {"stopped", page->stop_reason}};
    }
    return object;
}

json::value stream_json(const std::optional<RecordStreamState>& stream) {
    if (!stream) {
        return nullptr;
    }
    return json::object{{"name", stream->name},
                        {"trouble", stream->error},
                        {"records", stream->records},
                        {"left_out", stream->ignored_records}};
}

/// Returns the latest change of the impairment on the page; null if the impairment was later
/// changed elsewhere.
json::value impairment_change_json(const RunState& state) {
    if (!state.impairment_change || state.impairment_change->settings != state.impairment) {
        return nullptr;
    }
    return json::object{{"time_ms", state.impairment_change->time_ms},
                        {"from", state.impairment_change->client_name}};
}

} // namespace

void subtract_counts_of_closed_sessions(RunState& state) {
    const auto leave_out = [](RelayState& relay, std::uint64_t left) {
        relay.sessions_open -= std::min(relay.sessions_open, left);
    };
    leave_out(state.relay, state.view.sessions_closed);
    for (NamedServerState& server : state.servers) {
        leave_out(server.relay, server_view_of(state, server).closed);
    }
}

std::string sessions_json(const RunState& state) {
    return record::json_text(json::object{{"v", 1},
                                          {"now_ms", state.now_ms},
                                          {"seen_by_inspection", state.view.sessions_open},
                                          {"sessions", sessions_json(state.view)}}) +
           '\n';
}

std::string findings_json(const RunState& state) {
    return record::json_text(json::object{{"v", 1},
                                          {"now_ms", state.now_ms},
                                          {"findings", findings_json(state.view)},
                                          {"recent", recent_findings_json(state.view)}}) +
           '\n';
}

std::string state_json(const RunState& state) {
    json::object object{{"v", 1},
                        {"version", state.version},
                        {"now_ms", state.now_ms},
                        {"started_ms", state.started_ms},
                        {"listen", json::array(state.listen.begin(), state.listen.end())},
                        {"server", state.server},
                        {"server_silent", state.server_silence.has_value()},
                        {"servers", servers_json(state)},
                        {"impairment", state.impairment},
                        {"impaired_by", impairment_change_json(state)},
                        {"observer", state.observer_number},
                        {"viewers", state.viewers},
                        {"viewers_lost", state.dropped_viewer_messages},
                        {"inspecting", state.is_inspecting},
                        {"stream", stream_json(state.stream)},
                        {"relay", relay_json(state.relay)},
                        {"recording", recording_json(state.recording)},
                        {"snapshots", snapshots_json(state.view.totals)},
                        {"sessions_seen_by_inspection", state.view.sessions_open},
                        {"sessions", sessions_json(state.view)},
                        {"findings", findings_json(state.view)},
                        {"recent", recent_findings_json(state.view)},
                        {"items", json::object(state.view.items.begin(), state.view.items.end())}};
    if (state.server_silence) {
        object["server_silent_since_ms"] = state.server_silence->since_ms;
        object["server_unanswered"] = state.server_silence->unanswered;
        object["server_refused"] = state.server_silence->refused;
    }
    return record::json_text(std::move(object)) + '\n';
}

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;

constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};
constexpr double kMsPerSecond = 1000;
constexpr std::string_view kPlayersSentence = "Sessions with a player in the game.";
constexpr std::string_view kSilentSentence = "1 while the server answers none of its sessions.";

/// Collects metrics. The caller must add all metrics with the same name one after the other,
/// because the output format groups metrics by name.
class MetricCollector {
  public:
    /// Adds a counter or gauge.
    template <typename Number>
    void add(MetricType type, std::string_view name, std::string_view help, Number value,
             Labels labels = {}) {
        ClientMetric& metric = add_metric(type, name, help, std::move(labels));
        (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
            static_cast<double>(value);
    }

    /// Adds the count and sum of each distribution that has a metric, in base units such as
    /// seconds.
    template <template <typename> class Totals>
    void add_summaries(const Totals<record::Distribution>& totals) {
        const auto cells = record::members_as_array<Totals>(totals);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const record::DistributionRow& row = record::distribution_rows<Totals>()[i];
            if (!row.metric.empty()) {
                auto& summary =
                    add_metric(MetricType::Summary, row.metric, row.sentence, {}).summary;
                summary.sample_count = cells[i].count;
                summary.sample_sum = static_cast<double>(cells[i].sum) * row.metric_unit;
            }
        }
    }

    [[nodiscard]] std::string text() const {
        std::ostringstream out;
        prometheus::TextSerializer{}.Serialize(out, families_);
        return out.str();
    }

  private:
    ClientMetric& add_metric(MetricType type, std::string_view name, std::string_view help,
                             Labels labels) {
        const std::string full_name = "twscope_" + std::string{name};
        if (families_.empty() || families_.back().name != full_name) {
            families_.push_back(MetricFamily{
                .name = full_name, .help = std::string{help}, .type = type, .metric = {}});
        }
        ClientMetric& metric = families_.back().metric.emplace_back();
        metric.label = std::move(labels);
        return metric;
    }

    std::vector<MetricFamily> families_;
};

/// Returns `labels` and another label; only `labels` if `value` is empty.
Labels with_label(Labels labels, const char* name, std::string_view value) {
    if (!value.empty()) {
        labels.push_back({.name = name, .value = std::string{value}});
    }
    return labels;
}

/// A counter of the relay, or two counters: one for each direction.
struct RelayMetric {
    std::string_view name;
    std::string_view result; ///< label `result` that distinguishes counters of a name; may be empty
    std::string_view help;
    std::uint64_t relay::Counters::*value = nullptr;
    std::uint64_t Direction::*of_direction = nullptr;
};

using relay::Counters;
constexpr std::string_view kDatagramsSentence =
    "Datagrams that arrived to be forwarded, by result.";
constexpr std::string_view kSessionsSentence =
    "Sessions that began and ended; datagrams of new clients that got none because the "
    "table was full (refused) or no socket could be opened (failed).";

constexpr RelayMetric kRelayMetrics[]{
    {"datagrams_total", "forwarded", kDatagramsSentence, nullptr, &Direction::datagrams},
    {"datagrams_total", "dropped", kDatagramsSentence, nullptr, &Direction::dropped},
    {"datagrams_total", "refused", kDatagramsSentence, nullptr, &Direction::send_errors},
    {"forwarded_bytes_total", "", "Forwarded UDP payload.", nullptr, &Direction::bytes},
    {"copies_lost_total", "", "Datagrams forwarded but not inspected: decoding was behind.",
     nullptr, &Direction::copies_lost},
    {"sessions_total", "opened", kSessionsSentence, &Counters::sessions_opened},
    {"sessions_total", "closed", kSessionsSentence, &Counters::sessions_closed},
    {"sessions_total", "refused", kSessionsSentence, &Counters::datagrams_without_session},
    {"sessions_total", "failed", kSessionsSentence, &Counters::datagrams_without_socket},
    {"repeated_answers_total", "",
     "Requests for server info answered with the server's last answer.",
     &Counters::repeated_answers},
    {"icmp_refused_total", "", "Answers 'port unreachable' from either side.",
     &Counters::icmp_refused},
    {"receive_errors_total", "", "Other receive errors.", &Counters::receive_errors},
    {"truncated_datagrams_total", "", "Datagrams longer than the buffer.",
     &Counters::truncated_datagrams},
    {"rewritten_datagrams_total", "", "Clients' datagrams rewritten to ask for a full snapshot.",
     &Counters::rewritten_datagrams},
    {"kernel_dropped_datagrams_total", "",
     "Datagrams that arrived while a socket's receive buffer was full.", &Counters::kernel_dropped},
};

void add_relay_metric(MetricCollector& out, const RelayMetric& metric, const RelayState& relay,
                      const Labels& labels) {
    if (metric.value != nullptr) {
        return out.add(kCounter, metric.name, metric.help, relay.*metric.value,
                       with_label(labels, "result", metric.result));
    }
    for (std::size_t i = 0; i < relay.directions.size(); ++i) {
        out.add(
            kCounter, metric.name, metric.help, relay.directions[i].*metric.of_direction,
            with_label(with_label(labels, "direction", kDirections[i]), "result", metric.result));
    }
}

/// Adds the relay's metrics. If there are several servers, each line has the server's name as a
/// label.
void add_relay_metrics(MetricCollector& out, const RunState& state) {
    std::vector<std::pair<Labels, const RelayState*>> relays;
    for (const NamedServerState& server : state.servers) {
        relays.emplace_back(with_label({}, "server", server.name), &server.relay);
    }
    if (relays.empty()) {
        relays.emplace_back(Labels{}, &state.relay);
    }
    for (const auto& [labels, relay] : relays) {
        out.add(kGauge, "sessions", "Open sessions. A silent one is closed after the idle timeout.",
                relay->sessions_open, labels);
    }
    for (const RelayMetric& metric : kRelayMetrics) {
        for (const auto& [labels, relay] : relays) {
            add_relay_metric(out, metric, *relay, labels);
        }
    }
    for (const relay::NewClientCounterInfo& row : relay::new_client_counter_table()) {
        const bool is_session = row.unit == relay::NewClientCounterUnit::sessions;
        for (const auto& [labels, relay] : relays) {
            out.add(kCounter, is_session ? "strangers_total" : "turned_away_datagrams_total",
                    is_session ? "Unknown clients, by what became of them."
                               : "Clients' datagrams not forwarded, by reason.",
                    relay->new_clients.*row.value, with_label(labels, "result", row.name));
        }
    }
}

/// Adds the metrics of servers, with their names as labels. The metrics have other names in a
/// collector than in a server's own twscope, so that a scraper of both counts nothing twice.
void add_server_metrics(MetricCollector& out, const RunState& state) {
    const auto add = [&](MetricType type, std::string_view name, std::string_view help,
                         const auto& value) {
        for (const NamedServerState& server : state.servers) {
            out.add(type, name, help, value(server, server_view_of(state, server)),
                    with_label({}, "server", server.name));
        }
    };
    if (state.stream) {
        add(kCounter, "collect_server_records_total",
            "Records of the server received from the bus.", [](const auto& server, const auto&) {
                return server.collected ? server.collected->records : 0;
            });
        add(kGauge, "collect_server_last_record_time_seconds",
            "Time of the server's latest record, since 1970.", [](const auto& server, const auto&) {
                return static_cast<double>(server.collected ? server.collected->last_record_ms
                                                            : 0) /
                       kMsPerSecond;
            });
        add(kGauge, "collect_server_sessions", "Open sessions.",
            [](const auto& server, const auto&) { return server.relay.sessions_open; });
        add(kGauge, "collect_server_players", kPlayersSentence,
            [](const auto&, const auto& view) { return view.players; });
    }
    add(kGauge, state.stream ? "collect_server_silent" : "server_silent", kSilentSentence,
        [](const auto& server, const auto&) { return server.is_silent; });
    add(kCounter, state.stream ? "collect_server_findings_total" : "server_findings_total",
        "Warnings and errors reported in the server's sessions.",
        [](const auto&, const auto& view) { return view.findings; });
}

void add_finding_metrics(MetricCollector& out, std::string_view name,
                         const record::FindingCounts& counts) {
    for (const record::FindingInfo& info : record::finding_table()) {
        out.add(kCounter, name, "Findings by id.", counts[static_cast<std::size_t>(info.id)],
                with_label({}, "finding", info.name));
    }
}

void add_stream_metrics(MetricCollector& out, const RunState& state) {
    out.add(kGauge, "collect_connected", "1 while records arrive from the bus.",
            state.stream->error.empty() ? 1 : 0);
    out.add(kCounter, "collect_records_total", "Records received from the bus.",
            state.stream->records);
    add_server_metrics(out, state);
    add_finding_metrics(out, "collect_findings_total", state.view.totals.findings);
}

void add_traffic_metrics(MetricCollector& out, const record::SessionStats& totals) {
    const auto& rows = record::counter_rows<record::DirectionCounters>();
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t i = 0; i < totals.directions.size() && !rows[row].metric.empty(); ++i) {
            const auto cells =
                record::members_as_array<record::DirectionCounters>(totals.directions[i]);
            out.add(kCounter, rows[row].metric, rows[row].sentence, cells[row],
                    with_label({}, "direction", kDirections[i]));
        }
    }
}

void add_snapshot_metrics(MetricCollector& out, const StatusView& view) {
    // All counters of snapshots by result are one metric, with the result as a label.
    constexpr std::string_view kOutcomes = "snapshots_total";
    const record::SessionStats& totals = view.totals;
    const auto counts = record::counts_by_topic<record::SnapshotCounters>(totals);
    for (const auto& [row, value] : counts) {
        if (row->metric == kOutcomes) {
            out.add(kCounter, kOutcomes, "Snapshots by result of rebuilding.", value,
                    with_label({}, "result", row->key));
        }
    }
    for (const auto& [row, value] : counts) {
        if (!row->metric.empty() && row->metric != kOutcomes) {
            out.add(kCounter, row->metric, row->sentence, value);
        }
    }
    out.add_summaries<record::SnapshotDistributions>(totals);
    out.add_summaries<record::SessionDistributions>(totals);
    for (const auto& [type, count] : view.items) {
        out.add(kCounter, "snapshot_items_total", "Items in rebuilt snapshots, by type.", count,
                with_label({}, "item_type", type));
    }
    add_finding_metrics(out, "findings_total", totals.findings);
}

void add_player_metrics(MetricCollector& out, const RunState& state) {
    if (state.servers.empty()) {
        out.add(kGauge, "players", kPlayersSentence, state.view.players);
    }
    for (const NamedServerState& server : state.servers) {
        out.add(kGauge, "players", kPlayersSentence, server_view_of(state, server).players,
                with_label({}, "server", server.name));
    }
}

void add_bus_metrics(MetricCollector& out, const record::BusTotals& totals) {
    for (const record::BusMetricRow& row : record::bus_metric_rows()) {
        out.add(row.kind == record::MetricKind::counter ? kCounter : kGauge, row.metric,
                row.sentence, totals.*row.value, with_label({}, "result", row.result));
    }
}

void add_run_metrics(MetricCollector& out, const RunState& state) {
    add_relay_metrics(out, state);
    add_server_metrics(out, state);
    if (state.servers.empty()) { // a single server without a name
        out.add(kGauge, "server_silent", kSilentSentence, state.server_silence ? 1 : 0);
    }
    out.add(kGauge, "recording_failed", "1 while records cannot be written.",
            state.recording.error.empty() ? 0 : 1);
    out.add(kCounter, "records_lost_total", "Records that could not be written.",
            state.recording.lost);
    out.add(kCounter, "recorded_bytes_total", "Bytes of records and captures written to files.",
            state.recording.written_bytes);
    if (state.recording.bus) {
        add_bus_metrics(out, *state.recording.bus);
    }
    if (state.is_inspecting) {
        add_player_metrics(out, state);
        add_traffic_metrics(out, state.view.totals);
        add_snapshot_metrics(out, state.view);
    }
}

} // namespace

std::string metrics_text(const RunState& state) {
    MetricCollector out;
    out.add(kGauge, "start_time_seconds", "When twscope started, since 1970.",
            static_cast<double>(state.started_ms) / kMsPerSecond);
    out.add(kCounter, "http_turned_away_total",
            "Connections to the live page and the metrics rejected as too many.",
            state.rejected_http_connections);
    if (state.stream) {
        add_stream_metrics(out, state);
    } else {
        add_run_metrics(out, state);
    }
    return out.text();
}

} // namespace tw::web
