#include "proxy/inspect/snapshots/stall_detector.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

/// If the time between two messages is longer than this (ticks), it is a pause, not jitter.
constexpr std::int64_t kMaxPauseTicks = 50;

} // namespace

std::optional<std::int64_t> ArrivalJitter::on_arrival(snapshot::Tick tick, std::int64_t time) {
    if (!last_arrival_) {
        last_arrival_ = LastArrival{tick, time};
        return std::nullopt;
    }
    const std::int64_t ticks = std::int64_t{tick} - last_arrival_->tick;
    if (ticks == 0 || (ticks < 0 && ticks >= -kMaxPauseTicks)) {
        return std::nullopt;
    }
    const std::int64_t passed = time - last_arrival_->time;
    last_arrival_ = LastArrival{tick, time};
    if (ticks < 0 || ticks > kMaxPauseTicks || passed < 0) {
        return std::nullopt;
    }
    const std::int64_t deviation = passed - ticks * record::kTickDuration;
    return (deviation < 0 ? -deviation : deviation) / 1000;
}

std::uint64_t SnapshotCadence::usual_interval() const {
    const auto* const most = std::ranges::max_element(step_counts_);
    return *most == 0 ? 0 : static_cast<std::uint64_t>(most - step_counts_.begin());
}

SnapshotArrival SnapshotCadence::on_arrival(snapshot::Tick tick, std::int64_t time, bool full) {
    SnapshotArrival arrival;
    arrival.deviation_us = jitter_.on_arrival(tick, time);
    if (newest_tick_ && tick < *newest_tick_) {
        arrival.is_reordered = true;
        arrival.num_falsely_skipped_ticks = usual_interval();
        return arrival;
    }
    const std::int64_t step = newest_tick_ ? std::int64_t{tick} - *newest_tick_ : 0;
    const bool is_own_pace = std::exchange(is_newest_full_, full) || full ||
                             (newest_tick_ && is_join_interval(*newest_tick_, tick));
    newest_tick_ = tick;
    first_tick_ = first_tick_.value_or(tick);
    if (is_own_pace || step <= 0) {
        return arrival;
    }
    const auto ticks = static_cast<std::uint64_t>(step);
    if (const std::uint64_t usual = usual_interval(); usual != 0 && ticks > usual) {
        arrival.num_missed_snapshots = ticks / usual - 1;
        arrival.num_skipped_ticks = arrival.num_missed_snapshots * usual;
    }
    if (ticks <= kMaxStepTicks) {
        ++step_counts_[ticks];
    }
    return arrival;
}

using record::FindingId;
using record::kTickDuration;
using record::Timestamp;
using snapshot::Tick;

namespace {

constexpr Timestamp kMicrosecond = 1000;
constexpr Timestamp kMillisecond = 1'000'000;

/// Returns the name of a client's version: "DDNet 16.4" for 16040. Versions before 10 are numbered
/// differently.
std::string client_version_name(std::int32_t version) {
    constexpr std::int32_t kFirst = 10'000;
    if (version < kFirst) {
        return "DDNet " + std::to_string(version);
    }
    const std::string release =
        "DDNet " + std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
    return version % 10 == 0 ? release : release + '.' + std::to_string(version % 10);
}

std::string describe_request(bool asked, std::uint32_t errors) {
    if (!asked) {
        return {};
    }
    return errors == 0
               ? " asked for a full snapshot"
               : " asked for a full snapshot after " + std::to_string(errors) + " checksum errors";
}

} // namespace

void StallDetector::on_rejected_snapshot(const SnapshotTicks& snapshot, FindingId why,
                                         const Reporter& reporter) {
    ++num_rejected_;
    rejected_snapshots_[num_stored_rejected_++ % kStoredRejectedSnapshots] = {
        .snapshot = snapshot, .time = reporter.head().time};
    newest_rejected_tick_ = std::max(newest_rejected_tick_, snapshot.tick);
    rejection_reason_ = why;
    checksum_errors_ += why == FindingId::snapshot_crc_mismatch ? 1U : 0U;
}

void StallDetector::handle_snapshot(const SnapshotTicks& snapshot, Reporter& reporter) {
    if (displayed_ && snapshot.tick <= displayed_->tick) {
        return; // clients do not show a snapshot that is older than the shown one
    }
    if (displayed_ && snapshot.tick < newest_part_tick_) {
        // Clients ignore a snapshot after they have received a part of a newer snapshot.
        on_rejected_snapshot(snapshot, FindingId::count, reporter);
        return;
    }
    display_new_snapshot(snapshot, reporter.head().time, reporter);
}

