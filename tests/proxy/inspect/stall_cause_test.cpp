// Tests the causes of stalls with a simulated server and client that follow the real rules.
// Covers: proxy/inspect/snapshots/stall_detector.cpp, proxy/inspect/snapshots/stall_cause.cpp
#include "proxy/inspect/snapshots/stall_cause.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"
#include "tests/support/time.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using inspect::StallCause;
using inspect::StallEvidence;
using snapshot::kNoBase;
using snapshot::Tick;

namespace {

constexpr record::Timestamp kTick = 20 * kMillisecond;
constexpr record::Timestamp kDatagram = 10 * kMillisecond; ///< time between the script's datagrams

/// Stores stalls as text: the cause, and other possible causes: "unknown (lost, slower_rate)".
struct StallLog final : TypedRecordSink<StallLog> {
    void on(const record::FindingRecord& found) {
        if (found.id == record::FindingId::snapshot_client_stalled) {
            std::string& line = causes.emplace_back(found.name);
            if (const auto at = found.detail.find("; or "); at != std::string_view::npos) {
                line += " (" + std::string{found.detail.substr(at + 5)} + ')';
            }
        }
    }

    Lines causes;
};

enum class Trouble : std::uint8_t {
    none,
    server_stopped,
    server_skips_client, ///< the server runs, but makes no snapshot for this client
    lost_before,         ///< the server's datagrams are lost before they pass twscope
    held_up_before,      ///< the server's datagrams arrive together at the end
    lost_behind,         ///< the server's datagrams are lost after they passed twscope
    inputs_lost,         ///< the client's datagrams are lost after they passed twscope
    client_stopped,
    client_keeps_ack, ///< the client acknowledges an old snapshot
    client_requests_full,
};

/// Simulates a game with 50 ticks a second and a snapshot every second tick. The server follows the
/// rules of DDNet's CServer.
class SimulatedGame {
  public:
    /// `plays`: if false, the client is in a menu and sends one input a second.
    explicit SimulatedGame(bool plays = true, inspect::ServerActivityTable* servers = nullptr)
        : plays_{plays}, script_{{.server_activities = servers}, stalls_} {
        script_.join_ddnet();
        script_.enter_game();
        begin_ = script_.now() + kTick;
        run_steps(200);
    }

    void run_steps(int steps, Trouble trouble = Trouble::none) {
        for (int i = 0; i < steps; ++i) {
            run_step(trouble);
        }
    }

    /// Sends a vital message of the server.
    void send_vital_message() {
        script_.send(kS2c, message("sv_broadcast").string("something"));
        script_.pause(-kDatagram);
    }

    void run_step(Trouble trouble) {
        tick_ += 2;
        script_.pause(begin_ + tick_ * kTick - kDatagram - script_.now());
        run_client(trouble);
        if (trouble != Trouble::held_up_before) {
            release_held_snapshots();
        }
        if (trouble != Trouble::server_stopped) {
            run_server(trouble);
        }
    }

    void close_session() { script_.close("idle"); }

    [[nodiscard]] const StallLog& stalls() const { return stalls_; }

    [[nodiscard]] record::SessionStats stats() const { return script_.stats(); }

  private:
    struct Input {
        Tick intended = 0;
        Tick acked = 0;
    };

    void run_client(Trouble trouble) {
        if (trouble == Trouble::client_stopped || received_ == kNoBase ||
            (!plays_ && tick_ % 50 != 0)) {
            return;
        }
        const Input sent{.intended = tick_ + 1,
                         .acked = trouble == Trouble::client_requests_full ? kNoBase : received_};
        script_.send(kC2s, {non_vital(input(sent.acked, sent.intended))});
        if (trouble != Trouble::inputs_lost) {
            waiting_.push_back(sent);
        }
    }

