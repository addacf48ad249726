// Tests that forged packets that no peer accepts have no effect. tests/e2e/evasion.mjs sends the
// same packets to a real server and observes its reaction.

#include "tests/proxy/inspect/evasion_script.h"
#include "tests/support/doctest_lines.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using namespace tw::test::evasion;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;
using tw::wire::ControlSpec;
using tw::wire::Token;

namespace {

void send_compressed_control(SessionScript& script) {
    for (const ControlKind kind : {ControlKind::close, ControlKind::accept}) {
        const Bytes plain_one =
            tw::wire::encode_control({.kind = kind, .token = SessionScript::kToken});
        Bytes payload{plain_one.begin() + tw::wire::kHeaderSize, plain_one.end()};
        Bytes datagram = tw::wire::encode_packet(
            {.chunks = payload, .compression = tw::wire::Compression::always});
        datagram[0] |= std::byte{kControl};
        script.send_datagram(kC2s, datagram);
    }
    script.send(kC2s, real_message());
}

/// Sends forged chunks with unexpected sequence numbers, with and without the resend bit.
void send_odd_sequences(SessionScript& script) {
    for (const int by : {-kHalfSequenceRange + 1, -100, -1, 0, 2, 3, 100, kHalfSequenceRange - 1,
                         kHalfSequenceRange}) {
        for (const bool resend : {false, true}) {
            Piece piece = vital(forged_message());
            piece.resend = resend;
            piece.sequence = static_cast<std::uint16_t>(
                (script.next_sequence(kC2s) - 1 + by + tw::wire::kSequenceModulus) %
                tw::wire::kSequenceModulus);
            script.send_datagram(kC2s, script.pack_deviating(kC2s, {piece}, {}));
        }
    }
    script.send(kC2s, real_message());
}

/// The result of a trick: the accepted messages, and whether a finding reports a rejected packet.
struct TrickResult {
    Lines accepted;
    bool has_rejection = true;
};

const TrickResult kRejected{{"cl_say"}, true};
const TrickResult kLineRejected{{"rcon_line"}, true};
const TrickResult kHarmless{{"cl_say"}, false};
const TrickResult kAcceptedAndReported{{"cl_kill"}, true};
const TrickResult kAccepted{{"cl_kill"}, false};
const TrickResult kTwice{{"cl_say", "cl_say"}, false};
const TrickResult kTwiceAndReported{{"cl_say", "cl_say"}, true};
const TrickResult kThrice{{"cl_say", "cl_say", "cl_say"}, false};

struct Trick {
    std::string_view name;
    const TrickResult& outcome;
    void (*play)(SessionScript& script);
};

const Trick kRows[] = {
    {"an ack ahead of all that was sent", kRejected,
     [](auto& s) { send_forged_then_real(s, {.ack = 300}); }},
    {"an ack ahead by one", kRejected, [](auto& s) { send_forged_then_real(s, {.ack = 1}); }},
    {"an ack older than the one before", kRejected,
     [](auto& s) { send_forged_then_real(s, {.ack = -1}); }},
    {"an ack of half a window ago", kRejected,
     [](auto& s) { send_forged_then_real(s, {.ack = -kHalfSequenceRange}); }},
    {"a server's ack ahead", kLineRejected,
     [](auto& s) { send_forged_line_then_real(s, {.ack = 300}); }},
    {"a server's old ack", kLineRejected,
     [](auto& s) { send_forged_line_then_real(s, {.ack = -1}); }},
    {"a wrong token", kRejected,
     [](auto& s) { send_forged_then_real(s, {.behind = bytes_of(kOtherToken)}); }},
    {"no token", kRejected, [](auto& s) { send_forged_then_real(s, {.behind = Bytes{}}); }},
    {"a token of zeros", kRejected,
     [](auto& s) { send_forged_then_real(s, {.behind = bytes_of(kNoToken)}); }},
    {"the token that stands for none", kRejected,
     [](auto& s) { send_forged_then_real(s, {.behind = bytes_of(tw::wire::kTokenUnknown)}); }},
    {"a server's wrong token", kLineRejected,
     [](auto& s) { send_forged_line_then_real(s, {.behind = bytes_of(kOtherToken)}); }},
    {"a server without a token", kLineRejected,
     [](auto& s) { send_forged_line_then_real(s, {.behind = Bytes{}}); }},
    {"no chunks by number, one in fact", kHarmless,
     [](auto& s) {
         send_forged_then_real(s, {.count = std::uint8_t{0}});
     }}, // servers before 19.4 accept it as an empty packet
    {"the connless flag on chunks", kHarmless,
     [](auto& s) { send_forged_then_real(s, {.flags = kConnless}); }},
    {"the compression flag on what is not compressed", kRejected,
     [](auto& s) { send_forged_then_real(s, {.flags = kCompressed}); }},
    // The receiver accepts these unusual packets: it reads the token at the end, and then as many
    // chunks as the header announces.
    {"more chunks by number than there are", kAcceptedAndReported,
     [](auto& s) { send_forged_then_real(s, {.count = std::uint8_t{9}}); }},
    {"surplus bytes between chunks and token", kAccepted,
     [](auto& s) {
         Bytes behind{5, std::byte{0x55}};
         const Bytes token = bytes_of(SessionScript::kToken);
         behind.insert(behind.end(), token.begin(), token.end());
         send_forged_then_real(s, {.behind = behind});
     }},
    {"fewer chunks by number than there are", kAccepted,
     [](auto& s) {
         s.send_datagram(kC2s,
                         s.pack_deviating(kC2s, {vital(forged_message()), vital(real_message())},
                                          {.count = std::uint8_t{1}}));
     }},
    {"a resend request with a message", kAccepted,
     [](auto& s) { send_forged_then_real(s, {.flags = kResend}); }},
    // Tricks with the order of vital chunks.
    {"overlapping vitals", kTwice,
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.send(kC2s, {vital(real_message()), resend_piece(vital(forged_message()), first),
                       vital(real_message()), resend_piece(vital(forged_message()), first)});
     }},
    {"a gap, what is behind it, then both", kTwiceAndReported,
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.send_datagram(
             kC2s, s.pack_deviating(kC2s,
                                    {Piece{.message = forged_message().bytes(),
                                           .vital = true,
                                           .sequence = static_cast<std::uint16_t>(first + 1)}},
                                    {}));
         s.send(kC2s, {vital(real_message()), vital(real_message())});
     }},
    {"sequences all around the ring", kRejected, send_odd_sequences},
    {"the resend bit on every chunk", kThrice,
     [](auto& s) {
         for (int i = 0; i < 3; ++i) {
             Piece piece = vital(real_message());
             piece.resend = true;
             s.send(kC2s, {piece});
         }
     }},
    {"a game message of a client that is not vital", kHarmless,
     // DDNet's server ignores it
     [](auto& s) {
         s.send(kC2s, {non_vital(forged_message()), vital(real_message())});
     }},
    // Tricks with control packets.
    {"CLOSE without a token", kRejected,
     [](auto& s) { send_control_then_real(s, {.kind = ControlKind::close}); }},
    {"CLOSE with a reason and no token", kRejected,
     [](auto& s) { send_control_then_real(s, {.kind = ControlKind::close, .reason = "forged"}); }},
    {"CLOSE with another token", kRejected,
     [](auto& s) {
         send_control_then_real(s,
                                {.kind = ControlKind::close, .token = kOtherToken, .reason = "x"});
     }},
    {"CLOSE with an ack outside of the window", kRejected,
     [](auto& s) {
         send_control_then_real(
             s, {.kind = ControlKind::close, .ack = 700, .token = SessionScript::kToken});
     }},
    {"compressed control packets", kRejected, send_compressed_control},
    {"ACCEPT with another token", kRejected,
     [](auto& s) {
         send_control_then_real(s, {.kind = ControlKind::accept, .token = kOtherToken});
     }},
    {"ACCEPT without a token", kRejected,
     [](auto& s) { send_control_then_real(s, {.kind = ControlKind::accept}); }},
    {"CONNECT again and again", kHarmless,
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
             s.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
         }
         s.send(kC2s, real_message());
     }},
    {"CONNECT, a forged answer and its ACCEPT", kRejected,
     [](auto& s) {
         // The client sends both: the server never answered with that token.
         s.control(kC2s, {.kind = ControlKind::connectaccept, .token = kOtherToken});
         s.control(kC2s, {.kind = ControlKind::accept, .token = kOtherToken});
         s.send(kC2s, real_message());
     }},
    {"CONNECT without the token extension, then a first chunk without a token", kRejected,
     [](auto& s) {
         s.control(kC2s, {.kind = ControlKind::connect});
         Bytes chunks;
         tw::wire::append_chunk(chunks, true, 1, false, forged_message().bytes(),
                                tw::wire::Dialect::six);
         s.send_datagram(kC2s, tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks}));
         s.send(kC2s, real_message());
     }},
    // Messages of a client that do not reset the connection.
    {"ENTERGAME again and again", kHarmless,
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.send(kC2s, message("enter_game"));
         }
         s.send(kC2s, real_message());
     }},
    {"a map change and a snapshot from the client", kHarmless,
     [](auto& s) {
         s.send(kC2s, map_change("forged"));
         s.send(kC2s, {non_vital(snap_between(8, kNoBase, {}, kForgedItems))});
         s.send(kC2s, real_message());
     }},
    {"acknowledged ticks far ahead, far behind and negative", kHarmless,
     [](auto& s) {
         for (const std::int32_t tick : {0x6fffffff, 1, 0, -1, INT32_MIN, INT32_MAX}) {
             s.send(kC2s, {non_vital(input(tick, 14))});
         }
         s.send(kC2s, real_message());
     }},
    // 0.7 packets without a complete handshake.
    {"0.7 TOKEN and CONNECT in the middle", kHarmless,
     [](auto& s) {
         s.send_datagram(kC2s, seven_control_packet(ControlKind::token));
         s.send_datagram(kC2s, seven_control_packet(ControlKind::connect, kSevenServer));
         s.send(kC2s, real_message());
     }},
    {"a 0.7 CLOSE in the middle", kHarmless,
     [](auto& s) {
         s.send_datagram(kC2s, tw::wire::encode_control({.kind = ControlKind::close,
                                                         .seven_token = tw::wire::kTokenUnknown}));
         s.send(kC2s, real_message());
     }},
    {"a cut 0.7 packet in the middle", kHarmless,
     [](auto& s) {
         s.send_datagram(kC2s, Bytes{std::byte{4}, std::byte{0}, std::byte{0}});
         s.send(kC2s, real_message());
     }},
    {"0.7 connless in the middle", kHarmless,
     [](auto& s) {
         Bytes datagram{std::byte{0x21}};
         datagram.resize(23, std::byte{0x55});
         s.send_datagram(kC2s, datagram);
         s.send(kC2s, real_message());
     }},
};

} // namespace

