// Covers: proxy/inspect/session.cpp
// Tests sessions of 0.7.
#include "tests/support/doctest_lines.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::test {
namespace {

using snapshot::kNoBase;
using wire::ControlKind;
using wire::Direction;
using wire::Token;

constexpr Token kWrong{1, 2, 3, 4};

/// A character of 22 ints, a player info of three, and a pickup of three; 0.6 has four.
const Items kItems{
    {{4, 7}, {1616, 1040, 1}}, {{10, 0}, Ints(22, 5)}, {{11, 0}, {1, 2, 3}}, {{24, 0}, {-1, 2, 4}}};

MessageBuilder client_info_message(const SessionScript& script, int client, std::string_view name,
                                   bool local = false) {
    MessageBuilder info = script.message_of("sv_client_info");
    info.number(client).number(local ? 1 : 0).number(0).string(name).string("clan").number(-1);
    for (int part = 0; part < 6; ++part) {
        info.string("standard");
    }
    for (int i = 0; i < 12; ++i) {
        info.number(0);
    }
    return info.number(0);
}

/// Returns the datagram with another token in its header.
Bytes replace_token(Bytes datagram, const Token& token) {
    for (std::size_t i = 0; i < token.size(); ++i) {
        datagram[3 + i] = std::byte{token[i]};
    }
    return datagram;
}

struct PlayerNameCollector final : TypedRecordSink<PlayerNameCollector> {
    void on(const record::SnapshotRecord& snapshot) {
        if (!snapshot.rebuilt) {
            return;
        }
        REQUIRE(snapshot.roster != nullptr);
        std::string text;
        for (std::uint16_t client = 0; client < 4; ++client) {
            std::array<char, 16> room{};
            if (const auto name = snapshot.roster->name(client)) {
                text += std::string{room.data(), snapshot::decode_int_string(name->ints, room)};
            } else {
                text += '-';
            }
            text += ' ';
        }
        names_by_snapshot.push_back(text);
    }

    Lines names_by_snapshot;
};

} // namespace

TEST_CASE("a 0.7 session is read like a 0.6 session") {
    SessionScript script;
    script.join_seven();
    script.send(kC2s, script.message_of("info").string("0.7").string("").number(1797));
    script.enter_game();
    script.snap(10, kNoBase, kItems);
    Items moved = kItems;
    moved[{10, 0}][1] = 77;
    moved[{24, 0}][0] = 5000;
    script.snap(12, 10, moved);
    script.send(kC2s, {non_vital(script.message_of("input").number(12).number(14).number(0))});
    script.close_seven();
    CHECK(script.log().lines({"session", "snapshot", "finding"}) ==
          Lines{"session open", "session established 0.7", "finding map.not_found dm1",
                "snapshot 10<--1 ok 4", "snapshot 12<-10 ok 4",
                "session close closed by the client"});
    CHECK(script.log().lines({"message"}) ==
          Lines{"message c2s token", "message s2c token", "message c2s connect",
                "message s2c accept", "message c2s info #1", "message s2c map_change #1",
                "message c2s ready #2", "message s2c con_ready #2", "message c2s enter_game #3",
                "message s2c snap_single", "message s2c snap_single", "message c2s input",
                "message c2s close"});
    CHECK(script.log().summaries().back().verified == 2);
}

TEST_CASE("compressed 0.7 packets are read") {
    SessionScript script;
    script.compression = wire::Compression::always;
    script.join_seven();
    script.enter_game();
    script.snap(10, kNoBase, kItems);
    CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 10<--1 ok 4"});
    CHECK(script.stats(kS2c).compressed == 3);
}

TEST_CASE("a DDNet server is recognised by its ACCEPT, whatever its clients announce") {
    SessionScript by_accept;
    by_accept.join_seven(true);
    CHECK(by_accept.log().lines({"session"}).back() == "session established 0.7+ddnet");

    // A mod's 0.7 server sends its capabilities to a DDNet client.
    SessionScript mod;
    mod.join_seven();
    mod.send(kS2c, mod.message_of("capabilities").number(5).number(63));
    mod.close_seven();
    mod.join_seven();
    CHECK(mod.log().lines({"session"}).back() == "session established 0.7");
}

