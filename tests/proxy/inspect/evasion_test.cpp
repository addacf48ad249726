// Tricks on the wire, as scripts: what no peer accepts has no effect. tests/e2e/evasion.mjs plays
// the same on a real server, with a witness. Sources: protocol sheet, 1.2, 1.5, 1.8 and section 10.

#include "tests/support/session_script.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::wire::ControlKind;
using tw::wire::ControlSpec;
using tw::wire::Token;

namespace {

using Lines = std::vector<std::string>;

constexpr auto kC2s = tw::wire::Direction::c2s;
constexpr auto kS2c = tw::wire::Direction::s2c;
constexpr Token kOtherToken{9, 9, 9, 9};
constexpr Token kNoToken{};
constexpr std::uint8_t kControl = 0x10;
constexpr std::uint8_t kConnless = 0x20;
constexpr std::uint8_t kResend = 0x40;
constexpr std::uint8_t kCompressed = 0x80;
constexpr int kHalf = tw::wire::kSequenceModulus / 2;

const Items kItems{{{4, 1}, {10, 20, 0, 0}}, {{13, 2}, {1, 2}}};
const Items kForgedItems{{{4, 7}, {66, 66, 0, 0}}};

/// Each of these messages has a name of its own in the log.
MessageBuilder real() {
    return message("cl_say").number(0).string("real");
}

MessageBuilder forged() {
    return message("cl_kill");
}

MessageBuilder line() {
    return message("rcon_line").string("real");
}

MessageBuilder forged_line() {
    return message("sv_motd").string("forged");
}

Bytes bytes_of(const Token& token) {
    const auto bytes = std::as_bytes(std::span{token});
    return {bytes.begin(), bytes.end()};
}

/// In the game, with one snapshot to build on.
SessionScript playing() {
    SessionScript script;
    script.join_ddnet();
    script.enter();
    script.snap(10, kNoBase, kItems);
    script.log().clear();
    return script;
}

/// One line, for doctest to show.
std::string text_of(const Lines& lines) {
    std::string text;
    for (const std::string& each : lines) {
        text += each + "; ";
    }
    return text;
}

/// Which of the messages of these scripts were taken.
Lines taken(SessionScript& script) {
    Lines names;
    for (const std::string& each : script.log().lines({"message"})) {
        for (const std::string_view name : {"cl_say", "cl_kill", "rcon_line", "sv_motd"}) {
            if (each.find(' ' + std::string{name}) != std::string::npos) {
                names.emplace_back(name);
            }
        }
    }
    return names;
}

/// How many findings say that a packet was not accepted, whatever the reason.
std::size_t refused(SessionScript& script) {
    const auto findings = script.log().findings();
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(), [](const std::string& finding) {
            return finding.starts_with("finding packet.") || finding.starts_with("finding chunk.");
        }));
}

/// A forged client message in a packet built wrong, then the real one under its sequence.
void forge(SessionScript& script, const Odd& odd) {
    script.feed(kC2s, script.pack_odd(kC2s, {vital(forged())}, odd));
    script.tell(kC2s, real());
}

/// The same of the server.
void forge_line(SessionScript& script, const Odd& odd) {
    script.feed(kS2c, script.pack_odd(kS2c, {vital(forged_line())}, odd));
    script.tell(kS2c, line());
}

void send(SessionScript& script, const ControlSpec& spec) {
    script.control(kC2s, spec);
    script.tell(kC2s, real());
}

Bytes seven_control(std::uint8_t kind, const Token& token = tw::wire::kTokenUnknown,
                    std::size_t padding = 512) {
    Bytes datagram{std::byte{4}, std::byte{0}, std::byte{0}};
    const Bytes header_token = bytes_of(token);
    datagram.insert(datagram.end(), header_token.begin(), header_token.end());
    datagram.push_back(std::byte{kind});
    datagram.resize(datagram.size() + padding, std::byte{7});
    return datagram;
}

constexpr Token kSevenClient{7, 7, 7, 7}; ///< what seven_control says of itself
constexpr Token kSevenServer{8, 8, 8, 8};
constexpr std::uint8_t kSevenConnect = 1;
constexpr std::uint8_t kSevenAccept = 2;
constexpr std::uint8_t kSevenClose = 4;
constexpr std::uint8_t kSevenToken = 5;

void join_seven(SessionScript& script) {
    script.feed(kC2s, seven_control(kSevenToken));
    Bytes answer = seven_control(kSevenToken, kSevenClient, 0);
    const Bytes own = bytes_of(kSevenServer);
    answer.insert(answer.end(), own.begin(), own.end());
    script.feed(kS2c, answer);
    script.feed(kC2s, seven_control(kSevenConnect, kSevenServer));
    script.feed(kS2c, seven_control(kSevenAccept, kSevenClient, 0));
}

