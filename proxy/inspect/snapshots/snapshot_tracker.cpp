#include "proxy/inspect/snapshots/snapshot_tracker.h"

#include <cstdlib>
#include <tuple>

namespace tw::inspect {

bool TickPlausibility::is_plausible_after(const SeenTick& before, snapshot::Tick tick,
                                          std::int64_t time) {
    const std::int64_t passed =
        std::max<std::int64_t>(time - before.time, 0) / record::kTickDuration;
    const std::int64_t ahead = std::int64_t{tick} - before.tick;
    return ahead >= -kToleranceTicks && ahead - kToleranceTicks <= passed;
}

TickClass TickPlausibility::classify_tick(snapshot::Tick tick, std::int64_t time) {
    // After this time (ns), all snapshots that were in flight have arrived.
    constexpr std::int64_t kMaxInFlightTime = 5'000'000'000;
    if (!last_plausible_ || is_plausible_after(*last_plausible_, tick, time)) {
        if (restart_expected_at_ && time - *restart_expected_at_ > kMaxInFlightTime) {
            restart_expected_at_.reset();
        }
        if (!last_plausible_ || tick > last_plausible_->tick) {
            last_plausible_ = SeenTick{tick, time};
        }
        last_implausible_.reset();
        num_fitting_implausible_ = 0;
        return TickClass::plausible;
    }
    if (last_implausible_ && last_implausible_->tick == tick) {
        return TickClass::implausible; // counted with an earlier part of this tick
    }
    if (restart_expected_at_) {
        return restart_ticks_from({tick, time});
    }
    num_fitting_implausible_ =
        last_implausible_ && is_plausible_after(*last_implausible_, tick, time)
            ? num_fitting_implausible_ + 1
            : 1;
    last_implausible_ = SeenTick{tick, time};
    if (num_fitting_implausible_ < kMinTicksOfRestart) {
        return TickClass::implausible;
    }
    return restart_ticks_from({tick, time});
}

TickClass TickPlausibility::restart_ticks_from(const SeenTick& seen) {
    *this = {};
    last_plausible_ = seen;
    return TickClass::restarted;
}

using record::FindingId;
using snapshot::SnapshotView;
using snapshot::Tick;

void SnapshotTracker::on_message(const wire::SnapshotBody& body, wire::MessageId id,
                                 bool compressed, Reporter& reporter,
                                 SnapshotWorkspace& workspace) {
    const DeltaBase base = compute_delta_base(body.tick, body.distance);
    const snapshot::Part part{.tick = body.tick,
                              .delta_tick = base.tick,
                              .num_parts = body.num_parts,
                              .part = body.part,
                              .crc = body.crc,
                              .data = body.data,
                              .marked = compressed};
    if (part.tick >= 0 && base.is_invalid) {
        reporter.report_finding({.id = FindingId::snapshot_negative_base, .tick = part.tick});
    }
    const bool empty = id == wire::MessageId::snap_empty;
    SnapMessageOutcome outcome = SnapMessageOutcome::empty;
    if (part.tick < 0) {
        outcome = SnapMessageOutcome::out_of_range;
        reporter.report_finding({.id = FindingId::snapshot_part_out_of_range,
                                 .tick = part.tick,
                                 .offset = 0,
                                 .detail = "negative tick"});
    } else if (previous_map_filter_.belongs_to_previous_map(part, history_, reporter.head().time)) {
        outcome = SnapMessageOutcome::previous_map;
        reporter.report_finding_once({.id = FindingId::snapshot_leftover, .tick = part.tick});
    } else if (!is_plausible(part.tick, reporter)) {
        outcome = SnapMessageOutcome::implausible_tick;
    } else if (!empty) {
        outcome = add_part(part, reporter);
    }
    observers_->notify(&Observer::on_snap_message,
                       ObservedSnapMessage{.body = body, .outcome = outcome});
    if (outcome == SnapMessageOutcome::empty || outcome == SnapMessageOutcome::stored ||
        outcome == SnapMessageOutcome::complete) {
        stall_detector_.on_snapshot_part(part.tick);
    }
    if (outcome == SnapMessageOutcome::empty) {
        on_empty_snapshot(part.tick, part.delta_tick, reporter);
    } else if (outcome == SnapMessageOutcome::complete) {
        const snapshot::AssembledDelta& delta = part_assembler_.assembled();
        const DeltaOutcome became = on_delta(delta, reporter, workspace);
        const bool decoded =
            became != DeltaOutcome::unknown_base && became != DeltaOutcome::undecodable;
        observers_->notify(
            &Observer::on_delta,
            ObservedDelta{.delta = delta,
                          .last_part = part.part,
                          .outcome = became,
                          .decoded_delta = decoded ? &workspace.rebuilt.delta : nullptr,
                          .types = &item_types_});
    }
}

bool SnapshotTracker::is_plausible(Tick tick, Reporter& reporter) {
    const Tick expected = tick_plausibility_.last_plausible_tick();
    const TickClass tick_class = tick_plausibility_.classify_tick(tick, reporter.head().time);
    if (tick_class == TickClass::plausible) {
        return true;
    }
    reporter.report_finding({.id = FindingId::snapshot_tick_jump,
                             .tick = tick,
                             .value = std::int64_t{tick} - expected,
                             .limit = TickPlausibility::kToleranceTicks});
    if (tick_class == TickClass::implausible) {
        return false;
    }
    forget_snapshots(reporter); // deltas after the restart do not use earlier snapshots
    return true;
}

bool SnapshotTracker::is_reported_without_base(Tick tick, Tick base) const {
    return base != snapshot::kNoBase && !history_.contains(base) &&
           std::ranges::find(ticks_without_base_, tick) != ticks_without_base_.end();
}

SnapMessageOutcome SnapshotTracker::add_part(const snapshot::Part& part, Reporter& reporter) {
    ++reporter.stats.parts;
    if (history_.contains(part.tick) ||
        (part.num_parts == 1 && is_reported_without_base(part.tick, part.delta_tick))) {
        ++reporter.stats.repeated;
        return SnapMessageOutcome::repeated;
    }
    const snapshot::PartStatus status = part_assembler_.add(part);
    report_lost_deltas(part_assembler_.lost(), reporter);
    const bool complete = status == snapshot::PartStatus::complete;
    if (status == snapshot::PartStatus::inconsistent ||
        (complete && part_assembler_.assembled().contradicts_earlier_parts)) {
        reporter.report_finding(
            {.id = FindingId::snapshot_part_inconsistent, .tick = part.tick, .part = part.part});
    }
    switch (status) {
    case snapshot::PartStatus::complete:
        return SnapMessageOutcome::complete;
    case snapshot::PartStatus::out_of_range:
        reporter.report_finding({.id = FindingId::snapshot_part_out_of_range,
                                 .tick = part.tick,
                                 .value = part.num_parts,
                                 .limit = snapshot::kMaxParts,
                                 .part = part.part,
                                 .detail = "number of parts, part or size"});
        return SnapMessageOutcome::out_of_range;
    case snapshot::PartStatus::duplicate:
    case snapshot::PartStatus::too_old:
        ++reporter.stats.repeated;
        return SnapMessageOutcome::repeated;
    case snapshot::PartStatus::inconsistent:
    case snapshot::PartStatus::incomplete:
        break;
    }
    return SnapMessageOutcome::stored;
}

void SnapshotTracker::count_full_or_delta(const record::SnapshotRecord& record,
                                          Reporter& reporter) {
    if (record.delta_tick == snapshot::kNoBase) {
        ++reporter.stats.full;
    } else {
        reporter.stats.delta_distance.add(std::int64_t{record.tick} - record.delta_tick);
    }
}

void SnapshotTracker::on_empty_snapshot(Tick tick, Tick base_tick, Reporter& reporter) {
    if (history_.contains(tick) || is_reported_without_base(tick, base_tick)) {
        ++reporter.stats.repeated;
        return;
    }
    ++reporter.stats.snapshots;
    ++reporter.stats.empty;
    record::SnapshotRecord record{.head = reporter.head(), .tick = tick, .delta_tick = base_tick};
    count_arrival(record, reporter);
    count_full_or_delta(record, reporter);
    const auto base = base_tick == snapshot::kNoBase ? SnapshotView{} : history_.find(base_tick);
    if (!base) {
        diagnosis_.on_empty_snapshot(base_tick, tick);
        report_failed_snapshot(record, {.id = FindingId::snapshot_unknown_base}, reporter);
        return;
    }
    record.crc_got = base->checksum();
    if (base_tick == snapshot::kNoBase) {
        history_.store(tick, *base);
    } else {
        history_.store_unchanged(base_tick, tick);
    }
    if (!history_.contains(tick)) {
        ++reporter.stats.repeated; // the tick is older than all snapshots in the history
        return;
    }
    accept_snapshot(record, reporter);
}

DeltaOutcome SnapshotTracker::on_delta(const snapshot::AssembledDelta& delta, Reporter& reporter,
                                       SnapshotWorkspace& workspace) {
    ++reporter.stats.snapshots;
    reporter.stats.delta_bytes += delta.body.size();
    record::SnapshotRecord record{.head = reporter.head(),
                                  .tick = delta.tick,
                                  .delta_tick = delta.delta_tick,
                                  .crc_wanted = delta.crc,
                                  .bytes = delta.body.size(),
                                  .parts = delta.num_parts};
    count_arrival(record, reporter);
    count_full_or_delta(record, reporter);
    diagnosis_.rebuild_snapshot(delta, history_, verified_tick_, workspace, reporter);
    const RebuiltSnapshot& rebuilt = workspace.rebuilt;
    const DeltaOutcome outcome = rebuilt.outcome;
    if (outcome == DeltaOutcome::unknown_base) {
        report_failed_snapshot(record, {.id = FindingId::snapshot_unknown_base}, reporter);
        return outcome;
    }
    if (outcome == DeltaOutcome::undecodable) {
        report_failed_snapshot(
            record, make_decode_error_finding(rebuilt.error, delta.body, item_types_), reporter);
        return outcome;
    }
    report_delta_warnings(delta, rebuilt.warnings, item_types_, reporter);
    if (const auto surplus = static_cast<std::int64_t>(rebuilt.delta.surplus_ints); surplus != 0) {
        reporter.report_finding(
            {.id = FindingId::snapshot_surplus_ints, .tick = delta.tick, .value = surplus});
    }
    record.crc_got = rebuilt.crc;
    if (outcome == DeltaOutcome::mismatched) {
        const CrcMismatch mismatch{delta, rebuilt, history_, item_types_};
        const MismatchCause cause =
            diagnosis_.on_mismatch(mismatch, workspace.search_budget, reporter);
        report_failed_snapshot(record, make_checksum_finding(mismatch, cause), reporter);
        return outcome;
    }
    const bool same = delta.delta_tick != snapshot::kNoBase && equals_base(rebuilt);
    const bool kept = same ? history_.store_unchanged(delta.delta_tick, delta.tick)
                           : history_.commit(delta.tick, rebuilt.result);
    if (!kept) {
        ++reporter.stats.repeated; // the tick is older than all snapshots in the history
        return DeltaOutcome::too_old;
    }
    accept_snapshot(record, reporter);
    return outcome;
}

void SnapshotTracker::count_arrival(const record::SnapshotRecord& record, Reporter& reporter) {
    const bool full = record.delta_tick == snapshot::kNoBase;
    const SnapshotArrival arrival = cadence_.on_arrival(record.tick, record.head.time, full);
    reporter.stats.ticks_skipped += arrival.num_skipped_ticks;
    reporter.stats.missed += arrival.num_missed_snapshots;
    if (arrival.is_reordered) {
        ++reporter.direction_stats().reordered;
        // This snapshot was counted as missed when a newer snapshot arrived.
        if (arrival.num_falsely_skipped_ticks != 0 && reporter.stats.missed != 0) {
            --reporter.stats.missed;
            reporter.stats.ticks_skipped -= std::min<std::uint64_t>(
                arrival.num_falsely_skipped_ticks, reporter.stats.ticks_skipped);
        }
    }
    if (arrival.deviation_us) {
        reporter.direction_stats().jitter_us.add(*arrival.deviation_us);
    }
}

void SnapshotTracker::accept_snapshot(record::SnapshotRecord& record, Reporter& reporter) {
    const auto stored = history_.find(record.tick);
    if (!stored) {
        return;
    }
    failed_snapshots_.reset();
    record::SessionStats& stats = reporter.stats;
    ++stats.verified;
    stats.items.add(static_cast<std::int64_t>(stored->size()));
    stats.snapshot_bytes.add(static_cast<std::int64_t>(stored->size_bytes()));
    if (last_accepted_time_) {
        stats.snapshot_interval_us.add((record.head.time - *last_accepted_time_) / 1000);
    }
    last_accepted_time_ = record.head.time;

    record.rebuilt = true;
    record.items = *stored;
    record.previous = newest_verified_snapshot();
    item_types_.learn_types(record.items, record.previous.value_or(SnapshotView{}));
    record.ordinal = num_accepted_snapshots_++;
    record.types = &item_types_;
    record.tile_map = map_tracker_->tile_map();
    record.roster = item_types_.dialect() == snapshot::Dialect::seven ? &roster_ : nullptr;
    record.client_version = stall_detector_.client_version();
    verified_tick_ = record.tick;
    snapshot_checks_.check_snapshot(record, reporter);
    stall_detector_.on_usable_snapshot({.tick = record.tick, .delta_tick = record.delta_tick},
                                       reporter);
    diagnosis_.on_verified_snapshot(record, reporter);
    reporter.emit(record);
}

void SnapshotTracker::report_failed_snapshot(record::SnapshotRecord& record,
                                             record::FindingRecord finding, Reporter& reporter) {
    finding.tick = record.tick;
    finding.delta_tick = record.delta_tick;
    finding.crc_wanted = record.crc_wanted;
    finding.crc_got = record.crc_got;
    const bool first = !failed_snapshots_ || failed_snapshots_->reason != finding.id;
    if (first) {
        failed_snapshots_ =
            FailedSnapshots{.first_tick = record.tick, .num_failed = 0, .reason = finding.id};
    }
    ++failed_snapshots_->num_failed;
    stall_detector_.on_rejected_snapshot({.tick = record.tick, .delta_tick = record.delta_tick},
                                         finding.id, reporter);
    finding.since_tick = failed_snapshots_->first_tick;
    finding.lost = failed_snapshots_->num_failed;
    if (finding.id == FindingId::snapshot_unknown_base) {
        // Until the next full snapshot, the bases of all deltas are missing. Only the first of
        // these deltas is reported.
        ++reporter.stats.unknown_base;
        ticks_without_base_[num_ticks_without_base_++ % ticks_without_base_.size()] = finding.tick;
        if (first) {
            reporter.report_finding(finding);
        } else {
            reporter.count_finding(finding.id);
        }
    } else {
        ++(finding.id == FindingId::snapshot_crc_mismatch ? reporter.stats.mismatched
                                                          : reporter.stats.undecodable);
        reporter.report_finding(finding);
    }
    reporter.emit(record);
}

void SnapshotTracker::on_input(const wire::InputBody& input, Reporter& reporter) {
    stall_detector_.on_input(input, reporter);
    if (const auto deviation =
            input_jitter_.on_arrival(input.intended_tick, reporter.head().time)) {
        reporter.direction_stats().jitter_us.add(*deviation);
    }
    const auto newest = history_.newest();
    if (input.ack_tick >= 0 && newest && *newest >= input.ack_tick) {
        reporter.stats.ack_lag_ticks.add(std::int64_t{*newest} - input.ack_tick);
        acked_tick_ = input.ack_tick;
    }
}

void SnapshotTracker::on_input_timing(const wire::InputTimingBody& timing, Reporter& reporter) {
    // The largest plausible time between an input's arrival at the server and its tick, in
    // milliseconds. The tick may be forged or belong to the previous map.
    constexpr std::int64_t kMaxMarginMs = 10'000;
    if (std::abs(std::int64_t{timing.time_left}) <= kMaxMarginMs) {
        reporter.stats.input_margin_ms.add(timing.time_left);
    }
    stall_detector_.on_input_timing(timing, reporter);
}

void SnapshotTracker::on_map_change(Reporter& reporter) {
    if (const auto newest = history_.newest()) {
        previous_map_filter_.on_map_change(*newest, reporter.head().time);
    }
    end_snapshot_sequence(reporter);
    roster_.clear();
}

void SnapshotTracker::end_snapshot_sequence(Reporter& reporter) {
    stall_detector_.report_remaining_stalls(reporter);
    forget_snapshots(reporter);
    tick_plausibility_.reset();
    input_jitter_ = {};
}

void SnapshotTracker::forget_snapshots(Reporter& reporter) {
    diagnosis_.forget_snapshots(reporter);
    report_lost_deltas(part_assembler_.reset(), reporter);
    history_.clear();
    verified_tick_.reset();
    acked_tick_.reset();
    num_accepted_snapshots_ = 0;
    failed_snapshots_.reset();
    ticks_without_base_.fill(std::nullopt);
    last_accepted_time_.reset();
    cadence_ = {};
    snapshot_checks_.forget_reported_problems();
    stall_detector_.forget_displayed_snapshot(reporter);
}

void SnapshotTracker::free_all_snapshots(Reporter& reporter) {
    forget_snapshots(reporter);
    history_.trim(std::numeric_limits<Tick>::max());
    part_assembler_ = {};
}

void SnapshotTracker::save_to_checkpoint(SessionCheckpoint& checkpoint) const {
    checkpoint.dialect = item_types_.dialect();
    history_.for_each_from(acked_tick_ ? *acked_tick_ - kKeptTicksBeforeAck : 0,
                           [&](Tick tick, const SnapshotView& view) {
                               SessionCheckpoint::Snapshot& kept =
                                   checkpoint.snapshots.emplace_back();
                               kept.tick = tick;
                               kept.num_items = static_cast<std::uint32_t>(view.size());
                               kept.block.resize(view.block_ints());
                               view.write_block(kept.block.data());
                           });
    std::ranges::sort(checkpoint.snapshots, {}, &SessionCheckpoint::Snapshot::tick);
    part_assembler_.for_each_part_of_incomplete_tick([&](const snapshot::Part& part) {
        SessionCheckpoint::Part& kept = checkpoint.parts.emplace_back();
        kept.part_without_data = part;
        kept.part_without_data.data = {};
        kept.data.assign(part.data.begin(), part.data.end());
    });
    checkpoint.roster = roster_;
    checkpoint.client_version = stall_detector_.client_version();
    checkpoint.learned_sizes = diagnosis_.learned_sizes();
}

void SnapshotTracker::restore_snapshots(const SessionCheckpoint& checkpoint) {
    for (const SessionCheckpoint::Snapshot& each : checkpoint.snapshots) {
        history_.store(each.tick, each.view());
    }
    for (const SessionCheckpoint::Part& part : checkpoint.parts) {
        std::ignore = part_assembler_.add(part.view());
    }
    diagnosis_.restore_learned_sizes(checkpoint.learned_sizes);
    roster_ = checkpoint.roster;
    if (checkpoint.client_version) {
        stall_detector_.on_client_version(*checkpoint.client_version);
    }
    if (const auto newest = history_.newest()) {
        verified_tick_ = *newest;
        item_types_.learn_types(*history_.find(*newest), SnapshotView{});
    }
}

void SnapshotTracker::begin_connection(snapshot::Dialect dialect, Reporter& reporter) {
    end_snapshot_sequence(reporter);
    previous_map_filter_.reset();
    item_types_.start_connection(dialect);
    roster_.clear();
    snapshot_checks_ = {};
    stall_detector_.forget_client(reporter);
    diagnosis_.forget_learned_sizes();
}

} // namespace tw::inspect
