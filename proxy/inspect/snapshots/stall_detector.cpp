#include "proxy/inspect/snapshots/stall_detector.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

namespace {

constexpr std::int64_t kTickNs = 20'000'000;
/// If the time between two messages is longer than this (ticks), it is a pause, not jitter.
constexpr std::int64_t kMaxPauseTicks = 50;

} // namespace

std::optional<std::int64_t> ArrivalJitter::on_arrival(snapshot::Tick tick, std::int64_t time) {
    if (!last_) {
        last_ = LastArrival{tick, time};
        return std::nullopt;
    }
    const std::int64_t ticks = std::int64_t{tick} - last_->tick;
    if (ticks == 0 || (ticks < 0 && ticks >= -kMaxPauseTicks)) {
        return std::nullopt;
    }
    const std::int64_t passed = time - last_->time;
    last_ = LastArrival{tick, time};
    if (ticks < 0 || ticks > kMaxPauseTicks || passed < 0) {
        return std::nullopt;
    }
    const std::int64_t deviation = passed - ticks * kTickNs;
    return (deviation < 0 ? -deviation : deviation) / 1000;
}

std::uint64_t SnapshotCadence::usual_interval() const {
    const auto* const most = std::max_element(steps_.begin(), steps_.end());
    return *most == 0 ? 0 : static_cast<std::uint64_t>(most - steps_.begin());
}

SnapshotArrival SnapshotCadence::on_arrival(snapshot::Tick tick, std::int64_t time, bool full) {
    SnapshotArrival arrival;
    arrival.deviation_us = jitter_.on_arrival(tick, time);
    if (newest_ && tick < *newest_) {
        arrival.reordered = true;
        arrival.filled = usual_interval();
        return arrival;
    }
    const std::int64_t step = newest_ ? std::int64_t{tick} - *newest_ : 0;
    const bool is_own_pace = std::exchange(newest_is_full_, full) || full ||
                             (newest_ && is_join_interval(*newest_, tick));
    newest_ = tick;
    first_ = first_.value_or(tick);
    if (is_own_pace || step <= 0) {
        return arrival;
    }
    const auto ticks = static_cast<std::uint64_t>(step);
    if (const std::uint64_t usual = usual_interval(); usual != 0 && ticks > usual) {
        arrival.missed = ticks / usual - 1;
        arrival.skipped = arrival.missed * usual;
    }
    if (ticks <= kMaxStepTicks) {
        ++steps_[ticks];
    }
    return arrival;
}

using record::FindingId;
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

void StallDetector::on_refused_snapshot(const UsableSnapshot& snapshot, FindingId why,
                                        const Reporter& reporter) {
    ++refused_;
    rejected_[num_rejected_++ % kStoredRejected] = {.snapshot = snapshot,
                                                    .time = reporter.head().time};
    refused_tick_ = std::max(refused_tick_, snapshot.tick);
    refusal_reason_ = why;
    errors_ += why == FindingId::snapshot_crc_mismatch ? 1U : 0U;
}

void StallDetector::handle_snapshot(const UsableSnapshot& snapshot, Reporter& reporter) {
    if (shown_ && snapshot.tick <= shown_->tick) {
        return; // clients do not show a snapshot that is older than the shown one
    }
    if (shown_ && snapshot.tick < newest_) {
        // Clients ignore a snapshot after they have received a part of a newer snapshot.
        on_refused_snapshot(snapshot, FindingId::count, reporter);
        return;
    }
    show_new_snapshot(snapshot, reporter.head().time, reporter);
}

void StallDetector::handle_input(const wire::InputBody& input, Reporter& reporter) {
    const Timestamp time = reporter.head().time;
    if (input.ack_tick == snapshot::kNoBase) {
        if (run_.tick == snapshot::kNoBase) {
            return; // the client has not acknowledged any snapshot yet
        }
        if (!requests_full_) {
            requested_after_errors_ = true;
            errors_at_reset_ = errors_;
            errors_ = 0;
        }
        requests_full_ = true;
        run_.asked = true;
        run_.last = time; // the client still shows the same snapshot
        run_.last_intended = input.intended_tick;
        return;
    }
    requests_full_ = false;
    requested_after_errors_ = false;
    // The client acknowledged a snapshot that was counted as rejected: inspection began after the
    // connection, or the client is modified.
    if (shown_ && refused_ != 0 && input.ack_tick <= refused_tick_ &&
        input.ack_tick > shown_->tick) {
        on_refused_snapshot_acknowledged(input.ack_tick, reporter);
    }
    if (!shown_ || input.ack_tick > shown_->tick || input.ack_tick < run_.tick) {
        return; // the input is forged, from another map, or out of order
    }
    if (input.ack_tick == run_.tick) {
        run_.last = time;
        run_.last_intended = input.intended_tick;
        return;
    }
    end_repeated_acknowledgement(input.ack_tick, time, reporter);
    run_ = RepeatedAcknowledgement::begin(input, time);
}

