// Quirks of the protocol that a passive observer must survive. Those of one layer alone are tested
// with that layer; some more in session_test.cpp and prelude_test.cpp.

#include "snapshot/objects.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;
using tw::snapshot::Tick;
using tw::wire::ControlKind;

namespace {

using Lines = std::vector<std::string>;

constexpr auto kC2s = tw::wire::Direction::c2s;
constexpr auto kS2c = tw::wire::Direction::s2c;
constexpr std::uint16_t kFirstUuidNumber = 0x7fff;

const Items kItems{{{4, 1}, {10, 20, 0, 0}}, {{13, 2}, {1, 2}}};

SessionScript playing() {
    SessionScript script;
    script.join_ddnet();
    script.enter_game();
    script.log().clear();
    return script;
}

const tw::snapshot::ObjectSpec& object(std::string_view name) {
    const auto table = tw::snapshot::object_table();
    return *std::ranges::find_if(table, [name](const auto& spec) { return spec.name == name; });
}

/// The item that says which UUID a number stands for.
std::vector<std::int32_t> descriptor(std::string_view name) {
    const auto& uuid = object(name).uuid;
    std::vector<std::int32_t> ints;
    for (std::size_t i = 0; i < uuid.size(); i += 4) {
        ints.push_back(static_cast<std::int32_t>(std::uint32_t{uuid[i]} << 24U |
                                                 std::uint32_t{uuid[i + 1]} << 16U |
                                                 std::uint32_t{uuid[i + 2]} << 8U | uuid[i + 3]));
    }
    return ints;
}

Items with_type(std::string_view name) {
    Items items = kItems;
    items[{0, kFirstUuidNumber}] = descriptor(name);
    items[{kFirstUuidNumber, 3}] = std::vector<std::int32_t>(object(name).size, 0);
    return items;
}

std::string_view name_of_first_uuid_type(SessionScript& script) {
    const auto* spec = script.session().snapshots().types().object(kFirstUuidNumber);
    return spec == nullptr ? "" : spec->name;
}

void goes_on(SessionScript& script) {
    script.log().clear();
    script.snap(30, kNoBase, kItems);
    script.snap(32, 30, kItems);
    CHECK(script.log().lines({"snapshot"}) ==
          Lines{"snapshot 30<--1 ok 2", "snapshot 32<-30 ok 2"});
}

} // namespace

TEST_CASE("several full snapshots come before the first acknowledgement") {
    auto script = playing();
    script.snap(10, kNoBase, kItems);
    script.snap(20, kNoBase, {{{4, 9}, {1, 1, 0, 0}}});
    script.snap(30, kNoBase, kItems);
    script.snap(32, 20, kItems);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 20<--1 ok 1", "snapshot 30<--1 ok 2",
                "snapshot 32<-20 ok 2"});
}

TEST_CASE("ENTERGAME may come before the map change; type numbers stay valid") {
    auto script = playing();
    script.snap(1000, kNoBase, with_type("ddnet_character"));
    script.send(kC2s, message("enter_game")); // of a dummy that does not wait
    script.send(kS2c, message("map_change").string("dm2").number(1).number(100));
    script.log().clear();
    // Vanilla clients still acknowledge a tick of the old map.
    script.send(kC2s, {non_vital(message("input").number(1000).number(1004).number(0))});
    Items without_descriptor = with_type("ddnet_character");
    without_descriptor.erase({0, kFirstUuidNumber});
    script.snap(2, kNoBase, without_descriptor);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.missing_descriptor tick 2 ddnet_character 3",
                "snapshot 2<--1 ok 3"});
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
    CHECK(script.stats().ack_lag_ticks.count == 0);
}

