#include "proxy/admin/state_json.h"

#include "proxy/record/json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tw::admin {

namespace json = boost::json;

namespace {

json::object direction_json(const DirectionState& direction) {
    return {{"datagrams", direction.datagrams},
            {"bytes", direction.bytes},
            {"dropped", direction.dropped},
            {"refused", direction.refused},
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

/// Names the map's bytes; null where they are not known.
json::value map_id(const SessionView& session) {
    if (!session.map_sha256) {
        return nullptr;
    }
    return json::string(fmt::format("{:02x}", fmt::join(*session.map_sha256, "")));
}

json::array sessions_json(const View& view) {
    json::array sessions;
    for (const SessionView& session : view.sessions) {
        json::object told{{"number", session.number},
                          {"client", session.client},
                          {"protocol", session.protocol},
                          {"map", session.map},
                          {"map_id", map_id(session)},
                          {"name", session.name},
                          {"place", session.place},
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

/// Servers with names, and what was seen of them.
json::array servers_json(const State& state) {
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

/// What became of the snapshots, and how many never came.
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

json::array findings_json(const View& view) {
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

bool has_account(const View& view, const FindingLine& line) {
    return std::any_of(view.accounts.begin(), view.accounts.end(), [&](const Account& account) {
        return account.session == line.session && account.tick == line.tick;
    });
}

json::array recent_json(const View& view) {
    json::array recent;
    for (const FindingLine& line : view.findings) {
        json::object told{{"time_ms", line.time_ms},
                          {"session", line.session},
                          {"severity", line.severity},
                          {"text", line.text}};
        if (line.tick) {
            told["tick"] = *line.tick;
        }
        if (has_account(view, line)) {
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

/// Of what is counted by result, an object; null without a bus.
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

/// Who changed the line from the page, while it is still as they left it.
json::value impaired_json(const State& state) {
    if (!state.impaired || state.impaired->settings != state.impairment) {
        return nullptr;
    }
    return json::object{{"time_ms", state.impaired->time_ms}, {"from", state.impaired->from}};
}

} // namespace

std::string sessions_json(const State& state) {
    return record::json_text(json::object{{"v", 1},
                                          {"now_ms", state.now_ms},
                                          {"seen_by_inspection", state.view.sessions_open},
                                          {"sessions", sessions_json(state.view)}}) +
           '\n';
}

std::string findings_json(const State& state) {
    return record::json_text(json::object{{"v", 1},
                                          {"now_ms", state.now_ms},
                                          {"findings", findings_json(state.view)},
                                          {"recent", recent_json(state.view)}}) +
           '\n';
}

std::string state_json(const State& state) {
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

} // namespace tw::admin