void StallDetector::handle_input(const wire::InputBody& input, Reporter& reporter) {
    const Timestamp time = reporter.head().time;
    if (input.ack_tick == snapshot::kNoBase) {
        if (repeated_acks_.tick == snapshot::kNoBase) {
            return; // the client has not acknowledged any snapshot yet
        }
        if (!requests_full_snapshot_) {
            requested_after_errors_ = true;
            errors_at_reset_ = checksum_errors_;
            checksum_errors_ = 0;
        }
        requests_full_snapshot_ = true;
        repeated_acks_.requested_full_snapshot = true;
        repeated_acks_.last_time = time; // the client still shows the same snapshot
        repeated_acks_.last_intended = input.intended_tick;
        return;
    }
    requests_full_snapshot_ = false;
    requested_after_errors_ = false;
    // The client acknowledged a snapshot that was counted as rejected: inspection began after the
    // connection, or the client is modified.
    if (displayed_ && num_rejected_ != 0 && input.ack_tick <= newest_rejected_tick_ &&
        input.ack_tick > displayed_->tick) {
        on_rejected_snapshot_acknowledged(input.ack_tick, reporter);
    }
    if (!displayed_ || input.ack_tick > displayed_->tick || input.ack_tick < repeated_acks_.tick) {
        return; // the input is forged, from another map, or out of order
    }
    if (input.ack_tick == repeated_acks_.tick) {
        repeated_acks_.last_time = time;
        repeated_acks_.last_intended = input.intended_tick;
        return;
    }
    end_repeated_acks(input.ack_tick, time, reporter);
    repeated_acks_ = RepeatedAcks::begin(input, time);
}

void StallDetector::on_rejected_snapshot_acknowledged(Tick tick, Reporter& reporter) {
    const auto* const found =
        std::ranges::find_if(rejected_snapshots_, [tick](const RejectedSnapshot& each) {
            return each.time != 0 && each.snapshot.tick == tick;
        });
    const bool known = found != rejected_snapshots_.end();
    // The client has a snapshot or a base that twscope missed, so its earlier snapshots are
    // unknown.
    if (!known || found->snapshot.delta_tick > displayed_->tick) {
        const DisplayedSnapshot shown{.tick = tick,
                                      .time = known ? found->time : reporter.head().time,
                                      .num_losses = count_losses(reporter)};
        forget_displayed_snapshot(reporter);
        last_input_time_ = reporter.head().time;
        displayed_ = shown;
        return;
    }
    display_new_snapshot({.tick = tick, .delta_tick = displayed_->tick}, found->time, reporter);
}

void StallDetector::display_new_snapshot(const SnapshotTicks& snapshot, Timestamp time,
                                         Reporter& reporter) {
    if (const std::uint64_t step = cadence_->usual_interval(); step != 0) {
        usual_interval_ = static_cast<Tick>(step);
    }
    check_waiting_stalls(reporter);
    if (displayed_ && time - displayed_->time > overdue_delay() &&
        !cadence_->is_join_interval(displayed_->tick, snapshot.tick)) {
        count_freeze(time - displayed_->time - usual_interval_ * kTickDuration, snapshot, reporter);
    }
    // Until the first acknowledgement, servers send snapshots rarely, and the player does not play
    // yet. Therefore full snapshots before the first delta are not used to find stalls.
    if (displayed_ || snapshot.delta_tick != snapshot::kNoBase) {
        set_displayed_snapshot(snapshot, time, reporter);
    }
    checksum_errors_ -= checksum_errors_ > 0 ? 1U : 0U;
    requested_after_errors_ = false;
    // Rejected snapshots that are newer than this usable snapshot still count.
    num_rejected_ = static_cast<std::uint64_t>(
        std::ranges::count_if(rejected_snapshots_, [&](const RejectedSnapshot& each) {
            return each.snapshot.tick > snapshot.tick && each.time != 0;
        }));
}

void StallDetector::report_remaining_stalls(Reporter& reporter) {
    if (displayed_ && last_input_time_ - displayed_->time > overdue_delay()) {
        count_freeze(last_input_time_ - displayed_->time - usual_interval_ * kTickDuration,
                     std::nullopt, reporter);
    }
    end_repeated_acks(std::nullopt, repeated_acks_.last_time, reporter);
    forget_displayed_snapshot(reporter);
}

