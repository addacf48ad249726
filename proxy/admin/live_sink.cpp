#include "proxy/admin/live_sink.h"

#include "proxy/record/describe_finding.h"
#include "proxy/record/local_player.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace tw::admin {

namespace {

constexpr std::int64_t kNanosecondsInMs = 1'000'000;
constexpr std::int64_t kLookEvery = 1'000'000'000; ///< nanoseconds: names and places for the page
constexpr std::uint32_t kTypeShift = 16;           ///< of a packed item key

std::uint64_t serious_findings(const record::SessionStats& stats) {
    std::uint64_t count = 0;
    for (const record::FindingInfo& info : record::finding_table()) {
        if (info.severity != record::Severity::info) {
            count += stats.findings[static_cast<std::size_t>(info.id)];
        }
    }
    return count;
}

} // namespace

LiveSink::LiveSink(const snapshot::ObjectSet& objects) : objects_{&objects} {
    for (const auto table : {snapshot::object_table(), objects.custom()}) {
        for (const snapshot::ObjectSpec& object : table) {
            item_names_.push_back(object.name);
        }
    }
    items_.resize(item_names_.size());
}

void LiveSink::on_record(const record::Record& record) {
    if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        see(**session);
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        see(**map);
    } else if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        see(**snapshot);
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        see(**finding);
    }
}

void LiveSink::see(const record::SessionRecord& record) {
    Known& known = sessions_[record.head.session];
    known.view.closed = record.event == record::SessionEvent::close;
    if (known.view.number == 0) {
        known.view.number = record.head.session;
        known.view.opened_ms = record.head.time / kNanosecondsInMs;
    }
    known.view.client = record.client;
    known.view.protocol = record.protocol;
    known.view.server_name = record.head.server_name;
    known.connected = record.event == record::SessionEvent::established;
}

void LiveSink::see(const record::MapRecord& record) {
    if (const auto found = sessions_.find(record.head.session); found != sessions_.end()) {
        found->second.view.map = record.name;
        found->second.view.map_sha256 = record.width == 0 ? std::nullopt : record.sha256;
    }
}

void LiveSink::see(const record::SnapshotRecord& record) {
    if (!record.rebuilt) {
        return;
    }
    count_items(record);
    const auto found = sessions_.find(record.head.session);
    if (found == sessions_.end()) {
        return;
    }
    record::Timestamp& looked = found->second.looked;
    if (record.head.time >= looked && record.head.time - looked < kLookEvery) {
        return; // less than looked: the clock was set back
    }
    looked = record.head.time;
    if (auto tee = record::local_player(record)) {
        found->second.view.name = std::move(tee->name);
        found->second.view.place = std::move(tee->place);
    }
}

void LiveSink::count_items(const record::SnapshotRecord& record) {
    const auto keys = record.items.keys();
    for (auto at = keys.begin(); at != keys.end();) {
        const std::uint32_t type = *at >> kTypeShift;
        // Keys are sorted, so a type's items are one run.
        const auto end = std::find_if(
            at, keys.end(), [type](std::uint32_t key) { return key >> kTypeShift != type; });
        const auto count = static_cast<std::uint64_t>(end - at);
        const snapshot::ObjectSpec* object =
            record.types == nullptr ? nullptr
                                    : record.types->object(static_cast<std::uint16_t>(type));
        if (object != nullptr) {
            items_[objects_->index_of(*object)] += count;
        } else if (type != 0) { // type 0: items that only name types
            unknown_items_ += count;
        }
        at = end;
    }
}

void LiveSink::see(const record::FindingRecord& record) {
    if (record.id == record::FindingId::snapshot_explained) {
        explain_line(findings_, record::describe_explained(record));
        return;
    }
    const record::Severity severity = record::finding_info(record.id).severity;
    if (severity == record::Severity::info) {
        return;
    }
    if (!record.head.server_name.empty()) {
        ++server_findings_[std::string{record.head.server_name}];
    }
    if (findings_.size() == View::kMaxFindings) {
        findings_.pop_front();
    }
    findings_.push_back({.time_ms = record.head.time / kNanosecondsInMs,
                         .session = record.head.session,
                         .tick = record.tick,
                         .severity = std::string{record::severity_name(severity)},
                         .text = record::describe(record)});
}

void LiveSink::fill(View& view, const inspect::Inspector& inspector) {
    view = {};
    view.totals = inspector.totals();
    view.findings = findings_;
    std::unordered_set<std::uint32_t> open;
    inspector.visit([&](std::uint32_t number, const record::SessionStats& stats) {
        open.insert(number);
        add_session(view, number, stats);
    });
    std::erase_if(sessions_, [&](const auto& known) { return !open.contains(known.first); });
    view.cut_sessions();
    count_players(view);
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (items_[i] != 0) {
            view.items[std::string{item_names_[i]}] += items_[i];
        }
    }
    if (unknown_items_ != 0) {
        view.items["unknown"] += unknown_items_;
    }
}

void LiveSink::count_players(View& view) const {
    for (const auto& [unused, known] : sessions_) {
        if (!known.view.server_name.empty()) {
            ServerView& server = view.servers[known.view.server_name];
            ++server.sessions;
            server.players += known.connected ? 1 : 0;
        }
    }
    for (const auto& [name, count] : server_findings_) {
        view.servers[name].findings += count;
    }
}

void LiveSink::add_session(View& view, std::uint32_t number,
                           const record::SessionStats& stats) const {
    ++view.sessions_open;
    const auto known = sessions_.find(number);
    SessionView session = known == sessions_.end() ? SessionView{} : known->second.view;
    session.number = number;
    session.connected = known != sessions_.end() && known->second.connected;
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
    session.findings = serious_findings(stats);
    view.sessions.push_back(std::move(session));
}

} // namespace tw::admin
