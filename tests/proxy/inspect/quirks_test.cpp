// Tests peculiarities of the protocol that concern several layers; session_test.cpp tests more.
// Covers: proxy/inspect/connection/connection.cpp
// Covers: proxy/inspect/connection/packet_acceptance.cpp
#include "snapshot/objects.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::snapshot::Tick;
using tw::wire::ControlKind;

namespace {

constexpr std::uint16_t kFirstUuidNumber = 0x7fff;

const tw::snapshot::ObjectSpec& object_spec(std::string_view name) {
    const auto table = tw::snapshot::object_table();
    return *std::ranges::find_if(table, [name](const auto& spec) { return spec.name == name; });
}

Items items_with_type(std::string_view name) {
    Items items = kPickupAndEvent;
    items.insert(descriptor(kFirstUuidNumber, name));
    items[{kFirstUuidNumber, 3}] = Ints(object_spec(name).size, 0);
    return items;
}

std::string_view name_of_first_uuid_type(SessionScript& script) {
    const auto* spec = script.session().snapshot_tracker().types().object(kFirstUuidNumber);
    return spec == nullptr ? "" : spec->name;
}

void check_session_continues(SessionScript& script) {
    script.log().clear();
    script.snap(30, kNoBase, kPickupAndEvent);
    script.snap(32, 30, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 30<--1 ok 2", "snapshot 32<-30 ok 2"});
}

} // namespace

TEST_CASE("several full snapshots before the first acknowledgement are no finding") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap(20, kNoBase, {{{4, 9}, {1, 1, 0, 0}}});
    script.snap(30, kNoBase, kPickupAndEvent);
    script.snap(32, 20, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 20<--1 ok 1", "snapshot 30<--1 ok 2",
                "snapshot 32<-20 ok 2"});
}

TEST_CASE("ENTERGAME may arrive before the map change; type numbers stay valid") {
    auto script = playing_session();
    script.snap(1000, kNoBase, items_with_type("ddnet_character"));
    script.send(kC2s, message("enter_game")); // from a dummy that does not wait
    script.send(kS2c, map_change("dm2"));
    script.log().clear();
    // Vanilla clients then still acknowledge a tick of the old map.
    script.send(kC2s, {non_vital(input(1000, 1004))});
    Items without_descriptor = items_with_type("ddnet_character");
    without_descriptor.erase({0, kFirstUuidNumber});
    script.snap(2, kNoBase, without_descriptor);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.missing_descriptor tick 2 ddnet_character 3",
                "snapshot 2<--1 ok 3"});
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
    CHECK(script.stats().ack_lag_ticks.count == 0);
}

