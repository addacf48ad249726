#include "tests/support/session_script.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;

namespace {

using Lines = std::vector<std::string>;

constexpr tw::snapshot::Tick kSecret = 0x6b8b4567;
const Items kItems{{{4, 1}, {10, 20, 0, 0}}};

MessageBuilder map_change(std::string_view name) {
    return message("map_change").string(name).number(1).number(100);
}

/// What DDNet sends a tokenless client before the real map.
std::vector<Piece> ddnet_prelude() {
    return {vital(map_change("dummy")),
            vital(message("map_data").number(1).number(1).number(0).number(0)),
            vital(message("con_ready")),
            vital(snap_empty(kSecret, kNoBase)),
            vital(snap_empty(kSecret, kNoBase)),
            vital(snap_empty(kSecret, kNoBase))};
}

/// The same from DDNet 14.0 to 16.7: message ids are missing, the third chunk is empty.
std::vector<Piece> damaged_prelude() {
    const auto without_id = [](const Bytes& bytes) {
        return Bytes{bytes.begin() + 1, bytes.end()};
    };
    std::vector<Piece> pieces = ddnet_prelude();
    for (Piece& piece : pieces) {
        piece.message = without_id(piece.message);
    }
    return pieces;
}

/// Vanilla 0.6.5 facing an older client.
std::vector<Piece> vanilla_prelude() {
    return {vital(map_change("dm1")), vital(message("con_ready")),
            non_vital(snap_empty(kSecret - 2, kNoBase)),
            non_vital(snap_empty(kSecret - 1, kNoBase)), non_vital(snap_empty(kSecret, kNoBase))};
}

} // namespace

TEST_CASE("an anti-spoof prelude is reported once and disturbs nothing") {
    struct Row {
        std::string_view name;
        std::vector<Piece> prelude;
    };

    const Row rows[] = {{"DDNet since 16.8", ddnet_prelude()},
                        {"DDNet 14.0 to 16.7, damaged", damaged_prelude()},
                        {"vanilla 0.6.5", vanilla_prelude()}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionScript script;
        script.join_vanilla();
        script.send(tw::wire::Direction::s2c, row.prelude);
        script.send(tw::wire::Direction::c2s, message("ready"));
        script.send(tw::wire::Direction::c2s, message("enter_game"));
        script.send(tw::wire::Direction::c2s,
                    {non_vital(message("input").number(kSecret).number(kSecret).number(0))});
        script.enter_game("real");
        script.snap(2, kNoBase, kItems);
        script.snap(4, 2, kItems);
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

TEST_CASE("a prelude that comes twice is one, and what begins with sequence 1 later on is none") {
    SessionScript script;
    script.join_vanilla();
    const Bytes prelude = script.pack(tw::wire::Direction::s2c, vanilla_prelude());
    script.send_datagram(tw::wire::Direction::s2c, prelude);
    script.send_datagram(tw::wire::Direction::s2c, prelude);
    script.enter_game("real");
    script.snap(2, kNoBase, kItems);
    while (script.next_sequence(tw::wire::Direction::s2c) != 1) {
        script.send(tw::wire::Direction::s2c, message("rcon_line").string("x"));
    }
    script.send(tw::wire::Direction::s2c,
                {vital(message("rcon_line").string("x")), non_vital(snap_empty(4, 2))});
    script.send(tw::wire::Direction::s2c, {non_vital(snap_empty(6, 4))});
    CHECK(script.log().lines({"map", "snapshot"}) == Lines{"map real none", "snapshot 2<--1 ok 1",
                                                           "snapshot 4<-2 ok 1",
                                                           "snapshot 6<-4 ok 1"});
    CHECK(script.log().count_of("session.antispoof") == 1);

    // The next time round a packet has six vital chunks, as DDNet's prelude has.
    while (script.next_sequence(tw::wire::Direction::s2c) != 1) {
        script.send(tw::wire::Direction::s2c, message("rcon_line").string("x"));
    }
    std::vector<Piece> six(5, vital(message("rcon_line").string("x")));
    six.push_back(vital(map_change("next")));
    script.send(tw::wire::Direction::s2c, six);
    CHECK(script.log().lines({"map"}) == Lines{"map real none", "map next none"});
}

TEST_CASE("a prelude is none with DDNet's token or in the middle of a session") {
    SessionScript token;
    token.join_ddnet();
    token.send(tw::wire::Direction::s2c, ddnet_prelude());
    CHECK(token.log().count_of("session.antispoof") == 0);

    SessionScript later;
    later.join_vanilla();
    later.enter_game();
    later.send(tw::wire::Direction::s2c, ddnet_prelude());
    CHECK(later.log().count_of("session.antispoof") == 0);
}
