// What passed unseen: copies that a recorder or an observer lacks, while the peers have them.
// Covers: proxy/inspect/connection/connection.cpp
// Covers: proxy/inspect/connection/packet_acceptance.cpp

#include "tests/support/session_script.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;

namespace {

using Lines = std::vector<std::string>;

constexpr auto kC2s = tw::wire::Direction::c2s;
constexpr auto kS2c = tw::wire::Direction::s2c;
constexpr tw::wire::Token kOtherToken{9, 9, 9, 9};

const Items kItems{{{4, 1}, {10, 20, 0, 0}}, {{13, 2}, {1, 2}}};

MessageBuilder line(std::string_view text) {
    return message("rcon_line").string(text);
}

} // namespace

TEST_CASE("a gap that only the observer has ends when the receiver acknowledges beyond it") {
    SessionScript script;
    script.join_ddnet();
    static_cast<void>(script.pack(kS2c, {vital(line("seen by the client only"))}));
    script.send(kS2c, line("behind the gap"));
    CHECK(script.stats(kS2c).gaps == 1);
    script.send_datagram(
        kC2s, tw::wire::encode_packet({.ack = 2, .resend = true, .token = SessionScript::kToken}));
    CHECK(script.log().findings() ==
          Lines{"finding chunk.vital_gap", "finding inspect.gap missed_chunks"});
    script.send(kS2c, line("goes on"));
    CHECK(script.stats(kS2c).vital == 1);
}

TEST_CASE("a chunk that only the observer lacks costs what was under way, and no more") {
    SessionScript script;
    script.join_ddnet();
    static_cast<void>(script.pack(kS2c, {vital(line("seen by the client only"))}));
    // Each acknowledgement is one behind, as where chunks follow each other faster than it comes.
    for (std::uint16_t sequence = 2; sequence < 20; ++sequence) {
        script.send(kS2c, line("goes on"));
        script.send_datagram(
            kC2s, tw::wire::encode_packet({.ack = static_cast<std::uint16_t>(sequence - 1),
                                           .token = SessionScript::kToken}));
    }
    CHECK(script.stats(kS2c).gaps == 1);
    CHECK(script.stats(kS2c).vital == 17);
}

TEST_CASE("ticks that begin anew behind a map change that passed unseen are verified at once") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.snap(100'000, kNoBase, kItems);
    static_cast<void>(script.pack(kS2c, {vital(line("passes unseen"))}));
    script.send(kS2c, line("behind the gap"));
    const auto behind = static_cast<std::uint16_t>(script.next_sequence(kS2c) - 1);
    script.send_datagram(kC2s,
                         tw::wire::encode_packet({.ack = behind, .token = SessionScript::kToken}));
    script.snap(10, kNoBase, kItems);
    script.snap(12, 10, kItems);
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 100000<--1 ok 2", "snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"});
}

TEST_CASE("a reconnect whose ACCEPT passed unseen begins with the first vital chunk") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    SessionScript other;
    other.join_ddnet();
    const Bytes begins = other.pack(kC2s, {vital(message("ready"))});
    script.log().clear();
    script.send_datagram(kC2s,
                         begins); // a copy of the old connection's first packet begins nothing
    CHECK(script.log().lines({"session"}).empty());
    script.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
    script.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
    script.send_datagram(kC2s, begins);
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("a reconnect whose handshake passed unseen is recognised by its token") {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.log().clear();
    const auto stranger = [](const MessageBuilder& what) {
        Bytes chunks;
        tw::wire::append_chunk(chunks, true, 1, false, what.bytes(), tw::wire::Dialect::six);
        return tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks, .token = kOtherToken});
    };
    script.send_datagram(kC2s, stranger(message("ready")));
    script.send_datagram(kC2s, stranger(message("ready")));
    CHECK(script.log().lines({"session"}).empty());
    script.send_datagram(kS2c, stranger(line("hello")));
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("after lost copies the session plays on") {
    SessionScript script;
    script.join_ddnet();
    script.send(kS2c, line("first"));
    static_cast<void>(script.pack(kS2c, {vital(line("not seen"))}));
    script.lose_copies(17);
    script.send(kS2c, line("third"));
    CHECK(script.log().findings() == Lines{"finding inspect.gap ring_full"});
    CHECK(script.stats(kS2c).vital == 2);
    CHECK(script.stats().gap_lost == 17);
}
