#include "proxy/web/status_view.h"

#include "proxy/record/roster.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace tw::web {

void replace_finding_line(std::deque<FindingLine>& lines, std::string longer) {
    constexpr std::string_view kTick = ", tick ";
    const std::size_t tick = longer.find(kTick);
    if (tick == std::string::npos) {
        return;
    }
    const std::size_t end = longer.find_first_of(",.", tick + kTick.size());
    const std::string begin = longer.substr(0, end);
    const auto line = std::find_if(lines.rbegin(), lines.rend(), [&](const FindingLine& each) {
        return each.text.starts_with(begin) &&
               (each.text.size() == begin.size() || each.text[begin.size()] == ',' ||
                each.text[begin.size()] == '.');
    });
    if (line != lines.rend()) {
        line->text = std::move(longer);
    }
}

void StatusView::merge_with(const StatusView& other) {
    totals.merge(other.totals);
    sessions_open += other.sessions_open;
    sessions_closed += other.sessions_closed;
    players += other.players;
    sessions.insert(sessions.end(), other.sessions.begin(), other.sessions.end());
    limit_sessions(true);
    maps.insert(other.maps.begin(), other.maps.end());
    findings.insert(findings.end(), other.findings.begin(), other.findings.end());
    std::ranges::stable_sort(
        findings, [](const FindingLine& a, const FindingLine& b) { return a.time_ms < b.time_ms; });
    while (findings.size() > kMaxFindings) {
        findings.pop_front();
    }
    finding_contexts.insert(finding_contexts.end(), other.finding_contexts.begin(),
                            other.finding_contexts.end());
    for (const auto& [name, seen] : other.servers) {
        servers[name].sessions += seen.sessions;
        servers[name].players += seen.players;
        servers[name].closed += seen.closed;
        servers[name].findings += seen.findings;
    }
    for (const auto& [type, count] : other.items) {
        items[type] += count;
    }
}

void StatusView::limit_sessions(bool limit_each_server) {
    std::ranges::sort(sessions, {}, [](const SessionView& session) {
        return std::pair{!session.has_player, session.number};
    });
    std::map<std::string, std::size_t> found; // number of sessions so far, by server name
    std::erase_if(sessions, [&](const SessionView& session) {
        return ++found[limit_each_server ? session.server_name : ""] > kMaxSessions;
    });
    std::ranges::sort(sessions, {}, &SessionView::number);
}

namespace {

constexpr std::int64_t kNanosecondsInMs = 1'000'000;
/// The interval in nanoseconds at which a player's name and position are looked up.
constexpr std::int64_t kLookupInterval = 1'000'000'000;
constexpr std::uint32_t kTypeShift = 16; ///< number of bits below the type in a packed item key

} // namespace

void StatusCollector::handle_record(const record::SessionRecord& record) {
    KnownSession& known = sessions_[record.head.session];
    known.view.is_closed = record.event == record::SessionEvent::close;
    if (known.view.number == 0) {
        known.view.number = record.head.session;
        known.view.opened_ms = record.head.time / kNanosecondsInMs;
    }
    known.view.client = record.client;
    known.view.protocol = record.protocol;
    known.view.server_name = record.head.server_name;
    known.view.has_player = record.event == record::SessionEvent::established;
}

void StatusCollector::handle_record(const record::MapRecord& record) {
    if (const auto found = sessions_.find(record.head.session); found != sessions_.end()) {
        found->second.view.map = record.name;
        found->second.view.map_sha256 = record.width == 0 ? std::nullopt : record.sha256;
    }
}

void StatusCollector::handle_record(const record::SnapshotRecord& record) {
    if (!record.rebuilt) {
        return;
    }
    count_items(record);
    const auto found = sessions_.find(record.head.session);
    if (found == sessions_.end()) {
        return;
    }
    record::Timestamp& looked = found->second.last_lookup;
    // A record is older than the latest look-up only if the clock was set back.
    if (record.head.time >= looked && record.head.time - looked < kLookupInterval) {
        return;
    }
    looked = record.head.time;
    if (auto tee = record::local_player(record)) {
        found->second.view.name = std::move(tee->name);
        found->second.view.place = std::move(tee->place);
        found->second.view.score = tee->score;
        found->second.view.is_score_time = tee->is_score_time;
    }
}

