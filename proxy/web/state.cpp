#include "proxy/web/state.h"

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

json::object admission_json(const relay::AdmissionTotals<std::uint64_t>& totals) {
    json::object object;
    for (const relay::AdmissionRow& row : relay::admission_rows()) {
        object[row.name] = totals.*row.value;
    }
    return object;
}

json::object relay_json(const RelayState& relay) {
    return {
        {"sessions", relay.sessions_open},           {"admission", admission_json(relay.admission)},
        {"opened", relay.sessions_opened},           {"closed", relay.sessions_closed},
        {"refused", relay.sessions_refused},         {"failed", relay.sessions_failed},
        {"icmp_refused", relay.icmp_refused},        {"receive_errors", relay.receive_errors},
        {"kernel_dropped", relay.kernel_dropped},    {"c2s", direction_json(relay.directions[0])},
        {"s2c", direction_json(relay.directions[1])}};
}

json::object direction_json(const SessionView& session, std::size_t direction) {
    return {{"datagrams", session.datagrams[direction]},
            {"bytes", session.bytes[direction]},
            {"recovered", session.recovered[direction]},
            {"jitter_us", session.jitter_us[direction].mean()},
            {"jitter_count", session.jitter_us[direction].count}};
}

/// Returns the checksum of the session's map file; null if the file is not available.
json::value map_id(const SessionView& session) {
    if (!session.map_sha256) {
        return nullptr;
    }
    return json::string(fmt::format("{:02x}", fmt::join(*session.map_sha256, "")));
}