TEST_CASE("forged packets in a connection add, hide and reset nothing") {
    for (const Trick& row : kRows) {
        CAPTURE(row.name);
        auto script = script_with_base();
        row.play(script);
        CHECK(accepted_messages(script) == row.outcome.accepted);
        CHECK((!row.outcome.has_rejection || count_rejections(script) > 0));
        // The server sends a delta from the client's snapshot.
        script.snap(12, 10, kPickupAndEvent);
        CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 12<-10 ok 2"});
        CHECK(script.log().lines({"session"}).empty());
        CHECK(script.log().lines({"map"}).empty());
    }
}

TEST_CASE("a snapshot in a dropped packet has no effect and hides no snapshot of its tick") {
    const Deviations rows[] = {
        {.ack = 300}, {.ack = -1}, {.behind = bytes_of(kOtherToken)}, {.behind = Bytes{}}};
    for (const Deviations& odd : rows) {
        CAPTURE(odd.ack.value_or(0));
        auto script = script_with_base();
        const Bytes forged_snap = snap_between(12, kNoBase, {}, kForgedItems);
        script.send_datagram(kS2c, script.pack_deviating(kS2c, {non_vital(forged_snap)}, odd));
        script.snap(12, 10, kPickupAndEvent);
        script.snap(14, 12, kPickupAndEvent);
        CHECK(script.log().lines({"snapshot"}) ==
              Lines{"snapshot 12<-10 ok 2", "snapshot 14<-12 ok 2"});
        CHECK(count_rejections(script) > 0);
    }
}