void StatusCollector::count_items(const record::SnapshotRecord& record) {
    const auto keys = record.items.keys();
    for (auto at = keys.begin(); at != keys.end();) {
        const std::uint32_t type = *at >> kTypeShift;
        // Keys are sorted, so all items of a type are adjacent.
        const auto end = std::find_if(
            at, keys.end(), [type](std::uint32_t key) { return key >> kTypeShift != type; });
        const snapshot::ObjectSpec* const object =
            record.types == nullptr ? nullptr
                                    : record.types->object(static_cast<std::uint16_t>(type));
        if (type != 0) { // items of type 0 only describe types
            items_[object] += static_cast<std::uint64_t>(end - at);
        }
        at = end;
    }
}

void StatusCollector::handle_record(const record::FindingRecord& record) {
    if (record.id == record::FindingId::snapshot_explained) {
        replace_finding_line(findings_, record::describe_explained_mismatch(record));
        return;
    }
    const record::Severity severity = record::severity_of(record);
    if (severity == record::Severity::info) {
        return;
    }
    if (!record.head.server_name.empty()) {
        ++server_findings_[std::string{record.head.server_name}];
    }
    if (findings_.size() == StatusView::kMaxFindings) {
        findings_.pop_front();
    }
    findings_.push_back({.time_ms = record.head.time / kNanosecondsInMs,
                         .session = record.head.session,
                         .tick = record.tick,
                         .severity = std::string{record::severity_name(severity)},
                         .text = record::describe_finding(record)});
}

void StatusCollector::fill_view(StatusView& view, const inspect::Inspector& inspector) {
    view = {};
    view.totals = inspector.totals();
    view.findings = findings_;
    std::unordered_set<std::uint32_t> open;
    inspector.for_each_session([&](std::uint32_t number, const record::SessionStats& stats) {
        open.insert(number);
        add_session(view, number, stats);
    });
    std::erase_if(sessions_, [&](const auto& known) { return !open.contains(known.first); });
    view.limit_sessions(true);
    add_server_totals(view);
    for (const auto& [object, count] : items_) {
        view.items[object == nullptr ? "unknown" : std::string{object->name}] += count;
    }
}

void StatusCollector::add_server_totals(StatusView& view) const {
    for (const auto& [unused, known] : sessions_) {
        if (!known.view.server_name.empty()) {
            ServerView& server = view.servers[known.view.server_name];
            ++server.sessions;
            server.players += known.view.has_player ? 1 : 0;
            server.closed += known.view.is_closed ? 1 : 0;
        }
    }
    for (const auto& [name, count] : server_findings_) {
        view.servers[name].findings += count;
    }
}

void StatusCollector::add_session(StatusView& view, std::uint32_t number,
                                  const record::SessionStats& stats) const {
    ++view.sessions_open;
    const auto known = sessions_.find(number);
    SessionView session = known == sessions_.end() ? SessionView{} : known->second.view;
    session.number = number;
    view.sessions_closed += session.is_closed ? 1 : 0;
    view.players += session.has_player ? 1 : 0;
    view.maps[number] = session.map_sha256;
    for (std::size_t i = 0; i < stats.directions.size(); ++i) {
        session.datagrams[i] = stats.directions[i].datagrams;
        session.bytes[i] = stats.directions[i].bytes;
        session.recovered[i] = stats.directions[i].recovered;
        session.jitter_us[i] = stats.directions[i].jitter_us;
    }
    session.snapshots = stats.snapshots;
    session.verified = stats.verified;
    session.missed = stats.missed;
    session.frozen_ms = stats.frozen_ms;
    session.ack_lag_ticks = stats.ack_lag_ticks;
    session.largest_snapshot = stats.snapshot_bytes.max;
    for (const record::FindingInfo& info : record::finding_table()) {
        session.findings += info.severity == record::Severity::info
                                ? 0
                                : stats.findings[static_cast<std::size_t>(info.id)];
    }
    view.sessions.push_back(std::move(session));
}

} // namespace tw::web