    void run_server(Trouble trouble) {
        for (const Input& each : waiting_) {
            if (each.intended > std::exchange(intended_, each.intended)) {
                const auto left = (begin_ + each.intended * kTick - script_.now()) / kMillisecond;
                answers_.push_back(non_vital(message("input_timing")
                                                 .number(each.intended)
                                                 .number(static_cast<std::int32_t>(left))));
            }
            acked_ = each.acked;
            rate_ = acked_ > 0 ? 2 : rate_;
        }
        waiting_.clear();
        if (trouble == Trouble::server_skips_client || tick_ % rate_ != 0) {
            return;
        }
        const bool has_base = acked_ > 0 && tick_ - acked_ <= 150;
        if (!has_base && rate_ == 2) {
            rate_ = 50;
        }
        const Items world{{{4, 1}, {10 + tick_, 20, 0, 0}}};
        const Bytes snap = script_.snap_datagram(tick_, has_base ? acked_ : kNoBase, world);
        send_snapshot(snap, trouble);
    }

    void send_snapshot(const Bytes& snap, Trouble trouble) {
        std::vector<Piece> answers = std::exchange(answers_, {});
        if (trouble == Trouble::lost_before) {
            return;
        }
        if (trouble == Trouble::held_up_before) {
            held_.push_back({std::move(answers), snap});
            return;
        }
        pass_snapshot(answers, snap);
        if (trouble != Trouble::lost_behind && trouble != Trouble::client_keeps_ack) {
            received_ = tick_;
        }
    }

    void pass_snapshot(const std::vector<Piece>& answers, const Bytes& snap) {
        if (!answers.empty()) {
            script_.send(kS2c, answers);
            script_.pause(-kDatagram);
        }
        script_.send_datagram(kS2c, snap);
        script_.pause(-kDatagram + kMillisecond / 10);
    }

    void release_held_snapshots() {
        for (const auto& [answers, snap] : std::exchange(held_, {})) {
            pass_snapshot(answers, snap);
            received_ = tick_ - 2;
        }
    }

    bool plays_;
    StallLog stalls_;
    SessionScript script_;
    record::Timestamp begin_ = 0;
    Tick tick_ = 0;
    Tick received_ = kNoBase; ///< the tick of the client's last snapshot
    std::vector<Input> waiting_;
    Tick intended_ = 0; ///< the intended tick of the last input that the server read
    Tick acked_ = kNoBase;
    int rate_ = 10;
    std::vector<Piece> answers_;
    std::vector<std::pair<std::vector<Piece>, Bytes>> held_;
};

} // namespace

