// Covers: proxy/inspect/connection/connection.cpp
// Covers: proxy/inspect/connection/packet_acceptance.cpp
// Covers: proxy/inspect/map_tracker.cpp
// Covers: proxy/inspect/message_reporter.cpp

#include "tests/support/doctest_lines.h"
#include "tests/support/session_script.h"
#include "tests/support/time.h"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;
using tw::wire::Token;

namespace {

void check_session_plays(SessionScript& script) {
    const std::uint64_t verified = script.stats().verified;
    script.enter_game();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap(12, 10, {{{4, 1}, {11, 20, 0, 0}}});
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 ok 1"});
    CHECK(script.stats().verified == verified + 2);
    CHECK(script.stats(kC2s).wrong_token + script.stats(kS2c).wrong_token == 0);
}

void check_snapshot_verified(SessionScript& script) {
    script.enter_game();
    script.snap(10, kNoBase, kPickupAndEvent);
    CHECK(script.stats().verified == 1);
}

} // namespace

TEST_CASE("every kind of handshake establishes a session with its protocol name") {
    struct Row {
        std::string_view name;
        void (SessionScript::*join)();
        std::string established;
    };

    const Row rows[] = {
        {"DDNet's token", &SessionScript::join_ddnet, "session established 0.6+ddnet"},
        {"no token", &SessionScript::join_vanilla, "session established 0.6"},
        {"0.6.5's header token", &SessionScript::join_header_token,
         "session established 0.6+token"},
    };
    for (const Row& row : rows) {
        for (const auto compression :
             {tw::wire::Compression::never, tw::wire::Compression::always}) {
            CAPTURE(row.name);
            SessionScript script;
            script.compression = compression;
            (script.*row.join)();
            check_session_plays(script);
            script.close("shutdown");
            CHECK(script.log().lines({"session", "map"}) ==
                  Lines{"session open", row.established, "map dm1 none", "session close shutdown"});
            CHECK(script.log().findings() == Lines{"finding map.not_found dm1"});
        }
    }
}

TEST_CASE("a header and its token do not count as compressed bytes") {
    struct Row {
        const char* name;
        void (SessionScript::*join)();
        std::size_t header;
    };

    const Row rows[] = {
        {"DDNet's token, which is compressed", &SessionScript::join_ddnet, 3},
        {"no token", &SessionScript::join_vanilla, 3},
        {"0.6.5's header token", &SessionScript::join_header_token, 7},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        script.compression = tw::wire::Compression::always;
        (script.*row.join)();
        const auto before = script.stats(kS2c).compressed_bytes;
        const Bytes datagram = script.pack(kS2c, {vital(rcon_line("hello"))});
        script.send_datagram(kS2c, datagram);
        CHECK(script.stats(kS2c).compressed_bytes - before == datagram.size() - row.header);
    }
}

TEST_CASE("a session joined midway is reported and verified from its first full snapshot") {
    SessionScript script;
    script.assume_ddnet();
    script.send(kS2c, {{.message = rcon_line("hello").bytes(), .vital = true, .sequence = 700}});
    script.send(kS2c, {non_vital(snap_between(100, 98, kPickupAndEvent, kPickupAndEvent))});
    script.send(kS2c, {non_vital(snap_between(102, 98, kPickupAndEvent, kPickupAndEvent))});
    script.send(kS2c, {non_vital(snap_between(104, kNoBase, {}, kPickupAndEvent))});
    script.send(kS2c, {non_vital(snap_between(106, 104, kPickupAndEvent, kPickupAndEvent))});
    CHECK(script.log().lines({"session", "snapshot", "finding"}) ==
          Lines{"session open", "session established 0.6+ddnet", "finding session.joined_midway",
                "finding snapshot.unknown_base tick 100", "snapshot 100<-98 bad",
                "snapshot 102<-98 bad", "snapshot 104<--1 ok 2", "snapshot 106<-104 ok 2"});
    CHECK(script.stats().unknown_base == 2);
    CHECK(script.stats(kS2c).vital == 1);
}

TEST_CASE("a reconnect with the same addresses resets all state") {
    SessionScript script = joined_session();
    check_session_plays(script);
    script.log().clear();
    script.join_ddnet();
    CHECK(script.log().lines({"session", "finding", "summary"}) ==
          Lines{"session close reconnected", "summary", "finding session.reconnected",
                "session established 0.6+ddnet"});
    script.log().clear();
    check_session_plays(script);
    CHECK(script.session().totals().verified == 4);
}

