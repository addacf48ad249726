// Tricks about which connection a datagram belongs to: what begins one, what ends it, and what is
// left of the one before. See evasion_test.cpp.
// Tricks that servers take or refuse by their version, what a client alone makes believe, and the
// honest traffic that looks like either. See evasion_test.cpp.
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

TEST_CASE("what older servers take is read as they read it, what today's refuse is not") {
    struct Trick {
        std::string_view name;
        Bytes (*build)(SessionScript& script);
        bool taken_before_194;
    };

    const Trick tricks[] = {
        {"a control packet with chunks",
         [](auto& s) { return s.pack_deviating(kC2s, {vital(forged())}, {.flags = kControl}); },
         true},
        {"one with a wrong token",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged())},
                                     {.behind = bytes_of(kOtherToken), .flags = kControl});
         },
         false},
        {"one with an ack ahead",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged())}, {.ack = 300, .flags = kControl});
         },
         false},
        {"one under 0.7's header",
         [](auto& s) { return under_seven(s.pack_deviating(kC2s, {vital(forged())}, {})); }, true},
        {"one under 0.7's header with a wrong token",
         [](auto& s) {
             return under_seven(
                 s.pack_deviating(kC2s, {vital(forged())}, {.behind = bytes_of(kOtherToken)}));
         },
         false},
        {"the bit of a header token",
         [](auto& s) { return s.pack_deviating(kC2s, {vital(forged())}, {.flags = kHeaderToken}); },
         true},
    };

    struct Server {
        std::string_view greeting; ///< empty: says nothing
        bool before_194;
    };

    const Server servers[] = {{"0.6.4, 16.4", true},
                              {"0.6.4, 19.3", true},
                              {"0.6.4, 19.4", false},
                              {"0.6, 20.1.1", false},
                              {"", false}};
    for (const Trick& trick : tricks) {
        for (const Server& server : servers) {
            CAPTURE(trick.name);
            CAPTURE(server.greeting);
            auto script = playing();
            if (!server.greeting.empty()) {
                script.send(kS2c,
                            message("sv_chat").number(0).number(-1).string(
                                "DDraceNetwork Mod. Version: " + std::string{server.greeting}));
            }
            script.log().clear();
            script.send_datagram(kC2s, trick.build(script));
            script.send(kC2s, real());
            const bool is_taken = trick.taken_before_194 && server.before_194;
            CHECK(text_of(taken(script)) == (is_taken ? "cl_kill; " : "cl_say; "));
            CHECK(text_of(script.log().lines({"session"})) == "");
        }
    }
}

TEST_CASE("a CLOSE under 0.7's header closes the 0.6 connection of which it has the token") {
    for (const bool right : {true, false}) {
        CAPTURE(right);
        auto script = playing();
        Bytes close =
            tw::wire::encode_control({.kind = ControlKind::close,
                                      .ack = 2, // the server's map change and CON_READY
                                      .token = right ? SessionScript::kToken : kOtherToken});
        script.send_datagram(kC2s, under_seven(close));
        CHECK(script.log().lines({"session"}).size() == (right ? 1 : 0));
    }
}

TEST_CASE("what a client alone says makes no connection") {
    SessionScript script;
    script.assume_ddnet();
    for (int i = 0; i < 20; ++i) {
        script.send_datagram(kC2s, script.pack_deviating(kC2s, {vital(forged())},
                                                         {.behind = bytes_of(Token{1, 2, 3, 4})}));
    }
    CHECK(text_of(taken(script)) == "");
    CHECK(text_of(script.log().lines({"session"})) == "session open; ");
    // The honest connection has another token, and its server speaks.
    script.send(kS2c, {non_vital(snap_between(104, kNoBase, {}, kItems))});
    script.send(kC2s, real());
    CHECK(text_of(script.log().lines({"session", "snapshot"})) ==
          text_of(Lines{"session open", "session established 0.6+ddnet", "snapshot 104<--1 ok 2"}));
    CHECK(text_of(taken(script)) == "cl_say; ");
}

TEST_CASE("what may be the remote console's is shown under no other name") {
    constexpr std::string_view kSecret = "hunter2";

    struct Login {
        std::string_view name;
        tw::wire::Direction direction;
        Bytes bytes;
        bool vital = true;
    };

    const auto raw = [&](std::int32_t head) {
        return MessageBuilder{}.number(head).string("admin").string("hunter2").bytes();
    };
    constexpr std::int32_t kAuth = 18;
    constexpr std::int32_t kCommand = 17;
    const tw::snapshot::Uuid nobody{1, 2, 3};
    const Login rows[] = {
        {"a login", kC2s, raw(kAuth * 2 + 1)},
        {"a login that is not vital", kC2s, raw(kAuth * 2 + 1), false},
        {"a login from the server", kS2c, raw(kAuth * 2 + 1)},
        {"a login without the system bit", kC2s, raw(kAuth * 2)},
        {"a command without the system bit", kC2s, raw(kCommand * 2)},
        {"a login without the system bit from the server", kS2c, raw(kAuth * 2)},
        {"a console's line without the system bit", kS2c, raw(11 * 2)},
        {"an unknown system message", kC2s, raw(30 * 2 + 1)},
        {"an unknown system message of the server", kS2c, raw(31 * 2 + 1)},
        {"an unknown system message with a UUID", kC2s,
         MessageBuilder{}.number(1).uuid(nobody).string("hunter2").bytes()},
        {"an id that is none", kC2s, raw(-5)},
    };
    for (const Login& row : rows) {
        CAPTURE(row.name);
        auto script = playing();
        script.send(row.direction, {row.vital ? vital(row.bytes) : non_vital(row.bytes)});
        CHECK(script.log().shown().find(kSecret) == std::string::npos);
        CHECK_FALSE(script.log().lines({"message", "finding"}).empty());
    }
    // A mod's own game message is none of the console's.
    auto script = playing();
    script.send(kC2s, {vital(MessageBuilder{}.number(0).uuid(nobody).string("of a mod"))});
    CHECK(script.log().shown().find("of a mod") != std::string::npos);
}

TEST_CASE("honest traffic: a wrong password, then the right one from the same socket") {
    SessionScript script;
    script.join_ddnet();
    script.send(kC2s, message("info").string("0.6 626fce9a778df4d4").string("wrong"));
    script.control(
        kS2c,
        {.kind = ControlKind::close, .token = SessionScript::kToken, .reason = "Wrong password"});
    script.join_ddnet();
    script.send(kC2s, message("info").string("0.6 626fce9a778df4d4").string("right"));
    script.enter_game();
    script.snap(10, kNoBase, kItems);
    script.snap(12, 10, kItems);
    CHECK(text_of(script.log().lines({"session", "snapshot"})) ==
          text_of(Lines{"session open", "session established 0.6+ddnet",
                        "session close Wrong password", "session established 0.6+ddnet",
                        "snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"}));
    CHECK(text_of(script.log().findings()) ==
          text_of(Lines{"finding session.reconnected", "finding map.not_found dm1"}));
    CHECK(script.log().shown().find("wrong") == std::string::npos);
}
