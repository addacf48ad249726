#include "proxy/inspect/receipts.h"

#include "proxy/wire/chunk.h"

#include <algorithm>
#include <utility>

namespace tw::inspect {

using record::Timestamp;

namespace {

constexpr std::int64_t kReceiptMillisecond = 1'000'000;
constexpr std::int64_t kTick = 20 * kReceiptMillisecond;
/// With this, the inputs of ten seconds of silence stay known: then the first clients give up.
constexpr Timestamp kWidest = 200 * kReceiptMillisecond;

} // namespace

void InputReceipts::RecentLeast::add(std::int64_t value, Timestamp now) {
    if (now - began_ >= kPeriod) {
        before_ = now - began_ < 2 * kPeriod ? current_ : std::nullopt;
        current_.reset();
        began_ = now;
    }
    current_ = std::min(current_.value_or(value), value);
}

std::optional<std::int64_t> InputReceipts::RecentLeast::least() const {
    if (!current_ || !before_) {
        return current_ ? current_ : before_;
    }
    return std::min(*current_, *before_);
}

void InputReceipts::on_input(snapshot::Tick intended, Timestamp now) {
    if (intended <= std::exchange(intended_, intended)) {
        return; // servers answer it only if it is for a later tick
    }
    const Timestamp quiet = answered_ == 0 ? 0 : now - answered_;
    if (kept_ != 0 && now - kept_ < std::clamp(quiet / kSpacingShare, kSpacing, kWidest)) {
        return;
    }
    kept_ = now;
    if (!inputs_) {
        inputs_ = std::make_unique<std::array<Input, kInputs>>();
    }
    (*inputs_)[num_inputs_++ % kInputs] = {.intended = intended, .sent = now};
}

void InputReceipts::on_answer(snapshot::Tick intended, std::int32_t time_left, Timestamp now) {
    answered_ = now;
    if (!inputs_) {
        return;
    }
    auto* const input = std::ranges::find_if(*inputs_, [&](const Input& each) {
        return each.sent != 0 && each.intended == intended && !each.is_answered;
    });
    if (input == inputs_->end()) {
        return;
    }
    input->is_answered = true;
    const std::int64_t read_at =
        std::int64_t{intended} * kTick - std::int64_t{time_left} * kReceiptMillisecond;
    input->read_after = read_at - input->sent;
    read_after_.add(input->read_after, now);
    round_trip_.add(now - input->sent, now);
    newest_answered_ = std::max(newest_answered_, input->sent);
}

InputReceipts::Outcome InputReceipts::outcome(Timestamp from, Timestamp to) const {
    Outcome outcome{.is_complete = newest_answered_ > to};
    if (!inputs_) {
        return outcome;
    }
    const std::int64_t usual = read_after_.least().value_or(0);
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

void ChunkReceipts::on_chunk(std::uint16_t sequence, Timestamp now) {
    Chunk& chunk = chunks_[num_chunks_++ % kChunks];
    if (chunk.sent == 0 || chunk.acked != 0) {
        ++num_open_;
    }
    chunk = {.sequence = sequence, .sent = now};
}

void ChunkReceipts::close(std::uint16_t ack, Timestamp now) {
    for (Chunk& chunk : chunks_) {
        if (chunk.sent != 0 && chunk.acked == 0 &&
            wire::classify_sequence(ack, chunk.sequence) == wire::VitalClass::old) {
            chunk.acked = now;
            --num_open_;
        }
    }
}

bool ChunkReceipts::got_any(Timestamp from, Timestamp to) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent > from && chunk.acked != 0 && chunk.acked < to;
    });
}

bool ChunkReceipts::missed_any(Timestamp from, Timestamp to, Timestamp by) const {
    return std::ranges::any_of(chunks_, [&](const Chunk& chunk) {
        return chunk.sent > from && chunk.sent < to && (chunk.acked == 0 || chunk.acked >= by);
    });
}

} // namespace tw::inspect