// Tests which packets begin and end a connection, which packets servers of each version accept, and
// that packets of only the client begin no connection.

TEST_CASE("a token that looks like a chunk is read as a token") {
    // The token 00 02 xx xx looks like a chunk of two bytes.
    constexpr Token kLikeAChunk{0x00, 0x02, 0x33, 0x44};
    SessionScript script;
    script.join_ddnet_with(kLikeAChunk);
    script.enter_game();
    script.log().clear();
    script.send_datagram(
        kC2s, script.pack_deviating(kC2s, {vital(forged_message())}, {.count = std::uint8_t{2}}));
    script.send(kC2s, real_message()); // its sequence number was received before
    CHECK(accepted_messages(script) == Lines{"cl_kill"});
}

TEST_CASE("in a connection joined midway, the resend bit on every chunk hides no chunk") {
    for (const bool server_first : {true, false}) {
        CAPTURE(server_first);
        SessionScript script;
        script.assume_ddnet();
        // Until the server sends an acknowledgement, it is unknown whether 700 is new.
        if (server_first) {
            script.send_datagram(
                kS2c, script.pack_deviating(kS2c, {non_vital(real_console_line())}, {.ack = 699}));
        }
        for (int sequence = 700; sequence < 703; ++sequence) {
            const auto number = static_cast<std::uint16_t>(sequence);
            script.send_datagram(
                kC2s,
                script.pack_deviating(kC2s, {resend_piece(vital(real_message()), number)}, {}));
            script.send_datagram(kS2c, script.pack_deviating(kS2c, {non_vital(real_console_line())},
                                                             {.ack = sequence}));
        }
        const Lines names = accepted_messages(script);
        const auto said = std::ranges::count(names, "cl_say");
        CHECK(said >= (server_first ? 3 : 2));
    }
}