json::array sessions_json(const StatusView& view) {
    json::array sessions;
    for (const SessionView& session : view.sessions) {
        json::object told{
            {"number", session.number},
            {"client", session.client},
            {"protocol", session.protocol},
            {"map", session.map},
            {"map_id", map_id(session)},
            {"name", session.name},
            {"place", session.place},
            {"score", session.score ? json::value(*session.score) : json::value(nullptr)},
            {"closed", session.closed},
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
        if (!session.server_name.empty()) {
            told["server_name"] = session.server_name;
        }
        sessions.push_back(std::move(told));
    }
    return sessions;
}

/// Returns the servers that have names, with their totals.
json::array servers_json(const RunState& state) {
    json::array servers;
    for (const ServerState& server : state.servers) {
        const auto found = state.view.servers.find(server.name);
        const ServerView seen = found == state.view.servers.end() ? ServerView{} : found->second;
        json::object told{{"name", server.name},
                          {"server", server.address},
                          {"listen", json::array(server.listen.begin(), server.listen.end())},
                          {"silent", server.silent},
                          {"players", seen.players},
                          {"findings", seen.findings},
                          {"relay", relay_json(server.relay)}};
        if (server.collected) {
            told["page"] = server.collected->page;
            told["records"] = server.collected->records;
            told["last_ms"] = server.collected->last_ms;
        }
        servers.push_back(std::move(told));
    }
    return servers;
}

/// Returns the number of snapshots with each result, and the number of missing snapshots.
json::object snapshots_json(const record::SessionStats& totals) {
    json::object object;
    for (const auto& [row, count] : record::counts_by_topic<record::SnapshotCounters>(totals)) {
        if (row->topic == record::Topic::outcome ||
            (row->topic == record::Topic::missing && row->share)) {
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

bool has_explanation(const StatusView& view, const FindingLine& line) {
    return std::ranges::any_of(view.finding_contexts, [&](const FindingContext& context) {
        return context.session == line.session && context.tick == line.tick;
    });
}

json::array recent_json(const StatusView& view) {
    json::array recent;
    for (const FindingLine& line : view.findings) {
        json::object told{{"time_ms", line.time_ms},
                          {"session", line.session},
                          {"severity", line.severity},
                          {"text", line.text}};
        if (line.tick) {
            told["tick"] = *line.tick;
        }
        if (has_explanation(view, line)) {
            told["explained_at"] =
                fmt::format("/api/explain?session={}&tick={}", line.session, *line.tick);
        }
        recent.push_back(std::move(told));
    }
    return recent;
}

json::value or_null(const std::optional<std::int64_t>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

/// Returns the totals of the message bus as an object; null if there is no bus.
json::value bus_json(const std::optional<record::BusTotals>& totals) {
    if (!totals) {
        return nullptr;
    }
    json::object object;
    for (const record::BusRow& row : record::bus_rows()) {
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
    json::object object{{"output", recording.output},     {"failed", recording.failed},
                        {"lost", recording.lost},         {"flight", recording.has_flight},
                        {"bus", bus_json(recording.bus)}, {"page", nullptr}};
    if (const auto& page = recording.page) {
        object["page"] = json::object{{"captures", page->captures},
                                      {"capture_since_ms", or_null(page->capture_since_ms)},
                                      {"demos_since_ms", or_null(page->demos_since_ms)},
                                      {"lost", page->lost},
                                      {"stopped", page->stopped}};
    }
    return object;
}

json::value stream_json(const std::optional<StreamState>& stream) {
    if (!stream) {
        return nullptr;
    }
    return json::object{{"name", stream->name},
                        {"trouble", stream->trouble},
                        {"records", stream->records},
                        {"left_out", stream->left_out}};
}

/// Returns the last change of the impairment on the page; null if it is no longer in force.
json::value impaired_json(const RunState& state) {
    if (!state.impaired || state.impaired->settings != state.impairment) {
        return nullptr;
    }
    return json::object{{"time_ms", state.impaired->time_ms}, {"from", state.impaired->from}};
}

} // namespace

void subtract_closed_sessions(RunState& state) {
    const auto leave_out = [](RelayState& relay, std::uint64_t left) {
        relay.sessions_open -= std::min(relay.sessions_open, left);
    };
    leave_out(state.relay, state.view.sessions_closed);
    for (ServerState& server : state.servers) {
        const auto seen = state.view.servers.find(server.name);
        leave_out(server.relay, seen == state.view.servers.end() ? 0 : seen->second.closed);
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
                                          {"recent", recent_json(state.view)}}) +
           '\n';
}

std::string state_json(const RunState& state) {
    json::object object{{"v", 1},
                        {"version", state.version},
                        {"now_ms", state.now_ms},
                        {"started_ms", state.started_ms},
                        {"listen", json::array(state.listen.begin(), state.listen.end())},
                        {"server", state.server},
                        {"server_silent", state.server_silent.has_value()},
                        {"servers", servers_json(state)},
                        {"impairment", state.impairment},
                        {"impaired_by", impaired_json(state)},
                        {"observer", state.observer},
                        {"viewers", state.viewers},
                        {"viewers_lost", state.viewers_lost},
                        {"inspecting", state.inspecting},
                        {"stream", stream_json(state.stream)},
                        {"relay", relay_json(state.relay)},
                        {"recording", recording_json(state.recording)},
                        {"snapshots", snapshots_json(state.view.totals)},
                        {"sessions_seen_by_inspection", state.view.sessions_open},
                        {"sessions", sessions_json(state.view)},
                        {"findings", findings_json(state.view)},
                        {"recent", recent_json(state.view)},
                        {"items", json::object(state.view.items.begin(), state.view.items.end())}};
    if (state.server_silent) {
        object["server_silent_since_ms"] = state.server_silent->since_ms;
        object["server_unanswered"] = state.server_silent->unanswered;
        object["server_refused"] = state.server_silent->refused;
    }
    return record::json_text(object) + '\n';
}

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::array<std::string_view, 2> kDirections{"c2s", "s2c"};
constexpr double kMsPerSecond = 1000;
constexpr std::string_view kSilentSentence = "1 while the server answers none of its sessions.";
constexpr std::string_view kServerFindings =
    "Warnings and errors reported in the server's sessions.";

/// Collects metric families and returns them as text.
class MetricFamilies {
  public:
    MetricFamily& add(std::string_view name, MetricType type, std::string_view help) {
        return all_.emplace_back(MetricFamily{.name = "twscope_" + std::string{name},
                                              .help = std::string{help},
                                              .type = type,
                                              .metric = {}});
    }

    void add_gauge(std::string_view name, std::string_view help, double value) {
        ClientMetric metric;
        metric.gauge.value = value;
        add(name, MetricType::Gauge, help).metric.push_back(std::move(metric));
    }

    void add_counter(std::string_view name, std::string_view help, std::uint64_t value) {
        count(add(name, MetricType::Counter, help), {}, value);
    }

    static void count(MetricFamily& family, Labels labels, std::uint64_t value) {
        ClientMetric metric;
        metric.label = std::move(labels);
        metric.counter.value = static_cast<double>(value);
        family.metric.push_back(std::move(metric));
    }

    static void measure(MetricFamily& family, Labels labels, double value) {
        ClientMetric metric;
        metric.label = std::move(labels);
        metric.gauge.value = value;
        family.metric.push_back(std::move(metric));
    }

    /// Writes the count and sum of each spread that has a metric, in base units such as seconds.
    template <template <typename> class Totals>
    void add_summaries(const Totals<record::Spread>& totals) {
        const auto cells = record::cells_of<Totals>(totals);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const record::SpreadRow& row = record::spreads_of<Totals>()[i];
            if (row.metric.empty()) {
                continue;
            }
            ClientMetric metric;
            metric.summary.sample_count = cells[i].count;
            metric.summary.sample_sum = static_cast<double>(cells[i].sum) * row.metric_unit;
            add(row.metric, MetricType::Summary, row.sentence).metric.push_back(std::move(metric));
        }
    }

    [[nodiscard]] const std::vector<MetricFamily>& all() const { return all_; }

  private:
    std::vector<MetricFamily> all_;
};

ClientMetric::Label direction_label(std::size_t direction) {
    return {.name = "direction", .value = std::string{kDirections[direction]}};
}

ClientMetric::Label result_label(std::string_view result) {
    return {.name = "result", .value = std::string{result}};
}

/// Adds the relay's metric families. If there are several servers, each line has the server's name
/// as a label.
class RelayFamilies {
  public:
    RelayFamilies(MetricFamilies& out, const RunState& state) : out_{&out} {
        for (const ServerState& server : state.servers) {
            parts_.push_back({{{.name = "server", .value = server.name}}, &server.relay});
        }
        if (parts_.empty()) {
            parts_.push_back({{}, &state.relay});
        }
    }

    /// Adds a family of counters. Calls `each(count, relay)` for every server; `each` adds a line
    /// with count(labels, value).
    template <typename Each>
    void add(std::string_view name, std::string_view help, Each&& each) {
        MetricFamily& family = out_->add(name, MetricType::Counter, help);
        for (const Part& part : parts_) {
            each(
                [&](Labels labels, std::uint64_t value) {
                    labels.insert(labels.begin(), part.labels.begin(), part.labels.end());
                    MetricFamilies::count(family, std::move(labels), value);
                },
                *part.relay);
        }
    }

    void add_counter(std::string_view name, std::string_view help,
                     std::uint64_t RelayState::*value) {
        add(name, help,
            [value](const auto& count, const RelayState& relay) { count({}, relay.*value); });
    }

    void add_directions(std::string_view name, std::string_view help,
                        std::uint64_t Direction::*value) {
        add(name, help, [value](const auto& count, const RelayState& relay) {
            for (std::size_t i = 0; i < relay.directions.size(); ++i) {
                count({direction_label(i)}, relay.directions[i].*value);
            }
        });
    }

    void add_admission(std::string_view name, std::string_view help, relay::AdmissionUnit unit) {
        add(name, help, [unit](const auto& count, const RelayState& relay) {
            for (const relay::AdmissionRow& row : relay::admission_rows()) {
                if (row.unit == unit) {
                    count({result_label(row.name)}, relay.admission.*row.value);
                }
            }
        });
    }

    void add_gauge(std::string_view name, std::string_view help, std::uint64_t RelayState::*value) {
        MetricFamily& family = out_->add(name, MetricType::Gauge, help);
        for (const Part& part : parts_) {
            MetricFamilies::measure(family, part.labels, static_cast<double>(part.relay->*value));
        }
    }

  private:
    struct Part {
        Labels labels;
        const RelayState* relay;
    };

    MetricFamilies* out_;
    std::vector<Part> parts_;
};

void add_sessions(RelayFamilies& out) {
    out.add_gauge("sessions", "Open sessions.", &RelayState::sessions_open);
    out.add("sessions_total",
            "Sessions that began and ended; datagrams of new clients that got none because the "
            "table was full (refused) or no socket could be opened (failed).",
            [](const auto& count, const RelayState& relay) {
                count({result_label("opened")}, relay.sessions_opened);
                count({result_label("closed")}, relay.sessions_closed);
                count({result_label("refused")}, relay.sessions_refused);
                count({result_label("failed")}, relay.sessions_failed);
            });
    out.add_admission("strangers_total", "Unknown clients, by what became of them.",
                      relay::AdmissionUnit::sessions);
    out.add_admission("turned_away_datagrams_total", "Clients' datagrams not forwarded, by reason.",
                      relay::AdmissionUnit::datagrams);
    out.add_counter("repeated_answers_total",
                    "Requests for server info answered with the server's last answer.",
                    &RelayState::repeated_answers);
}

void add_relay(MetricFamilies& families, const RunState& state) {
    RelayFamilies out{families, state};
    out.add("datagrams_total", "Datagrams that arrived to be forwarded, by result.",
            [](const auto& count, const RelayState& relay) {
                for (std::size_t i = 0; i < relay.directions.size(); ++i) {
                    const Direction& direction = relay.directions[i];
                    count({direction_label(i), result_label("forwarded")}, direction.datagrams);
                    count({direction_label(i), result_label("dropped")}, direction.dropped);
                    count({direction_label(i), result_label("refused")}, direction.send_errors);
                }
            });
    out.add_directions("forwarded_bytes_total", "Forwarded UDP payload.", &Direction::bytes);
    out.add_directions("copies_lost_total",
                       "Datagrams forwarded but not inspected: decoding was behind.",
                       &Direction::copies_lost);
    add_sessions(out);
    out.add_counter("icmp_refused_total", "Answers 'port unreachable' from either side.",
                    &RelayState::icmp_refused);
    out.add_counter("receive_errors_total", "Other receive errors.", &RelayState::receive_errors);
    out.add_counter("truncated_datagrams_total", "Datagrams longer than the buffer.",
                    &RelayState::truncated);
    out.add_counter("rewritten_datagrams_total",
                    "Clients' datagrams rewritten to ask for a full snapshot.",
                    &RelayState::rewritten);
    out.add_counter("kernel_dropped_datagrams_total",
                    "Datagrams that arrived while a socket's receive buffer was full.",
                    &RelayState::kernel_dropped);
}

/// Adds the metrics of servers, with their names as labels. For a single server, adds only whether
/// it answers.
void add_servers(MetricFamilies& out, const RunState& state) {
    constexpr std::string_view kSilent = "server_silent";
    if (state.servers.empty()) {
        return out.add_gauge(kSilent, kSilentSentence, state.server_silent ? 1 : 0);
    }
    auto& silent = out.add(kSilent, MetricType::Gauge, kSilentSentence);
    for (const ServerState& server : state.servers) {
        MetricFamilies::measure(silent, {{.name = "server", .value = server.name}},
                                server.silent ? 1 : 0);
    }
    auto& findings = out.add("server_findings_total", MetricType::Counter, kServerFindings);
    for (const ServerState& server : state.servers) {
        const auto seen = state.view.servers.find(server.name);
        MetricFamilies::count(findings, {{.name = "server", .value = server.name}},
                              seen == state.view.servers.end() ? 0 : seen->second.findings);
    }
}

void add_findings(MetricFamilies& out, std::string_view name, const record::FindingCounts& counts) {
    auto& findings = out.add(name, MetricType::Counter, "Findings by id.");
    for (const record::FindingInfo& info : record::finding_table()) {
        MetricFamilies::count(findings, {{.name = "finding", .value = std::string{info.name}}},
                              counts[static_cast<std::size_t>(info.id)]);
    }
}

/// Adds the metrics of a record stream's servers. Their names differ from the names of the servers'
/// own metrics. Therefore, nothing counts twice if both the servers and a collector are scraped.
void add_stream(MetricFamilies& out, const RunState& state) {
    out.add_gauge("collect_connected", "1 while records arrive from the bus.",
                  state.stream->trouble.empty() ? 1 : 0);
    out.add_counter("collect_records_total", "Records received from the bus.",
                    state.stream->records);
    const auto by_server = [&](std::string_view name, MetricType type, std::string_view help,
                               auto value) {
        auto& family = out.add(name, type, help);
        for (const ServerState& server : state.servers) {
            const Labels labels{{.name = "server", .value = server.name}};
            if (type == MetricType::Counter) {
                MetricFamilies::count(family, labels, static_cast<std::uint64_t>(value(server)));
            } else {
                MetricFamilies::measure(family, labels, static_cast<double>(value(server)));
            }
        }
    };
    const auto collected = [](const ServerState& server) {
        return server.collected.value_or(CollectedState{});
    };
    by_server("collect_server_records_total", MetricType::Counter,
              "Records of the server received from the bus.",
              [&](const ServerState& server) { return collected(server).records; });
    by_server("collect_server_last_record_time_seconds", MetricType::Gauge,
              "Time of the server's latest record, since 1970.", [&](const ServerState& server) {
                  return static_cast<double>(collected(server).last_ms) / kMsPerSecond;
              });
    by_server("collect_server_sessions", MetricType::Gauge, "Open sessions.",
              [](const ServerState& server) { return server.relay.sessions_open; });
    by_server("collect_server_silent", MetricType::Gauge, kSilentSentence,
              [](const ServerState& server) { return server.silent ? 1 : 0; });
    by_server("collect_server_findings_total", MetricType::Counter, kServerFindings,
              [&](const ServerState& server) {
                  const auto seen = state.view.servers.find(server.name);
                  return seen == state.view.servers.end() ? 0 : seen->second.findings;
              });
    add_findings(out, "collect_findings_total", state.view.totals.findings);
}

void add_traffic(MetricFamilies& out, const record::SessionStats& totals) {
    const auto& rows = record::counters_of<record::DirectionCounters>();
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row].metric.empty()) {
            continue;
        }
        auto& family = out.add(rows[row].metric, MetricType::Counter, rows[row].sentence);
        for (std::size_t i = 0; i < totals.directions.size(); ++i) {
            const auto cells = record::cells_of<record::DirectionCounters>(totals.directions[i]);
            MetricFamilies::count(family, {direction_label(i)}, cells[row]);
        }
    }
}