void StallDetector::on_refused_snapshot_acknowledged(Tick tick, Reporter& reporter) {
    const auto* const found =
        std::find_if(rejected_.begin(), rejected_.end(), [tick](const RejectedSnapshot& each) {
            return each.time != 0 && each.snapshot.tick == tick;
        });
    const bool known = found != rejected_.end();
    // The client has a snapshot or a base that twscope missed, so its earlier snapshots are
    // unknown.
    if (!known || found->snapshot.delta_tick > shown_->tick) {
        const ShownSnapshot shown{.tick = tick,
                                  .time = known ? found->time : reporter.head().time,
                                  .losses = count_losses(reporter)};
        forget_shown_snapshot(reporter);
        last_input_ = reporter.head().time;
        shown_ = shown;
        return;
    }
    show_new_snapshot({.tick = tick, .delta_tick = shown_->tick}, found->time, reporter);
}

void StallDetector::show_new_snapshot(const UsableSnapshot& snapshot, Timestamp time,
                                      Reporter& reporter) {
    if (const std::uint64_t step = cadence_->usual_interval(); step != 0) {
        usual_step_ = static_cast<Tick>(step);
    }
    report_known_causes(reporter);
    if (shown_ && time - shown_->time > overdue_delay() &&
        !cadence_->is_join_interval(shown_->tick, snapshot.tick)) {
        count_freeze(time - shown_->time - usual_step_ * kTickDuration, snapshot, reporter);
    }
    // Until the first acknowledgement, servers send snapshots rarely, and the player does not play
    // yet. Therefore full snapshots before the first delta are not used to find stalls.
    if (shown_ || snapshot.delta_tick != snapshot::kNoBase) {
        set_shown_snapshot(snapshot, time, reporter);
    }
    errors_ -= errors_ > 0 ? 1U : 0U;
    requested_after_errors_ = false;
    // Rejected snapshots that are newer than this usable snapshot still count.
    refused_ = static_cast<std::uint64_t>(
        std::count_if(rejected_.begin(), rejected_.end(), [&](const RejectedSnapshot& each) {
            return each.snapshot.tick > snapshot.tick && each.time != 0;
        }));
}

void StallDetector::report_remaining_stalls(Reporter& reporter) {
    if (shown_ && last_input_ - shown_->time > overdue_delay()) {
        count_freeze(last_input_ - shown_->time - usual_step_ * kTickDuration, std::nullopt,
                     reporter);
    }
    end_repeated_acknowledgement(std::nullopt, run_.last, reporter);
    forget_shown_snapshot(reporter);
}

void StallDetector::forget_shown_snapshot(Reporter& reporter) {
    report_waiting_stalls(reporter);
    const auto version = client_version_;
    *this = StallDetector{*cadence_, *server_};
    client_version_ = version;
}

void StallDetector::count_freeze(Timestamp frozen, const std::optional<UsableSnapshot>& usable,
                                 Reporter& reporter) {
    const Freeze freeze{.time = frozen,
                        .since = shown_->tick,
                        .end = usable,
                        .refused = refused_,
                        .asked = describe_request(requested_after_errors_, errors_at_reset_)};
    const Timestamp to = shown_->time + usual_step_ * kTickDuration + frozen;
    add_freeze_to_totals(freeze, reporter);
    if (refused_ == 0 && report_slower_rate(freeze, to, reporter)) {
        return;
    }
    freezes_[num_freezes_++ % kStoredFreezes] = {.since = freeze.since, .time = frozen};
    if (frozen < kMinStall) {
        return;
    }
    report_waiting_stalls(reporter);
    if (refused_ != 0) {
        const StallCause cause = refusal_reason_ == FindingId::count ? StallCause::late
                                 : refusal_reason_ == FindingId::snapshot_unknown_base
                                     ? StallCause::unknown_base
                                     : StallCause::rejected;
        report_stall(freeze, {.cause = cause}, reporter);
        return;
    }
    const bool is_acked = shown_->is_full && !requests_full_ && run_.tick >= shown_->tick;
    const bool has_lost_part = usable && newest_ > shown_->tick && newest_ < usable->tick;
    pending_stall_ = PendingStall{
        .freeze = freeze,
        .from = shown_->time,
        .to = to,
        .acked = is_acked ? run_.first : 0,
        .evidence = {.time = to - shown_->time,
                     .has_ended = usable.has_value(),
                     .is_late = usable && usable->tick - shown_->tick <= usual_step_,
                     .has_hole = has_lost_part || count_losses(reporter) != shown_->losses,
                     .is_full_acked = is_acked,
                     .quiet_sessions = count_quiet_sessions(to, usable.has_value())}};
    judge_pending_stall(!usable, reporter);
}