void StallDetector::forget_displayed_snapshot(Reporter& reporter) {
    report_stalls_without_waiting(reporter);
    on_clock_step_back();
}

void StallDetector::count_freeze(Timestamp frozen, const std::optional<SnapshotTicks>& usable,
                                 Reporter& reporter) {
    if (!reporter.are_times_reliable()) {
        return;
    }
    const Freeze freeze{.duration = frozen,
                        .displayed_tick = displayed_->tick,
                        .next_snapshot = usable,
                        .num_rejected = num_rejected_,
                        .request_text =
                            describe_request(requested_after_errors_, errors_at_reset_)};
    const Timestamp to = displayed_->time + usual_interval_ * kTickDuration + frozen;
    add_freeze_to_totals(freeze, reporter);
    if (num_rejected_ == 0 && report_slower_rate(freeze, to, reporter)) {
        return;
    }
    counted_freezes_[num_counted_freezes_++ % kStoredFreezes] = {
        .displayed_tick = freeze.displayed_tick, .duration = frozen};
    if (frozen < kMinStall) {
        return;
    }
    report_stalls_without_waiting(reporter);
    if (num_rejected_ != 0) {
        const StallCause cause = rejection_reason_ == FindingId::count ? StallCause::late
                                 : rejection_reason_ == FindingId::snapshot_unknown_base
                                     ? StallCause::unknown_base
                                     : StallCause::rejected;
        report_stall(freeze, {.cause = cause}, reporter);
        return;
    }
    const bool is_acked =
        displayed_->is_full && !requests_full_snapshot_ && repeated_acks_.tick >= displayed_->tick;
    const bool has_lost_part =
        usable && newest_part_tick_ > displayed_->tick && newest_part_tick_ < usable->tick;
    pending_stall_ = PendingStall{
        .freeze = freeze,
        .begin = displayed_->time,
        .end = to,
        .ack_time = is_acked ? repeated_acks_.first_time : 0,
        .evidence = {.duration = to - displayed_->time,
                     .has_ended = usable.has_value(),
                     .is_late = usable && usable->tick - displayed_->tick <= usual_interval_,
                     .has_lost_data =
                         has_lost_part || count_losses(reporter) != displayed_->num_losses,
                     .is_full_snapshot_acked = is_acked,
                     .num_quiet_sessions = count_quiet_sessions(to, usable.has_value())}};
    judge_pending_stall(!usable, reporter);
}

std::optional<std::size_t> StallDetector::count_quiet_sessions(Timestamp to, bool has_ended) const {
    const Timestamp from = displayed_->time;
    if (!has_ended) {
        return server_activity_->has_sent_since(from + ServerActivity::kPauseTolerance)
                   ? std::nullopt
                   : std::optional{server_activity_->count_sessions_reached_since(
                         from - ServerActivity::kMaxAgeOfRecentAnswer)};
    }
    const ServerActivity::Pause* const pause = server_activity_->find_pause_covering(from, to);
    return pause == nullptr ? std::nullopt : std::optional{pause->num_active_sessions};
}

bool StallDetector::report_slower_rate(const Freeze& freeze, Timestamp to, Reporter& reporter) {
    if (!displayed_->is_full || !freeze.next_snapshot ||
        freeze.next_snapshot->tick - displayed_->tick > SnapshotCadence::kRecoveryInterval) {
        return false;
    }
    if (!requests_full_snapshot_ &&
        repeated_acks_.tick >= displayed_->tick) { // the client acknowledged the snapshot
        if (to - repeated_acks_.first_time >= kMinStall + input_timing_.round_trip() ||
            freeze.duration < kMinStall) {
            return false;
        }
        counted_freezes_[num_counted_freezes_++ % kStoredFreezes] = {
            .displayed_tick = freeze.displayed_tick, .duration = freeze.duration};
        report_stalls_without_waiting(reporter);
        report_stall(freeze,
                     {.cause = StallCause::slower_rate,
                      .detail = "the server waited for the client to acknowledge a full snapshot"},
                     reporter);
        return true;
    }
    if (last_input_time_ == 0 || freeze.next_snapshot->delta_tick != snapshot::kNoBase ||
        freeze.next_snapshot->tick % SnapshotCadence::kRecoveryInterval != 0) {
        return false;
    }
    const StallCause cause = to - last_input_time_ >= kEvidenceTimeout ? StallCause::client_silent
                                                                       : StallCause::unacknowledged;
    if (postponed_stall_ && postponed_stall_->cause == cause &&
        postponed_stall_->freeze.next_snapshot &&
        postponed_stall_->freeze.next_snapshot->tick == freeze.displayed_tick) {
        postponed_stall_->freeze.duration += freeze.duration;
        postponed_stall_->freeze.next_snapshot = freeze.next_snapshot;
        counted_freezes_[(num_counted_freezes_ - 1) % kStoredFreezes].duration += freeze.duration;
        return true;
    }
    report_stalls_without_waiting(reporter);
    counted_freezes_[num_counted_freezes_++ % kStoredFreezes] = {
        .displayed_tick = freeze.displayed_tick, .duration = freeze.duration};
    postponed_stall_ = PostponedStall{.freeze = freeze, .cause = cause};
    return true;
}