TEST_CASE("a session that begins with 0.7 packets has the protocol of its handshake") {
    struct Start {
        std::string_view name;
        std::vector<Bytes> datagrams;
    };

    const Start rows[] = {
        {"a 0.7 TOKEN", {seven_control_packet(ControlKind::token)}},
        {"a cut one", {{std::byte{4}, std::byte{0}, std::byte{0}}}},
        {"0.7 connless", {Bytes(23, std::byte{0x21})}},
        {"a 0.7 TOKEN and CONNECT",
         {seven_control_packet(ControlKind::token), seven_control_packet(ControlKind::connect)}},
    };
    for (const Start& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        for (const Bytes& datagram : row.datagrams) {
            script.send_datagram(kC2s, datagram);
        }
        script.join_ddnet();
        script.enter_game();
        script.snap(10, kNoBase, kPickupAndEvent);
        script.snap(12, 10, kPickupAndEvent);
        CHECK(script.log().lines({"session", "snapshot"}) ==
              Lines{"session open", "session established 0.6+ddnet", "snapshot 10<--1 ok 2",
                    "snapshot 12<-10 ok 2"});
    }
}

TEST_CASE("a message from the wrong side or with a wrong system bit is unexpected") {
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
        {"a client's chat from the server", kS2c, real_message().bytes()},
        // npm clients send this in every session.
        {"a server's game message by UUID, as a client's system message", kC2s,
         MessageBuilder{}.number(1).uuid(team_kill->uuid).number(1).bytes()},
    };
    for (const Message& row : rows) {
        CAPTURE(row.name);
        auto script = script_with_base();
        script.send(row.direction, {vital(row.bytes)});
        CHECK(script.log().count_of("message.unexpected") == 1);
    }
}