TEST_CASE("a reconnect without a token begins with the new connection's first vital chunk") {
    SessionScript script;
    script.join_vanilla();
    check_session_plays(script);
    script.log().clear();
    // A vanilla server ignores this CONNECT, so the old connection continues.
    script.control(kC2s, {.kind = ControlKind::connect});
    script.send(kS2c, rcon_line("still here"));
    CHECK(script.log().lines({"session"}).empty());
    script.join_vanilla();
    script.send(kS2c, map_change("dm2"));
    CHECK(script.log().lines({"session", "map"}) ==
          Lines{"session close reconnected", "session established 0.6", "map dm2 none"});
}

TEST_CASE("chunks after a lost vital chunk are dropped, and the resent ones count once") {
    SessionScript script = joined_session();
    const Bytes lost = script.pack(kS2c, {vital(rcon_line("first"))});
    script.send(kS2c, rcon_line("second"));
    script.send_packet(kC2s, {.resend = true});
    script.send(kS2c, {resend_piece(vital(rcon_line("first")), 1),
                       resend_piece(vital(rcon_line("second")), 2)});
    script.send_datagram(kS2c, lost);
    CHECK(script.log().lines({"message"}) ==
          Lines{"message c2s connect", "message s2c connectaccept", "message c2s accept",
                "message s2c rcon_line #1", "message s2c rcon_line #2"});
    CHECK(script.log().findings() == Lines{"finding chunk.vital_gap"});
    CHECK(script.stats(kS2c).gaps == 1);
    CHECK(script.stats(kS2c).vital == 2);
    CHECK(script.stats(kS2c).recovered == 2);
    CHECK(script.stats(kS2c).duplicates == 1);
    CHECK(script.stats(kC2s).resend_requests == 1);
}

TEST_CASE("ticks restart with the map, and late snapshots of the old map are ignored") {
    SessionScript script = playing_session();
    script.snap(1000, kNoBase, kPickupAndEvent);
    const Bytes late = script.snap_datagram(1002, 1000, kPickupAndEvent);
    script.log().clear();
    script.send(kS2c, map_change("dm2"));
    script.send_datagram(kS2c, late);
    script.send(
        kS2c, {non_vital(snap_between(1004, kNoBase, {}, kPickupAndEvent))}); // rare, but possible
    script.send(kC2s, message("ready"));
    script.send(kS2c, message("con_ready"));
    script.send(kC2s, message("enter_game"));
    script.snap(2, kNoBase, kPickupAndEvent);
    script.snap(4, 2, kPickupAndEvent);
    script.send(kC2s, message("enter_game")); // the server ignores it, and so does its observer
    script.snap(6, 4, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding map.not_found dm2", "finding snapshot.leftover tick 1002",
                "snapshot 2<--1 ok 2", "snapshot 4<-2 ok 2", "snapshot 6<-4 ok 2"});
    CHECK(script.stats().map_changes == 2);
}

