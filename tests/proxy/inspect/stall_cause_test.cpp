// Why a client had nothing new to show: a server and a client that follow the rules of the real
// ones, and each of the things that can go wrong between them.
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
constexpr record::Timestamp kDatagram = 10 * kMillisecond; ///< how far the script lets them apart

/// "lost", "unknown (lost, slower_rate)": stalls by cause and what else it may have been.
struct Stalls final : TypedRecordSink<Stalls> {
    void on(const record::FindingRecord& found) {
        if (found.id == record::FindingId::snapshot_client_stalled) {
            std::string& line = told.emplace_back(found.name);
            if (const auto at = found.detail.find("; or "); at != std::string_view::npos) {
                line += " (" + std::string{found.detail.substr(at + 5)} + ')';
            }
        }
    }

    Lines told;
};

enum class Trouble : std::uint8_t {
    none,
    server_stopped,
    server_makes_none, ///< it runs, and makes no snapshot for this client
    lost_before,       ///< the server's datagrams, before they pass
    held_up_before,    ///< the same come all at once when it is over
    lost_behind,       ///< the server's datagrams, after they passed
    inputs_lost,       ///< the client's datagrams, after they passed
    client_stopped,
    client_keeps_ack, ///< it acknowledges an old one
    client_asks,      ///< for a full one
};

/// A game at 50 ticks a second, with a snapshot every second tick: what the server does as DDNet's
/// CServer does it.
class Game {
  public:
    /// `plays`: else the client is in a menu, and sends one input a second.
    explicit Game(bool plays = true, inspect::ServerActivities* servers = nullptr)
        : plays_{plays}, script_{{.servers = servers}, stalls_} {
        script_.join_ddnet();
        script_.enter_game();
        begin_ = script_.now() + kTick;
        play(200);
    }

    void play(int steps, Trouble trouble = Trouble::none) {
        for (int i = 0; i < steps; ++i) {
            step(trouble);
        }
    }

    /// The server tells something reliably.
    void send() {
        script_.send(kS2c, message("sv_broadcast").string("something"));
        script_.pause(-kDatagram);
    }

    void step(Trouble trouble) {
        tick_ += 2;
        script_.pause(begin_ + tick_ * kTick - kDatagram - script_.now());
        run_client(trouble);
        if (trouble != Trouble::held_up_before) {
            release();
        }
        if (trouble != Trouble::server_stopped) {
            run_server(trouble);
        }
    }

    void close() { script_.close("idle"); }

    [[nodiscard]] const Stalls& stalls() const { return stalls_; }

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
                         .acked = trouble == Trouble::client_asks ? kNoBase : received_};
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
        if (trouble == Trouble::server_makes_none || tick_ % rate_ != 0) {
            return;
        }
        const bool has_base = acked_ > 0 && tick_ - acked_ <= 150;
        if (!has_base && rate_ == 2) {
            rate_ = 50;
        }
        const Items world{{{4, 1}, {10 + tick_, 20, 0, 0}}};
        const Bytes snap = script_.snap_datagram(tick_, has_base ? acked_ : kNoBase, world);
        send(snap, trouble);
    }

    void send(const Bytes& snap, Trouble trouble) {
        std::vector<Piece> answers = std::exchange(answers_, {});
        if (trouble == Trouble::lost_before) {
            return;
        }
        if (trouble == Trouble::held_up_before) {
            held_.push_back({std::move(answers), snap});
            return;
        }
        pass(answers, snap);
        if (trouble != Trouble::lost_behind && trouble != Trouble::client_keeps_ack) {
            received_ = tick_;
        }
    }

    void pass(const std::vector<Piece>& answers, const Bytes& snap) {
        if (!answers.empty()) {
            script_.send(kS2c, answers);
            script_.pause(-kDatagram);
        }
        script_.send_datagram(kS2c, snap);
        script_.pause(-kDatagram + kMillisecond / 10);
    }

    void release() {
        for (const auto& [answers, snap] : std::exchange(held_, {})) {
            pass(answers, snap);
            received_ = tick_ - 2;
        }
    }

    bool plays_;
    Stalls stalls_;
    SessionScript script_;
    record::Timestamp begin_ = 0;
    Tick tick_ = 0;
    Tick received_ = kNoBase; ///< by the client
    std::vector<Input> waiting_;
    Tick intended_ = 0; ///< by the last input that the server read
    Tick acked_ = kNoBase;
    int rate_ = 10;
    std::vector<Piece> answers_;
    std::vector<std::pair<std::vector<Piece>, Bytes>> held_;
};

} // namespace

