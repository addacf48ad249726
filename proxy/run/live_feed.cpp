#include "proxy/run/live_feed.h"

#include <utility>
#include <variant>

namespace tw::run {

namespace {

constexpr std::chrono::milliseconds kLedgerEvery{1000};
/// More have not passed since the wire was invented.
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
    if (batch_->lines.size() + block.size() > admin::Batch::kMaxLineBytes) {
        batch_->lost_lines += sink::lines_in(block);
        return;
    }
    batch_->lines += block;
}

LiveFeed::LiveFeed(admin::Feed& feed, std::size_t worker, const snapshot::ObjectSet& objects)
    : feed_{&feed}, worker_{worker}, json_{{.items = sink::ItemChoice::none, .objects = &objects},
                                           lines_},
      ledger_{feed.watch}, items_{objects} {}

void LiveFeed::on_record(const record::Record& record) {
    const admin::Watch& watch = feed_->watch;
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
            // A delta takes back what its parts were booked as, and nobody booked those that came
            // before somebody looked.
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
    // What comes back from the box was read.
    if (!feed_->watch.any() || feed_->try_put(worker_, batch_)) {
        batch_.clear();
    }
}

} // namespace tw::run
