#include "proxy/pipeline/live_feed.h"

#include "proxy/record/roster.h"

#include <utility>
#include <variant>

namespace tw::pipeline {

snapshot::SnapshotView PageItemConverter::convert_items(const record::SnapshotRecord& record) {
    if (record::dialect_of(record) == snapshot::Dialect::six) {
        return record.items;
    }
    views_.clear();
    views_.push_back(world::make_view(record.head.session, record.client_version.value_or(0),
                                      record.items, snapshot::Dialect::seven, record.roster));
    const auto own = views_.front().own_client_id;
    translator_.translate_views(views_);
    items_.clear();
    const snapshot::SnapshotView& told = views_.front().items;
    for (std::size_t i = 0; i < told.size(); ++i) {
        const snapshot::ItemView item = told[i];
        ints_.assign(item.data.begin(), item.data.end());
        if (own && item.key == snapshot::ItemKey{snapshot::kPlayerInfoType, *own} &&
            !ints_.empty()) {
            ints_.front() = 1; // in 0.6, this int marks the viewer's own player
        }
        items_.append(item.key, ints_);
    }
    return items_.view();
}

namespace {

constexpr std::chrono::milliseconds kLedgerInterval{1000};
/// A count of bits above this limit means that an unsigned count has fallen below zero.
constexpr std::uint64_t kMaxPlausibleBits = std::uint64_t{1} << 62U;

} // namespace

WorkerPageFeed::WorkerPageFeed(web::PageFeed& feed, std::size_t worker,
                               const snapshot::ObjectSet& objects)
    : feed_{&feed}, worker_{worker}, json_{{.items = sink::ItemChoice::none, .objects = &objects},
                                           lines_},
      traffic_counter_{feed.interest}, items_{objects} {}

void WorkerPageFeed::on_record(const record::Record& record) {
    const web::ViewerInterest& interest = feed_->interest;
    if (!interest.wants_anything()) [[likely]] {
        return;
    }
    if (interest.wants_topic(web::ViewerTopic::log)) {
        json_.on_record(record);
        has_lines_ = true;
    }
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record);
        snapshot != nullptr && interest.wants_session((*snapshot)->head.session)) {
        add_snapshot(**snapshot);
    }
}

void WorkerPageFeed::add_snapshot(const record::SnapshotRecord& record) {
    batch_.add_snapshot({.session = record.head.session,
                         .time = record.head.time,
                         .tick = record.tick,
                         .delta_tick = record.delta_tick,
                         .crc_wanted = record.crc_wanted,
                         .crc_got = record.crc_got,
                         .bytes = record.bytes,
                         .parts = record.parts,
                         .rebuilt = record.rebuilt},
                        record.rebuilt ? items_.convert_items(record) : snapshot::SnapshotView{});
}

void WorkerPageFeed::add_byte_ledger(Clock::time_point now) {
    if (!feed_->interest.wants_topic(web::ViewerTopic::traffic_totals) ||
        now - ledger_sent_at_ < kLedgerInterval) {
        return;
    }
    ledger_sent_at_ = now;
    for (const auto direction : {wire::Direction::c2s, wire::Direction::s2c}) {
        for (record::ByteLedgerRow& row : traffic_counter_.byte_ledger().rows(direction)) {
            // Leaves out counts that have fallen below zero. When a delta is complete, the bits of
            // its earlier parts are subtracted from the row of incomplete snapshots. If no viewer
            // was connected when these parts arrived, they were never added.
            if (row.total.bits <= kMaxPlausibleBits) {
                batch_.ledger.push_back(std::move(row));
            }
        }
    }
}

void WorkerPageFeed::flush_to_page(Clock::time_point now) {
    if (has_lines_) {
        has_lines_ = false;
        json_.flush();
        batch_.add_lines(lines_.text);
        lines_.text.clear();
    }
    add_byte_ledger(now);
    if (batch_.empty()) [[likely]] {
        return;
    }
    // After a successful try_put_batch(), batch_ contains old data that the page has already read.
    if (!feed_->interest.wants_anything() || feed_->try_put_batch(worker_, batch_)) {
        batch_.clear();
    }
}

namespace {

constexpr record::Timestamp kWorldMillisecond = 1'000'000;
/// If no merged snapshot of the shown server arrives for this time, another server is shown.
constexpr record::Timestamp kServerSilenceTime = 1000 * kWorldMillisecond;
/// Another server is shown only if it has this many more sessions than the shown server. Otherwise,
/// the shown server would change with every player who joins or leaves.
constexpr std::uint32_t kMinSessionLead = 2;
/// The least time between two JSON lines. Making them is expensive.
constexpr record::Timestamp kLineInterval = 200 * kWorldMillisecond;

} // namespace

bool PageWorldFeed::select_shown_server(const record::WorldRecord& world) {
    if (world.server != server_) {
        const record::Timestamp since = world.head.time - shown_at_;
        const bool is_silent = since > kServerSilenceTime || since < -kServerSilenceTime;
        if (!is_silent && world.views < session_count_ + kMinSessionLead) {
            return false;
        }
        server_ = world.server;
        previous_tick_ = snapshot::kNoBase;
    }
    session_count_ = world.views;
    shown_at_ = world.head.time;
    return true;
}