/// The metric family that counts snapshots by result. Every other counter has a separate family.
constexpr std::string_view kOutcomes = "snapshots_total";

void add_snapshots(MetricFamilies& out, const StatusView& view) {
    const record::SessionStats& totals = view.totals;
    const auto counts = record::counts_by_topic<record::SnapshotCounters>(totals);
    auto& outcomes = out.add(kOutcomes, MetricType::Counter, "Snapshots by result of rebuilding.");
    for (const auto& [row, value] : counts) {
        if (row->metric == kOutcomes) {
            MetricFamilies::count(outcomes, {{.name = "result", .value = std::string{row->key}}},
                                  value);
        }
    }
    for (const auto& [row, value] : counts) {
        if (!row->metric.empty() && row->metric != kOutcomes) {
            out.add_counter(row->metric, row->sentence, value);
        }
    }
    out.add_summaries<record::SnapshotSpreads>(totals);
    out.add_summaries<record::SessionSpreads>(totals);
    auto& items = out.add("snapshot_items_total", MetricType::Counter,
                          "Items in rebuilt snapshots, by type.");
    for (const auto& [type, count] : view.items) {
        MetricFamilies::count(items, {{.name = "item_type", .value = type}}, count);
    }
    add_findings(out, "findings_total", totals.findings);
}

