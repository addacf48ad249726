// Tricks about which connection a datagram belongs to: what begins one, what ends it, and what is
// left of the one before. See evasion_test.cpp.

#include "tests/proxy/inspect/evasion_script.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using namespace tw::test::evasion;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;
using tw::wire::ControlSpec;
using tw::wire::Token;

TEST_CASE("a token that reads like a chunk is a token all the same") {
    // 00 02 xx xx: a chunk of two bytes, were it no token.
    constexpr Token kLikeAChunk{0x00, 0x02, 0x33, 0x44};
    SessionScript script;
    script.join_ddnet_with(kLikeAChunk);
    script.enter_game();
    script.log().clear();
    script.send_datagram(
        kC2s, script.pack_deviating(kC2s, {vital(forged())}, {.count = std::uint8_t{2}}));
    script.send(kC2s, real()); // its sequence was had already
    CHECK(text_of(taken(script)) == "cl_kill; ");
}

TEST_CASE("after joining midway the resend bit on every chunk hides none") {
    for (const bool server_first : {true, false}) {
        CAPTURE(server_first);
        SessionScript script;
        script.assume_ddnet();
        // The server says which it has; before it does, nobody can tell whether 700 is new.
        if (server_first) {
            script.send_datagram(kS2c,
                                 script.pack_deviating(kS2c, {non_vital(line())}, {.ack = 699}));
        }
        for (int sequence = 700; sequence < 703; ++sequence) {
            const auto number = static_cast<std::uint16_t>(sequence);
            script.send_datagram(kC2s,
                                 script.pack_deviating(kC2s, {again(vital(real()), number)}, {}));
            script.send_datagram(
                kS2c, script.pack_deviating(kS2c, {non_vital(line())}, {.ack = sequence}));
        }
        const Lines names = taken(script);
        const auto said = std::ranges::count(names, "cl_say");
        CHECK(said >= (server_first ? 3 : 2));
    }
}

TEST_CASE("ACCEPT with the right token is a new connection, with or without a CONNECT before it") {
    auto script = playing();
    script.control(kC2s, {.kind = ControlKind::accept, .token = SessionScript::kToken});
    // DDNet's server starts its sequences anew and sends the map again.
    Bytes chunks;
    tw::wire::append_chunk(chunks, true, 1, false,
                           message("map_change").string("dm1").number(1).number(100).bytes(),
                           tw::wire::Dialect::six);
    script.send_datagram(kS2c,
                         tw::wire::encode_packet(
                             {.num_chunks = 1, .chunks = chunks, .token = SessionScript::kToken}));
    CHECK(text_of(script.log().lines({"session", "map"})) ==
          text_of(
              Lines{"session close reconnected", "session established 0.6+ddnet", "map dm1 none"}));
}

TEST_CASE("what is in flight behind a CLOSE belongs to the connection that it closes") {
    struct Close {
        std::string_view name;
        tw::wire::Direction direction;
        int times;
    };

    const Close rows[] = {
        {"of the client", kC2s, 1}, {"thrice", kC2s, 3}, {"of the server", kS2c, 2}};
    for (const Close& row : rows) {
        CAPTURE(row.name);
        auto script = playing();
        for (int i = 0; i < row.times; ++i) {
            script.control(row.direction,
                           {.kind = ControlKind::close, .token = SessionScript::kToken});
        }
        script.snap(12, 10, kItems);
        script.send(kS2c, line());
        script.snap(14, 12, kItems);
        script.send(kC2s, {non_vital(message("input").number(12).number(16).number(0))});
        script.send(kS2c, {non_vital(snap_between(16, 14, kItems, kItems))});
        CHECK(script.log().lines({"session"}).size() == 1);
        for (const std::string_view name : {"snapshot.unknown_base", "session.joined_midway",
                                            "session.reconnected", "session.closed_silently"}) {
            CAPTURE(name);
            CHECK(script.log().count_of(name) == 0);
        }
        script.log().clear();
        script.close("end of capture");
        CHECK(text_of(script.log().lines({"session"})) == "");
    }
}

TEST_CASE("after a CLOSE the next handshake is a connection like any other") {
    auto script = playing();
    script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
    script.snap(12, 10, kItems);
    script.log().clear();
    script.join_ddnet();
    script.enter_game();
    script.snap(2, kNoBase, kItems);
    script.snap(4, 2, kItems);
    CHECK(text_of(script.log().lines({"session", "snapshot"})) ==
          text_of(
              Lines{"session established 0.6+ddnet", "snapshot 2<--1 ok 2", "snapshot 4<-2 ok 2"}));
    CHECK(script.log().count_of("snapshot.unknown_base") == 0);
}