TEST_CASE("each cause of a stall is distinguished from the others") {
    struct Row {
        std::string_view name;
        Trouble trouble;
        int steps; ///< of 40 ms
        std::string_view told;
    };

    const Row rows[] = {
        {"the server is stopped", Trouble::server_stopped, 12, "server_silent"},
        {"for long", Trouble::server_stopped, 100, "server_silent"},
        {"the server makes none", Trouble::server_skips_client, 12, "slower_rate"},
        {"datagrams of the server are lost", Trouble::lost_before, 12, "lost"},
        {"they are lost for as short as is told", Trouble::lost_before, 7, "lost"},
        {"they come late", Trouble::held_up_before, 12, "late"},
        {"they are lost behind twscope", Trouble::lost_behind, 12, "lost_behind (unacknowledged)"},
        {"inputs are lost behind twscope", Trouble::inputs_lost, 101, "lost"},
        {"the client is stopped", Trouble::client_stopped, 130, "client_silent"},
        {"the client asks for a full one again and again", Trouble::client_requests_full, 130,
         "unacknowledged"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SimulatedGame game;
        game.run_steps(row.steps, row.trouble);
        game.run_steps(100);
        CHECK(game.stalls().causes == Lines{std::string{row.told}});
        game.close_session();
        CHECK(game.stalls().causes.size() == 1);
    }
}

TEST_CASE("consecutive stalls keep their causes") {
    SimulatedGame game;
    for (int i = 0; i < 20; ++i) {
        game.run_steps(9, Trouble::server_stopped); // the server gets too little time to run
        game.run_steps(1);
    }
    CHECK(game.stalls().causes.size() >= 19);
    game.run_steps(60);
    CHECK(game.stalls().causes == Lines(20, "server_silent"));
    game.run_steps(12, Trouble::lost_before);
    game.run_steps(2);
    game.run_steps(12, Trouble::server_stopped);
    game.run_steps(30);
    REQUIRE(game.stalls().causes.size() == 22);
    CHECK(game.stalls().causes[20] == "lost");
    CHECK(game.stalls().causes[21] == "server_silent");
}

TEST_CASE("acknowledged messages show that the snapshots were not lost") {
    SimulatedGame game;
    for (int i = 0; i < 20; ++i) {
        game.run_step(Trouble::client_keeps_ack);
        game.send_vital_message();
    }
    game.run_steps(50);
    CHECK(game.stalls().causes == Lines{"unacknowledged"});
}

TEST_CASE("a normal join is no loss and no stall") {
    SimulatedGame game;
    CHECK(game.stats().missed == 0);
    CHECK(game.stats().ticks_skipped == 0);
    CHECK(game.stats().frozen_ms == 0);
    game.close_session();
    CHECK(game.stalls().causes.empty());
}

TEST_CASE("without inputs, the server's traffic to all sessions shows the cause") {
    inspect::ServerActivityTable servers;
    SimulatedGame first{false, &servers};
    SimulatedGame second{false, &servers};
    const auto play = [&](int steps, Trouble of_first, Trouble of_second) {
        for (int i = 0; i < steps; ++i) {
            first.run_step(of_first);
            second.run_step(of_second);
        }
    };
    SUBCASE("all stop at once") {
        play(12, Trouble::server_stopped, Trouble::server_stopped);
        play(60, Trouble::none, Trouble::none);
        CHECK(first.stalls().causes == Lines{"server_silent (lost)"});
        CHECK(second.stalls().causes == Lines{"server_silent (lost)"});
    }
    SUBCASE("one of them stops") {
        play(12, Trouble::lost_before, Trouble::none);
        play(60, Trouble::none, Trouble::none);
        CHECK(first.stalls().causes == Lines{"unknown (lost, slower_rate)"});
        CHECK(second.stalls().causes.empty());
    }
    SUBCASE("one that plays shows that the server did not run") {
        SimulatedGame third{true, &servers};
        for (int i = 0; i < 72; ++i) {
            first.run_step(i < 12 ? Trouble::server_stopped : Trouble::none);
            third.run_step(i < 12 ? Trouble::server_stopped : Trouble::none);
        }
        CHECK(first.stalls().causes == Lines{"server_silent"});
    }
    SUBCASE("one that plays shows that its answers were lost") {
        SimulatedGame third{true, &servers};
        for (int i = 0; i < 72; ++i) {
            first.run_step(i < 12 ? Trouble::lost_before : Trouble::none);
            third.run_step(i < 12 ? Trouble::lost_before : Trouble::none);
        }
        CHECK(first.stalls().causes == Lines{"lost"});
    }
}

TEST_CASE("without inputs and other sessions the cause is unknown") {
    SimulatedGame game{false};
    game.run_steps(12, Trouble::server_stopped);
    game.run_steps(60);
    CHECK(game.stalls().causes == Lines{"unknown (server_silent, lost)"});
}

TEST_CASE("an unfinished stall is reported at the end of the session") {
    SimulatedGame game;
    game.run_steps(12, Trouble::lost_before);
    game.close_session();
    CHECK(game.stalls().causes == Lines{"unknown (server_silent, lost)"});
}

TEST_CASE("judge_stall() follows the evidence and otherwise waits") {
    struct Row {
        std::string_view name;
        StallEvidence evidence; ///< evidence about a stall of one second
        bool is_final;
        std::optional<StallCause> cause;
    };

    using enum StallCause;
    using Outcome = inspect::InputTimingTracker::InputOutcome;
    constexpr Outcome kAll{.num_inputs = 8, .num_answered = 8, .is_complete = true};
    constexpr Outcome kNone{.num_inputs = 8, .is_complete = true};
    constexpr Outcome kOpen{.num_inputs = 8};
    const auto undecided = std::nullopt;
    const Row rows[] = {
        {"nothing yet", {}, false, undecided},
        {"nothing ever", {}, true, unknown},
        {"read late", {.input_outcome = kOpen, .longest_wait = kSecond / 2}, false, server_silent},
        {"read a little late",
         {.input_outcome = kOpen, .longest_wait = kSecond / 3},
         false,
         undecided},
        {"read late, and not lost for all that is missing",
         {.has_lost_data = true, .input_outcome = kNone, .longest_wait = kSecond},
         false,
         server_silent},
        {"a hole", {.has_lost_data = true}, false, lost_before_twscope},
        {"never answered", {.input_outcome = kNone}, false, lost_before_twscope},
        {"not answered yet", {.input_outcome = kOpen}, false, undecided},
        {"not answered for long",
         {.has_server_answered = true, .input_outcome = kOpen},
         true,
         lost_before_twscope},
        {"by a server that never does", {.input_outcome = kOpen}, true, unknown},
        {"and nothing came after it",
         {.has_ended = false, .has_server_answered = true, .input_outcome = kOpen},
         true,
         unknown},
        {"all answered", {.input_outcome = kAll}, false, slower_rate},
        {"two inputs say nothing",
         {.input_outcome = {.num_inputs = 2, .is_complete = true}},
         true,
         unknown},
        {"late", {.is_late = true}, true, late},
        {"late, perhaps made so", {.is_late = true}, false, undecided},
        {"made late", {.is_late = true, .longest_wait = kSecond}, false, server_silent},
        {"nobody heard anything", {.num_quiet_sessions = 2}, true, server_silent},
        {"the only one heard nothing", {.num_quiet_sessions = 1}, true, unknown},
        {"another one shows that it was stopped",
         {.num_quiet_sessions = 1, .was_server_stopped = true},
         true,
         server_silent},
        {"another one shows that it was cut off",
         {.num_quiet_sessions = 2, .were_datagrams_lost = true},
         true,
         lost_before_twscope},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        StallEvidence evidence = row.evidence;
        evidence.duration = kSecond;
        const auto verdict = judge_stall(evidence, row.is_final);
        CHECK(verdict.has_value() == row.cause.has_value());
        if (verdict && row.cause) {
            CHECK(inspect::stall_cause_name(verdict->cause) ==
                  inspect::stall_cause_name(*row.cause));
            CHECK_FALSE(verdict->detail.empty());
            CHECK((verdict->cause != unknown || !verdict->other_causes.empty()));
        }
    }
}

namespace tw::inspect {

namespace {

constexpr record::Timestamp kMs = 1'000'000;
constexpr record::Timestamp kStart = 1'000'000 * kMs;

/// Simulates an input every 40 ms. The server reads it after `wait` ms; the answer takes 5 ms more.
class SimulatedInputs {
  public:
    void send_inputs(int count) {
        for (int i = 0; i < count; ++i) {
            tick_ += 2;
            receipts.on_input(tick_, input_time());
        }
    }

    void answer_inputs(int first, int last, std::int64_t wait) {
        for (int i = first; i <= last; ++i) {
            const snapshot::Tick tick = 2 * i;
            const record::Timestamp read = kStart + tick * 20 * kMs + wait * kMs;
            // The server's tick 0 is at kStart + 77 ms.
            const auto left = (kStart + 77 * kMs + tick * 20 * kMs - read) / kMs;
            receipts.on_answer(tick, static_cast<std::int32_t>(left), read + 5 * kMs);
        }
    }

    [[nodiscard]] record::Timestamp input_time() const { return kStart + tick_ * 20 * kMs; }

    InputTimingTracker receipts;

  private:
    snapshot::Tick tick_ = 0;
};

} // namespace

TEST_CASE("inputs that were answered at once did not wait at the server") {
    SimulatedInputs inputs;
    CHECK_FALSE(inputs.receipts.has_answers());
    inputs.send_inputs(20);
    inputs.answer_inputs(1, 20, 3);
    const auto outcome = inputs.receipts.outcome_of_inputs_between(kStart, inputs.input_time() - 1);
    CHECK(outcome.num_inputs == 19);
    CHECK(outcome.num_answered == 19);
    CHECK(outcome.longest_wait == 0);
    CHECK(outcome.is_complete);
    CHECK(inputs.receipts.round_trip() == 8 * kMs);
}

TEST_CASE("an input that waited is distinguished from a lost answer") {
    SimulatedInputs inputs;
    inputs.send_inputs(30);
    inputs.answer_inputs(1, 10, 3);
    inputs.answer_inputs(11, 11, 400);
    const auto begin = kStart + 11 * 40 * kMs;
    CHECK(inputs.receipts.outcome_of_inputs_between(begin, inputs.input_time()).longest_wait ==
          397 * kMs);
    CHECK_FALSE(
        inputs.receipts.outcome_of_inputs_between(begin, inputs.input_time() - 1).is_complete);
    inputs.answer_inputs(30, 30, 3);
    const auto outcome =
        inputs.receipts.outcome_of_inputs_between(begin + 1, inputs.input_time() - 1);
    CHECK(outcome.is_complete);
    CHECK(outcome.num_inputs == 18);
    CHECK(outcome.num_answered == 0);
}

TEST_CASE("servers answer each input for a newer tick once") {
    InputTimingTracker receipts;
    receipts.on_input(10, kStart);
    receipts.on_input(10, kStart + 50 * kMs);
    receipts.on_input(8, kStart + 100 * kMs);
    receipts.on_input(9, kStart + 150 * kMs);
    CHECK(receipts.outcome_of_inputs_between(kStart, kStart + 200 * kMs).num_inputs == 2);
    receipts.on_answer(10, 0, kStart + 210 * kMs);
    receipts.on_answer(10, 0, kStart + 220 * kMs);
    receipts.on_answer(7, 0, kStart + 220 * kMs);
    CHECK(receipts.outcome_of_inputs_between(kStart, kStart + 200 * kMs).num_answered == 1);
}

TEST_CASE("reordered answers are matched with their inputs") {
    SimulatedInputs inputs;
    inputs.send_inputs(4);
    inputs.answer_inputs(1, 1, 3);
    inputs.answer_inputs(4, 4, 3);
    inputs.answer_inputs(2, 3, 3);
    CHECK(inputs.receipts.outcome_of_inputs_between(kStart, inputs.input_time()).num_answered == 4);
}

TEST_CASE("the first inputs of a long silence are kept") {
    SimulatedInputs inputs;
    inputs.send_inputs(50);
    inputs.answer_inputs(1, 50, 3);
    inputs.send_inputs(220); // 8.8 s
    inputs.answer_inputs(51, 60, 8500);
    const auto outcome =
        inputs.receipts.outcome_of_inputs_between(kStart + 50 * 40 * kMs + 1, inputs.input_time());
    CHECK(outcome.longest_wait == 8497 * kMs);
    CHECK(outcome.num_inputs <= 64);
}

TEST_CASE("forged inputs and answers are harmless") {
    InputTimingTracker receipts;
    receipts.on_answer(5, INT32_MIN, kStart);
    receipts.on_input(INT32_MAX, kStart);
    receipts.on_answer(INT32_MAX, INT32_MIN, kStart + kMs);
    receipts.on_input(INT32_MIN, kStart + 100 * kMs);
    receipts.on_input(1, kStart + 200 * kMs);
    CHECK(receipts.outcome_of_inputs_between(kStart, kStart + 300 * kMs).num_answered == 1);
}

TEST_CASE("a vital chunk is acknowledged in time, late or never") {
    ChunkAcknowledgements chunks;
    CHECK_FALSE(chunks.was_any_chunk_acknowledged(0, 1000 * kMs));
    CHECK_FALSE(chunks.has_unacknowledged_chunk(0, 1000 * kMs, 1000 * kMs));
    chunks.on_chunk(1023, 100 * kMs);
    chunks.on_chunk(0, 200 * kMs);
    chunks.on_ack(1022, 250 * kMs);
    CHECK(chunks.has_unacknowledged_chunk(0, 1000 * kMs, 1000 * kMs));
    chunks.on_ack(1023, 300 * kMs);
    CHECK(chunks.was_any_chunk_acknowledged(50 * kMs, 400 * kMs));
    CHECK_FALSE(chunks.was_any_chunk_acknowledged(150 * kMs, 400 * kMs));
    CHECK(chunks.has_unacknowledged_chunk(150 * kMs, 400 * kMs, 400 * kMs));
    chunks.on_ack(0, 500 * kMs);
    CHECK(chunks.has_unacknowledged_chunk(150 * kMs, 400 * kMs, 400 * kMs));
    CHECK_FALSE(chunks.has_unacknowledged_chunk(150 * kMs, 600 * kMs, 600 * kMs));
    for (std::uint16_t i = 1; i < 100; ++i) { // more chunks than are kept
        chunks.on_chunk(i, 600 * kMs + i);
    }
    chunks.on_ack(99, 700 * kMs);
    CHECK_FALSE(chunks.has_unacknowledged_chunk(0, 800 * kMs, 800 * kMs));
}

} // namespace tw::inspect