TEST_CASE("packets are read as the server's version reads them") {
    struct Trick {
        std::string_view name;
        Bytes (*build)(SessionScript& script);
        bool taken_before_194;
    };

    const Trick tricks[] = {
        {"a control packet with chunks",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged_message())}, {.flags = kControl});
         },
         true},
        {"one with a wrong token",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged_message())},
                                     {.behind = bytes_of(kOtherToken), .flags = kControl});
         },
         false},
        {"one with an ack ahead",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged_message())},
                                     {.ack = 300, .flags = kControl});
         },
         false},
        {"one under 0.7's header",
         [](auto& s) {
             return add_seven_header(s.pack_deviating(kC2s, {vital(forged_message())}, {}));
         },
         true},
        {"one under 0.7's header with a wrong token",
         [](auto& s) {
             return add_seven_header(s.pack_deviating(kC2s, {vital(forged_message())},
                                                      {.behind = bytes_of(kOtherToken)}));
         },
         false},
        {"the bit of a header token",
         [](auto& s) {
             return s.pack_deviating(kC2s, {vital(forged_message())}, {.flags = kHeaderToken});
         },
         true},
    };

    struct Server {
        std::string_view greeting; ///< empty: none is sent
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
            auto script = script_with_base();
            if (!server.greeting.empty()) {
                script.send(kS2c,
                            message("sv_chat").number(0).number(-1).string(
                                "DDraceNetwork Mod. Version: " + std::string{server.greeting}));
            }
            script.log().clear();
            script.send_datagram(kC2s, trick.build(script));
            script.send(kC2s, real_message());
            const bool is_taken = trick.taken_before_194 && server.before_194;
            CHECK(accepted_messages(script) == Lines{is_taken ? "cl_kill" : "cl_say"});
            CHECK(script.log().lines({"session"}).empty());
        }
    }
}

TEST_CASE("a CLOSE with a 0.7 header closes the 0.6 connection that has its token") {
    for (const bool right : {true, false}) {
        CAPTURE(right);
        auto script = script_with_base();
        Bytes close =
            tw::wire::encode_control({.kind = ControlKind::close,
                                      .ack = 2, // the server's map change and CON_READY
                                      .token = right ? SessionScript::kToken : kOtherToken});
        script.send_datagram(kC2s, add_seven_header(close));
        CHECK(script.log().lines({"session"}).size() == (right ? 1 : 0));
    }
}

TEST_CASE("a client's packets alone begin no connection") {
    SessionScript script;
    script.assume_ddnet();
    for (int i = 0; i < 20; ++i) {
        script.send_datagram(kC2s, script.pack_deviating(kC2s, {vital(forged_message())},
                                                         {.behind = bytes_of(Token{1, 2, 3, 4})}));
    }
    CHECK(accepted_messages(script) == Lines{});
    CHECK(script.log().lines({"session"}) == Lines{"session open"});
    // The real connection has another token, and its server sends packets.
    script.send(kS2c, {non_vital(snap_between(104, kNoBase, {}, kPickupAndEvent))});
    script.send(kC2s, real_message());
    CHECK(script.log().lines({"session", "snapshot"}) ==
          Lines{"session open", "session established 0.6+ddnet", "snapshot 104<--1 ok 2"});
    CHECK(accepted_messages(script) == Lines{"cl_say"});
}

TEST_CASE("possible remote console messages are never shown as other messages") {
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
        auto script = script_with_base();
        script.send(row.direction, {row.vital ? vital(row.bytes) : non_vital(row.bytes)});
        CHECK(script.log().shown().find(kSecret) == std::string::npos);
        CHECK_FALSE(script.log().lines({"message", "finding"}).empty());
    }
    // A mod's game message is not taken for a remote console message.
    auto script = script_with_base();
    script.send(kC2s, {vital(MessageBuilder{}.number(0).uuid(nobody).string("of a mod"))});
    CHECK(script.log().shown().find("of a mod") != std::string::npos);
}

TEST_CASE("after a wrong password, a client may connect again from the same socket") {
    SessionScript script = joined_session();
    script.send(kC2s, message("info").string("0.6 626fce9a778df4d4").string("wrong"));
    script.control(
        kS2c,
        {.kind = ControlKind::close, .token = SessionScript::kToken, .reason = "Wrong password"});
    script.join_ddnet();
    script.send(kC2s, message("info").string("0.6 626fce9a778df4d4").string("right"));
    script.enter_game();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap(12, 10, kPickupAndEvent);
    CHECK(script.log().lines({"session", "snapshot"}) ==
          Lines{"session open", "session established 0.6+ddnet", "session close Wrong password",
                "session established 0.6+ddnet", "snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"});
    CHECK(script.log().findings() ==
          Lines{"finding session.reconnected", "finding map.not_found dm1"});
    CHECK(script.log().shown().find("wrong") == std::string::npos);
}
