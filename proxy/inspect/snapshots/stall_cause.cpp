#include "proxy/inspect/snapshots/stall_cause.h"

#include "proxy/wire/packet.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using record::Timestamp;

namespace {

constexpr std::int64_t kInputMillisecond = 1'000'000;
/// The longest time between two stored inputs. With it, the ring buffer covers more than ten
/// seconds of silence. After ten seconds, the first clients disconnect.
constexpr Timestamp kMaxInputSpacing = 200 * kInputMillisecond;

} // namespace

void InputTimingTracker::RecentMinimum::add_value(std::int64_t value, Timestamp now) {
    if (now - period_begin_ >= kPeriod) {
        previous_minimum_ = now - period_begin_ < 2 * kPeriod ? current_minimum_ : std::nullopt;
        current_minimum_.reset();
        period_begin_ = now;
    }
    current_minimum_ = std::min(current_minimum_.value_or(value), value);
}

std::optional<std::int64_t> InputTimingTracker::RecentMinimum::minimum() const {
    if (!current_minimum_ || !previous_minimum_) {
        return current_minimum_ ? current_minimum_ : previous_minimum_;
    }
    return std::min(*current_minimum_, *previous_minimum_);
}

void InputTimingTracker::on_input(snapshot::Tick intended, Timestamp now) {
    if (intended <= std::exchange(newest_intended_tick_, intended)) {
        return; // servers answer only an input for a newer tick
    }
    const Timestamp quiet = last_answer_time_ == 0 ? 0 : now - last_answer_time_;
    if (last_stored_time_ != 0 &&
        now - last_stored_time_ <
            std::clamp(quiet / kSpacingShare, kInputSpacing, kMaxInputSpacing)) {
        return;
    }
    last_stored_time_ = now;
    if (!inputs_) {
        inputs_ = std::make_unique<std::array<Input, kStoredInputs>>();
    }
    (*inputs_)[num_inputs_++ % kStoredInputs] = {.intended_tick = intended, .sent_time = now};
}

InputTimingTracker::Input* InputTimingTracker::find_unanswered_input(snapshot::Tick intended) {
    for (std::size_t age = 1; age <= std::min(num_inputs_, kStoredInputs); ++age) {
        Input& input = (*inputs_)[(num_inputs_ - age) % kStoredInputs];
        if (input.is_answered && input.intended_tick < intended) {
            break;
        }
        if (input.intended_tick == intended && !input.is_answered) {
            return &input;
        }
    }
    return nullptr;
}

void InputTimingTracker::on_answer(snapshot::Tick intended, std::int32_t time_left, Timestamp now) {
    last_answer_time_ = now;
    Input* const input = find_unanswered_input(intended);
    if (input == nullptr) {
        return;
    }
    input->is_answered = true;
    const std::int64_t read_at = std::int64_t{intended} * record::kTickDuration -
                                 std::int64_t{time_left} * kInputMillisecond;
    input->read_offset = read_at - input->sent_time;
    min_read_offset_.add_value(input->read_offset, now);
    min_round_trip_.add_value(now - input->sent_time, now);
    newest_answered_input_time_ = std::max(newest_answered_input_time_, input->sent_time);
}

InputTimingTracker::InputOutcome InputTimingTracker::outcome_of_inputs_between(Timestamp from,
                                                                               Timestamp to) const {
    InputOutcome outcome{.is_complete = newest_answered_input_time_ > to};
    if (!inputs_) {
        return outcome;
    }
    const std::int64_t usual = min_read_offset_.minimum().value_or(0);
    for (const Input& input : *inputs_) {
        if (input.sent_time == 0 || input.sent_time < from || input.sent_time > to) {
            continue;
        }
        ++outcome.num_inputs;
        if (input.is_answered) {
            ++outcome.num_answered;
            outcome.longest_wait = std::max(outcome.longest_wait, input.read_offset - usual);
        }
    }
    return outcome;
}

void ChunkAcknowledgements::on_chunk(std::uint16_t sequence, Timestamp now) {
    Chunk& chunk = chunks_[num_chunks_++ % kStoredChunks];
    if (chunk.sent_time == 0 || chunk.ack_time != 0) {
        ++num_unacknowledged_;
    }
    chunk = {.sequence = sequence, .sent_time = now};
}

void ChunkAcknowledgements::mark_acknowledged(std::uint16_t ack, Timestamp now) {
    for (Chunk& chunk : chunks_) {
        if (chunk.sent_time != 0 && chunk.ack_time == 0 &&
            wire::classify_sequence(ack, chunk.sequence) == wire::VitalClass::old) {
            chunk.ack_time = now;
            --num_unacknowledged_;
        }
    }
}

bool ChunkAcknowledgements::was_any_chunk_acknowledged(Timestamp from, Timestamp to) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent_time > from && chunk.ack_time != 0 && chunk.ack_time < to;
    });
}

bool ChunkAcknowledgements::has_unacknowledged_chunk(Timestamp from, Timestamp to,
                                                     Timestamp by) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent_time > from && chunk.sent_time < to &&
               (chunk.ack_time == 0 || chunk.ack_time >= by);
    });
}