void PageWorldFeed::on_record(const record::Record& record) {
    const auto* const* found = std::get_if<const record::WorldRecord*>(&record);
    if (found == nullptr || !feed_->interest.wants_topic(web::ViewerTopic::world) ||
        !select_shown_server(**found)) {
        return;
    }
    const record::WorldRecord& world = **found;
    batch_.add_snapshot({.time = world.head.time,
                         .tick = world.tick,
                         .delta_tick = previous_tick_,
                         .bytes = world.merged.items.size_bytes(),
                         .parts = static_cast<std::int32_t>(world.views),
                         .rebuilt = true},
                        items_.convert_items(world.merged));
    batch_.world_server = world.head.server_name;
    previous_tick_ = world.tick;
    const record::Timestamp since = world.head.time - line_written_at_;
    if (feed_->interest.wants_topic(web::ViewerTopic::world_line) &&
        (since >= kLineInterval || since < 0)) {
        line_written_at_ = world.head.time;
        batch_.world_line =
            sink::json_line(&world, {.items = sink::ItemChoice::all, .objects = objects_});
    }
}

void PageWorldFeed::flush_to_page() {
    if (batch_.empty()) {
        return;
    }
    if (!feed_->interest.wants_topic(web::ViewerTopic::world)) {
        batch_.clear();
        previous_tick_ = snapshot::kNoBase;
    } else if (feed_->try_put_batch(feed_->world_mailbox_index(), batch_)) {
        batch_.clear(); // contains old data that the page has read
    }
}

std::string FindingContextCollector::to_json_line(const record::Record& record) const {
    return sink::json_line(record, {.items = sink::ItemChoice::all, .objects = objects_});
}

void FindingContextCollector::collect_record(const record::SessionRecord& record) {
    SessionState& state = sessions_[record.head.session];
    finish_context(record.head.session, state);
    state.last_valid.reset();
    if (record.event == record::SessionEvent::close) {
        sessions_.erase(record.head.session);
        return;
    }
    state.session = to_json_line(&record);
}

void FindingContextCollector::collect_record(const record::MapRecord& record) {
    if (const auto found = sessions_.find(record.head.session); found != sessions_.end()) {
        found->second.map = to_json_line(&record);
    }
}

void FindingContextCollector::collect_record(const record::SnapshotRecord& record) {
    const auto found = sessions_.find(record.head.session);
    if (found == sessions_.end()) {
        return;
    }
    SessionState& state = found->second;
    if (state.open) [[unlikely]] {
        if (record.rebuilt) {
            add_valid_snapshot(record, state);
            finish_context(record.head.session, state);
        } else {
            append_line(*state.open, state.open->since, to_json_line(&record));
        }
    }
    if (record.rebuilt) {
        state.last_valid = ValidSnapshot{
            .head = record.head, .tick = record.tick, .delta_tick = record.delta_tick};
    }
}

void FindingContextCollector::add_valid_snapshot(const record::SnapshotRecord& record,
                                                 SessionState& state) {
    OpenContext& open = *state.open;
    if (state.last_valid && record.previous) {
        const record::SnapshotRecord before{.head = state.last_valid->head,
                                            .tick = state.last_valid->tick,
                                            .delta_tick = state.last_valid->delta_tick,
                                            .rebuilt = true,
                                            .items = *record.previous,
                                            .types = record.types,
                                            .tile_map = record.tile_map,
                                            .roster = record.roster};
        append_line(open, open.before, to_json_line(&before));
    }
    append_line(open, open.since, to_json_line(&record));
}

void FindingContextCollector::append_line(OpenContext& open, std::string& to,
                                          const std::string& line) {
    if (open.before.size() + open.since.size() + line.size() <= kMaxBytes) {
        to += line;
    }
}

void FindingContextCollector::collect_record(const record::FindingRecord& record) {
    constexpr std::string_view kFamily = "snapshot.";
    const auto found = sessions_.find(record.head.session);
    const record::FindingInfo& info = record::finding_info(record.id);
    if (found == sessions_.end() || !record.tick || !info.name.starts_with(kFamily)) {
        return;
    }
    SessionState& state = found->second;
    const bool same = state.open && state.open->tick == *record.tick;
    if (!same) {
        const record::Timestamp time = record.head.time;
        const bool early = last_context_start_ && time >= *last_context_start_ &&
                           time - *last_context_start_ < kMinInterval;
        if (info.severity == record::Severity::info || early) {
            return;
        }
        finish_context(record.head.session, state);
        last_context_start_ = time;
        state.open = std::make_unique<OpenContext>(OpenContext{.tick = *record.tick});
    }
    append_line(*state.open, state.open->since, to_json_line(&record));
}

web::FindingContext FindingContextCollector::make_finding_context(std::uint32_t session,
                                                                  const SessionState& state) {
    const OpenContext& open = *state.open;
    return {.session = session,
            .tick = open.tick,
            .lines = std::make_shared<const std::string>(state.session + state.map + open.before +
                                                         open.since)};
}

void FindingContextCollector::finish_context(std::uint32_t session, SessionState& state) {
    if (!state.open) {
        return;
    }
    if (contexts_.size() == kMaxContexts) {
        contexts_.pop_front();
    }
    contexts_.push_back(make_finding_context(session, state));
    state.open.reset();
}

void FindingContextCollector::copy_contexts_to(web::StatusView& view) const {
    view.finding_contexts.assign(contexts_.begin(), contexts_.end());
    for (const auto& [number, state] : sessions_) {
        if (state.open) {
            view.finding_contexts.push_back(make_finding_context(number, state));
        }
    }
}

} // namespace tw::pipeline