TEST_CASE("a very late snapshot of the old map does not stop verification") {
    SessionScript script;
    script.join_vanilla();
    script.enter_game();
    script.snap(50000, kNoBase, kPickupAndEvent);
    script.send(kS2c, map_change("dm2"));
    script.pause(5 * kSecond);
    script.send(kS2c, {non_vital(snap_between(50002, kNoBase, {}, kPickupAndEvent))});
    script.send(kC2s, message("ready"));
    script.send(kC2s, message("enter_game"));
    script.log().clear();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap(12, 10, kPickupAndEvent);
    script.snap(14, 12, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2", "snapshot 14<-12 ok 2"});
    CHECK(script.log().count_of("snapshot.leftover") ==
          0); // the log was cleared, and nothing new is reported
    // A client that has entered the game gets snapshots of the new map, whatever their ticks are.
    script.send(kS2c, map_change("dm3"));
    script.pause(5 * kSecond);
    script.send(kC2s, message("enter_game"));
    script.log().clear();
    script.snap(60, kNoBase, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 60<--1 ok 2"});
}

TEST_CASE("a snapshot in a vital chunk is verified") {
    SessionScript script;
    script.join_vanilla();
    script.enter_game();
    script.send(kS2c, {vital(snap_between(20, kNoBase, {}, kPickupAndEvent))});
    script.send(kS2c, {non_vital(snap_empty(22, 20))});
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 20<--1 ok 2", "snapshot 22<-20 ok 2"});
}

TEST_CASE("CLOSE ends a session with its reason, once") {
    struct Row {
        std::string_view name;
        tw::wire::Direction direction;
        tw::wire::ControlSpec close;
        std::string line;
    };

    const auto close = ControlKind::close;
    const Row rows[] = {
        {"reason and token",
         kS2c,
         {.kind = close, .token = SessionScript::kToken, .reason = "server is full"},
         "session close server is full"},
        {"token alone",
         kC2s,
         {.kind = close, .token = SessionScript::kToken},
         "session close closed by the client"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionScript script = joined_session();
        script.control(row.direction, row.close);
        script.control(row.direction, row.close);
        script.close("idle");
        CHECK(script.log().lines({"session", "summary"}) ==
              Lines{"session open", "session established 0.6+ddnet", row.line, "summary",
                    "summary"}); // for the second CLOSE
        CHECK(script.log().findings().empty());
    }
}

TEST_CASE("connless packets pass through a session without touching it") {
    SessionScript script = joined_session();
    const Bytes get_info =
        MessageBuilder{}.number(0).bytes(); // content does not matter to the session
    script.send_datagram(kC2s, tw::wire::encode_connless(MessageBuilder{}
                                                             .text("\xff\xff\xff\xff"
                                                                   "gie3")
                                                             .byte(7)
                                                             .bytes()));
    script.send_datagram(kS2c, tw::wire::encode_connless(get_info));
    check_session_plays(script);
    CHECK(script.stats(kC2s).connless == 1);
    CHECK(script.stats(kS2c).connless == 1);
    CHECK(script.log().lines({"message"})[3] == "message c2s get_info");
}

TEST_CASE("a malformed number in a connless packet is left out of its record") {
    SessionScript script = joined_session();
    script.log().clear();
    script.send_datagram(kS2c, tw::wire::encode_connless(MessageBuilder{}
                                                             .text("\xff\xff\xff\xff"
                                                                   "iex+")
                                                             .string("7")
                                                             .string("abc")
                                                             .string("reserved")
                                                             .bytes()));
    CHECK(
        script.log().lines({"message", "finding"}) ==
        Lines{"message s2c info_extended_more", "finding message.out_of_range info_extended_more"});
    CHECK(script.log().shown().ends_with("reservedabc")); // the finding contains the text
}

TEST_CASE("a CLOSE that the receiver rejects has no effect") {
    for (const tw::wire::Direction direction : {kC2s, kS2c}) {
        SessionScript script = joined_session();
        script.log().clear();
        script.control(direction, {.kind = ControlKind::close, .reason = "banned"});
        script.control(direction, {.kind = ControlKind::close, .token = kOtherToken});
        CHECK(script.log().lines({"session", "finding", "message"}) ==
              Lines{"finding packet.wrong_token"});
        CHECK(script.stats(direction).wrong_token == 2);
        check_snapshot_verified(script);
    }
}

TEST_CASE("packets in flight at a connection's close belong to it and are not recorded") {
    SessionScript script = joined_session();
    check_session_plays(script);
    const Bytes late = script.snap_datagram(14, 12, kPickupAndEvent);
    script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
    script.log().clear();
    script.send_datagram(kS2c, late);
    script.control(kS2c, {.kind = ControlKind::close, .token = SessionScript::kToken});
    CHECK(script.log().lines({"session", "finding", "message", "snapshot", "summary"}).empty());
    CHECK(script.stats(kS2c).not_accepted == 2);
    script.join_ddnet();
    check_session_plays(script);
}

TEST_CASE("the summaries of a session add up to its totals") {
    for (const bool late_at_the_end : {true, false}) {
        CAPTURE(late_at_the_end);
        SessionScript script = joined_session();
        check_session_plays(script);
        const auto close_and_more = [&](bool more) {
            const Bytes late = script.snap_datagram(14, 12, kPickupAndEvent);
            script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
            if (more) {
                script.send_datagram(kS2c, late);
            }
        };
        close_and_more(true);
        script.log().clear();
        script.join_ddnet();
        check_session_plays(script);
        close_and_more(late_at_the_end);
        script.close("idle");
        const auto& summaries = script.log().summaries();
        REQUIRE(summaries.size() == (late_at_the_end ? 3 : 2));
        tw::record::SessionStats sum;
        for (const tw::record::SessionStats& summary : summaries) {
            sum.merge(summary);
        }
        const tw::record::SessionStats totals = script.session().totals();
        for (const std::size_t direction : {0U, 1U}) {
            CHECK(sum.directions[direction].datagrams == totals.directions[direction].datagrams);
            CHECK(sum.directions[direction].control == totals.directions[direction].control);
        }
        CHECK(sum.findings == totals.findings);
        CHECK(sum.directions[1].not_accepted == (late_at_the_end ? 2 : 1));
    }
}

TEST_CASE("after a close, a missing answer is no silence until a new handshake") {
    SessionScript script = joined_session();
    script.control(kS2c, {.kind = ControlKind::close, .token = SessionScript::kToken});
    const auto seconds_of = [&](const auto& send) {
        for (int i = 0; i < 5; ++i) {
            script.pause(1'000'000'000);
            send();
        }
    };
    seconds_of([&] { script.send(kC2s, {non_vital(message("ping"))}); });
    CHECK(script.log().count_of("session.server_silent") == 0);
    SUBCASE("of 0.6") {
        seconds_of([&] { script.control(kC2s, {.kind = ControlKind::connect}); });
    }
    SUBCASE("of 0.7") {
        seconds_of(
            [&] { script.control(kC2s, {.kind = ControlKind::connect, .seven_token = Token{}}); });
    }
    CHECK(script.log().count_of("session.server_silent") == 1);
}

TEST_CASE("0.6 and 0.7 connections may alternate between the same addresses") {
    SessionScript script = joined_session();
    check_session_plays(script);
    script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
    script.log().clear();
    script.join_seven();
    Bytes compressed_chunks{std::byte{0x10}, std::byte{1}, std::byte{1}};
    compressed_chunks.resize(64, std::byte{7}); // a 0.7 packet; in 0.6, a control packet
    script.send_datagram(kS2c, compressed_chunks);
    script.close_seven();
    CHECK(script.log().lines({"session"}) ==
          Lines{"session established 0.7", "session close closed by the client"});
    CHECK(script.log().count_of("session.reconnected") == 1);
    CHECK(script.log().count_of("packet.control_unknown") == 0);
    script.log().clear();
    script.join_ddnet();
    check_session_plays(script);
    script.log().clear();
    script.join_seven(); // the server did not see the close
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.7"});
}

TEST_CASE("forged 0.7 packets of a client hide no 0.6 connection") {
    const Bytes enter_game{std::byte{0}, std::byte{1}, std::byte{0x35}};
    const Bytes chunk = tw::wire::encode_packet({.num_chunks = 1,
                                                 .chunks = enter_game,
                                                 .header_token = kOtherToken,
                                                 .dialect = tw::wire::Dialect::seven});
    for (const int copies : {2, 300}) { // 300 look like a capture of one direction
        CAPTURE(copies);
        SessionScript script;
        for (int i = 0; i < copies; ++i) {
            script.send_datagram(kC2s, chunk);
        }
        script.join_vanilla();
        check_session_plays(script);
        CHECK(script.log().lines({"session"}).back() == "session established 0.6");
    }
}

TEST_CASE("a DDNet server's token counts, whatever else the server answers") {
    SessionScript script;
    script.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
    script.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
    script.control(kC2s, {.kind = ControlKind::connect});
    script.control(kS2c, {.kind = ControlKind::connectaccept});
    script.send(kS2c, rcon_line("a first chunk without a token"));
    script.control(kC2s, {.kind = ControlKind::accept, .token = SessionScript::kToken});
    script.assume_ddnet();
    check_session_plays(script);
    CHECK(script.log().lines({"session"}).back() == "session established 0.6+ddnet");
    // After the token was accepted, no connection without a token replaces the connection.
    script.control(kC2s, {.kind = ControlKind::connect});
    script.control(kS2c, {.kind = ControlKind::connectaccept});
    Bytes chunks;
    tw::wire::append_chunk(chunks, true, 1, false, message("ready").bytes(),
                           tw::wire::Dialect::six);
    chunks.resize(chunks.size() + 4); // where a token would be
    script.log().clear();
    script.send_datagram(kC2s, tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks}));
    script.snap(14, 12, kPickupAndEvent);
    CHECK(script.log().lines({"session", "snapshot"}) == Lines{"snapshot 14<-12 ok 2"});
}

TEST_CASE("an idle session is reported, a shutdown is not") {
    for (const bool idle : {true, false}) {
        SessionScript script = joined_session();
        script.close(idle ? "idle" : "shutdown");
        CHECK(script.log().count_of("session.closed_silently") == (idle ? 1 : 0));
    }
    SessionScript never;
    never.close("idle");
    CHECK(never.log().lines({"session", "finding"}) == Lines{"session open", "session close idle"});
}

TEST_CASE("implausibly early inputs are not counted") {
    SessionScript script = playing_session();
    for (const std::int32_t early : {20, -294'815'948, 10'001, -10'000, INT32_MIN}) {
        script.send(kS2c, {non_vital(message("input_timing").number(100).number(early))});
    }
    CHECK(script.stats().input_margin_ms.count == 2);
    CHECK(script.stats().input_margin_ms.min == -10'000);
    CHECK(script.stats().input_margin_ms.max == 20);
}