StallEvidence StallDetector::collect_evidence(const PendingStall& stall,
                                              const ServerActivity::Pause* pause) const {
    const Timestamp round_trip = input_timing_.round_trip();
    const Timestamp first = stall.ack_time != 0 ? stall.ack_time : stall.begin - round_trip;
    StallEvidence evidence = stall.evidence;
    evidence.has_client_inputs = last_input_time_ > stall.begin;
    evidence.has_server_answered = input_timing_.has_answers();
    evidence.input_outcome = input_timing_.outcome_of_inputs_between(
        first, stall.end - round_trip - usual_interval_ * kTickDuration);
    evidence.longest_wait =
        input_timing_.outcome_of_inputs_between(stall.begin - round_trip, stall.end).longest_wait;
    if (pause != nullptr) {
        evidence.was_server_stopped = pause->was_server_stopped;
        evidence.were_datagrams_lost = pause->were_datagrams_lost;
    }
    return evidence;
}

void StallDetector::report_stalls_with_known_cause(Reporter& reporter) {
    if (pending_stall_) {
        // While no newer snapshot arrives, the wait is longer, because inputs may still be
        // answered.
        const Timestamp waited = reporter.head().time - pending_stall_->end;
        const bool goes_on = displayed_ && displayed_->time > pending_stall_->end;
        judge_pending_stall(waited >= (goes_on ? kEvidenceTimeout : kSilentServerTimeout),
                            reporter);
    }
    if (postponed_stall_ && !requests_full_snapshot_ &&
        repeated_acks_.tick >= postponed_stall_->freeze.next_snapshot->tick) {
        report_postponed_stall(reporter); // the client acknowledges new snapshots again
    }
}

void StallDetector::judge_pending_stall(bool is_final, Reporter& reporter) {
    ServerActivity::Pause* const pause =
        server_activity_->find_pause_covering(pending_stall_->begin, pending_stall_->end);
    const auto verdict = judge_stall(collect_evidence(*pending_stall_, pause), is_final);
    if (!verdict) {
        return;
    }
    if (pause != nullptr && verdict->other_causes.empty()) {
        pause->was_server_stopped =
            pause->was_server_stopped || verdict->cause == StallCause::server_silent;
        pause->were_datagrams_lost =
            pause->were_datagrams_lost || verdict->cause == StallCause::lost_before_twscope;
    }
    const PendingStall stall = *std::exchange(pending_stall_, std::nullopt);
    report_stall(stall.freeze, *verdict, reporter);
}

void StallDetector::report_postponed_stall(Reporter& reporter) {
    const PostponedStall held = *std::exchange(postponed_stall_, std::nullopt);
    if (held.freeze.duration < kMinStall) {
        return;
    }
    report_stall(
        held.freeze,
        {.cause = held.cause,
         .detail = held.cause == StallCause::client_silent
                       ? "nothing came from the client, so the server sent one snapshot a second"
                       : "the server sent one snapshot a second until the client acknowledged one"},
        reporter);
}

void StallDetector::report_stalls_without_waiting(Reporter& reporter) {
    if (pending_stall_) {
        judge_pending_stall(true, reporter);
    }
    if (postponed_stall_) {
        report_postponed_stall(reporter);
    }
}