using record::Timestamp;

namespace {

/// The least number of inputs whose answers, or missing answers, are used as evidence.
constexpr unsigned kMinInputsAsEvidence = 3;

constexpr std::array<std::string_view, static_cast<std::size_t>(StallCause::count)>
    kStallCauseNames{"rejected", "unknown_base", "late",           "server_silent", "slower_rate",
                     "lost",     "lost_behind",  "unacknowledged", "client_silent", "unknown"};

std::string milliseconds_text(Timestamp time) {
    return std::to_string(time / 1'000'000) + " ms";
}

std::string ratio_text(unsigned some, unsigned all) {
    return std::to_string(some) + " of " + std::to_string(all);
}

/// Whether the server read an input so late that the server cannot have run during the stall.
bool shows_stopped_server(const StallEvidence& evidence) {
    return evidence.longest_wait >= evidence.duration / 2;
}

/// Whether the server's answers to at least half of the inputs are missing. If the server also
/// ignored an acknowledgement in one of the inputs, one missing answer is enough.
bool are_answers_missing(const StallEvidence& evidence) {
    const InputTimingTracker::InputOutcome& receipts = evidence.input_outcome;
    return receipts.num_inputs >= (evidence.is_full_snapshot_acked ? 1 : kMinInputsAsEvidence) &&
           2 * receipts.num_answered <= receipts.num_inputs;
}

/// Whether the server answered at least four of five inputs.
bool are_inputs_answered(const InputTimingTracker::InputOutcome& receipts) {
    return receipts.num_inputs >= kMinInputsAsEvidence &&
           5 * receipts.num_answered >= 4 * receipts.num_inputs;
}

std::optional<StallVerdict> judge_by_answers(const StallEvidence& evidence, bool is_final) {
    const InputTimingTracker::InputOutcome& receipts = evidence.input_outcome;
    const bool is_complete =
        receipts.is_complete || (is_final && evidence.has_ended && evidence.has_server_answered);
    if (shows_stopped_server(evidence)) {
        return StallVerdict{.cause = StallCause::server_silent,
                            .detail = "the server did not run: it read an input " +
                                      milliseconds_text(evidence.longest_wait) + " late"};
    }
    if (evidence.is_late) {
        if (!are_inputs_answered(receipts)) {
            return std::nullopt;
        }
        return StallVerdict{.cause = StallCause::late,
                            .detail = "held up on the way: the server read the inputs of that time "
                                      "at once"};
    }
    if (evidence.has_lost_data) {
        return StallVerdict{.cause = StallCause::lost_before_twscope,
                            .detail = "a part or a reliable message of that time was lost, too"};
    }
    if (is_complete && are_answers_missing(evidence)) {
        const std::string unanswered =
            ratio_text(receipts.num_inputs - receipts.num_answered, receipts.num_inputs);
        return StallVerdict{.cause = StallCause::lost_before_twscope,
                            .detail =
                                evidence.is_full_snapshot_acked
                                    ? "the client's acknowledgement was lost, too: " + unanswered +
                                          " inputs were never answered"
                                    : unanswered + " inputs of that time were never answered"};
    }
    if (is_complete && are_inputs_answered(receipts)) {
        return StallVerdict{.cause = StallCause::slower_rate,
                            .detail = "the server made no snapshot for this client: it answered " +
                                      ratio_text(receipts.num_answered, receipts.num_inputs) +
                                      " inputs of that time at once"};
    }
    return std::nullopt;
}

StallVerdict judge_without_answers(const StallEvidence& evidence) {
    if (evidence.is_late) {
        return {.cause = StallCause::late,
                .detail = "no snapshot is missing: made late, or held up on the way"};
    }
    if (evidence.were_datagrams_lost) {
        return {.cause = StallCause::lost_before_twscope,
                .detail = "another session of the server lost its answers in that time"};
    }
    if (evidence.was_server_stopped) {
        return {.cause = StallCause::server_silent,
                .detail = "the server did not run, as another session shows"};
    }
    if (evidence.num_quiet_sessions && *evidence.num_quiet_sessions > 1) {
        return {.cause = StallCause::server_silent,
                .other_causes = "lost",
                .detail = "the server sent nothing to any of " +
                          std::to_string(*evidence.num_quiet_sessions) + " sessions"};
    }
    const std::string missing = evidence.has_client_inputs
                                    ? "no input of that time says whether the server ran"
                                    : "the client's datagrams did not pass here";
    if (evidence.num_quiet_sessions) {
        return {.other_causes = "server_silent, lost", .detail = missing};
    }
    return {.other_causes = "lost, slower_rate",
            .detail = missing + "; the server sent other datagrams meanwhile"};
}

} // namespace

std::string_view stall_cause_name(StallCause cause) {
    return kStallCauseNames.at(static_cast<std::size_t>(cause));
}

std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final) {
    if (auto verdict = judge_by_answers(evidence, is_final)) {
        return verdict;
    }
    return is_final ? std::optional{judge_without_answers(evidence)} : std::nullopt;
}

} // namespace tw::inspect