TEST_CASE("only ACCEPT begins a connection, not CONNECT or CONNECTACCEPT") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
    script.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
    script.snap(12, 10, kPickupAndEvent);
    CHECK(script.log().lines({"session", "snapshot"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"});
    script.control(kC2s, {.kind = ControlKind::accept, .token = SessionScript::kToken});
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("a client may get back its old client id by timeout protection") {
    auto script = playing_session();
    const auto tee = [](std::uint16_t id) {
        return Items{{{9, id}, Ints(22, 0)}, {{10, id}, {1, id, 0, 0, 0}}};
    };
    script.snap(10, kNoBase, tee(5));
    script.send(kC2s, message("cl_say").number(0).string("/timeout code"));
    script.snap(12, kNoBase, tee(2)); // the server forgot its snapshots, but its sequences continue
    script.send(kS2c, message("rcon_line").string("welcome back"));
    script.snap(14, 12, tee(2));
    CHECK(script.log().lines({"session", "snapshot", "finding"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<--1 ok 2", "snapshot 14<-12 ok 2"});
    CHECK(script.stats(kS2c).gaps == 0);
}

TEST_CASE("after a server restart, type numbers may have other meanings") {
    auto script = playing_session();
    script.snap(10, kNoBase, items_with_type("ddnet_character"));
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
    // The new server process does not know the client and ignores it until it reconnects.
    script.send(kC2s, {non_vital(input(10, 14))});
    script.join_ddnet_with({5, 6, 7, 8});
    script.enter_game();
    script.snap(10, kNoBase, items_with_type("ddnet_player"));
    CHECK(name_of_first_uuid_type(script) == "ddnet_player");
    CHECK(script.log().count_of("session.reconnected") == 1);
}

TEST_CASE("a packet with an unacceptable acknowledgement has no effect") {
    auto script = playing_session();
    script.log().clear();
    for (const std::uint16_t ack : {std::uint16_t{900}, std::uint16_t{200}}) {
        Bytes chunks;
        tw::wire::append_chunk(chunks, true, 900, false,
                               message("cl_say").number(0).string("x").bytes(),
                               tw::wire::Dialect::six);
        script.send_packet(kC2s, {.ack = ack, .num_chunks = 1, .chunks = chunks});
    }
    CHECK(script.log().lines({"message", "finding"}) ==
          Lines{"finding packet.not_accepted ack_window"});
    CHECK(script.stats(kC2s).not_accepted == 2);
    check_session_continues(script);
}

TEST_CASE("unknown, malformed and repeated messages are ignored") {
    struct Row {
        std::string_view name;
        Piece piece;
    };

    const tw::snapshot::Uuid nobody{1, 2, 3, 4};
    const Row rows[] = {
        {"a chunk of size 0", non_vital(Bytes{})},
        {"an unknown id", non_vital(MessageBuilder{}.number(60 << 1 | 1).number(5))},
        {"an unknown UUID", non_vital(MessageBuilder{}.number(1).uuid(nobody).number(5))},
        {"surplus bytes", non_vital(message("con_ready").text("surplus"))},
        {"a vital chunk again", resend_piece(vital(message("con_ready")), 1)},
        {"a negative id", non_vital(MessageBuilder{}.number(-7))},
        {"a UUID cut short", non_vital(MessageBuilder{}.number(1).text("short"))},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        auto script = playing_session();
        script.send(kS2c, {row.piece, non_vital(snap_between(10, kNoBase, {}, kPickupAndEvent))});
        CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 10<--1 ok 2"});
        check_session_continues(script);
    }
}

TEST_CASE("an early READY and late acknowledgements of a bot are no finding") {
    SessionScript script = joined_session();
    script.send(kC2s, message("ready"));
    script.enter_game();
    script.log().clear();
    const Bytes late = script.snap_datagram(10, kNoBase, kPickupAndEvent);
    script.snap(12, kNoBase, kPickupAndEvent);
    script.send_datagram(kS2c, late);
    script.send(kC2s, {non_vital(input(10, 16))});
    script.snap(14, 10, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 12<--1 ok 2", "snapshot 10<--1 ok 2", "snapshot 14<-10 ok 2"});
    CHECK(script.stats().ack_lag_ticks.max == 2);
}

TEST_CASE("DDNet's old identification message is no finding") {
    auto script = playing_session();
    script.send(kC2s, message("rcon_cmd").string("crashmeplx"));
    CHECK(script.log().lines({"message", "finding"}).size() == 1);
    check_session_continues(script);
}

TEST_CASE("a PING and its answer may be vital or not") {
    auto script = playing_session();
    script.send(kC2s, {vital(message("ping")), non_vital(message("ping"))});
    script.send(kS2c, {vital(message("ping_reply")), non_vital(message("ping_reply"))});
    CHECK(script.log().findings().empty());
    CHECK(script.stats(kC2s).messages + script.stats(kS2c).messages >= 4);
    check_session_continues(script);
}

TEST_CASE("a repeated tick is not decoded again, even with other content") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap_body(10, kNoBase, 0, body_of({0, 0, 0}));
    CHECK(script.log().lines({"snapshot", "finding"}) == Lines{"snapshot 10<--1 ok 2"});
    CHECK(script.stats().repeated == 1);
}

TEST_CASE("a client in a menu acknowledges once a second, so its deltas have old bases") {
    auto script = playing_session();
    script.snap(10, kNoBase, kPickupAndEvent);
    for (Tick tick = 12; tick <= 160; tick += 2) {
        script.snap(tick, 10, {{{4, 1}, {tick, 20, 0, 0}}});
    }
    CHECK(script.log().findings().empty());
    CHECK(script.stats().verified == 76);
    CHECK(script.stats().delta_distance.max == 150);
}

TEST_CASE("the first snapshot that uses a type may lack its descriptor") {
    auto script = playing_session();
    Items without = items_with_type("ddnet_character");
    without.erase({0, kFirstUuidNumber});
    script.snap(10, kNoBase, without);
    script.snap(12, 10, without);
    script.snap(14, 12, items_with_type("ddnet_character"));
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.missing_descriptor tick 10 32767/3", "snapshot 10<--1 ok 3",
                "snapshot 12<-10 ok 3", "snapshot 14<-12 ok 4"});
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
}

TEST_CASE("a dummy may send its whole join without waiting for answers") {
    SessionScript script = joined_session();
    script.send(kC2s, {vital(message("info").string("0.6 626fce9a778df4d4").string("")),
                       vital(message("ready")), vital(message("enter_game"))});
    script.send(kS2c, map_change("dm1"));
    script.send(kS2c, message("con_ready"));
    script.log().clear();
    script.snap(2, kNoBase, kPickupAndEvent);
    script.snap(4, 2, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 2<--1 ok 2", "snapshot 4<-2 ok 2"});
}

// Tests datagrams that reached the peers, but that twscope did not see.

TEST_CASE("a gap of only twscope ends when the receiver acknowledges later chunks") {
    for (const bool sees_all : {false, true}) {
        CAPTURE(sees_all);
        SessionScript script = joined_session({.sees_all_datagrams = sees_all});
        static_cast<void>(script.pack(kS2c, {vital(rcon_line("seen by the client only"))}));
        script.send(kS2c, rcon_line("behind the gap"));
        CHECK(script.stats(kS2c).gaps == 1);
        script.send_packet(kC2s, {.ack = 2, .resend = true});
        // A proxy sees all datagrams, so the acknowledgement is wrong.
        CHECK(script.log().findings() ==
              Lines{"finding chunk.vital_gap",
                    sees_all ? "finding chunk.unseen_ack" : "finding inspect.gap missed_chunks"});
        script.send(kS2c, rcon_line("goes on"));
        CHECK(script.stats(kS2c).vital == 1);
    }
}

TEST_CASE("a chunk missed only by twscope affects only the packets in flight") {
    SessionScript script = joined_session();
    static_cast<void>(script.pack(kS2c, {vital(rcon_line("seen by the client only"))}));
    // Each acknowledgement is one behind, because chunks are sent faster than acknowledged.
    for (std::uint16_t sequence = 2; sequence < 20; ++sequence) {
        script.send(kS2c, rcon_line("goes on"));
        script.send_packet(kC2s, {.ack = static_cast<std::uint16_t>(sequence - 1)});
    }
    CHECK(script.stats(kS2c).gaps == 1);
    CHECK(script.stats(kS2c).vital == 17);
}

TEST_CASE("ticks restarted by an unseen map change are verified at once") {
    SessionScript script = playing_session();
    script.snap(100'000, kNoBase, kPickupAndEvent);
    static_cast<void>(script.pack(kS2c, {vital(rcon_line("passes unseen"))}));
    script.send(kS2c, rcon_line("behind the gap"));
    const auto behind = static_cast<std::uint16_t>(script.next_sequence(kS2c) - 1);
    script.send_packet(kC2s, {.ack = behind});
    script.snap(10, kNoBase, kPickupAndEvent);
    script.snap(12, 10, kPickupAndEvent);
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 100000<--1 ok 2", "snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"});
}

TEST_CASE("a reconnect with an unseen ACCEPT begins with the first vital chunk") {
    SessionScript script = playing_session();
    SessionScript other = joined_session();
    const Bytes begins = other.pack(kC2s, {vital(message("ready"))});
    script.log().clear();
    script.send_datagram(kC2s,
                         begins); // a copy of the old connection's first packet
    CHECK(script.log().lines({"session"}).empty());
    script.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
    script.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
    script.send_datagram(kC2s, begins);
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("a reconnect with an unseen handshake is recognised by its token") {
    auto script = playing_session();
    const auto stranger = [](const MessageBuilder& what) {
        Bytes chunks;
        tw::wire::append_chunk(chunks, true, 1, false, what.bytes(), tw::wire::Dialect::six);
        return tw::wire::encode_packet({.num_chunks = 1, .chunks = chunks, .token = kOtherToken});
    };
    script.send_datagram(kC2s, stranger(message("ready")));
    script.send_datagram(kC2s, stranger(message("ready")));
    CHECK(script.log().lines({"session"}).empty());
    script.send_datagram(kS2c, stranger(rcon_line("hello")));
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("the session continues after lost copies") {
    SessionScript script = joined_session();
    script.send(kS2c, rcon_line("first"));
    static_cast<void>(script.pack(kS2c, {vital(rcon_line("not seen"))}));
    script.lose_copies(17);
    script.send(kS2c, rcon_line("third"));
    CHECK(script.log().findings() == Lines{"finding inspect.gap ring_full"});
    CHECK(script.stats(kS2c).vital == 2);
    CHECK(script.stats().gap_lost == 17);
}

namespace {

constexpr tw::snapshot::Tick kSecretTick = 0x6b8b4567;

/// Returns the chunks that DDNet sends before the real map to a client without token support.
std::vector<Piece> ddnet_prelude_chunks() {
    return {vital(map_change("dummy")),
            vital(message("map_data").number(1).number(1).number(0).number(0)),
            vital(message("con_ready")),
            vital(snap_empty(kSecretTick, kNoBase)),
            vital(snap_empty(kSecretTick, kNoBase)),
            vital(snap_empty(kSecretTick, kNoBase))};
}

/// Returns the damaged prelude of DDNet 14.0 to 16.7: without message ids, with an empty third
/// chunk.
std::vector<Piece> damaged_prelude_chunks() {
    const auto without_id = [](const Bytes& bytes) {
        return Bytes{bytes.begin() + 1, bytes.end()};
    };
    std::vector<Piece> pieces = ddnet_prelude_chunks();
    for (Piece& piece : pieces) {
        piece.message = without_id(piece.message);
    }
    return pieces;
}

/// Returns the prelude of vanilla 0.6.5 for an older client.
std::vector<Piece> vanilla_prelude_chunks() {
    return {vital(map_change("dm1")), vital(message("con_ready")),
            non_vital(snap_empty(kSecretTick - 2, kNoBase)),
            non_vital(snap_empty(kSecretTick - 1, kNoBase)),
            non_vital(snap_empty(kSecretTick, kNoBase))};
}

} // namespace

TEST_CASE("an anti-spoof prelude is reported once and has no other effect") {
    struct Row {
        std::string_view name;
        std::vector<Piece> prelude;
    };

    const Row rows[] = {{"DDNet since 16.8", ddnet_prelude_chunks()},
                        {"DDNet 14.0 to 16.7, damaged", damaged_prelude_chunks()},
                        {"vanilla 0.6.5", vanilla_prelude_chunks()}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        script.join_vanilla();
        script.send(kS2c, row.prelude);
        script.send(kC2s, message("ready"));
        script.send(kC2s, message("enter_game"));
        script.send(kC2s, {non_vital(input(kSecretTick, kSecretTick))});
        script.enter_game("real");
        script.snap(2, kNoBase, kOnePickup);
        script.snap(4, 2, kOnePickup);
        CHECK(script.log().lines({"map", "snapshot"}) ==
              Lines{"map real none", "snapshot 2<--1 ok 1", "snapshot 4<-2 ok 1"});
        CHECK(script.log().count_of("session.antispoof") == 1);
        for (const auto& info : tw::record::finding_table()) {
            if (info.severity != tw::record::Severity::info) {
                CAPTURE(info.name);
                CHECK(script.log().count_of(info.name) == 0);
            }
        }
    }
}

TEST_CASE("a repeated prelude counts once, and a later sequence 1 is no prelude") {
    SessionScript script;
    script.join_vanilla();
    const Bytes prelude = script.pack(kS2c, vanilla_prelude_chunks());
    script.send_datagram(kS2c, prelude);
    script.send_datagram(kS2c, prelude);
    script.enter_game("real");
    script.snap(2, kNoBase, kOnePickup);
    while (script.next_sequence(kS2c) != 1) {
        script.send(kS2c, message("rcon_line").string("x"));
    }
    script.send(kS2c, {vital(message("rcon_line").string("x")), non_vital(snap_empty(4, 2))});
    script.send(kS2c, {non_vital(snap_empty(6, 4))});
    CHECK(script.log().lines({"map", "snapshot"}) == Lines{"map real none", "snapshot 2<--1 ok 1",
                                                           "snapshot 4<-2 ok 1",
                                                           "snapshot 6<-4 ok 1"});
    CHECK(script.log().count_of("session.antispoof") == 1);

    // After the sequence numbers wrapped around, a packet has six vital chunks, like DDNet's
    // prelude.
    while (script.next_sequence(kS2c) != 1) {
        script.send(kS2c, message("rcon_line").string("x"));
    }
    std::vector<Piece> six(5, vital(message("rcon_line").string("x")));
    six.push_back(vital(map_change("next")));
    script.send(kS2c, six);
    CHECK(script.log().lines({"map"}) == Lines{"map real none", "map next none"});
}

TEST_CASE("with a DDNet token or in the middle of a session, nothing is taken for a prelude") {
    SessionScript token = joined_session();
    token.send(kS2c, ddnet_prelude_chunks());
    CHECK(token.log().count_of("session.antispoof") == 0);

    SessionScript later;
    later.join_vanilla();
    later.enter_game();
    later.send(kS2c, ddnet_prelude_chunks());
    CHECK(later.log().count_of("session.antispoof") == 0);
}