TEST_CASE("each cause of a stall is told from the others") {
    struct Row {
        std::string_view name;
        Trouble trouble;
        int steps; ///< of 40 ms
        std::string_view told;
    };

    const Row rows[] = {
        {"the server is stopped", Trouble::server_stopped, 12, "server_silent"},
        {"for long", Trouble::server_stopped, 100, "server_silent"},
        {"the server makes none", Trouble::server_makes_none, 12, "slower_rate"},
        {"datagrams of the server are lost", Trouble::lost_before, 12, "lost"},
        {"they are lost for as short as is told", Trouble::lost_before, 7, "lost"},
        {"they come late", Trouble::held_up_before, 12, "late"},
        {"they are lost behind twscope", Trouble::lost_behind, 12, "lost_behind (unacknowledged)"},
        {"inputs are lost behind twscope", Trouble::inputs_lost, 101, "lost"},
        {"the client is stopped", Trouble::client_stopped, 130, "client_silent"},
        {"the client asks for a full one again and again", Trouble::client_asks, 130,
         "unacknowledged"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        Game game;
        game.play(row.steps, row.trouble);
        game.play(100);
        CHECK(game.stalls().told == Lines{std::string{row.told}});
        game.close();
        CHECK(game.stalls().told.size() == 1);
    }
}

TEST_CASE("stalls that follow each other keep their causes") {
    Game game;
    for (int i = 0; i < 20; ++i) {
        game.play(9, Trouble::server_stopped); // starved: it runs now and then
        game.play(1);
    }
    CHECK(game.stalls().told.size() >= 19);
    game.play(60);
    CHECK(game.stalls().told == Lines(20, "server_silent"));
    game.play(12, Trouble::lost_before);
    game.play(2);
    game.play(12, Trouble::server_stopped);
    game.play(30);
    REQUIRE(game.stalls().told.size() == 22);
    CHECK(game.stalls().told[20] == "lost");
    CHECK(game.stalls().told[21] == "server_silent");
}

TEST_CASE("a client that gets other messages meanwhile has not lost the snapshots") {
    Game game;
    for (int i = 0; i < 20; ++i) {
        game.step(Trouble::client_keeps_ack);
        game.send();
    }
    game.play(50);
    CHECK(game.stalls().told == Lines{"unacknowledged"});
}

TEST_CASE("a normal join is neither loss nor a stall") {
    Game game;
    CHECK(game.stats().missed == 0);
    CHECK(game.stats().ticks_skipped == 0);
    CHECK(game.stats().frozen_ms == 0);
    game.close();
    CHECK(game.stalls().told.empty());
}

TEST_CASE("where no input tells, what all sessions of the server heard does, or nothing") {
    inspect::ServerActivities servers;
    Game first{false, &servers};
    Game second{false, &servers};
    const auto play = [&](int steps, Trouble of_first, Trouble of_second) {
        for (int i = 0; i < steps; ++i) {
            first.step(of_first);
            second.step(of_second);
        }
    };
    SUBCASE("all stop at once") {
        play(12, Trouble::server_stopped, Trouble::server_stopped);
        play(60, Trouble::none, Trouble::none);
        CHECK(first.stalls().told == Lines{"server_silent (lost)"});
        CHECK(second.stalls().told == Lines{"server_silent (lost)"});
    }
    SUBCASE("one of them stops") {
        play(12, Trouble::lost_before, Trouble::none);
        play(60, Trouble::none, Trouble::none);
        CHECK(first.stalls().told == Lines{"unknown (lost, slower_rate)"});
        CHECK(second.stalls().told.empty());
    }
    SUBCASE("one that plays shows that the server did not run") {
        Game third{true, &servers};
        for (int i = 0; i < 72; ++i) {
            first.step(i < 12 ? Trouble::server_stopped : Trouble::none);
            third.step(i < 12 ? Trouble::server_stopped : Trouble::none);
        }
        CHECK(first.stalls().told == Lines{"server_silent"});
    }
    SUBCASE("one that plays shows that its answers were lost") {
        Game third{true, &servers};
        for (int i = 0; i < 72; ++i) {
            first.step(i < 12 ? Trouble::lost_before : Trouble::none);
            third.step(i < 12 ? Trouble::lost_before : Trouble::none);
        }
        CHECK(first.stalls().told == Lines{"lost"});
    }
}

TEST_CASE("alone and without inputs nothing decides") {
    Game game{false};
    game.play(12, Trouble::server_stopped);
    game.play(60);
    CHECK(game.stalls().told == Lines{"unknown (server_silent, lost)"});
}

TEST_CASE("a stall that never ends is told at the end of the session") {
    Game game;
    game.play(12, Trouble::lost_before);
    game.close();
    CHECK(game.stalls().told == Lines{"unknown (server_silent, lost)"});
}

TEST_CASE("the evidence decides, and what it does not decide stays open") {
    struct Row {
        std::string_view name;
        StallEvidence evidence; ///< of a stall of one second
        bool is_final;
        std::optional<StallCause> cause;
    };

    using enum StallCause;
    using Outcome = inspect::InputTimingTracker::InputOutcome;
    constexpr Outcome kAll{.inputs = 8, .answered = 8, .is_complete = true};
    constexpr Outcome kNone{.inputs = 8, .is_complete = true};
    constexpr Outcome kOpen{.inputs = 8};
    const auto undecided = std::nullopt;
    const Row rows[] = {
        {"nothing yet", {}, false, undecided},
        {"nothing ever", {}, true, unknown},
        {"read late", {.receipts = kOpen, .longest_wait = kSecond / 2}, false, server_silent},
        {"read a little late", {.receipts = kOpen, .longest_wait = kSecond / 3}, false, undecided},
        {"read late, and not lost for all that is missing",
         {.has_hole = true, .receipts = kNone, .longest_wait = kSecond},
         false,
         server_silent},
        {"a hole", {.has_hole = true}, false, lost},
        {"never answered", {.receipts = kNone}, false, lost},
        {"not answered yet", {.receipts = kOpen}, false, undecided},
        {"not answered for long", {.is_answering = true, .receipts = kOpen}, true, lost},
        {"by a server that never does", {.receipts = kOpen}, true, unknown},
        {"and nothing came after it",
         {.has_ended = false, .is_answering = true, .receipts = kOpen},
         true,
         unknown},
        {"all answered", {.receipts = kAll}, false, slower_rate},
        {"two inputs say nothing", {.receipts = {.inputs = 2, .is_complete = true}}, true, unknown},
        {"late", {.is_late = true}, true, late},
        {"late, perhaps made so", {.is_late = true}, false, undecided},
        {"made late", {.is_late = true, .longest_wait = kSecond}, false, server_silent},
        {"nobody heard anything", {.quiet_sessions = 2}, true, server_silent},
        {"the only one heard nothing", {.quiet_sessions = 1}, true, unknown},
        {"another one shows that it was stopped",
         {.quiet_sessions = 1, .was_stopped = true},
         true,
         server_silent},
        {"another one shows that it was cut off",
         {.quiet_sessions = 2, .was_cut_off = true},
         true,
         lost},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        StallEvidence evidence = row.evidence;
        evidence.time = kSecond;
        const auto verdict = judge_stall(evidence, row.is_final);
        CHECK(verdict.has_value() == row.cause.has_value());
        if (verdict && row.cause) {
            CHECK(inspect::stall_cause_name(verdict->cause) ==
                  inspect::stall_cause_name(*row.cause));
            CHECK_FALSE(verdict->detail.empty());
            CHECK((verdict->cause != unknown || !verdict->rivals.empty()));
        }
    }
}

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

    InputTimingTracker receipts;

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
    InputTimingTracker receipts;
    receipts.on_input(10, kStart);
    receipts.on_input(10, kStart + 50 * kMs);
    receipts.on_input(8, kStart + 100 * kMs);
    receipts.on_input(9, kStart + 150 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 200 * kMs).inputs == 2);
    receipts.on_answer(10, 0, kStart + 210 * kMs);
    receipts.on_answer(10, 0, kStart + 220 * kMs);
    receipts.on_answer(7, 0, kStart + 220 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 200 * kMs).answered == 1);
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
    InputTimingTracker receipts;
    receipts.on_answer(5, INT32_MIN, kStart);
    receipts.on_input(INT32_MAX, kStart);
    receipts.on_answer(INT32_MAX, INT32_MIN, kStart + kMs);
    receipts.on_input(INT32_MIN, kStart + 100 * kMs);
    receipts.on_input(1, kStart + 200 * kMs);
    CHECK(receipts.outcome_between(kStart, kStart + 300 * kMs).answered == 1);
}

TEST_CASE("a reliable chunk that passed is acknowledged in time, late or never") {
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
    for (std::uint16_t i = 1; i < 100; ++i) { // more than are kept
        chunks.on_chunk(i, 600 * kMs + i);
    }
    chunks.on_ack(99, 700 * kMs);
    CHECK_FALSE(chunks.has_unacknowledged_chunk(0, 800 * kMs, 800 * kMs));
}

} // namespace tw::inspect
