// Covers: proxy/record/stats.cpp, proxy/web/run_state.cpp
#include "proxy/web/run_state.h"
#include "tests/proxy/web/sample_state.h"
#include "tests/support/prometheus_text.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

using namespace tw;

namespace {

test::PrometheusText parse_metrics(const web::RunState& state) {
    return test::read_prometheus_text(web::metrics_text(state));
}

} // namespace

TEST_CASE("metrics follow the rules of the Prometheus format and its naming guide") {
    const auto text = parse_metrics(test::sample_run_state());
    for (const std::string& complaint : text.complaints) {
        CAPTURE(complaint);
        CHECK(complaint.empty());
    }
    CHECK(text.types.size() > 20);
    for (const auto& family : text.types) {
        CAPTURE(family.first);
        CHECK(family.first.starts_with("twscope_"));
    }
}

TEST_CASE("no metric has a label that a peer can fill") {
    const auto text = parse_metrics(test::sample_run_state());
    const std::set<std::string> allowed{"direction", "result", "finding", "item_type"};
    for (const auto& label : text.labels) {
        CAPTURE(label.second);
        CHECK(allowed.contains(label.first));
    }
    CHECK(text.labels.size() == allowed.size());
}

TEST_CASE("servers with names have a label, and nothing is counted twice") {
    web::RunState state = test::sample_run_state();
    state.servers = {{.name = "ctf", .address = "127.0.0.1:8304", .relay = state.relay},
                     {.name = "race", .address = "127.0.0.1:8305", .is_silent = true}};
    state.servers[1].relay.sessions_open = 7;
    state.view.servers["race"] = {.players = 3, .findings = 2};
    const auto text = parse_metrics(state);
    CHECK(text.complaints.empty());
    const auto value = [&](const char* name) {
        const auto found = text.samples.find(name);
        return found == text.samples.end() ? -1 : found->second;
    };
    CHECK(value(R"(twscope_sessions{server="ctf"})") == 2);
    CHECK(value(R"(twscope_sessions{server="race"})") == 7);
    CHECK(value("twscope_sessions") == -1);
    CHECK(value(R"(twscope_players{server="ctf"})") == 0);
    CHECK(value(R"(twscope_players{server="race"})") == 3);
    CHECK(value("twscope_players") == -1);
    CHECK(value("twscope_server_silent") == -1);
    CHECK(value(R"(twscope_datagrams_total{server="ctf",direction="s2c",result="forwarded"})") ==
          100);
    CHECK(value(R"(twscope_forwarded_bytes_total{server="race",direction="s2c"})") == 0);
    CHECK(value(R"(twscope_server_silent{server="ctf"})") == 0);
    CHECK(value(R"(twscope_server_silent{server="race"})") == 1);
    CHECK(value(R"(twscope_server_findings_total{server="ctf"})") == 0);
    CHECK(value(R"(twscope_server_findings_total{server="race"})") == 2);
    CHECK(value(R"(twscope_findings_total{finding="snapshot.crc_mismatch"})") == 1);
}

TEST_CASE("a session that a peer closed is not open, although the relay still keeps it") {
    struct Row {
        std::uint64_t open, left, counted;
    };

    for (const Row& row : {Row{8, 4, 4}, Row{4, 4, 0}, Row{3, 0, 3}, Row{1, 2, 0}}) {
        CAPTURE(row.open);
        web::RunState state = test::sample_run_state();
        state.relay.sessions_open = row.open;
        state.view.sessions_closed = row.left;
        web::subtract_counts_of_closed_sessions(state);
        CHECK(parse_metrics(state).samples.at("twscope_sessions") == row.counted);
        state.servers = {{.name = "ctf"}, {.name = "race"}};
        state.servers[0].relay.sessions_open = row.open;
        state.servers[1].relay.sessions_open = row.open;
        state.view.servers["ctf"] = {.closed = row.left};
        web::subtract_counts_of_closed_sessions(state);
        const auto text = parse_metrics(state);
        CHECK(text.samples.at(R"(twscope_sessions{server="ctf"})") == row.counted);
        CHECK(text.samples.at(R"(twscope_sessions{server="race"})") == row.open);
    }
}

