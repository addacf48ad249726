#include "proxy/pipeline/live_feed.h"

#include "proxy/record/roster.h"
#include "proxy/sink/json_lines.h"
#include "proxy/sink/output.h"

#include <string_view>
#include <utility>
#include <variant>

namespace tw::pipeline {

snapshot::SnapshotView PageItems::of(const record::SnapshotRecord& record) {
    if (record::dialect_of(record) == snapshot::Dialect::six) {
        return record.items;
    }
    views_.clear();
    views_.push_back(world::read_seven_view(record.head.session, record.client_version.value_or(0),
                                            record.items, record.roster));
    const auto own = views_.front().own;
    seven_as_six_.tell(views_);
    items_.clear();
    const snapshot::SnapshotView& told = views_.front().items;
    for (std::size_t i = 0; i < told.size(); ++i) {
        const snapshot::ItemView item = told[i];
        ints_.assign(item.data.begin(), item.data.end());
        if (own && item.key == snapshot::ItemKey{snapshot::kPlayerInfoType, *own} &&
            !ints_.empty()) {
            ints_.front() = 1; // 0.6 marks the viewer's own player in the snapshot
        }
        items_.append(item.key, ints_);
    }
    return items_.view();
}

namespace {

constexpr std::chrono::milliseconds kLedgerEvery{1000};
/// The most plausible count of bits. Higher counts are impossible and come from a subtraction below
/// zero.
constexpr std::uint64_t kMostBits = std::uint64_t{1} << 62U;

} // namespace

void WatchedLedger::on_datagram(const record::RecordHead& head,
                                std::span<const std::byte> datagram) {
    on_ = watch_->bytes();
    if (on_) [[unlikely]] {
        attribution_.on_datagram(head, datagram);
    }
}

void WatchedLedger::on_packet(const wire::Packet& packet) {
    if (on_) [[unlikely]] {
        attribution_.on_packet(packet);
    }
}

void WatchedLedger::on_control(const wire::Control& control) {
    if (on_) [[unlikely]] {
        attribution_.on_control(control);
    }
}

void WatchedLedger::on_chunks(const inspect::AcceptedChunks& chunks) {
    if (on_) [[unlikely]] {
        attribution_.on_chunks(chunks);
    }
}

void WatchedLedger::on_chunk(const wire::Chunk& chunk, wire::VitalClass taken,
                             const wire::MessageHead* head) {
    if (on_) [[unlikely]] {
        attribution_.on_chunk(chunk, taken, head);
    }
}

void WatchedLedger::on_fields(std::size_t bytes) {
    if (on_) [[unlikely]] {
        attribution_.on_fields(bytes);
    }
}

void WatchedLedger::on_part(const inspect::PartSeen& part) {
    if (on_) [[unlikely]] {
        attribution_.on_part(part);
    }
}

void WatchedLedger::on_delta(const inspect::DeltaSeen& delta) {
    if (on_) [[unlikely]] {
        attribution_.on_delta(delta);
    }
}

void WatchedLedger::on_datagram_end() {
    if (on_) [[unlikely]] {
        attribution_.on_datagram_end();
    }
}

void LiveFeed::Lines::write(std::string_view block) {
    if (batch_->lines.size() + block.size() > web::Batch::kMaxLineBytes) {
        batch_->lost_lines += sink::lines_in(block);
        return;
    }
    batch_->lines += block;
}

LiveFeed::LiveFeed(web::Feed& feed, std::size_t worker, const snapshot::ObjectSet& objects)
    : feed_{&feed}, worker_{worker}, json_{{.items = sink::ItemChoice::none, .objects = &objects},
                                           lines_},
      ledger_{feed.watch}, items_{objects} {}

void LiveFeed::on_record(const record::Record& record) {
    const web::Watch& watch = feed_->watch;
    if (!watch.any()) [[likely]] {
        return;
    }
    if (watch.log()) {
        json_.on_record(record);
        has_lines_ = true;
    }
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record);
        snapshot != nullptr && watch.session((*snapshot)->head.session)) {
        gather(**snapshot);
    }
}