std::optional<std::size_t> StallDetector::count_quiet_sessions(Timestamp to, bool has_ended) const {
    const Timestamp from = shown_->time;
    if (!has_ended) {
        return server_->has_answered_since(from + ServerActivity::kPauseTolerance)
                   ? std::nullopt
                   : std::optional{server_->count_sessions_answered_since(
                         from - ServerActivity::kRecentAnswerTime)};
    }
    const ServerActivity::Pause* const pause = server_->find_pause(from, to);
    return pause == nullptr ? std::nullopt : std::optional{pause->sessions};
}

bool StallDetector::report_slower_rate(const Freeze& freeze, Timestamp to, Reporter& reporter) {
    if (!shown_->is_full || !freeze.end ||
        freeze.end->tick - shown_->tick > SnapshotCadence::kRecoveryInterval) {
        return false;
    }
    if (!requests_full_ && run_.tick >= shown_->tick) { // the client acknowledged the snapshot
        if (to - run_.first >= kMinStall + inputs_.round_trip() || freeze.time < kMinStall) {
            return false;
        }
        freezes_[num_freezes_++ % kStoredFreezes] = {.since = freeze.since, .time = freeze.time};
        report_waiting_stalls(reporter);
        report_stall(freeze,
                     {.cause = StallCause::slower_rate,
                      .detail = "the server waited for the client to acknowledge a full snapshot"},
                     reporter);
        return true;
    }
    if (last_input_ == 0 || freeze.end->delta_tick != snapshot::kNoBase ||
        freeze.end->tick % SnapshotCadence::kRecoveryInterval != 0) {
        return false;
    }
    const StallCause cause = to - last_input_ >= kEvidenceTimeout ? StallCause::client_silent
                                                                  : StallCause::unacknowledged;
    if (postponed_ && postponed_->cause == cause && postponed_->freeze.end &&
        postponed_->freeze.end->tick == freeze.since) {
        postponed_->freeze.time += freeze.time;
        postponed_->freeze.end = freeze.end;
        freezes_[(num_freezes_ - 1) % kStoredFreezes].time += freeze.time;
        return true;
    }
    report_waiting_stalls(reporter);
    freezes_[num_freezes_++ % kStoredFreezes] = {.since = freeze.since, .time = freeze.time};
    postponed_ = PostponedStall{.freeze = freeze, .cause = cause};
    return true;
}

StallEvidence StallDetector::evidence_of(const PendingStall& stall,
                                         const ServerActivity::Pause* pause) const {
    const Timestamp round_trip = inputs_.round_trip();
    const Timestamp first = stall.acked != 0 ? stall.acked : stall.from - round_trip;
    StallEvidence evidence = stall.evidence;
    evidence.has_client = last_input_ > stall.from;
    evidence.is_answering = inputs_.has_answers();
    evidence.receipts =
        inputs_.outcome_between(first, stall.to - round_trip - usual_step_ * kTickDuration);
    evidence.longest_wait = inputs_.outcome_between(stall.from - round_trip, stall.to).longest_wait;
    if (pause != nullptr) {
        evidence.was_stopped = pause->was_stopped;
        evidence.was_cut_off = pause->was_cut_off;
    }
    return evidence;
}

void StallDetector::report_stalls_with_known_cause(Reporter& reporter) {
    if (pending_stall_) {
        // If no newer snapshot arrives, waits longer: answers to inputs may still arrive.
        const Timestamp waited = reporter.head().time - pending_stall_->to;
        const bool goes_on = shown_ && shown_->time > pending_stall_->to;
        judge_pending_stall(waited >= (goes_on ? kEvidenceTimeout : kSilentServerTimeout),
                            reporter);
    }
    if (postponed_ && !requests_full_ && run_.tick >= postponed_->freeze.end->tick) {
        report_postponed_stall(reporter); // the client acknowledges new snapshots again
    }
}

void StallDetector::judge_pending_stall(bool is_final, Reporter& reporter) {
    ServerActivity::Pause* const pause =
        server_->find_pause(pending_stall_->from, pending_stall_->to);
    const auto verdict = judge_stall(evidence_of(*pending_stall_, pause), is_final);
    if (!verdict) {
        return;
    }
    if (pause != nullptr && verdict->rivals.empty()) {
        pause->was_stopped = pause->was_stopped || verdict->cause == StallCause::server_silent;
        pause->was_cut_off = pause->was_cut_off || verdict->cause == StallCause::lost;
    }
    const PendingStall stall = *std::exchange(pending_stall_, std::nullopt);
    report_stall(stall.freeze, *verdict, reporter);
}