TEST_CASE("a snapshot of the old map that comes behind the map change is no finding of the new") {
    auto script = playing();
    const Bytes late = script.snap_datagram(12, 10, kItems);
    script.send(kS2c, message("map_change").string("dm2").number(1).number(100));
    script.send_datagram(kS2c, late);
    script.send(kC2s, message("ready"));
    script.send(kS2c, message("con_ready"));
    script.send(kC2s, message("enter_game"));
    script.snap(2, kNoBase, kItems);
    script.snap(4, 2, kItems);
    CHECK(script.log().count_of("snapshot.unknown_base") == 0);
    const auto snapshots = script.log().lines({"snapshot"});
    REQUIRE(snapshots.size() >= 2);
    CHECK(snapshots[snapshots.size() - 2] == "snapshot 2<--1 ok 2");
    CHECK(snapshots.back() == "snapshot 4<-2 ok 2");
}

TEST_CASE("a session that begins with 0.7's words is what its handshake makes it") {
    struct Start {
        std::string_view name;
        std::vector<Bytes> datagrams;
    };

    const Start rows[] = {
        {"a 0.7 TOKEN", {seven_control(kSevenToken)}},
        {"a cut one", {{std::byte{4}, std::byte{0}, std::byte{0}}}},
        {"0.7 connless", {Bytes(23, std::byte{0x21})}},
        {"a 0.7 TOKEN and CONNECT", {seven_control(kSevenToken), seven_control(kSevenConnect)}},
    };
    for (const Start& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        for (const Bytes& datagram : row.datagrams) {
            script.send_datagram(kC2s, datagram);
        }
        script.join_ddnet();
        script.enter_game();
        script.snap(10, kNoBase, kItems);
        script.snap(12, 10, kItems);
        CHECK(text_of(script.log().lines({"session", "snapshot"})) ==
              text_of(Lines{"session open", "session established 0.6+ddnet", "snapshot 10<--1 ok 2",
                            "snapshot 12<-10 ok 2"}));
    }
}

TEST_CASE("0.6 and 0.7 by turns on one pair of addresses") {
    SessionScript script;
    for (int turn = 0; turn < 2; ++turn) {
        CAPTURE(turn);
        script.log().clear();
        script.join_ddnet();
        script.enter_game();
        script.snap(10, kNoBase, kItems);
        script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
        join_seven(script);
        Bytes compressed_chunks{std::byte{0x10}, std::byte{1}, std::byte{1}};
        compressed_chunks.resize(64, std::byte{7}); // of 0.7; a control packet were it 0.6
        script.send_datagram(kC2s, compressed_chunks);
        script.send_datagram(kC2s, seven_control(kSevenClose, kSevenServer, 0));
        CHECK(text_of(script.log().lines({"session", "snapshot"})) ==
              text_of(Lines{"session established 0.6+ddnet", "snapshot 10<--1 ok 2",
                            "session close closed by the client", "session established 0.7",
                            "session close closed by the client"}));
        CHECK(script.log().count_of("packet.control_unknown") == 0);
        CHECK(script.log().count_of("chunk.truncated") == 0);
    }
}

TEST_CASE("a message of the other side, or with the other system bit, is unexpected") {
    const auto table = tw::wire::message_table();
    const auto team_kill = std::ranges::find_if(
        table, [](const auto& spec) { return spec.name == "sv_kill_msg_team"; });
    REQUIRE(team_kill != table.end());

    struct Message {
        std::string_view name;
        tw::wire::Direction direction;
        Bytes bytes;
    };

    const Message rows[] = {
        {"a server's chat from the client", kC2s,
         message("sv_chat").number(0).number(0).string("forged").bytes()},
        {"a client's chat from the server", kS2c, real().bytes()},
        // npm clients say it so of themselves in every session.
        {"a server's game message by UUID, as a client's system message", kC2s,
         MessageBuilder{}.number(1).uuid(team_kill->uuid).number(1).bytes()},
    };
    for (const Message& row : rows) {
        CAPTURE(row.name);
        auto script = playing();
        script.send(row.direction, {vital(row.bytes)});
        CHECK(script.log().count_of("message.unexpected") == 1);
    }
}