TEST_CASE("CONNECT and CONNECTACCEPT alone change nothing, ACCEPT does") {
    auto script = playing();
    script.snap(10, kNoBase, kItems);
    script.control(kC2s, {.kind = ControlKind::connect, .token = tw::wire::kTokenUnknown});
    script.control(kS2c, {.kind = ControlKind::connectaccept, .token = SessionScript::kToken});
    script.snap(12, 10, kItems);
    CHECK(script.log().lines({"session", "snapshot"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 ok 2"});
    script.control(kC2s, {.kind = ControlKind::accept, .token = SessionScript::kToken});
    CHECK(script.log().lines({"session"}) ==
          Lines{"session close reconnected", "session established 0.6+ddnet"});
}

TEST_CASE("timeout protection moves a client into its old slot") {
    auto script = playing();
    const auto tee = [](std::uint16_t id) {
        return Items{{{9, id}, std::vector<std::int32_t>(22, 0)}, {{10, id}, {1, id, 0, 0, 0}}};
    };
    script.snap(10, kNoBase, tee(5));
    script.send(kC2s, message("cl_say").number(0).string("/timeout code"));
    script.snap(12, kNoBase, tee(2)); // the server forgot what it sent, sequences go on
    script.send(kS2c, message("rcon_line").string("welcome back"));
    script.snap(14, 12, tee(2));
    CHECK(script.log().lines({"session", "snapshot", "finding"}) ==
          Lines{"snapshot 10<--1 ok 2", "snapshot 12<--1 ok 2", "snapshot 14<-12 ok 2"});
    CHECK(script.stats(kS2c).gaps == 0);
}

TEST_CASE("after a restart of the server type numbers may mean something else") {
    auto script = playing();
    script.snap(10, kNoBase, with_type("ddnet_character"));
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
    // The new process knows nobody: the client talks to itself until it connects again.
    script.send(kC2s, {non_vital(message("input").number(10).number(14).number(0))});
    script.join_ddnet();
    script.enter_game();
    script.snap(10, kNoBase, with_type("ddnet_player"));
    CHECK(name_of_first_uuid_type(script) == "ddnet_player");
    CHECK(script.log().count_of("session.reconnected") == 1);
}

TEST_CASE("after a checksum mismatch the server goes on from an older base") {
    auto script = playing();
    script.snap(10, kNoBase, kItems);
    script.send(kS2c, {non_vital(snap_single(12, 10, checksum_of(kItems) + 1,
                                             delta_body(kItems, kItems)))});
    script.snap(14, 10, kItems);
    script.snap(16, 14, kItems);
    CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 10<--1 ok 2", "snapshot 12<-10 bad",
                                                    "snapshot 14<-10 ok 2",
                                                    "snapshot 16<-14 ok 2"});
}

TEST_CASE("a packet whose acknowledgement is out of the window has no effect") {
    auto script = playing();
    script.log().clear();
    for (const std::uint16_t ack : {std::uint16_t{900}, std::uint16_t{200}}) {
        Bytes chunks;
        tw::wire::append_chunk(chunks, true, 900, false,
                               message("cl_say").number(0).string("x").bytes(),
                               tw::wire::Dialect::six);
        script.send_datagram(
            kC2s,
            tw::wire::encode_packet(
                {.ack = ack, .num_chunks = 1, .chunks = chunks, .token = SessionScript::kToken}));
    }
    CHECK(script.log().lines({"message", "finding"}) ==
          Lines{"finding packet.not_accepted ack_window"});
    CHECK(script.stats(kC2s).not_accepted == 2);
    goes_on(script);
}

TEST_CASE("unrequested server info inside a session changes nothing") {
    auto script = playing();
    const auto info = MessageBuilder{}
                          .text("\xff\xff\xff\xff"
                                "inf3")
                          .decimal(-1)
                          .string("0.6.4");
    script.send_datagram(kS2c, tw::wire::encode_connless(info.bytes()));
    CHECK(script.stats(kS2c).connless == 1);
    goes_on(script);
}

TEST_CASE("what nobody knows or needs is ignored") {
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
        {"a vital chunk again", again(vital(message("con_ready")), 1)},
        {"a negative id", non_vital(MessageBuilder{}.number(-7))},
        {"a UUID cut short", non_vital(MessageBuilder{}.number(1).text("short"))},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        auto script = playing();
        script.send(kS2c, {row.piece, non_vital(snap_between(10, kNoBase, {}, kItems))});
        CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 10<--1 ok 2"});
        goes_on(script);
    }
}