void StallDetector::report_postponed_stall(Reporter& reporter) {
    const PostponedStall held = *std::exchange(postponed_, std::nullopt);
    if (held.freeze.time < kMinStall) {
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

void StallDetector::report_waiting_stalls(Reporter& reporter) {
    if (pending_stall_) {
        judge_pending_stall(true, reporter);
    }
    if (postponed_) {
        report_postponed_stall(reporter);
    }
}

StallVerdict StallDetector::judge_repeated_acknowledgement(std::optional<Tick> next,
                                                           Timestamp end) const {
    const Timestamp step = usual_step_ * kTickDuration;
    // The time of two snapshots is left out at each end, because chunks that the client received
    // just before the first or just after the last input prove nothing.
    if (run_.asked || chunks_.was_any_chunk_acknowledged(run_.first + 2 * step, end - 2 * step)) {
        return {.cause = StallCause::unacknowledged,
                .detail = run_.asked ? "" : "the client acknowledged other messages of that time"};
    }
    if (chunks_.has_unacknowledged_chunk(run_.first, end - kMinStall / 2, end - step)) {
        return {.cause = StallCause::lost_behind,
                .detail = "the client did not get other messages of that time, either"};
    }
    if (next) {
        return {.cause = StallCause::lost_behind,
                .rivals = "unacknowledged",
                .detail =
                    "the client never acknowledged what passed in that time, and went on later"};
    }
    return {.cause = StallCause::unacknowledged, .rivals = "lost_behind"};
}

void StallDetector::end_repeated_acknowledgement(std::optional<Tick> next, Timestamp end,
                                                 Reporter& reporter) {
    // The stall ended between the last input with this acknowledgement and the next input. If the
    // network delayed the inputs, the ticks for which they were meant (`by_client`) show a much
    // shorter stall. These ticks drift a little while no snapshots arrive.
    const Timestamp step = usual_step_ * kTickDuration;
    const Timestamp behind = std::min(end - run_.last, step);
    const Timestamp by_client =
        (std::int64_t{run_.last_intended} - run_.first_intended) * kTickDuration + behind;
    Timestamp frozen = run_.last - run_.first + behind;
    frozen = (2 * by_client < frozen ? by_client : frozen) - step;
    for (const CountedFreeze& each : freezes_) {
        if (each.since >= run_.tick && (!next || each.since < *next)) {
            frozen -= each.time;
        }
    }
    if (run_.tick == snapshot::kNoBase || frozen < kMinStall) {
        return;
    }
    const Freeze freeze{.time = frozen,
                        .since = run_.tick,
                        .end = next ? std::optional{UsableSnapshot{.tick = *next}} : std::nullopt,
                        .asked = describe_request(run_.asked, 0),
                        .is_by_acks = true};
    add_freeze_to_totals(freeze, reporter);
    if (postponed_ && run_.asked && postponed_->freeze.since >= run_.tick) {
        postponed_->freeze.time += frozen; // this freeze is part of the held stall
        return;
    }
    report_stall(freeze, judge_repeated_acknowledgement(next, end), reporter);
}

void StallDetector::add_freeze_to_totals(const Freeze& freeze, Reporter& reporter) {
    reporter.stats.freeze_us.add(freeze.time / kMicrosecond);
    reporter.stats.frozen_ms += static_cast<std::uint64_t>(freeze.time / kMillisecond);
}

void StallDetector::report_stall(const Freeze& freeze, const StallVerdict& verdict,
                                 Reporter& reporter) const {
    const bool known = client_version_ && *client_version_ > 0;
    const std::string who = known ? client_version_name(*client_version_) : "the client";
    const std::string client = !freeze.asked.empty() ? who + freeze.asked
                               : known               ? "the client is " + who
                                                     : "";
    std::string detail = verdict.detail;
    for (const std::string& more :
         {verdict.rivals.empty() ? "" : "or " + std::string{verdict.rivals}, client}) {
        detail += (detail.empty() || more.empty() ? "" : "; ") + more;
    }
    record::FindingRecord finding{.id = FindingId::snapshot_client_stalled,
                                  .since_tick = freeze.since,
                                  .lost = freeze.refused,
                                  .value = freeze.time / kMillisecond,
                                  .name = stall_cause_name(verdict.cause),
                                  .detail = detail};
    if (freeze.end) {
        finding.tick = freeze.end->tick;
        if (!freeze.is_by_acks) {
            finding.delta_tick = freeze.end->delta_tick;
        }
    }
    reporter.report_finding(finding);
}

} // namespace tw::inspect