void add_bus(MetricFamilies& out, const record::BusTotals& totals) {
    std::string_view last;
    MetricFamily* family = nullptr;
    for (const record::BusRow& row : record::bus_rows()) {
        const bool counts = row.kind == record::MetricKind::counter;
        if (row.metric != last) {
            family = &out.add(row.metric, counts ? MetricType::Counter : MetricType::Gauge,
                              row.sentence);
            last = row.metric;
        }
        ClientMetric metric;
        if (!row.result.empty()) {
            metric.label.push_back(result_label(row.result));
        }
        (counts ? metric.counter.value : metric.gauge.value) =
            static_cast<double>(totals.*row.value);
        family->metric.push_back(std::move(metric));
    }
}

void add_run(MetricFamilies& families, const RunState& state) {
    add_relay(families, state);
    add_servers(families, state);
    families.add_gauge("recording_failed", "1 while records cannot be written.",
                       state.recording.failed ? 1 : 0);
    families.add_counter("records_lost_total", "Records that could not be written.",
                         state.recording.lost);
    if (state.recording.bus) {
        add_bus(families, *state.recording.bus);
    }
    if (state.inspecting) {
        add_traffic(families, state.view.totals);
        add_snapshots(families, state.view);
    }
}

} // namespace

std::string metrics_text(const RunState& state) {
    MetricFamilies families;
    families.add_gauge("start_time_seconds", "When twscope started, since 1970.",
                       static_cast<double>(state.started_ms) / kMsPerSecond);
    families.add_counter("http_turned_away_total",
                         "Connections to the live page and the metrics rejected as too many.",
                         state.http_connections_rejected);
    if (state.stream) {
        add_stream(families, state);
    } else {
        add_run(families, state);
    }
    std::ostringstream out;
    prometheus::TextSerializer{}.Serialize(out, families.all());
    return out.str();
}

} // namespace tw::web
