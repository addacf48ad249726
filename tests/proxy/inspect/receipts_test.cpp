// Covers: proxy/inspect/snapshots/stall_cause.cpp
#include "proxy/inspect/snapshots/stall_cause.h"

#include <cstdint>

#include <doctest/doctest.h>

namespace tw::inspect {
namespace {

constexpr record::Timestamp kMs = 1'000'000;
constexpr record::Timestamp kStart = 1'000'000 * kMs;

/// An input every 40 ms that the server reads after `wait` ms, and whose answer takes 5 ms more.
class Inputs {
  public:
    void send(int count) {
        for (int i = 0; i < count; ++i) {
            tick_ += 2;
            receipts.on_input(tick_, sent());
        }
    }

    void answer(int first, int last, std::int64_t wait) {
        for (int i = first; i <= last; ++i) {
            const snapshot::Tick tick = 2 * i;
            const record::Timestamp read = kStart + tick * 20 * kMs + wait * kMs;
            // The server's tick 0 is at kStart + 77 ms.
            const auto left = (kStart + 77 * kMs + tick * 20 * kMs - read) / kMs;
            receipts.on_answer(tick, static_cast<std::int32_t>(left), read + 5 * kMs);
        }
    }

    [[nodiscard]] record::Timestamp sent() const { return kStart + tick_ * 20 * kMs; }

    InputReceipts receipts;

  private:
    snapshot::Tick tick_ = 0;
};

} // namespace

TEST_CASE("inputs that are answered at once did not wait") {
    Inputs inputs;
    CHECK_FALSE(inputs.receipts.has_answers());
    inputs.send(20);
    inputs.answer(1, 20, 3);
    const auto outcome = inputs.receipts.outcome_between(kStart, inputs.sent() - 1);
    CHECK(outcome.inputs == 19);
    CHECK(outcome.answered == 19);
    CHECK(outcome.longest_wait == 0);
    CHECK(outcome.is_complete);
    CHECK(inputs.receipts.round_trip() == 8 * kMs);
}

TEST_CASE("an input that had to wait is told from an answer that never came") {
    Inputs inputs;
    inputs.send(30);
    inputs.answer(1, 10, 3);
    inputs.answer(11, 11, 400);
    const auto begin = kStart + 11 * 40 * kMs;
    CHECK(inputs.receipts.outcome_between(begin, inputs.sent()).longest_wait == 397 * kMs);
    CHECK_FALSE(inputs.receipts.outcome_between(begin, inputs.sent() - 1).is_complete);
    inputs.answer(30, 30, 3);
    const auto outcome = inputs.receipts.outcome_between(begin + 1, inputs.sent() - 1);
    CHECK(outcome.is_complete);
    CHECK(outcome.inputs == 18);
    CHECK(outcome.answered == 0);
}

TEST_CASE("servers answer only inputs for a later tick, each once") {
    InputReceipts receipts;
    receipts.on_input(10, kStart);
    receipts.on_input(10, kStart + 50 * kMs);
    receipts.on_input(8, kStart + 100 * kMs);
    receipts.on_input(9, kStart + 150 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 200 * kMs).inputs == 2);
    receipts.on_answer(10, 0, kStart + 210 * kMs);
    receipts.on_answer(10, 0, kStart + 220 * kMs);
    receipts.on_answer(7, 0, kStart + 220 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 200 * kMs).answered == 1);
    receipts.restart();
    CHECK(receipts.outcome_between(kStart, kStart + 200 * kMs).inputs == 0);
}

TEST_CASE("an answer that was overtaken by a later one belongs to its input all the same") {
    Inputs inputs;
    inputs.send(4);
    inputs.answer(1, 1, 3);
    inputs.answer(4, 4, 3);
    inputs.answer(2, 3, 3);
    CHECK(inputs.receipts.outcome_between(kStart, inputs.sent()).answered == 4);
}

TEST_CASE("the first inputs of a long silence stay known") {
    Inputs inputs;
    inputs.send(50);
    inputs.answer(1, 50, 3);
    inputs.send(220); // 8.8 s
    inputs.answer(51, 60, 8500);
    const auto outcome = inputs.receipts.outcome_between(kStart + 50 * 40 * kMs + 1, inputs.sent());
    CHECK(outcome.longest_wait == 8497 * kMs);
    CHECK(outcome.inputs <= 64);
}

TEST_CASE("what is made up harms nothing") {
    InputReceipts receipts;
    receipts.on_answer(5, INT32_MIN, kStart);
    receipts.on_input(INT32_MAX, kStart);
    receipts.on_answer(INT32_MAX, INT32_MIN, kStart + kMs);
    receipts.on_input(INT32_MIN, kStart + 100 * kMs);
    receipts.on_input(1, kStart + 200 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 300 * kMs).answered == 1);
}

TEST_CASE("a reliable chunk that passed is acknowledged in time, late or never") {
    ChunkReceipts chunks;
    CHECK_FALSE(chunks.acknowledged_any(0, 1000 * kMs));
    CHECK_FALSE(chunks.left_unacknowledged(0, 1000 * kMs, 1000 * kMs));
    chunks.on_chunk(1023, 100 * kMs);
    chunks.on_chunk(0, 200 * kMs);
    chunks.on_ack(1022, 250 * kMs);
    CHECK(chunks.left_unacknowledged(0, 1000 * kMs, 1000 * kMs));
    chunks.on_ack(1023, 300 * kMs);
    CHECK(chunks.acknowledged_any(50 * kMs, 400 * kMs));
    CHECK_FALSE(chunks.acknowledged_any(150 * kMs, 400 * kMs));
    CHECK(chunks.left_unacknowledged(150 * kMs, 400 * kMs, 400 * kMs));
    chunks.on_ack(0, 500 * kMs);
    CHECK(chunks.left_unacknowledged(150 * kMs, 400 * kMs, 400 * kMs));
    CHECK_FALSE(chunks.left_unacknowledged(150 * kMs, 600 * kMs, 600 * kMs));
    for (std::uint16_t i = 1; i < 100; ++i) { // more than are kept
        chunks.on_chunk(i, 600 * kMs + i);
    }
    chunks.on_ack(99, 700 * kMs);
    CHECK_FALSE(chunks.left_unacknowledged(0, 800 * kMs, 800 * kMs));
}

} // namespace tw::inspect
