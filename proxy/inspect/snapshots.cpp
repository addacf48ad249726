#include "proxy/inspect/snapshots.h"

#include "proxy/inspect/delta_findings.h"
#include "snapshot/cursor.h"

#include <algorithm>
#include <limits>

namespace tw::inspect {

using snapshot::SnapshotView;
using snapshot::Tick;

namespace {

/// Tick of the base that a distance on the wire names: any negative one means none.
struct Base {
    Tick tick = snapshot::kNoBase;
    bool odd = false; ///< negative, but not -1
};

Base base_tick(Tick tick, std::int32_t distance) {
    const std::int64_t base = std::int64_t{tick} - distance;
    if (base < 0) {
        return {.tick = snapshot::kNoBase, .odd = base != snapshot::kNoBase};
    }
    // A negative distance names a base of the future; it will not be found.
    constexpr std::int64_t kLast = std::numeric_limits<Tick>::max();
    return {.tick = static_cast<Tick>(std::min(base, kLast)), .odd = false};
}

} // namespace

void SnapshotTracker::on_message(wire::MessageId id, std::span<const std::byte> body,
                                 Reporter& reporter, SnapshotWorkspace& workspace) {
    snapshot::Cursor in{body};
    snapshot::Part part;
    part.tick = in.var_int();
    const Base base = base_tick(part.tick, in.var_int());
    part.delta_tick = base.tick;
    if (id == wire::MessageId::snap) {
        part.num_parts = in.var_int();
        part.part = in.var_int();
    }
    if (id != wire::MessageId::snap_empty) {
        part.crc = in.var_int();
        const std::int32_t size = in.var_int();
        part.data = in.raw(size);
    }
    if (in.failed()) {
        return; // told as message.truncated by whoever decodes the fields
    }
    if (part.tick < 0) {
        reporter.finding({.id = record::FindingId::snapshot_part_out_of_range,
                          .tick = part.tick,
                          .offset = 0,
                          .detail = "negative tick"});
        return;
    }
    if (base.odd) {
        reporter.finding({.id = record::FindingId::snapshot_negative_base, .tick = part.tick});
    }
    if (!believes(part.tick, reporter)) {
        return;
    }
    if (id == wire::MessageId::snap_empty) {
        on_empty(part.tick, part.delta_tick, reporter);
    } else {
        on_part(part, reporter, workspace);
    }
}

bool SnapshotTracker::believes(Tick tick, Reporter& reporter) {
    const Tick expected = ticks_.expected();
    const TickClass tick_class = ticks_.take(tick, reporter.head().time);
    if (tick_class == TickClass::follows) {
        return true;
    }
    reporter.finding({.id = record::FindingId::snapshot_tick_jump,
                      .tick = tick,
                      .value = std::int64_t{tick} - expected,
                      .limit = TickGate::kSlack});
    if (tick_class == TickClass::stray) {
        return false;
    }
    forget(reporter); // nothing of before can be a base of what comes now
    return true;
}

bool SnapshotTracker::is_lost(Tick tick, Tick base) const {
    return base != snapshot::kNoBase && !history_.contains(base) &&
           std::find(lost_.begin(), lost_.end(), tick) != lost_.end();
}

void SnapshotTracker::on_part(const snapshot::Part& part, Reporter& reporter,
                              SnapshotWorkspace& workspace) {
    ++reporter.stats.parts;
    if (history_.contains(part.tick) ||
        (part.num_parts == 1 && is_lost(part.tick, part.delta_tick))) {
        ++reporter.stats.repeated;
        return;
    }
    const snapshot::PartStatus status = parts_.add(part);
    report_lost(parts_.lost(), reporter);
    switch (status) {
    case snapshot::PartStatus::complete:
        on_complete(parts_.assembled(), reporter, workspace);
        break;
    case snapshot::PartStatus::out_of_range:
        reporter.finding({.id = record::FindingId::snapshot_part_out_of_range,
                          .tick = part.tick,
                          .value = part.num_parts,
                          .limit = snapshot::kMaxParts,
                          .part = part.part,
                          .detail = "number of parts, part or size"});
        break;
    case snapshot::PartStatus::inconsistent:
        reporter.finding({.id = record::FindingId::snapshot_part_inconsistent,
                          .tick = part.tick,
                          .part = part.part});
        break;
    case snapshot::PartStatus::duplicate:
    case snapshot::PartStatus::too_old:
        ++reporter.stats.repeated;
        break;
    case snapshot::PartStatus::incomplete:
        break;
    }
}

std::optional<SnapshotView> SnapshotTracker::base_of(const record::SnapshotRecord& record,
                                                     Reporter& reporter) {
    if (record.delta_tick == snapshot::kNoBase) {
        ++reporter.stats.full;
        return SnapshotView{};
    }
    reporter.stats.delta_distance.add(std::int64_t{record.tick} - record.delta_tick);
    return history_.find(record.delta_tick);
}

void SnapshotTracker::on_empty(Tick tick, Tick base_tick, Reporter& reporter) {
    if (history_.contains(tick) || is_lost(tick, base_tick)) {
        ++reporter.stats.repeated;
        return;
    }
    ++reporter.stats.snapshots;
    ++reporter.stats.empty;
    record::SnapshotRecord record{.head = reporter.head(), .tick = tick, .delta_tick = base_tick};
    note_arrival(record, reporter);
    const auto base = base_of(record, reporter);
    if (!base) {
        fail(record, {.id = record::FindingId::snapshot_unknown_base}, reporter);
        return;
    }
    record.crc_got = base->checksum();
    if (!history_.repeat(base_tick, tick)) {
        ++reporter.stats.repeated; // further behind the newest than the history reaches
        return;
    }
    accept(record, reporter);
}

void SnapshotTracker::on_complete(const snapshot::AssembledDelta& delta, Reporter& reporter,
                                  SnapshotWorkspace& workspace) {
    ++reporter.stats.snapshots;
    reporter.stats.delta_bytes += delta.body.size();
    record::SnapshotRecord record{.head = reporter.head(),
                                  .tick = delta.tick,
                                  .delta_tick = delta.delta_tick,
                                  .crc_wanted = delta.crc,
                                  .bytes = delta.body.size(),
                                  .parts = delta.num_parts};
    note_arrival(record, reporter);
    auto base = base_of(record, reporter);
    if (!base) {
        fail(record, {.id = record::FindingId::snapshot_unknown_base}, reporter);
        return;
    }
    if (const auto decoded =
            snapshot::decode_delta(delta.body, workspace.delta, types_.objects().sizes());
        !decoded) {
        fail(record, decode_finding(decoded.error(), delta.body, types_), reporter);
        return;
    }
    // What is built lies behind the others already and is kept if its checksum is right. Making
    // room can move the base, or push it out.
    const auto room = history_.reserve(snapshot::room_for(*base, workspace.delta));
    if (delta.delta_tick != snapshot::kNoBase) {
        base = history_.find(delta.delta_tick);
    }
    if (!base) {
        fail(record, {.id = record::FindingId::snapshot_unknown_base}, reporter);
        return;
    }
    snapshot::DeltaWarnings warnings;
    const auto built = snapshot::apply_delta(*base, workspace.delta, room, warnings);
    if (!built) {
        fail(record, decode_finding(built.error(), delta.body, types_), reporter);
        return;
    }
    report_warnings(delta, warnings, types_, reporter);
    if (workspace.delta.surplus_ints != 0) {
        reporter.finding({.id = record::FindingId::snapshot_surplus_ints,
                          .tick = delta.tick,
                          .value = static_cast<std::int64_t>(workspace.delta.surplus_ints)});
    }
    record.crc_got = built->checksum();
    if (record.crc_got != record.crc_wanted) {
        const Mismatch mismatch{.body = delta.body,
                                .delta = &workspace.delta,
                                .base = *base,
                                .previous =
                                    previous_ ? history_.find(*previous_).value_or(*base) : *base,
                                .result = *built,
                                .warnings = &warnings,
                                .wanted = delta.crc,
                                .got = *record.crc_got};
        fail(record, checksum_finding(mismatch, types_), reporter);
        return;
    }
    if (!history_.commit(delta.tick, *built)) {
        ++reporter.stats.repeated; // further behind the newest than the history reaches
        return;
    }
    accept(record, reporter);
}

void SnapshotTracker::note_arrival(const record::SnapshotRecord& record, Reporter& reporter) {
    const bool full = record.delta_tick == snapshot::kNoBase;
    const Arrival arrival = cadence_.arrived(record.tick, record.head.time, full);
    reporter.stats.ticks_skipped += arrival.skipped;
    reporter.stats.missed += arrival.missed;
    if (arrival.reordered) {
        ++reporter.direction_stats().reordered;
        // It was taken for missed when the younger one came.
        if (arrival.filled != 0 && reporter.stats.missed != 0) {
            --reporter.stats.missed;
            reporter.stats.ticks_skipped -=
                std::min<std::uint64_t>(arrival.filled, reporter.stats.ticks_skipped);
        }
    }
    if (arrival.deviation_us) {
        reporter.direction_stats().jitter_us.add(*arrival.deviation_us);
    }
}

void SnapshotTracker::accept(record::SnapshotRecord& record, Reporter& reporter) {
    const auto stored = history_.find(record.tick);
    if (!stored) {
        return;
    }
    failure_.reset();
    record::SessionStats& stats = reporter.stats;
    ++stats.verified;
    stats.items.add(static_cast<std::int64_t>(stored->size()));
    stats.snapshot_bytes.add(static_cast<std::int64_t>(stored->size_bytes()));
    if (last_arrival_) {
        stats.snapshot_interval_us.add((record.head.time - *last_arrival_) / 1000);
    }
    last_arrival_ = record.head.time;

    types_.learn(*stored);
    record.rebuilt = true;
    record.items = *stored;
    record.previous = previous_ ? history_.find(*previous_) : std::nullopt;
    record.ordinal = ordinal_++;
    record.types = &types_;
    record.world = world_.get();
    previous_ = record.tick;
    checks_.look_at(record, reporter);
    reporter.emit(record);
}

void SnapshotTracker::fail(record::SnapshotRecord& record, record::FindingRecord finding,
                           Reporter& reporter) {
    finding.tick = record.tick;
    finding.delta_tick = record.delta_tick;
    finding.crc_wanted = record.crc_wanted;
    finding.crc_got = record.crc_got;
    const bool first = !failure_ || failure_->why != finding.id;
    if (first) {
        failure_ = Failure{.since = record.tick, .lost = 0, .why = finding.id};
    }
    ++failure_->lost;
    finding.since_tick = failure_->since;
    finding.lost = failure_->lost;
    if (finding.id == record::FindingId::snapshot_unknown_base) {
        // Every delta until the next full snapshot fails alike: said once.
        ++reporter.stats.unknown_base;
        lost_[num_lost_++ % lost_.size()] = finding.tick;
        if (first) {
            reporter.finding_once(finding);
        } else {
            reporter.count(finding.id);
        }
    } else {
        ++(finding.id == record::FindingId::snapshot_crc_mismatch ? reporter.stats.mismatched
                                                                  : reporter.stats.undecodable);
        reporter.finding(finding);
    }
    reporter.emit(record);
}

void SnapshotTracker::report_lost(std::span<const snapshot::LostDelta> lost, Reporter& reporter) {
    for (const snapshot::LostDelta& delta : lost) {
        ++reporter.stats.incomplete;
        reporter.finding({.id = record::FindingId::snapshot_part_missing,
                          .tick = delta.tick,
                          .delta_tick = delta.delta_tick,
                          .value = delta.have,
                          .limit = delta.num_parts,
                          .part = delta.first_missing});
    }
}

void SnapshotTracker::on_ack(Tick tick, Reporter& reporter) const {
    const auto newest = history_.newest();
    if (tick >= 0 && newest && *newest >= tick) {
        reporter.stats.ack_lag_ticks.add(std::int64_t{*newest} - tick);
    }
}

void SnapshotTracker::restart(Reporter& reporter) {
    forget(reporter);
    ticks_.reset();
}

void SnapshotTracker::forget(Reporter& reporter) {
    report_lost(parts_.reset(), reporter);
    history_.clear();
    previous_.reset();
    ordinal_ = 0;
    failure_.reset();
    lost_.fill(std::nullopt);
    last_arrival_.reset();
    cadence_ = {};
    checks_ = {};
}

void SnapshotTracker::reset(Reporter& reporter) {
    restart(reporter);
    types_.clear();
}

} // namespace tw::inspect