StallVerdict StallDetector::judge_repeated_acks(std::optional<Tick> next, Timestamp end) const {
    const Timestamp step = usual_interval_ * kTickDuration;
    // Chunks that the client received just before the first or just after the last input prove
    // nothing. Therefore, two snapshot intervals are left out at each end.
    if (repeated_acks_.requested_full_snapshot ||
        chunk_acks_.was_any_chunk_acknowledged(repeated_acks_.first_time + 2 * step,
                                               end - 2 * step)) {
        return {.cause = StallCause::unacknowledged,
                .detail = repeated_acks_.requested_full_snapshot
                              ? ""
                              : "the client acknowledged other messages of that time"};
    }
    if (chunk_acks_.has_unacknowledged_chunk(repeated_acks_.first_time, end - kMinStall / 2,
                                             end - step)) {
        return {.cause = StallCause::lost_after_twscope,
                .detail = "the client did not get other messages of that time, either"};
    }
    if (next) {
        return {.cause = StallCause::lost_after_twscope,
                .other_causes = "unacknowledged",
                .detail =
                    "the client never acknowledged what passed in that time, and went on later"};
    }
    return {.cause = StallCause::unacknowledged, .other_causes = "lost_behind"};
}

void StallDetector::end_repeated_acks(std::optional<Tick> next, Timestamp end, Reporter& reporter) {
    // The stall ended after the last input that repeats the acknowledgement, and before the next
    // input. `by_client` is its duration according to the ticks for which the inputs were meant. If
    // only the network delayed the inputs, this duration is much shorter. It is not exact, because
    // these ticks drift a little while no snapshots arrive.
    const Timestamp step = usual_interval_ * kTickDuration;
    const Timestamp behind = std::min(end - repeated_acks_.last_time, step);
    const Timestamp by_client =
        (std::int64_t{repeated_acks_.last_intended} - repeated_acks_.first_intended) *
            kTickDuration +
        behind;
    Timestamp frozen = repeated_acks_.last_time - repeated_acks_.first_time + behind;
    frozen = (2 * by_client < frozen ? by_client : frozen) - step;
    for (const CountedFreeze& each : counted_freezes_) {
        if (each.displayed_tick >= repeated_acks_.tick && (!next || each.displayed_tick < *next)) {
            frozen -= each.duration;
        }
    }
    if (repeated_acks_.tick == snapshot::kNoBase || frozen < kMinStall ||
        !reporter.are_times_reliable()) {
        return;
    }
    const Freeze freeze{.duration = frozen,
                        .displayed_tick = repeated_acks_.tick,
                        .next_snapshot =
                            next ? std::optional{SnapshotTicks{.tick = *next}} : std::nullopt,
                        .request_text = describe_request(repeated_acks_.requested_full_snapshot, 0),
                        .is_detected_by_acks = true};
    add_freeze_to_totals(freeze, reporter);
    if (postponed_stall_ && repeated_acks_.requested_full_snapshot &&
        postponed_stall_->freeze.displayed_tick >= repeated_acks_.tick) {
        postponed_stall_->freeze.duration += frozen; // this freeze is part of the postponed stall
        return;
    }
    report_stall(freeze, judge_repeated_acks(next, end), reporter);
}

void StallDetector::add_freeze_to_totals(const Freeze& freeze, Reporter& reporter) {
    reporter.stats.freeze_us.add(freeze.duration / kMicrosecond);
    reporter.stats.frozen_ms += static_cast<std::uint64_t>(freeze.duration / kMillisecond);
}

void StallDetector::report_stall(const Freeze& freeze, const StallVerdict& verdict,
                                 Reporter& reporter) const {
    const bool known = client_version_ && *client_version_ > 0;
    const std::string who = known ? client_version_name(*client_version_) : "the client";
    const std::string client = !freeze.request_text.empty() ? who + freeze.request_text
                               : known                      ? "the client is " + who
                                                            : "";
    std::string detail = verdict.detail;
    for (const std::string& more :
         {verdict.other_causes.empty() ? "" : "or " + std::string{verdict.other_causes}, client}) {
        detail += (detail.empty() || more.empty() ? "" : "; ") + more;
    }
    record::FindingRecord finding{.id = FindingId::snapshot_client_stalled,
                                  .since_tick = freeze.displayed_tick,
                                  .lost = freeze.num_rejected,
                                  .value = freeze.duration / kMillisecond,
                                  .name = stall_cause_name(verdict.cause),
                                  .detail = detail};
    if (freeze.next_snapshot) {
        finding.tick = freeze.next_snapshot->tick;
        if (!freeze.is_detected_by_acks) {
            finding.delta_tick = freeze.next_snapshot->delta_tick;
        }
    }
    reporter.report_finding(finding);
}

} // namespace tw::inspect