struct Row {
    std::string_view name;
    void (*play)(SessionScript& script);
    Lines taken;
    bool refused = true; ///< a finding says that something was not accepted
};

void refuse_compressed_control(SessionScript& script) {
    for (const ControlKind kind : {ControlKind::close, ControlKind::accept}) {
        const Bytes plain_one =
            tw::wire::encode_control({.kind = kind, .token = SessionScript::kToken});
        Bytes payload{plain_one.begin() + tw::wire::kHeaderSize, plain_one.end()};
        Bytes datagram = tw::wire::encode_packet(
            {.chunks = payload, .compression = tw::wire::Compression::always});
        datagram[0] |= std::byte{kControl};
        script.feed(kC2s, datagram);
    }
    script.tell(kC2s, real());
}

/// Sequences that are no next one, with and without the resend bit.
void walk_the_ring(SessionScript& script) {
    for (const int by : {-kHalf + 1, -100, -1, 0, 2, 3, 100, kHalf - 1, kHalf}) {
        for (const bool resend : {false, true}) {
            Piece piece = vital(forged());
            piece.resend = resend;
            piece.sequence = static_cast<std::uint16_t>(
                (script.next_sequence(kC2s) - 1 + by + tw::wire::kSequenceModulus) %
                tw::wire::kSequenceModulus);
            script.feed(kC2s, script.pack_odd(kC2s, {piece}, {}));
        }
    }
    script.tell(kC2s, real());
}

