#include "proxy/admin/metrics.h"

#include <array>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace tw::admin {

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

/// A run of families under construction.
class Families {
  public:
    MetricFamily& add(std::string_view name, MetricType type, std::string_view help) {
        return all_.emplace_back(MetricFamily{.name = "twscope_" + std::string{name},
                                              .help = std::string{help},
                                              .type = type,
                                              .metric = {}});
    }

    void gauge(std::string_view name, std::string_view help, double value) {
        ClientMetric metric;
        metric.gauge.value = value;
        add(name, MetricType::Gauge, help).metric.push_back(std::move(metric));
    }

    void counter(std::string_view name, std::string_view help, std::uint64_t value) {
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

    /// Count and sum of each spread that has a metric, in base units.
    template <template <typename> class Totals>
    void summaries(const Totals<record::Spread>& totals) {
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

/// The relay's families: of each server one by its name, or of the only one without.
class RelayFamilies {
  public:
    RelayFamilies(Families& out, const State& state) : out_{&out} {
        for (const ServerState& server : state.servers) {
            parts_.push_back({{{.name = "server", .value = server.name}}, &server.relay});
        }
        if (parts_.empty()) {
            parts_.push_back({{}, &state.relay});
        }
    }

    /// `each(count, relay)`, where count(labels, value) adds a line.
    template <typename Each>
    void add(std::string_view name, std::string_view help, Each&& each) {
        MetricFamily& family = out_->add(name, MetricType::Counter, help);
        for (const Part& part : parts_) {
            each(
                [&](Labels labels, std::uint64_t value) {
                    labels.insert(labels.begin(), part.labels.begin(), part.labels.end());
                    Families::count(family, std::move(labels), value);
                },
                *part.relay);
        }
    }

    void counter(std::string_view name, std::string_view help, std::uint64_t RelayState::*value) {
        add(name, help,
            [value](const auto& count, const RelayState& relay) { count({}, relay.*value); });
    }

    void directions(std::string_view name, std::string_view help,
                    std::uint64_t DirectionState::*value) {
        add(name, help, [value](const auto& count, const RelayState& relay) {
            for (std::size_t i = 0; i < relay.directions.size(); ++i) {
                count({direction_label(i)}, relay.directions[i].*value);
            }
        });
    }

    void admission(std::string_view name, std::string_view help, relay::AdmissionUnit unit) {
        add(name, help, [unit](const auto& count, const RelayState& relay) {
            for (const relay::AdmissionRow& row : relay::admission_rows()) {
                if (row.unit == unit) {
                    count({result_label(row.name)}, relay.admission.*row.value);
                }
            }
        });
    }

    void gauge(std::string_view name, std::string_view help, std::uint64_t RelayState::*value) {
        MetricFamily& family = out_->add(name, MetricType::Gauge, help);
        for (const Part& part : parts_) {
            Families::measure(family, part.labels, static_cast<double>(part.relay->*value));
        }
    }

  private:
    struct Part {
        Labels labels;
        const RelayState* relay;
    };

    Families* out_;
    std::vector<Part> parts_;
};

void add_sessions(RelayFamilies& out) {
    out.gauge("sessions", "Open sessions.", &RelayState::sessions_open);
    out.add("sessions_total",
            "Sessions that began and ended; datagrams of new clients that got none because the "
            "table was full (refused) or no socket could be opened (failed).",
            [](const auto& count, const RelayState& relay) {
                count({result_label("opened")}, relay.sessions_opened);
                count({result_label("closed")}, relay.sessions_closed);
                count({result_label("refused")}, relay.sessions_refused);
                count({result_label("failed")}, relay.sessions_failed);
            });
    out.admission("strangers_total", "Unknown clients, by what became of them.",
                  relay::AdmissionUnit::sessions);
    out.admission("turned_away_datagrams_total", "Clients' datagrams not forwarded, by reason.",
                  relay::AdmissionUnit::datagrams);
}

void add_relay(Families& families, const State& state) {
    RelayFamilies out{families, state};
    out.add("datagrams_total", "Datagrams that arrived to be forwarded, by result.",
            [](const auto& count, const RelayState& relay) {
                for (std::size_t i = 0; i < relay.directions.size(); ++i) {
                    const DirectionState& direction = relay.directions[i];
                    count({direction_label(i), result_label("forwarded")}, direction.datagrams);
                    count({direction_label(i), result_label("dropped")}, direction.dropped);
                    count({direction_label(i), result_label("refused")}, direction.refused);
                }
            });
    out.directions("forwarded_bytes_total", "Forwarded UDP payload.", &DirectionState::bytes);
    out.directions("copies_lost_total",
                   "Datagrams forwarded but not inspected: decoding was behind.",
                   &DirectionState::copies_lost);
    add_sessions(out);
    out.counter("icmp_refused_total", "Answers 'port unreachable' from either side.",
                &RelayState::icmp_refused);
    out.counter("receive_errors_total", "Other receive errors.", &RelayState::receive_errors);
    out.counter("truncated_datagrams_total", "Datagrams longer than the buffer.",
                &RelayState::truncated);
    out.counter("rewritten_datagrams_total",
                "Clients' datagrams rewritten to ask for a full snapshot.", &RelayState::rewritten);
    out.counter("kernel_dropped_datagrams_total",
                "Datagrams that arrived while a socket's receive buffer was full.",
                &RelayState::kernel_dropped);
}

/// Of servers with names by those; of the only one without, just whether it answers.
void add_servers(Families& out, const State& state) {
    constexpr std::string_view kSilent = "server_silent";
    if (state.servers.empty()) {
        return out.gauge(kSilent, kSilentSentence, state.server_silent ? 1 : 0);
    }
    auto& silent = out.add(kSilent, MetricType::Gauge, kSilentSentence);
    for (const ServerState& server : state.servers) {
        Families::measure(silent, {{.name = "server", .value = server.name}},
                          server.silent ? 1 : 0);
    }
    auto& findings = out.add("server_findings_total", MetricType::Counter, kServerFindings);
    for (const ServerState& server : state.servers) {
        const auto seen = state.view.servers.find(server.name);
        Families::count(findings, {{.name = "server", .value = server.name}},
                        seen == state.view.servers.end() ? 0 : seen->second.findings);
    }
}

void add_findings(Families& out, std::string_view name, const record::FindingCounts& counts) {
    auto& findings = out.add(name, MetricType::Counter, "Findings by id.");
    for (const record::FindingInfo& info : record::finding_table()) {
        Families::count(findings, {{.name = "finding", .value = std::string{info.name}}},
                        counts[static_cast<std::size_t>(info.id)]);
    }
}

/// What a stream says of its servers, under names of its own: who scrapes both them and a collector
/// counts nothing twice.
void add_stream(Families& out, const State& state) {
    out.gauge("collect_connected", "1 while records arrive from the bus.",
              state.stream->trouble.empty() ? 1 : 0);
    out.counter("collect_records_total", "Records received from the bus.", state.stream->records);
    const auto by_server = [&](std::string_view name, MetricType type, std::string_view help,
                               auto value) {
        auto& family = out.add(name, type, help);
        for (const ServerState& server : state.servers) {
            const Labels labels{{.name = "server", .value = server.name}};
            if (type == MetricType::Counter) {
                Families::count(family, labels, static_cast<std::uint64_t>(value(server)));
            } else {
                Families::measure(family, labels, static_cast<double>(value(server)));
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

void add_traffic(Families& out, const record::SessionStats& totals) {
    const auto& rows = record::counters_of<record::DirectionCounters>();
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row].metric.empty()) {
            continue;
        }
        auto& family = out.add(rows[row].metric, MetricType::Counter, rows[row].sentence);
        for (std::size_t i = 0; i < totals.directions.size(); ++i) {
            const auto cells = record::cells_of<record::DirectionCounters>(totals.directions[i]);
            Families::count(family, {direction_label(i)}, cells[row]);
        }
    }
}

/// The counters that say what became of snapshots share one family; others have their own.
constexpr std::string_view kOutcomes = "snapshots_total";

void add_snapshots(Families& out, const View& view) {
    const record::SessionStats& totals = view.totals;
    const auto counts = record::counts_by_topic<record::SnapshotCounters>(totals);
    auto& outcomes = out.add(kOutcomes, MetricType::Counter, "Snapshots by result of rebuilding.");
    for (const auto& [row, value] : counts) {
        if (row->metric == kOutcomes) {
            Families::count(outcomes, {{.name = "result", .value = std::string{row->key}}}, value);
        }
    }
    for (const auto& [row, value] : counts) {
        if (!row->metric.empty() && row->metric != kOutcomes) {
            out.counter(row->metric, row->sentence, value);
        }
    }
    out.summaries<record::SnapshotSpreads>(totals);
    out.summaries<record::SessionSpreads>(totals);
    auto& items = out.add("snapshot_items_total", MetricType::Counter,
                          "Items in rebuilt snapshots, by type.");
    for (const auto& [type, count] : view.items) {
        Families::count(items, {{.name = "item_type", .value = type}}, count);
    }
    add_findings(out, "findings_total", totals.findings);
}

void add_bus(Families& out, const record::BusTotals& totals) {
    std::string_view last;
    MetricFamily* family = nullptr;
    for (const record::BusRow& row : record::bus_rows()) {
        const bool counts = row.kind == record::BusNumber::counter;
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

void add_run(Families& families, const State& state) {
    add_relay(families, state);
    add_servers(families, state);
    families.gauge("recording_failed", "1 once records can no longer be written.",
                   state.recording.failed ? 1 : 0);
    families.counter("records_lost_total", "Records that could not be written.",
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

std::string metrics_text(const State& state) {
    Families families;
    families.gauge("start_time_seconds", "When twscope started, since 1970.",
                   static_cast<double>(state.started_ms) / kMsPerSecond);
    families.counter("http_turned_away_total",
                     "Connections to the live page and the metrics rejected as too many.",
                     state.http_turned_away);
    if (state.stream) {
        add_stream(families, state);
    } else {
        add_run(families, state);
    }
    std::ostringstream out;
    prometheus::TextSerializer{}.Serialize(out, families.all());
    return out.str();
}

} // namespace tw::admin