TEST_CASE("bots say READY early and acknowledge snapshots that complete late") {
    SessionScript script;
    script.join_ddnet();
    script.send(kC2s, message("ready"));
    script.enter_game();
    script.log().clear();
    const Bytes late = script.snap_datagram(10, kNoBase, kItems);
    script.snap(12, kNoBase, kItems);
    script.send_datagram(kS2c, late);
    script.send(kC2s, {non_vital(message("input").number(10).number(16).number(0))});
    script.snap(14, 10, kItems);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 12<--1 ok 2", "snapshot 10<--1 ok 2", "snapshot 14<-10 ok 2"});
    CHECK(script.stats().ack_lag_ticks.max == 2);
}

TEST_CASE("DDNet's old sign of being DDNet is no attack") {
    auto script = playing();
    script.send(kC2s, message("rcon_cmd").string("crashmeplx"));
    CHECK(script.log().lines({"message", "finding"}).size() == 1);
    goes_on(script);
}

TEST_CASE("a game message's UUID with the system bit is not that message") {
    auto script = playing();
    const auto table = tw::wire::message_table();
    const auto spec =
        std::ranges::find_if(table, [](const auto& each) { return each.name == "sv_teams_state"; });
    REQUIRE(spec != table.end());
    script.send(kC2s, {non_vital(MessageBuilder{}.number(1).uuid(spec->uuid))});
    CHECK(script.log().lines({"message", "finding"}) ==
          Lines{"message c2s ?", "finding message.unexpected sv_teams_state"});
}

TEST_CASE("a PING may be vital or not, and so may its answer") {
    auto script = playing();
    script.send(kC2s, {vital(message("ping")), non_vital(message("ping"))});
    script.send(kS2c, {vital(message("ping_reply")), non_vital(message("ping_reply"))});
    CHECK(script.log().findings().empty());
    CHECK(script.stats(kC2s).messages + script.stats(kS2c).messages >= 4);
    goes_on(script);
}

TEST_CASE("a repeated tick is not decoded twice, not even with other content") {
    auto script = playing();
    script.snap(10, kNoBase, kItems);
    script.send(kS2c, {non_vital(snap_single(10, kNoBase, 0, body_of({0, 0, 0})))});
    CHECK(script.log().lines({"snapshot", "finding"}) == Lines{"snapshot 10<--1 ok 2"});
    CHECK(script.stats().repeated == 1);
}

TEST_CASE("a client in a menu acknowledges once a second, so bases are old") {
    auto script = playing();
    script.snap(10, kNoBase, kItems);
    for (Tick tick = 12; tick <= 160; tick += 2) {
        script.snap(tick, 10, {{{4, 1}, {tick, 20, 0, 0}}});
    }
    CHECK(script.log().findings().empty());
    CHECK(script.stats().verified == 76);
    CHECK(script.stats().delta_distance.max == 150);
}

TEST_CASE("the first snapshot that uses a type may lack its descriptor") {
    auto script = playing();
    Items without = with_type("ddnet_character");
    without.erase({0, kFirstUuidNumber});
    script.snap(10, kNoBase, without);
    script.snap(12, 10, with_type("ddnet_character"));
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.missing_descriptor tick 10 32767/3", "snapshot 10<--1 ok 3",
                "snapshot 12<-10 ok 4"});
    CHECK(name_of_first_uuid_type(script) == "ddnet_character");
}

TEST_CASE("a dummy sends all of its join without waiting") {
    SessionScript script;
    script.join_ddnet();
    script.send(kC2s, {vital(message("info").string("0.6 626fce9a778df4d4").string("")),
                       vital(message("ready")), vital(message("enter_game"))});
    script.send(kS2c, message("map_change").string("dm1").number(1).number(100));
    script.send(kS2c, message("con_ready"));
    script.log().clear();
    script.snap(2, kNoBase, kItems);
    script.snap(4, 2, kItems);
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"snapshot 2<--1 ok 2", "snapshot 4<-2 ok 2"});
}
