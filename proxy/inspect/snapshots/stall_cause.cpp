#include "proxy/inspect/snapshots/stall_cause.h"

#include "proxy/wire/packet.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using record::Timestamp;

namespace {

constexpr std::int64_t kReceiptMillisecond = 1'000'000;
constexpr std::int64_t kTickDuration = 20 * kReceiptMillisecond;
/// The longest time between two stored inputs: the ring buffer then covers ten seconds of silence,
/// after which the first clients disconnect.
constexpr Timestamp kWidestSpacing = 200 * kReceiptMillisecond;

} // namespace

void InputTimingTracker::RecentMinimum::add(std::int64_t value, Timestamp now) {
    if (now - began_ >= kPeriod) {
        before_ = now - began_ < 2 * kPeriod ? current_ : std::nullopt;
        current_.reset();
        began_ = now;
    }
    current_ = std::min(current_.value_or(value), value);
}

std::optional<std::int64_t> InputTimingTracker::RecentMinimum::minimum() const {
    if (!current_ || !before_) {
        return current_ ? current_ : before_;
    }
    return std::min(*current_, *before_);
}

void InputTimingTracker::on_input(snapshot::Tick intended, Timestamp now) {
    if (intended <= std::exchange(intended_, intended)) {
        return; // servers answer only an input for a newer tick
    }
    const Timestamp quiet = answered_ == 0 ? 0 : now - answered_;
    if (kept_ != 0 &&
        now - kept_ < std::clamp(quiet / kSpacingShare, kInputSpacing, kWidestSpacing)) {
        return;
    }
    kept_ = now;
    if (!inputs_) {
        inputs_ = std::make_unique<std::array<Input, kStoredInputs>>();
    }
    (*inputs_)[num_inputs_++ % kStoredInputs] = {.intended = intended, .sent = now};
}

InputTimingTracker::Input* InputTimingTracker::find_unanswered_input(snapshot::Tick intended) {
    for (std::size_t age = 1; age <= std::min(num_inputs_, kStoredInputs); ++age) {
        Input& input = (*inputs_)[(num_inputs_ - age) % kStoredInputs];
        if (input.is_answered && input.intended < intended) {
            break;
        }
        if (input.intended == intended && !input.is_answered) {
            return &input;
        }
    }
    return nullptr;
}

void InputTimingTracker::on_answer(snapshot::Tick intended, std::int32_t time_left, Timestamp now) {
    answered_ = now;
    Input* const input = find_unanswered_input(intended);
    if (input == nullptr) {
        return;
    }
    input->is_answered = true;
    const std::int64_t read_at =
        std::int64_t{intended} * kTickDuration - std::int64_t{time_left} * kReceiptMillisecond;
    input->read_after = read_at - input->sent;
    read_after_.add(input->read_after, now);
    round_trip_.add(now - input->sent, now);
    newest_answered_ = std::max(newest_answered_, input->sent);
}

InputTimingTracker::InputOutcome InputTimingTracker::outcome_between(Timestamp from,
                                                                     Timestamp to) const {
    InputOutcome outcome{.is_complete = newest_answered_ > to};
    if (!inputs_) {
        return outcome;
    }
    const std::int64_t usual = read_after_.minimum().value_or(0);
    for (const Input& input : *inputs_) {
        if (input.sent == 0 || input.sent < from || input.sent > to) {
            continue;
        }
        ++outcome.inputs;
        if (input.is_answered) {
            ++outcome.answered;
            outcome.longest_wait = std::max(outcome.longest_wait, input.read_after - usual);
        }
    }
    return outcome;
}

void ChunkAcknowledgements::on_chunk(std::uint16_t sequence, Timestamp now) {
    Chunk& chunk = chunks_[num_chunks_++ % kStoredChunks];
    if (chunk.sent == 0 || chunk.acked != 0) {
        ++num_open_;
    }
    chunk = {.sequence = sequence, .sent = now};
}

void ChunkAcknowledgements::mark_acknowledged(std::uint16_t ack, Timestamp now) {
    for (Chunk& chunk : chunks_) {
        if (chunk.sent != 0 && chunk.acked == 0 &&
            wire::classify_sequence(ack, chunk.sequence) == wire::VitalClass::old) {
            chunk.acked = now;
            --num_open_;
        }
    }
}

bool ChunkAcknowledgements::was_any_chunk_acknowledged(Timestamp from, Timestamp to) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent > from && chunk.acked != 0 && chunk.acked < to;
    });
}

bool ChunkAcknowledgements::has_unacknowledged_chunk(Timestamp from, Timestamp to,
                                                     Timestamp by) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent > from && chunk.sent < to && (chunk.acked == 0 || chunk.acked >= by);
    });
}

using record::Timestamp;