TEST_CASE("each of the bus's counters is a metric, and a run without a bus has none of them") {
    web::RunState state = test::sample_run_state();
    CHECK_FALSE(parse_metrics(state).types.contains("twscope_bus_records_total"));
    auto& bus = state.recording.bus.emplace();
    std::uint64_t number = 10;
    for (const auto& row : record::bus_metric_rows()) {
        bus.*row.value = ++number;
    }
    const auto text = parse_metrics(state);
    CHECK(text.complaints.empty());
    number = 10;
    for (const auto& row : record::bus_metric_rows()) {
        CAPTURE(row.metric);
        std::string name = "twscope_" + std::string{row.metric};
        const bool counts = row.kind == record::MetricKind::counter;
        CHECK(text.types.at(name) == (counts ? "counter" : "gauge"));
        if (!row.result.empty()) {
            name += "{result=\"" + std::string{row.result} + "\"}";
        }
        CHECK(text.samples.at(name) == ++number);
    }
}

TEST_CASE("metrics contain the counts, in base units") {
    struct Row {
        std::string name;
        double value;
    };

    const Row rows[] = {
        {"twscope_sessions", 2},
        {"twscope_players", 1},
        {"twscope_recorded_bytes_total", 4096},
        {R"(twscope_sessions_total{result="opened"})", 5},
        {R"(twscope_datagrams_total{direction="s2c",result="forwarded"})", 100},
        {R"(twscope_datagrams_total{direction="c2s",result="dropped"})", 3},
        {R"(twscope_forwarded_bytes_total{direction="s2c"})", 12'345},
        {R"(twscope_snapshots_total{result="verified"})", 49},
        {R"(twscope_snapshots_total{result="mismatched"})", 1},
        {R"(twscope_findings_total{finding="snapshot.crc_mismatch"})", 1},
        {R"(twscope_findings_total{finding="inspect.gap"})", 0},
        {R"(twscope_snapshot_items_total{item_type="character"})", 80},
        {"twscope_snapshot_interval_seconds_sum", 0.1},
        {"twscope_client_freeze_seconds_sum", 1.25},
        {"twscope_client_freeze_seconds_count", 1},
        {"twscope_snapshot_interval_seconds_count", 2},
        {"twscope_start_time_seconds", 1'700'000'000.5},
        {"twscope_recording_failed", 1},
        {"twscope_server_silent", 1},
        {"twscope_records_lost_total", 7},
    };
    const auto text = parse_metrics(test::sample_run_state());
    for (const Row& row : rows) {
        CAPTURE(row.name);
        REQUIRE(text.samples.contains(row.name));
        CHECK(text.samples.at(row.name) == doctest::Approx(row.value));
    }
}

TEST_CASE("a run that only forwards has no metrics of inspection") {
    web::RunState state;
    state.is_inspecting = false;
    const auto text = parse_metrics(state);
    CHECK(text.complaints.empty());
    CHECK(text.types.contains("twscope_datagrams_total"));
    CHECK_FALSE(text.types.contains("twscope_snapshots_total"));
}

TEST_CASE("a collector has metrics of each server's records, and none of forwarding") {
    web::RunState state;
    state.stream = web::RecordStreamState{.name = "twscope", .error = "no route", .records = 70};
    state.servers = {{.name = "ctf", .is_silent = true}};
    state.servers[0].collected =
        web::CollectedServerState{.records = 60, .last_record_ms = 1'700'000'000'500};
    state.servers[0].relay.sessions_open = 3;
    state.view.servers["ctf"] = {.players = 2, .findings = 5};
    const auto text = parse_metrics(state);
    CHECK(text.complaints.empty());
    CHECK(text.samples.at("twscope_collect_connected") == 0);
    CHECK(text.samples.at("twscope_collect_records_total") == 70);
    CHECK(text.samples.at(R"(twscope_collect_server_records_total{server="ctf"})") == 60);
    CHECK(text.samples.at(R"(twscope_collect_server_last_record_time_seconds{server="ctf"})") ==
          doctest::Approx(1'700'000'000.5));
    CHECK(text.samples.at(R"(twscope_collect_server_sessions{server="ctf"})") == 3);
    CHECK(text.samples.at(R"(twscope_collect_server_players{server="ctf"})") == 2);
    CHECK(text.samples.at(R"(twscope_collect_server_silent{server="ctf"})") == 1);
    CHECK(text.samples.at(R"(twscope_collect_server_findings_total{server="ctf"})") == 5);
    CHECK(text.samples.contains(R"(twscope_collect_findings_total{finding="inspect.gap"})"));
    CHECK_FALSE(text.types.contains("twscope_datagrams_total"));
    CHECK_FALSE(
        text.types.contains("twscope_sessions")); // a collector's names differ from a server's own
    CHECK_FALSE(text.types.contains("twscope_server_silent"));
    CHECK_FALSE(text.types.contains("twscope_recording_failed"));
}