TEST_CASE("a 0.7 session joined midway uses what other sessions of the server showed") {
    struct Row {
        std::string_view name;
        bool is_ddnet;
        bool says_what_it_can; ///< DDNet servers and 0.7 servers of mods send capabilities
        std::string_view protocol;
    };

    const Row rows[] = {
        {"a server of DDNet", true, false, "session established 0.7+ddnet"},
        {"a vanilla server", false, false, "session established 0.7"},
        {"a mod's 0.7 server", false, true, "session established 0.7"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        inspect::ServerActivityTable servers;
        SessionScript other{{.server_activities = &servers}};
        other.join_seven(row.is_ddnet);
        SessionScript sender; // builds the packets that the script gets
        sender.join_seven();
        sender.enter_game();
        SessionScript script{{.server_activities = &servers}};
        if (row.says_what_it_can) {
            script.send_datagram(
                kS2c,
                sender.pack_deviating(
                    kS2c, {vital(sender.message_of("capabilities").number(5).number(63))}, {}));
        }
        for (snapshot::Tick tick = 10; tick < 20; tick += 2) {
            script.send_datagram(
                kS2c, sender.snap_datagram(tick, tick == 10 ? kNoBase : tick - 2, kItems));
        }
        CHECK(script.log().lines({"session"}).back() == row.protocol);
        CHECK(script.log().count_of("session.joined_midway") == 1);
    }
}

TEST_CASE("packets that a 0.7 receiver drops have no effect") {
    struct Row {
        std::string_view name;
        std::string_view finding;
        void (*play)(SessionScript& script);
    };

    static constexpr auto kClose = ControlKind::close;
    static constexpr Token kServer = SessionScript::kSevenServer;
    static const auto kill = [](SessionScript& s, const Deviations& odd = {}) {
        return s.pack_deviating(kC2s, {vital(s.message_of("cl_kill"))}, odd);
    };
    const Row rows[] = {
        {"another token", "packet.wrong_token",
         [](auto& s) { s.send_datagram(kC2s, replace_token(kill(s), kWrong)); }},
        {"the token of the other direction", "packet.wrong_token",
         [](auto& s) {
             s.send_datagram(kC2s, replace_token(kill(s), SessionScript::kSevenClient));
         }},
        {"an acknowledgement of what was not sent", "packet.not_accepted",
         [](auto& s) { s.send_datagram(kC2s, kill(s, {.ack = 9})); }},
        {"a CLOSE with another token", "packet.wrong_token",
         [](auto& s) { s.control(kC2s, {.kind = kClose, .seven_token = kWrong}); }},
        {"a KEEPALIVE with no token", "packet.wrong_token",
         [](auto& s) {
             s.control(kC2s, {.kind = ControlKind::keepalive, .seven_token = wire::kTokenUnknown});
         }},
        {"a compressed CLOSE", "packet.not_accepted",
         [](auto& s) {
             const Bytes kind = bytes(4);
             Bytes datagram = wire::encode_packet({.chunks = kind,
                                                   .header_token = kServer,
                                                   .compression = wire::Compression::always,
                                                   .dialect = wire::Dialect::seven});
             datagram[0] |= std::byte{4};
             s.send_datagram(kC2s, datagram);
         }},
        {"a CLOSE that counts chunks", "packet.not_accepted",
         [](auto& s) {
             Bytes datagram = wire::encode_control({.kind = kClose, .seven_token = kServer});
             datagram[2] = std::byte{1};
             s.send_datagram(kC2s, datagram);
         }},
        {"TOKEN and CONNECT again", "",
         [](auto& s) {
             s.control(
                 kC2s,
                 {.kind = ControlKind::token, .token = kWrong, .seven_token = wire::kTokenUnknown});
             s.control(kC2s,
                       {.kind = ControlKind::connect, .token = kWrong, .seven_token = kServer});
         }},
        {"a CONNECT of 0.6", "",
         [](auto& s) {
             s.control(kC2s, {.kind = ControlKind::connect, .token = wire::kTokenUnknown});
         }},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        script.join_seven();
        script.enter_game();
        script.log().clear();
        row.play(script);
        CHECK(script.log().count_of("packet.wrong_token") +
                  script.log().count_of("packet.not_accepted") ==
              (row.finding.empty() ? 0 : 1));
        CHECK((row.finding.empty() || script.log().count_of(row.finding) == 1));
        // The connection continues: a real chunk with the same sequence, then snapshots.
        script.send(kC2s, script.message_of("cl_ready_change"));
        script.snap(10, kNoBase, kItems);
        script.snap(12, 10, kItems);
        CHECK(script.log().lines({"snapshot"}) ==
              Lines{"snapshot 10<--1 ok 4", "snapshot 12<-10 ok 4"});
        const auto messages = script.log().lines({"message"});
        const auto count = [&](std::string_view line) {
            return std::ranges::count_if(
                messages, [&](const std::string& each) { return each.starts_with(line); });
        };
        CHECK(count("message c2s cl_ready_change") == 1);
        CHECK(count("message c2s cl_kill") == 0);
        CHECK(script.log().lines({"session"}).empty());
    }
}

TEST_CASE("the order, duplicates and gaps of 0.7 vital chunks are tracked") {
    SessionScript script;
    script.join_seven();
    const Piece first = vital(script.message_of("cl_kill"));
    script.send(kC2s, {first});
    script.send(kC2s, {resend_piece(first, 1)});
    script.send(kC2s, {resend_piece(first, 3)}); // an earlier chunk is missing
    CHECK(script.stats(kC2s).duplicates == 1);
    CHECK(script.stats(kC2s).gaps == 1);
    CHECK(script.log().count_of("chunk.vital_gap") == 1);
    CHECK(script.stats(kC2s).messages == 1);
}

TEST_CASE("a full server may reject a client before a connection exists") {
    SessionScript script;
    script.send_datagram(kC2s, wire::encode_control({.kind = ControlKind::token,
                                                     .token = SessionScript::kSevenClient,
                                                     .seven_token = wire::kTokenUnknown}));
    // A CLOSE with another token has no effect.
    script.send_datagram(
        kS2c,
        wire::encode_control({.kind = ControlKind::close, .reason = "x", .seven_token = kWrong}));
    CHECK(script.log().lines({"session"}) == Lines{"session open"});
    script.send_datagram(kS2c, wire::encode_control({.kind = ControlKind::close,
                                                     .reason = "This server is full",
                                                     .seven_token = SessionScript::kSevenClient}));
    CHECK(script.log().lines({"session"}) ==
          Lines{"session open", "session close This server is full"});
}

TEST_CASE("in 0.7 the players' names come from messages before the snapshot") {
    PlayerNameCollector names;
    SessionScript script{{}, names};
    script.join_seven();
    script.enter_game();
    script.send(kS2c, client_info_message(script, 1, "anna"));
    script.send(kS2c, client_info_message(script, 0, "bob", true));
    script.snap(10, kNoBase, kItems);
    script.send(kS2c, script.message_of("sv_client_drop").number(1).string("").number(0));
    script.snap(12, 10, kItems);
    script.send(kS2c, client_info_message(script, 0, "bobby", true)); // DDNet renames so
    script.send(kS2c, MessageBuilder{script.message_of("sv_client_info")
                                         .number(0)
                                         .number(1)
                                         .number(7)
                                         .string("nobody")}); // truncated, so the client ignores it
    script.snap(14, 12, kItems);
    script.enter_game("dm2"); // the server sends everything again
    script.snap(1, kNoBase, kItems);
    CHECK(names.names_by_snapshot ==
          Lines{"bob anna - - ", "bob - - - ", "bobby - - - ", "- - - - "});
}

TEST_CASE("the roster and the bases of deltas survive a takeover") {
    SessionScript sender;
    PlayerNameCollector names;
    SessionScript script{{}, names};
    sender.join_seven();
    sender.enter_game();
    sender.send(kS2c, client_info_message(sender, 1, "anna"));
    sender.send(kS2c, client_info_message(sender, 0, "bob", true));
    sender.send(kS2c, sender.message_of("sv_team").number(1).number(-1).number(0).number(0));
    sender.snap(10, kNoBase, kItems);
    inspect::SessionCheckpoint checkpoint = sender.session().make_checkpoint();
    REQUIRE(checkpoint.roster.find(1) != nullptr);
    CHECK(checkpoint.roster.find(1)->team == -1);
    CHECK(checkpoint.roster.own_id() == 0);
    script.session().set_pending_checkpoint(std::move(checkpoint));
    for (const snapshot::Tick tick : {12, 14, 16}) {
        script.send_datagram(kS2c, sender.snap_datagram(tick, tick - 2, kItems));
    }
    CHECK(script.log().count_of("session.joined_midway") == 0);
    REQUIRE_FALSE(names.names_by_snapshot.empty());
    CHECK(names.names_by_snapshot.back() == "bob anna - - ");
}

TEST_CASE("a map announced with size 0 is missing, whatever its checksum") {
    for (const bool ddnet : {true, false}) {
        SessionScript script;
        script.join_seven(ddnet);
        const auto announce = [&](std::int32_t size) {
            script.send(kS2c, script.message_of("map_change")
                                  .string("ctf5")
                                  .number(1)
                                  .number(size)
                                  .number(15)
                                  .number(896)
                                  .raw(Bytes(32)));
        };
        announce(0);
        CHECK(script.log().findings() == Lines{"finding map.not_found ctf5"});
        if (!ddnet) {
            continue;
        }
        announce(2); // the next announcement is looked up again
        CHECK(script.log().findings() ==
              Lines{"finding map.not_found ctf5", "finding map.not_found ctf5"});
    }
}

TEST_CASE("a 0.7 map download has chunks without numbers") {
    const Bytes chunk(60, std::byte{9});
    SessionScript script;
    script.join_seven();
    script.enter_game(); // the map has 100 bytes
    script.send(kC2s, script.message_of("request_map_data"));
    script.send(kS2c, script.message_of("map_data").raw(chunk));
    CHECK(script.log().lines({"map"}).size() == 1);
    script.send(kS2c, script.message_of("map_data").raw(std::span{chunk}.first(40)));
    CHECK(script.log().lines({"map"}).size() == 2); // complete, so the map source is asked
    // The map source gives the same result as before, which is not reported again.
    CHECK(script.log().lines({"finding"}) == Lines{"finding map.not_found dm1"});

    SessionScript lost;
    lost.join_seven();
    lost.enter_game();
    lost.send(kS2c, lost.message_of("map_data").raw(chunk));
    lost.lose_copies(3);
    lost.send(kS2c, lost.message_of("map_data").raw(std::span{chunk}.first(40)));
    CHECK(lost.log().lines({"map"}).size() == 1); // the chunk's position is unknown
}

TEST_CASE("DDNet's own 0.7 packets are no finding") {
    SessionScript script;
    script.join_seven(true);
    script.send(kS2c, script.message_of("map_change")
                          .string("x")
                          .number(1)
                          .number(100)
                          .number(15)
                          .number(896)
                          .raw(Bytes(32)));
    script.log().clear();
    // 0.6's request for map data has the number of 0.7's ENTERGAME.
    script.send(kC2s, script.message_of("enter_game").number(7));
    MessageBuilder options = script.message_of("sv_vote_option_list_add");
    options.number(1);
    for (int i = 0; i < 15; ++i) {
        options.string(i == 0 ? "Map: dm1" : "");
    }
    script.send(kS2c, options);
    MessageBuilder tuning = script.message_of("sv_tune_params");
    for (int i = 0; i < 46; ++i) {
        tuning.number(100);
    }
    script.send(kS2c, tuning);
    script.send_datagram(kC2s,
                         Bytes{wire::encode_control({.kind = ControlKind::connect,
                                                     .token = Token{'T', 'K', 'E', 'N'},
                                                     .seven_token = SessionScript::kSevenServer})});
    CHECK(script.log().findings().empty());
}

TEST_CASE("secret 0.7 messages are hidden, decoded or not") {
    SessionScript script;
    script.join_seven();
    script.enter_game();
    const std::string_view secret = "hunter2";
    script.send(kC2s, script.message_of("rcon_auth").string(secret));
    script.send(kC2s, script.message_of("rcon_cmd").string(secret));
    script.send(kS2c, script.message_of("rcon_line").string(secret));
    script.send(kC2s, script.message_of("info").string("0.7").string(secret).number(1));
    script.send(kC2s, script.message_of("cl_say").number(3).number(2).string(secret));
    script.send(kS2c, script.message_of("sv_chat").number(3).number(1).number(2).string(secret));
    script.send(kC2s, script.message_of("cl_command").string("login").string(secret));
    script.send(kC2s, script.message_of("cl_say").number(1).number(-1).text(secret)); // no NUL
    script.send(kC2s, script.message_of("cl_command").string("hunter22").text("no NUL"));
    // 0.6's number of rcon_auth means "ready" in 0.7; the password is then a trailing text.
    script.send(kC2s, MessageBuilder{}.number(18 << 1 | 1).string(secret).string(secret));
    script.send(kC2s, MessageBuilder{}.number(60 << 1 | 1).string(secret));
    CHECK(script.log().shown().find(secret) == std::string::npos);
    CHECK(script.log().shown().find("68756e74657232") == std::string::npos);
}

} // namespace tw::test