namespace {

/// The least number of inputs whose answers, or missing answers, are used as evidence.
constexpr unsigned kMinInputs = 3;

constexpr std::array<std::string_view, static_cast<std::size_t>(StallCause::count)> kNames{
    "rejected", "unknown_base", "late",           "server_silent", "slower_rate",
    "lost",     "lost_behind",  "unacknowledged", "client_silent", "unknown"};

std::string milliseconds_text(Timestamp time) {
    return std::to_string(time / 1'000'000) + " ms";
}

std::string ratio_text(unsigned some, unsigned all) {
    return std::to_string(some) + " of " + std::to_string(all);
}

/// Whether the server read an input so late that the server cannot have run during the stall.
bool shows_stopped_server(const StallEvidence& evidence) {
    return evidence.longest_wait >= evidence.time / 2;
}

/// Whether the server's answers to at least half of the inputs are missing. If the server also
/// ignored an acknowledgement in one of the inputs, one missing answer is enough.
bool lacks_answers(const StallEvidence& evidence) {
    const InputTimingTracker::InputOutcome& receipts = evidence.receipts;
    return receipts.inputs >= (evidence.is_full_acked ? 1 : kMinInputs) &&
           2 * receipts.answered <= receipts.inputs;
}

/// Whether the server answered at least four of five inputs.
bool has_answers(const InputTimingTracker::InputOutcome& receipts) {
    return receipts.inputs >= kMinInputs && 5 * receipts.answered >= 4 * receipts.inputs;
}

std::optional<StallVerdict> judge_by_answers(const StallEvidence& evidence, bool is_final) {
    const InputTimingTracker::InputOutcome& receipts = evidence.receipts;
    const bool is_complete =
        receipts.is_complete || (is_final && evidence.has_ended && evidence.is_answering);
    if (shows_stopped_server(evidence)) {
        return StallVerdict{.cause = StallCause::server_silent,
                            .detail = "the server did not run: it read an input " +
                                      milliseconds_text(evidence.longest_wait) + " late"};
    }
    if (evidence.is_late) {
        if (!has_answers(receipts)) {
            return std::nullopt;
        }
        return StallVerdict{.cause = StallCause::late,
                            .detail = "held up on the way: the server read the inputs of that time "
                                      "at once"};
    }
    if (evidence.has_hole) {
        return StallVerdict{.cause = StallCause::lost,
                            .detail = "a part or a reliable message of that time was lost, too"};
    }
    if (is_complete && lacks_answers(evidence)) {
        const std::string unanswered =
            ratio_text(receipts.inputs - receipts.answered, receipts.inputs);
        return StallVerdict{.cause = StallCause::lost,
                            .detail =
                                evidence.is_full_acked
                                    ? "the client's acknowledgement was lost, too: " + unanswered +
                                          " inputs were never answered"
                                    : unanswered + " inputs of that time were never answered"};
    }
    if (is_complete && has_answers(receipts)) {
        return StallVerdict{.cause = StallCause::slower_rate,
                            .detail = "the server made no snapshot for this client: it answered " +
                                      ratio_text(receipts.answered, receipts.inputs) +
                                      " inputs of that time at once"};
    }
    return std::nullopt;
}

StallVerdict judge_without_answers(const StallEvidence& evidence) {
    if (evidence.is_late) {
        return {.cause = StallCause::late,
                .detail = "no snapshot is missing: made late, or held up on the way"};
    }
    if (evidence.was_cut_off) {
        return {.cause = StallCause::lost,
                .detail = "another session of the server lost its answers in that time"};
    }
    if (evidence.was_stopped) {
        return {.cause = StallCause::server_silent,
                .detail = "the server did not run, as another session shows"};
    }
    if (evidence.quiet_sessions && *evidence.quiet_sessions > 1) {
        return {.cause = StallCause::server_silent,
                .rivals = "lost",
                .detail = "the server sent nothing to any of " +
                          std::to_string(*evidence.quiet_sessions) + " sessions"};
    }
    const std::string missing = evidence.has_client
                                    ? "no input of that time says whether the server ran"
                                    : "the client's datagrams did not pass here";
    if (evidence.quiet_sessions) {
        return {.rivals = "server_silent, lost", .detail = missing};
    }
    return {.rivals = "lost, slower_rate",
            .detail = missing + "; the server sent other datagrams meanwhile"};
}

} // namespace

std::string_view stall_cause_name(StallCause cause) {
    return kNames.at(static_cast<std::size_t>(cause));
}

std::optional<StallVerdict> judge_stall(const StallEvidence& evidence, bool is_final) {
    if (auto verdict = judge_by_answers(evidence, is_final)) {
        return verdict;
    }
    return is_final ? std::optional{judge_without_answers(evidence)} : std::nullopt;
}

} // namespace tw::inspect