const Row kRows[] = {
    {"an ack ahead of all that was sent", [](auto& s) { forge(s, {.ack = 300}); }, {"cl_say"}},
    {"an ack ahead by one", [](auto& s) { forge(s, {.ack = 1}); }, {"cl_say"}},
    {"an ack older than the one before", [](auto& s) { forge(s, {.ack = -1}); }, {"cl_say"}},
    {"an ack of half a window ago", [](auto& s) { forge(s, {.ack = -kHalf}); }, {"cl_say"}},
    {"a server's ack ahead", [](auto& s) { forge_line(s, {.ack = 300}); }, {"rcon_line"}},
    {"a server's old ack", [](auto& s) { forge_line(s, {.ack = -1}); }, {"rcon_line"}},
    {"a wrong token", [](auto& s) { forge(s, {.behind = bytes_of(kOtherToken)}); }, {"cl_say"}},
    {"no token", [](auto& s) { forge(s, {.behind = Bytes{}}); }, {"cl_say"}},
    {"a token of zeros", [](auto& s) { forge(s, {.behind = bytes_of(kNoToken)}); }, {"cl_say"}},
    {"the token that stands for none",
     [](auto& s) { forge(s, {.behind = bytes_of(tw::wire::kTokenUnknown)}); },
     {"cl_say"}},
    {"a server's wrong token",
     [](auto& s) { forge_line(s, {.behind = bytes_of(kOtherToken)}); },
     {"rcon_line"}},
    {"a server without a token",
     [](auto& s) { forge_line(s, {.behind = Bytes{}}); },
     {"rcon_line"}},
    {"no chunks by number, one in fact",
     [](auto& s) { forge(s, {.count = std::uint8_t{0}}); },
     {"cl_say"},
     false}, // before 19.4 it is a packet like others, and only holds nothing
    {"the connless flag on chunks",
     [](auto& s) { forge(s, {.flags = kConnless}); },
     {"cl_say"},
     false},
    {"the compression flag on what is not compressed",
     [](auto& s) { forge(s, {.flags = kCompressed}); },
     {"cl_say"}},
    // Taken, odd as they are: the receiver looks for the token at the end, and then for so many
    // chunks as the header says.
    {"more chunks by number than there are",
     [](auto& s) { forge(s, {.count = std::uint8_t{9}}); },
     {"cl_kill"}},
    {"surplus bytes between chunks and token",
     [](auto& s) {
         Bytes behind{5, std::byte{0x55}};
         const Bytes token = bytes_of(SessionScript::kToken);
         behind.insert(behind.end(), token.begin(), token.end());
         forge(s, {.behind = behind});
     },
     {"cl_kill"},
     false},
    {"fewer chunks by number than there are",
     [](auto& s) {
         s.feed(kC2s,
                s.pack_odd(kC2s, {vital(forged()), vital(real())}, {.count = std::uint8_t{1}}));
     },
     {"cl_kill"},
     false},
    {"a resend request with a message",
     [](auto& s) { forge(s, {.flags = kResend}); },
     {"cl_kill"},
     false},
    // Vital order.
    {"overlapping vitals",
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.tell(kC2s, {vital(real()), again(vital(forged()), first), vital(real()),
                       again(vital(forged()), first)});
     },
     {"cl_say", "cl_say"},
     false},
    {"a gap, what is behind it, then both",
     [](auto& s) {
         const auto first = s.next_sequence(kC2s);
         s.feed(kC2s, s.pack_odd(kC2s,
                                 {Piece{.message = forged().bytes(),
                                        .vital = true,
                                        .sequence = static_cast<std::uint16_t>(first + 1)}},
                                 {}));
         s.tell(kC2s, {vital(real()), vital(real())});
     },
     {"cl_say", "cl_say"}},
    {"sequences all around the ring", walk_the_ring, {"cl_say"}},
    {"the resend bit on every chunk",
     [](auto& s) {
         for (int i = 0; i < 3; ++i) {
             Piece piece = vital(real());
             piece.resend = true;
             s.tell(kC2s, {piece});
         }
     },
     {"cl_say", "cl_say", "cl_say"},
     false},
    {"a game message of a client that is not vital", // DDNet's server ignores it
     [](auto& s) {
         s.tell(kC2s, {plain(forged()), vital(real())});
     },
     {"cl_say"},
     false},
    // Control packets.
    {"CLOSE without a token", [](auto& s) { send(s, {.kind = ControlKind::close}); }, {"cl_say"}},
    {"CLOSE with a reason and no token",
     [](auto& s) { send(s, {.kind = ControlKind::close, .reason = "forged"}); },
     {"cl_say"}},
    {"CLOSE with another token",
     [](auto& s) { send(s, {.kind = ControlKind::close, .token = kOtherToken, .reason = "x"}); },
     {"cl_say"}},
    {"CLOSE with an ack outside of the window",
     [](auto& s) {
         send(s, {.kind = ControlKind::close, .ack = 700, .token = SessionScript::kToken});
     },
     {"cl_say"}},
    {"compressed control packets", refuse_compressed_control, {"cl_say"}},
    {"ACCEPT with another token",
     [](auto& s) { send(s, {.kind = ControlKind::accept, .token = kOtherToken}); },
     {"cl_say"}},
    {"ACCEPT without a token", [](auto& s) { send(s, {.kind = ControlKind::accept}); }, {"cl_say"}},
    {"CONNECT again and again",
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
             s.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
         }
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"CONNECT, a forged answer and its ACCEPT",
     [](auto& s) {
         // The client sends both: the server never answered with that token.
         s.control(kC2s, {.kind = ControlKind::connectaccept, .token = kOtherToken});
         s.control(kC2s, {.kind = ControlKind::accept, .token = kOtherToken});
         s.tell(kC2s, real());
     },
     {"cl_say"}},
    {"CONNECT without the token extension, then a first chunk without a token",
     [](auto& s) {
         s.control(kC2s, {.kind = ControlKind::connect});
         Bytes chunks;
         tw::wire::append_chunk(chunks, true, 1, false, forged().bytes());
         s.feed(kC2s, tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks}));
         s.tell(kC2s, real());
     },
     {"cl_say"}},
    // Words of a client that make nobody forget.
    {"ENTERGAME again and again",
     [](auto& s) {
         for (int i = 0; i < 5; ++i) {
             s.tell(kC2s, message("enter_game"));
         }
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a map change and a snapshot from the client",
     [](auto& s) {
         s.tell(kC2s, message("map_change").string("forged").number(1).number(100));
         s.tell(kC2s, {plain(snap_between(8, kNoBase, {}, kForgedItems))});
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"acknowledged ticks far ahead, far behind and negative",
     [](auto& s) {
         for (const std::int32_t tick : {0x6fffffff, 1, 0, -1, INT32_MIN, INT32_MAX}) {
             s.tell(kC2s, {plain(message("input").number(tick).number(14).number(0))});
         }
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    // 0.7 without a handshake that both sides complete.
    {"0.7 TOKEN and CONNECT in the middle",
     [](auto& s) {
         s.feed(kC2s, seven_control(kSevenToken));
         s.feed(kC2s, seven_control(kSevenConnect, kSevenServer));
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a 0.7 CLOSE in the middle",
     [](auto& s) {
         s.feed(kC2s, seven_control(kSevenClose, tw::wire::kTokenUnknown, 0));
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"a cut 0.7 packet in the middle",
     [](auto& s) {
         s.feed(kC2s, Bytes{std::byte{4}, std::byte{0}, std::byte{0}});
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
    {"0.7 connless in the middle",
     [](auto& s) {
         Bytes datagram{std::byte{0x21}};
         datagram.resize(23, std::byte{0x55});
         s.feed(kC2s, datagram);
         s.tell(kC2s, real());
     },
     {"cl_say"},
     false},
};

} // namespace

TEST_CASE("a trick inside a connection forges nothing, hides nothing and makes nobody forget") {
    for (const Row& row : kRows) {
        CAPTURE(row.name);
        auto script = playing();
        row.play(script);
        CHECK(text_of(taken(script)) == text_of(row.taken));
        CHECK((!row.refused || refused(script) > 0));
        // The server goes on from what the client has.
        script.snap(12, 10, kItems);
        CHECK(text_of(script.log().lines({"snapshot"})) == text_of(Lines{"snapshot 12<-10 ok 2"}));
        CHECK(text_of(script.log().lines({"session"})) == "");
        CHECK(script.log().lines({"map"}).empty());
    }
}

TEST_CASE("a snapshot in a packet that the client drops is none, and hides none of that tick") {
    const Odd rows[] = {
        {.ack = 300}, {.ack = -1}, {.behind = bytes_of(kOtherToken)}, {.behind = Bytes{}}};
    for (const Odd& odd : rows) {
        CAPTURE(odd.ack.value_or(0));
        auto script = playing();
        const Bytes forged_snap = snap_between(12, kNoBase, {}, kForgedItems);
        script.feed(kS2c, script.pack_odd(kS2c, {plain(forged_snap)}, odd));
        script.snap(12, 10, kItems);
        script.snap(14, 12, kItems);
        CHECK(text_of(script.log().lines({"snapshot"})) ==
              text_of(Lines{"snapshot 12<-10 ok 2", "snapshot 14<-12 ok 2"}));
        CHECK(refused(script) > 0);
    }
}

TEST_CASE("a token that reads like a chunk is a token all the same") {
    // 00 02 xx xx: a chunk of two bytes, were it no token.
    constexpr Token kLikeAChunk{0x00, 0x02, 0x33, 0x44};
    SessionScript script;
    script.join_ddnet_with(kLikeAChunk);
    script.enter();
    script.log().clear();
    script.feed(kC2s, script.pack_odd(kC2s, {vital(forged())}, {.count = std::uint8_t{2}}));
    script.tell(kC2s, real()); // its sequence was had already
    CHECK(text_of(taken(script)) == "cl_kill; ");
}

TEST_CASE("after joining midway the resend bit on every chunk hides none") {
    for (const bool server_first : {true, false}) {
        CAPTURE(server_first);
        SessionScript script;
        script.assume_ddnet();
        // The server says which it has; before it does, nobody can tell whether 700 is new.
        if (server_first) {
            script.feed(kS2c, script.pack_odd(kS2c, {plain(line())}, {.ack = 699}));
        }
        for (int sequence = 700; sequence < 703; ++sequence) {
            const auto number = static_cast<std::uint16_t>(sequence);
            script.feed(kC2s, script.pack_odd(kC2s, {again(vital(real()), number)}, {}));
            script.feed(kS2c, script.pack_odd(kS2c, {plain(line())}, {.ack = sequence}));
        }
        const Lines names = taken(script);
        const auto said = std::count(names.begin(), names.end(), "cl_say");
        CHECK(said >= (server_first ? 3 : 2));
    }
}

TEST_CASE("ACCEPT with the right token is a new connection, with or without a CONNECT before it") {
    auto script = playing();
    script.control(kC2s, {.kind = ControlKind::accept, .token = SessionScript::kToken});
    // DDNet's server starts its sequences anew and sends the map again.
    Bytes chunks;
    tw::wire::append_chunk(chunks, true, 1, false,
                           message("map_change").string("dm1").number(1).number(100).bytes());
    script.feed(kS2c, tw::wire::encode_packet(
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
        script.tell(kS2c, line());
        script.snap(14, 12, kItems);
        script.tell(kC2s, {plain(message("input").number(12).number(16).number(0))});
        script.tell(kS2c, {plain(snap_between(16, 14, kItems, kItems))});
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
    script.enter();
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
    script.tell(kS2c, message("map_change").string("dm2").number(1).number(100));
    script.feed(kS2c, late);
    script.tell(kC2s, message("ready"));
    script.tell(kS2c, message("con_ready"));
    script.tell(kC2s, message("enter_game"));
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
            script.feed(kC2s, datagram);
        }
        script.join_ddnet();
        script.enter();
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
        script.enter();
        script.snap(10, kNoBase, kItems);
        script.control(kC2s, {.kind = ControlKind::close, .token = SessionScript::kToken});
        join_seven(script);
        Bytes compressed_chunks{std::byte{0x10}, std::byte{1}, std::byte{1}};
        compressed_chunks.resize(64, std::byte{7}); // of 0.7; a control packet were it 0.6
        script.feed(kC2s, compressed_chunks);
        script.feed(kC2s, seven_control(kSevenClose, kSevenServer, 0));
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
    const auto team_kill = std::find_if(table.begin(), table.end(), [](const auto& spec) {
        return spec.name == "sv_kill_msg_team";
    });
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
        script.tell(row.direction, {vital(row.bytes)});
        CHECK(script.log().count_of("message.unexpected") == 1);
    }
}
