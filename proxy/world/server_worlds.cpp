#include "proxy/world/server_worlds.h"

#include "proxy/record/roster.h"

#include <tuple>
#include <utility>

namespace tw::world {

namespace {

/// Late views, and stray views (which do not fit the current map run), are reported if they are
/// more than one in kReportThresholdDivisor views. A few are normal: single views are late, and
/// after a lost map change a few views are stray.
constexpr std::uint64_t kReportThresholdDivisor = 100;
/// This many stray views or fewer are never reported, not even in a short recording.
constexpr std::uint64_t kMaxUnreportedStrays = ViewCollector::kMaxStrayViews;

} // namespace

void WorldTotals::add_totals(const WorldTotals& other) {
    record::merge_totals(worlds, other.worlds);
    for (std::size_t i = 0; i < findings.size(); ++i) {
        findings[i] += other.findings[i];
    }
}

void WorldTotals::add_findings_to(record::SessionStats& stats) const {
    for (std::size_t i = 0; i < findings.size(); ++i) {
        stats.findings[i] += findings[i];
    }
}

ServerWorlds::ServerWorlds(ServerId server, SharedMergeState& shared, record::RecordSink& sink,
                           std::uint32_t run)
    : server_{std::move(server)}, shared_{&shared}, sink_{&sink}, types_{*shared.objects},
      collector_{[this](ClosedTick closed) { write_world(std::move(closed)); }, run, shared.delay},
      map_run_{run} {}

std::size_t ServerWorlds::memory_bytes() const {
    return collector_.memory_bytes() + previous_world_.view().block_ints() * sizeof(std::int32_t) +
           messages_.memory_bytes() + difference_log_.memory_bytes() + id_restorer_.memory_bytes();
}

void ServerWorlds::free_memory() {
    if (collector_.close_oldest_tick_early()) {
        ++totals_.worlds.shed;
    } else {
        previous_world_ = {};
        num_worlds_written_ = 0;
        messages_.clear();
        report_findings(difference_log_.flush_pending_differences(), newest_event_time_);
        id_restorer_.forget_client_numberings();
    }
}

void ServerWorlds::on_input(const MergerInput& input) {
    newest_event_time_ = std::max(newest_event_time_, input.time);
    if (input.kind != MergerInput::Kind::time_passed && input.kind != MergerInput::Kind::message) {
        last_event_time_ = input.time;
    }
    switch (input.kind) {
    case MergerInput::Kind::open:
        if (input.resumed) {
            collector_.add_resumed_session(input.session);
        } else {
            collector_.add_session(input.session);
        }
        break;
    case MergerInput::Kind::map:
        session_maps_[input.session] = {.announced = input.map};
        collector_.add_session(input.session, {input.map->name, input.map->record.crc});
        break;
    case MergerInput::Kind::snapshot:
        if (SessionMap& place = session_maps_[input.session]; place.announced == nullptr) {
            place.announced = std::make_shared<const AnnouncedMap>(record::MapRecord{});
        }
        session_maps_[input.session].tile_map = input.tile_map;
        collector_.add_view(input);
        break;
    case MergerInput::Kind::message:
        if (const auto at = collector_.tick_in_map_run_of(input.session)) {
            messages_.add_message(input.session, *at, input.time, input.payload);
        }
        break;
    case MergerInput::Kind::close:
        messages_.remove_session(input.session);
        collector_.remove_session(input.session);
        session_maps_.erase(input.session);
        break;
    case MergerInput::Kind::time_passed:
        collector_.advance_time(input.time);
        break;
    }
}

void ServerWorlds::begin_map_run(std::uint32_t run) {
    map_run_ = run;
    id_restorer_.reset();
    restart_in_dialect(snapshot::Dialect::seven); // until the first 0.6 view
}

void ServerWorlds::restart_in_dialect(snapshot::Dialect dialect) {
    num_worlds_written_ = 0;
    previously_renumbered_.clear();
    types_.start_connection(dialect);
    beams_.reset();
    report_findings(difference_log_.flush_pending_differences(), newest_event_time_);
    missing_tees_.reset();
    messages_.begin_map_run();
    current_map_ = {};
}

void ServerWorlds::prepare_views(std::vector<View> views) {
    shared_->views = std::move(views);
    const bool six = std::ranges::any_of(
        shared_->views, [](const View& view) { return view.dialect == snapshot::Dialect::six; });
    if (six && types_.dialect() == snapshot::Dialect::seven) {
        restart_in_dialect(snapshot::Dialect::six);
    }
    snapshot::SnapshotView learned;
    for (const View& view : shared_->views) {
        types_.learn_types(view.items, learned);
        learned = view.items;
    }
    if (types_.dialect() == snapshot::Dialect::six &&
        shared_->views.back().dialect != types_.dialect()) {
        types_.allow_both_dialects();
        shared_->seven_to_six.translate_views(shared_->views);
    }
    id_restorer_.restore_ids(shared_->views, types_);
    gather_roster();
}

void ServerWorlds::gather_roster() {
    roster_.clear();
    for (const View& view : shared_->views) {
        if (view.roster != nullptr) {
            view.roster->for_each_player(
                [&](std::uint16_t client, const record::Roster::KnownPlayer& entry) {
                    if (roster_.find(client) == nullptr) {
                        roster_.set_player(client, entry);
                    }
                });
        }
    }
}

void ServerWorlds::choose_current_map() {
    // A map with a name is preferred, because a demo needs the name even without other data.
    const auto rank = [](const SessionMap& map) {
        return std::tuple{map.announced != nullptr, map.announced && !map.announced->name.empty(),
                          map.tile_map.has_value()};
    };
    // Returns false for a session to which the server already announced the next map.
    const auto is_of_run = [&](const SessionMap& map, snapshot::Dialect dialect) {
        return map.announced->name.empty() ||
               !collector_.has_other_map({map.announced->name, map.announced->record.crc}, dialect);
    };
    SessionMap best;
    for (const View& view : shared_->views) {
        const auto found = session_maps_.find(view.session);
        if (found != session_maps_.end() && is_of_run(found->second, view.dialect) &&
            rank(found->second) > rank(best)) {
            best = found->second;
        }
    }
    // Of equally good maps, the newer map is used.
    if (rank(best) > rank(current_map_) || (rank(best) == rank(current_map_) && best.tile_map)) {
        current_map_ = std::move(best);
    }
}

void ServerWorlds::report_findings(std::vector<record::FindingRecord> findings,
                                   record::Timestamp time) {
    for (record::FindingRecord& finding : findings) {
        finding.head.time = time;
        finding.head.server_name = server_.name;
        ++totals_.findings[static_cast<std::size_t>(finding.id)];
        sink_->on_record(&finding);
    }
}

void ServerWorlds::pass_on_messages(const record::WorldRecord& world) {
    if (shared_->messages == nullptr) {
        return;
    }
    for (std::size_t view = 0; view < shared_->views.size(); ++view) {
        messages_.add_viewing_session(shared_->views[view].session,
                                      id_restorer_.client_ids_of_view(view));
    }
    messages_.pass_on_messages({.server = server_.address,
                                .map_run = world.run,
                                .tick = world.tick,
                                .dialect = types_.dialect()},
                               *shared_->messages);
}

void ServerWorlds::write_world(ClosedTick closed) {
    if (closed.map_run != map_run_) {
        begin_map_run(closed.map_run);
    }
    prepare_views(std::move(closed.views));
    choose_current_map();
    shared_->differences.clear();
    const snapshot::Tick tick = closed.tick;
    record::WorldRecord world{
        .head = {.time = closed.time, .server_name = server_.name},
        .tick = tick,
        .server = server_.address,
        .run = closed.map_run,
        .views = static_cast<std::uint32_t>(shared_->views.size()),
        .complete = closed.is_complete,
        .map = current_map_.announced == nullptr ? nullptr : &current_map_.announced->record};
    shared_->merger.merge_views(shared_->views, types_, beams_, &shared_->differences);
    record::ItemSightings sightings = shared_->merger.sightings();
    sightings.id_kinds = id_restorer_.id_kinds();
    sightings.renumbered = id_restorer_.renumbered_clients();
    sightings.has_new_renumbering =
        !std::ranges::equal(sightings.renumbered, previously_renumbered_);
    world.merged = {.head = world.head,
                    .tick = tick,
                    .rebuilt = true,
                    .items = shared_->merger.items(),
                    .previous = num_worlds_written_ == 0 ? std::nullopt
                                                         : std::optional{previous_world_.view()},
                    .ordinal = num_worlds_written_,
                    .types = &types_,
                    .tile_map = current_map_.tile_map ? &*current_map_.tile_map : nullptr,
                    .roster = types_.dialect() == snapshot::Dialect::seven ? &roster_ : nullptr,
                    .sightings = &sightings};
    report_findings(difference_log_.track_differences(world, shared_->views, shared_->differences),
                    world.head.time);
    const bool is_proof = closed.is_complete && world.views > 1;
    report_findings(missing_tees_.find_disappeared_tees(world, shared_->views, is_proof),
                    world.head.time);
    ++num_worlds_written_;
    ++totals_.worlds.total;
    totals_.worlds.complete += closed.is_complete ? 1 : 0;
    sink_->on_record(&world);
    pass_on_messages(world);
    id_restorer_.free_rewritten_views();
    if (sightings.has_new_renumbering) {
        previously_renumbered_.assign(sightings.renumbered.begin(), sightings.renumbered.end());
    }
    shared_->merger.swap_items(previous_world_);
}

void ServerWorlds::merge_waiting_ticks() {
    collector_.close_all_ticks();
    report_findings(difference_log_.flush_pending_differences(), newest_event_time_);
    const record::WorldStats& view_counts = collector_.view_counts();
    record::merge_totals(totals_.worlds, view_counts);
    const auto report_if_many = [&](record::FindingId id, std::uint64_t count) {
        if (count * kReportThresholdDivisor > view_counts.views) {
            const auto views = static_cast<std::int64_t>(view_counts.views);
            report_findings({{.id = id, .lost = count, .value = views}}, newest_event_time_);
        }
    };
    report_if_many(record::FindingId::world_late, view_counts.late);
    if (view_counts.stray > kMaxUnreportedStrays) {
        report_if_many(record::FindingId::world_stray, view_counts.stray);
    }
}

void WorldMerger::pass_input_to_server(ServerWorlds& worlds, const MergerInput& input) {
    const std::size_t before = worlds.memory_bytes();
    worlds.on_input(input);
    memory_bytes_ = memory_bytes_ - before + worlds.memory_bytes();
}

void WorldMerger::advance_time(record::Timestamp now) {
    constexpr record::Timestamp kStep = 100'000'000;
    // The clock was set back if `now` is this much earlier than last_advance_time_. The clocks of
    // workers differ less.
    constexpr record::Timestamp kMinClockSetBack = 10 * kStep;
    if (now - last_advance_time_ >= kStep || last_advance_time_ - now >= kMinClockSetBack) {
        last_advance_time_ = now;
        for (const auto& [name, server] : servers_) {
            pass_input_to_server(*server, {.kind = MergerInput::Kind::time_passed, .time = now});
        }
    }
}

void WorldMerger::remove_server(Servers::iterator server) {
    ServerWorlds* const worlds = server->second.get();
    const std::size_t before = worlds->memory_bytes();
    worlds->merge_waiting_ticks();
    totals_.add_totals(worlds->totals());
    lost_messages_ += worlds->lost_message_count();
    memory_bytes_ -= before;
    newest_removed_map_run_ = std::max(newest_removed_map_run_, worlds->map_run_number());
    for (auto& [number, session] : sessions_) {
        if (session.worlds == worlds) {
            session.worlds = nullptr;
        }
    }
    servers_.erase(server);
}

bool WorldMerger::remove_idle_server(record::Timestamp now) {
    const auto is_busy = [now](const ServerWorlds& worlds) {
        return now - worlds.last_event_time() < kIdleTimeout;
    };
    const auto rank = [&](const Servers::value_type& server) {
        const ServerWorlds& worlds = *server.second;
        return std::tuple{is_busy(worlds), worlds.session_count() != 0, worlds.last_event_time()};
    };
    const auto idlest = std::ranges::min_element(servers_, {}, rank);
    if (idlest == servers_.end() || is_busy(*idlest->second)) {
        return false;
    }
    remove_server(idlest);
    return true;
}

ServerWorlds* WorldMerger::find_or_add_server(const ServerId& server, record::Timestamp now) {
    if (const auto known = servers_.find(server); known != servers_.end()) {
        return known->second.get();
    }
    if (servers_.size() >= kMaxServers && !remove_idle_server(now)) {
        return nullptr;
    }
    auto worlds = std::make_unique<ServerWorlds>(server, shared_, *sink_, newest_removed_map_run_);
    return servers_.emplace(server, std::move(worlds)).first->second.get();
}

ServerWorlds* WorldMerger::find_or_add_worlds_of_session(std::uint32_t number,
                                                         const MergerInput& input) {
    auto known = sessions_.find(number);
    if (known == sessions_.end()) {
        if (input.kind != MergerInput::Kind::open) {
            return nullptr;
        }
        known =
            sessions_
                .emplace(number,
                         Session{.server = {.address = input.server, .name = input.server_name}})
                .first;
    }
    Session& session = known->second;
    const bool asks_for_room =
        input.kind != MergerInput::Kind::close && input.kind != MergerInput::Kind::message;
    if (session.worlds == nullptr && asks_for_room) {
        session.worlds = find_or_add_server(session.server, input.time);
        if (session.worlds != nullptr && input.kind != MergerInput::Kind::open) {
            pass_input_to_server(
                *session.worlds,
                {.kind = MergerInput::Kind::open, .time = input.time, .session = number});
        }
    }
    if (session.worlds == nullptr && input.kind == MergerInput::Kind::snapshot) {
        ++totals_.worlds.dropped;
    }
    return session.worlds;
}

void WorldMerger::enforce_memory_limit() {
    while (memory_bytes_ > max_bytes_) {
        const auto size = [](const Servers::value_type& server) {
            return server.second->memory_bytes();
        };
        ServerWorlds& largest = *std::ranges::max_element(servers_, {}, size)->second;
        memory_bytes_ -= largest.memory_bytes();
        largest.free_memory();
        memory_bytes_ += largest.memory_bytes();
    }
}

void WorldMerger::on_input(MergerInput input) {
    // An event of one session advances the time of all servers. A message does not, because
    // messages are optional inputs, which must not change the merged snapshots.
    if (input.kind != MergerInput::Kind::message) {
        advance_time(input.time);
    }
    if (input.kind == MergerInput::Kind::time_passed) {
        return;
    }
    if (ServerWorlds* const worlds = find_or_add_worlds_of_session(input.session, input);
        worlds != nullptr) {
        pass_input_to_server(*worlds, input);
        enforce_memory_limit();
    }
    if (input.kind == MergerInput::Kind::close) {
        sessions_.erase(input.session);
    }
}

void WorldMerger::merge_waiting_ticks() {
    while (!servers_.empty()) {
        remove_server(servers_.begin());
    }
    sessions_.clear();
}

namespace {

MergerInput make_input(MergerInput::Kind kind, const record::RecordHeader& head) {
    return {
        .kind = kind, .time = head.time, .session = head.session, .server_name = head.server_name};
}

bool may_be_to_all_players(const record::MessageRecord& message) {
    return message.head.direction == wire::Direction::s2c && !message.system && message.vital &&
           message.layer == record::MessageLayer::chunk && find_recipients(message.name) != nullptr;
}

} // namespace

void WorldInputConverter::add_snapshot(const record::SnapshotRecord& record, MergerInput& input) {
    input.tick = record.tick;
    auto items = std::make_shared<snapshot::Snapshot>();
    snapshot::SnapshotWriter{*items, record.items.size(), record.items.data().size()}.copy(
        record.items);
    input.items = std::move(items);
    if (record.tile_map != nullptr) {
        input.tile_map = *record.tile_map;
    }
    input.dialect = record::dialect_of(record);
    if (record.roster != nullptr) {
        auto& shared = rosters_[input.session];
        if (shared == nullptr || *shared != *record.roster) {
            shared = std::make_shared<const record::Roster>(*record.roster);
        }
        input.roster = shared;
    }
    input.client_version = record.client_version.value_or(0);
}

void WorldInputConverter::on_record(const record::Record& record) {
    using Kind = MergerInput::Kind;
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        if ((*snapshot)->rebuilt && input_sink_->wants_snapshots()) {
            MergerInput input = make_input(Kind::snapshot, (*snapshot)->head);
            add_snapshot(**snapshot, input);
            input_sink_->on_input(std::move(input));
        }
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        MergerInput input = make_input(Kind::map, (*map)->head);
        input.map = std::make_shared<const AnnouncedMap>(**map);
        input_sink_->on_input(std::move(input));
    } else if (const auto* const* said = std::get_if<const record::MessageRecord*>(&record)) {
        if (passes_messages_ && may_be_to_all_players(**said)) {
            MergerInput input = make_input(Kind::message, (*said)->head);
            input.payload.assign((*said)->payload.begin(), (*said)->payload.end());
            input_sink_->on_input(std::move(input));
        }
    } else if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        const bool ends = (*session)->event == record::SessionEvent::close;
        MergerInput input = make_input(ends ? Kind::close : Kind::open, (*session)->head);
        input.server = (*session)->server;
        input.resumed = (*session)->resumed;
        if (ends) {
            rosters_.erase(input.session);
        }
        input_sink_->on_input(std::move(input));
    }
}

} // namespace tw::world