void LiveFeed::gather(const record::SnapshotRecord& record) {
    batch_.add({.session = record.head.session,
                .time = record.head.time,
                .tick = record.tick,
                .delta_tick = record.delta_tick,
                .crc_wanted = record.crc_wanted,
                .crc_got = record.crc_got,
                .bytes = record.bytes,
                .parts = record.parts,
                .rebuilt = record.rebuilt},
               record.rebuilt ? items_.of(record) : snapshot::SnapshotView{});
}

void LiveFeed::gather_ledger(Clock::time_point now) {
    if (!feed_->watch.bytes() || now - told_ledger_ < kLedgerEvery) {
        return;
    }
    told_ledger_ = now;
    for (const auto direction : {wire::Direction::c2s, wire::Direction::s2c}) {
        for (record::LedgerRow& row : ledger_.ledger().rows(direction)) {
            // A delta corrects what was counted for its parts, but parts before the viewer came
            // were not counted.
            if (row.total.bits <= kMostBits) {
                batch_.ledger.push_back(std::move(row));
            }
        }
    }
}

void LiveFeed::hand_over(Clock::time_point now) {
    if (has_lines_) {
        has_lines_ = false;
        json_.flush();
    }
    gather_ledger(now);
    if (batch_.empty()) [[likely]] {
        return;
    }
    // The exchanged batch was read.
    if (!feed_->watch.any() || feed_->try_put(worker_, batch_)) {
        batch_.clear();
    }
}

namespace {

constexpr record::Timestamp kWorldMillisecond = 1'000'000;
/// After this long a silent server is replaced by another, even if the clock was set back.
constexpr record::Timestamp kSilence = 1000 * kWorldMillisecond;
/// Another server replaces the shown one only with this many more views, so that single players who
/// come and go cause no changes.
constexpr std::uint32_t kLead = 2;
/// Lines are expensive, so they are limited to one per interval.
constexpr record::Timestamp kLineEvery = 200 * kWorldMillisecond;

/// Appends a line to a text.
class WorldLine final : public sink::Output {
  public:
    explicit WorldLine(std::string& text) : text_{&text} {}

    void write(std::string_view block) override { *text_ += block; }

  private:
    std::string* text_;
};

} // namespace

bool PageWorld::is_shown(const record::WorldRecord& world) {
    if (world.server != server_) {
        const record::Timestamp since = world.head.time - shown_;
        const bool is_silent = since > kSilence || since < -kSilence;
        if (!is_silent && world.views < views_ + kLead) {
            return false;
        }
        server_ = world.server;
        tick_ = snapshot::kNoBase;
    }
    views_ = world.views;
    shown_ = world.head.time;
    return true;
}

void PageWorld::on_record(const record::Record& record) {
    const auto* const* found = std::get_if<const record::WorldRecord*>(&record);
    if (found == nullptr || !feed_->watch.world() || !is_shown(**found)) {
        return;
    }
    const record::WorldRecord& world = **found;
    batch_.add({.time = world.head.time,
                .tick = world.tick,
                .delta_tick = tick_,
                .bytes = world.shown.items.size_bytes(),
                .parts = static_cast<std::int32_t>(world.views),
                .rebuilt = true},
               items_.of(world.shown));
    batch_.world_server = world.head.server_name;
    tick_ = world.tick;
    const record::Timestamp since = world.head.time - lined_;
    if (feed_->watch.world_line() && (since >= kLineEvery || since < 0)) {
        lined_ = world.head.time;
        write_line(world);
    }
}

void PageWorld::write_line(const record::WorldRecord& world) {
    batch_.world_line.clear();
    WorldLine line{batch_.world_line};
    sink::JsonLines json{{.items = sink::ItemChoice::all, .objects = objects_}, line};
    json.on_record(&world);
    json.flush();
}

void PageWorld::hand_over() {
    if (batch_.empty()) {
        return;
    }
    if (!feed_->watch.world()) {
        batch_.clear();
        tick_ = snapshot::kNoBase;
    } else if (feed_->try_put(feed_->world_box(), batch_)) {
        batch_.clear(); // the exchanged batch was read
    }
}

/// Appends JSON lines to a text.
class FindingContexts::Lines final : public sink::Output {
  public:
    void write(std::string_view block) override { text += block; }

    std::string text;
};

FindingContexts::~FindingContexts() = default;

FindingContexts::FindingContexts(const snapshot::ObjectSet& objects)
    : lines_{std::make_unique<Lines>()}, json_{
                                             {.items = sink::ItemChoice::all, .objects = &objects},
                                             *lines_} {}

std::string FindingContexts::line_of(const record::Record& record) {
    json_.on_record(record);
    json_.flush();
    return std::exchange(lines_->text, {});
}

void FindingContexts::on_record(const record::Record& record) {
    if (const auto* const* snapshot = std::get_if<const record::SnapshotRecord*>(&record)) {
        see(**snapshot);
    } else if (const auto* const* finding = std::get_if<const record::FindingRecord*>(&record)) {
        see(**finding);
    } else if (const auto* const* session = std::get_if<const record::SessionRecord*>(&record)) {
        see(**session);
    } else if (const auto* const* map = std::get_if<const record::MapRecord*>(&record)) {
        see(**map);
    }
}

void FindingContexts::see(const record::SessionRecord& record) {
    Known& known = sessions_[record.head.session];
    end(record.head.session, known);
    known.right.reset();
    if (record.event == record::SessionEvent::close) {
        sessions_.erase(record.head.session); // a new session of this number has an open record
        return;
    }
    known.session = line_of(&record);
}

void FindingContexts::see(const record::MapRecord& record) {
    if (const auto found = sessions_.find(record.head.session); found != sessions_.end()) {
        found->second.map = line_of(&record);
    }
}

void FindingContexts::see(const record::SnapshotRecord& record) {
    const auto found = sessions_.find(record.head.session);
    if (found == sessions_.end()) {
        return;
    }
    Known& known = found->second;
    if (known.telling) [[unlikely]] {
        if (record.rebuilt) {
            tell_around(record, known);
            end(record.head.session, known);
        } else {
            append(*known.telling, known.telling->since, line_of(&record));
        }
    }
    if (record.rebuilt) {
        known.right = ValidSnapshot{
            .head = record.head, .tick = record.tick, .delta_tick = record.delta_tick};
    }
}

void FindingContexts::tell_around(const record::SnapshotRecord& record, Known& known) {
    Telling& telling = *known.telling;
    if (known.right && record.previous) {
        const record::SnapshotRecord before{.head = known.right->head,
                                            .tick = known.right->tick,
                                            .delta_tick = known.right->delta_tick,
                                            .rebuilt = true,
                                            .items = *record.previous,
                                            .types = record.types,
                                            .world = record.world,
                                            .roster = record.roster};
        append(telling, telling.before, line_of(&before));
    }
    append(telling, telling.since, line_of(&record));
}

void FindingContexts::append(Telling& telling, std::string& to, const std::string& line) {
    if (telling.before.size() + telling.since.size() + line.size() <= kMaxBytes) {
        to += line;
    }
}

void FindingContexts::see(const record::FindingRecord& record) {
    constexpr std::string_view kFamily = "snapshot.";
    const auto found = sessions_.find(record.head.session);
    const record::FindingInfo& info = record::finding_info(record.id);
    if (found == sessions_.end() || !record.tick || !info.name.starts_with(kFamily)) {
        return;
    }
    Known& known = found->second;
    const bool same = known.telling && known.telling->tick == *record.tick;
    if (!same) {
        const record::Timestamp time = record.head.time;
        const bool early = begun_ && time >= *begun_ && time - *begun_ < kPause;
        if (info.severity == record::Severity::info || early) {
            return;
        }
        end(record.head.session, known);
        begun_ = time;
        known.telling = std::make_unique<Telling>(Telling{.tick = *record.tick});
    }
    append(*known.telling, known.telling->since, line_of(&record));
}

web::FindingContext FindingContexts::account(std::uint32_t session, const Known& known) {
    const Telling& telling = *known.telling;
    return {.session = session,
            .tick = telling.tick,
            .lines = std::make_shared<const std::string>(known.session + known.map +
                                                         telling.before + telling.since)};
}

void FindingContexts::end(std::uint32_t session, Known& known) {
    if (!known.telling) {
        return;
    }
    if (accounts_.size() == kKept) {
        accounts_.pop_front();
    }
    accounts_.push_back(account(session, known));
    known.telling.reset();
}

void FindingContexts::fill(web::View& view) const {
    view.accounts.assign(accounts_.begin(), accounts_.end());
    for (const auto& [number, known] : sessions_) {
        if (known.telling) {
            view.accounts.push_back(account(number, known));
        }
    }
}

} // namespace tw::pipeline
