// Covers: proxy/inspect/diagnosis/diagnosis.cpp
// Covers: proxy/inspect/snapshots/snapshot_checks.cpp
// Covers: proxy/record/findings.cpp, proxy/record/records.cpp
#include "map/map.h"
#include "proxy/record/findings.h"
#include "tests/map/map_builder.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::inspect::MapStatus;
using tw::record::FindingId;
using tw::snapshot::kNoBase;

namespace {

/// Returns a connless packet's payload up to its fields.
MessageBuilder connless_message(std::string_view magic) {
    return MessageBuilder{}.text("\xff\xff\xff\xff").text(magic);
}

void send_connless(SessionScript& script, const MessageBuilder& packet) {
    script.send_datagram(kS2c, tw::wire::encode_connless(packet.bytes()));
}

/// Returns a compressed packet with this payload.
Bytes compressed_packet(std::uint8_t flags, const Bytes& content) {
    MessageBuilder datagram;
    return datagram.raw(bytes(0x80 | flags, 0, 0))
        .raw(tw::wire::huffman_compress(content, tw::wire::HuffmanEnding::without_zero_byte))
        .bytes();
}

/// Returns a map of 20 by 20 tiles whose rightmost column is solid.
std::shared_ptr<const tw::map::PhysicsLayers> small_map() {
    tw::map::test::MapBuilder builder{20, 20};
    for (int y = 0; y < 20; ++y) {
        builder.set_game(19, y, tw::map::kTileSolid);
    }
    return std::make_shared<const tw::map::PhysicsLayers>(
        *tw::map::Map::parse(builder.build())->physics());
}

void send_character_at(SessionScript& script, std::int32_t x, std::int32_t y) {
    script.maps().answer = {.status = MapStatus::found, .physics = small_map()};
    script.enter_game();
    Ints character(22, 0);
    character[1] = x;
    character[2] = y;
    script.snap(10, kNoBase, {{{9, 0}, character}});
}

void enter_with_map_status(SessionScript& script, MapStatus status) {
    script.maps().answer = {.status = status};
    script.enter_game();
}

/// Returns a function that sends a delta with the base kPickupAndPlayer, which clients reject.
std::function<void(SessionScript&)> delta_sender(Ints ints, std::int32_t crc = 0) {
    return [ints = std::move(ints), crc](SessionScript& script) {
        script.enter_game();
        script.snap(10, kNoBase, kPickupAndPlayer);
        script.snap_body(12, 10, crc, body_of(ints));
    };
}

/// Returns a delta of items with 1000 ints; 16 of them nearly fill a snapshot's byte limit.
Ints large_item_ints(std::int32_t first_id, std::int32_t count) {
    constexpr std::int32_t kInts = 1000;
    constexpr std::int32_t kType = 100;
    Ints ints{0, count, 0};
    for (std::int32_t i = 0; i < count; ++i) {
        ints.insert(ints.end(), {kType, first_id + i, kInts});
        ints.insert(ints.end(), kInts, 0);
    }
    return ints;
}

Ints small_item_ints(std::int32_t count) {
    Ints ints{0, count, 0};
    for (std::int32_t i = 0; i < count; ++i) {
        ints.insert(ints.end(), {13, i, 0, 0});
    }
    return ints;
}

struct FindingRow {
    FindingId id;
    std::function<void(SessionScript&)> play;
    void (SessionScript::*join)() = &SessionScript::join_ddnet; ///< null: no connection
};

constexpr auto kVanilla = &SessionScript::join_vanilla;

std::vector<FindingRow> packet_rows() {
    using enum FindingId;
    return {
        {packet_too_short, [](auto& s) { s.send_datagram(kC2s, bytes(0, 0)); }},
        {packet_too_long, [](auto& s) { s.send_datagram(kC2s, Bytes(1401)); }},
        {packet_huffman_truncated, [](auto& s) { s.send_datagram(kC2s, bytes(0x80, 0, 1, 0)); }},
        {packet_huffman_overflow,
         [](auto& s) { s.send_datagram(kC2s, compressed_packet(0, Bytes(4000))); }},
        {packet_control_empty, [](auto& s) { s.send_datagram(kC2s, bytes(0x10, 5, 0)); }},
        {packet_control_compressed,
         [](auto& s) { s.send_datagram(kC2s, compressed_packet(0x10, bytes(0))); }, kVanilla},
        {packet_control_unknown, [](auto& s) { s.send_datagram(kC2s, bytes(0x10, 0, 0, 9)); },
         kVanilla},
        {packet_wrong_token,
         [](auto& s) {
             s.send_datagram(kS2c, tw::wire::encode_packet(
                                       {.resend = true, .token = tw::wire::Token{1, 2, 3, 4}}));
         }},
        {chunk_unseen_ack,
         [](auto& s) {
             static_cast<void>(s.pack(kS2c, {vital(message("ping"))})); // never sent
             s.send(kS2c, {vital(message("ping"))});
             s.send_packet(kC2s, {.ack = 2, .resend = true});
         }},
        {packet_trailing_bytes,
         [](auto& s) {
             Bytes datagram = s.pack(kS2c, {non_vital(message("ping"))});
             datagram.push_back(std::byte{0});
             s.send_datagram(kS2c, datagram);
         },
         kVanilla},
        {packet_not_accepted, [](auto& s) { s.send_packet(kC2s, {.ack = 300, .resend = true}); }},
        {packet_seven,
         [](auto& s) {
             s.send_datagram(kC2s, bytes(4, 0, 0, 0xff, 0xff, 0xff, 0xff, 5, 1, 2, 3, 4));
         }},
        {chunk_truncated,
         [](auto& s) {
             const Bytes chunks = bytes(0x3f, 0x0f, 1, 2, 3);
             s.send_packet(kS2c, {.num_chunks = 1, .chunks = chunks});
         }},
        {chunk_empty, [](auto& s) { s.send(kS2c, {non_vital(Bytes{})}); }},
        {chunk_vital_gap,
         [](auto& s) {
             s.send(kS2c,
                    {{.message = message("con_ready").bytes(), .vital = true, .sequence = 3}});
         }},
    };
}

std::vector<FindingRow> message_rows() {
    using enum FindingId;
    return {
        {message_unexpected,
         [](auto& s) { s.send(kC2s, {non_vital(message("sv_motd").string("from a client"))}); }},
        {message_id_invalid, [](auto& s) { s.send(kS2c, {non_vital(bytes(1, 2, 3))}); }},
        {message_unknown,
         [](auto& s) { s.send(kS2c, {non_vital(MessageBuilder{}.number(61 << 1 | 1))}); }},
        {message_unknown, // the server's version no longer has this message
         [](auto& s) {
             send_connless(s, connless_message("inf3").string("7").string("0.6.4, 16.4"));
             s.send(kS2c, message("sv_player_time").number(1234).number(3));
         }},
        {message_unknown, // its values do not fit the old message
         [](auto& s) { s.send(kS2c, message("sv_player_time").number(1234).number(500)); }},
        {message_version_unknown,
         [](auto& s) { s.send(kS2c, message("sv_player_time").number(1234).number(3)); }},
        {message_truncated, [](auto& s) { s.send(kS2c, message("sv_emoticon").number(1)); }},
        {message_trailing_bytes, [](auto& s) { s.send(kS2c, message("con_ready").number(1)); }},
        {message_out_of_range,
         [](auto& s) { s.send(kS2c, message("sv_emoticon").number(1).number(99)); }},
        {message_truncated,
         [](auto& s) {
             send_connless(s, connless_message("inf3").string("7").string("0.6.4").text("cut"));
         }},
        {message_trailing_bytes,
         [](auto& s) { send_connless(s, connless_message("gie3").byte(7).byte(8)); }},
        {message_out_of_range,
         [](auto& s) {
             send_connless(s, connless_message("iex+").string("7").string("abc").string(""));
         }},
    };
}

std::vector<FindingRow> delta_rows() {
    using enum FindingId;
    return {
        {snapshot_crc_mismatch, delta_sender({0, 0, 0}, 1)},
        {snapshot_unknown_base, [](auto& s) { s.send(kS2c, {non_vital(snap_empty(12, 10))}); }},
        {snapshot_body_truncated, [](auto& s) { s.snap_body(12, kNoBase, 0, bytes(0x80)); }},
        {snapshot_too_many_ints, [](auto& s) { s.snap_body(12, kNoBase, 0, Bytes(16385)); }},
        {snapshot_negative_count, delta_sender({-1, 0, 0})},
        {snapshot_deleted_out_of_range, delta_sender({5, 0, 0, 1})},
        {snapshot_update_truncated, delta_sender({0, 2, 0, 4, 9, 1, 1, 1, 1})},
        {snapshot_type_out_of_range, delta_sender({0, 1, 0, 32768, 0, 0})},
        {snapshot_id_out_of_range, delta_sender({0, 1, 0, 4, 65536, 0, 0, 0, 0})},
        {snapshot_size_out_of_range, delta_sender({0, 1, 0, 40, 0, -1})},
        {snapshot_size_change,
         [](auto& s) {
             s.snap(10, kNoBase, {{{40, 7}, {1, 2, 3}}});
             s.snap_body(12, 10, 0, body_of({0, 1, 0, 40, 7, 1, 5}));
         }},
        {snapshot_too_many_items,
         [](auto& s) { s.snap_body(12, kNoBase, 0, body_of(small_item_ints(1025))); }},
        {snapshot_too_many_bytes,
         [](auto& s) {
             s.snap_body(10, kNoBase, 0, body_of(large_item_ints(0, 14)));
             s.snap_body(12, 10, 0, body_of(large_item_ints(20, 4)));
         }},
        {snapshot_duplicate_update,
         delta_sender({0, 2, 0, 4, 9, 1, 1, 1, 1, 4, 9, 2, 2, 2, 2}, 71)},
        {snapshot_unknown_delete, delta_sender({1, 0, 0, 262221}, 63)},
        {snapshot_duplicate_delete, delta_sender({2, 0, 0, 262145, 262145}, 33)},
        {snapshot_deleted_and_updated, delta_sender({1, 1, 0, 655362, 10, 2, 0, 0, 0, 5, 0}, 68)},
        {snapshot_surplus_ints, delta_sender({0, 0, 0, 1}, 63)},
    };
}

std::vector<FindingRow> snapshot_rows() {
    using enum FindingId;
    return {
        {snapshot_size_differs,
         [](auto& s) {
             auto sizes = tw::snapshot::kAgreedSizes;
             ++sizes[4];
             s.enter_game();
             for (std::int32_t tick = 10; tick <= 30; tick += 10) {
                 const Items items{{{4, 1}, {10, 20, 3, tick, 5}}, {{10, 2}, {1, 2, 0, 0, 30}}};
                 const Bytes body =
                     tw::snapshot::encode_delta({}, to_snapshot(items).view(), sizes);
                 s.snap_body(tick, kNoBase, checksum_of(items), body);
             }
         }},
        {snapshot_explained,
         [](auto& s) {
             delta_sender({0, 1, 0, 4, 1, 90, 0, 0, 0}, 63)(s);
             s.snap(14, 10, kPickupAndPlayer);
         }},
        {snapshot_client_stalled,
         [](auto& s) {
             s.enter_game();
             s.snap(10, kNoBase, kPickupAndPlayer);
             s.snap(12, 10, kPickupAndPlayer);
             s.snap(14, 12, kPickupAndPlayer);
             s.pause(1'000'000'000);
             s.snap(62, 12, kPickupAndPlayer);
             s.close("idle"); // the finding waits for evidence until the close
         }},
        {snapshot_budget,
         [](auto& s) {
             s.snap_body(12, kNoBase, 0, body_of(small_item_ints(600)));
             s.pause(6'000'000'000);
             s.snap_body(312, kNoBase, 0, body_of(small_item_ints(700)));
         }},
    };
}

std::vector<FindingRow> part_rows() {
    using enum FindingId;
    return {
        {snapshot_negative_base, [](auto& s) { s.send(kS2c, {non_vital(snap_empty(12, -9))}); }},
        {snapshot_item_cap,
         [](auto& s) { s.snap_body(12, kNoBase, 0, body_of(small_item_ints(930))); }},
        {snapshot_part_missing,
         [](auto& s) {
             s.send(kS2c, {non_vital(snap_part(12, kNoBase, 2, 0, 0, Bytes(900)))});
             s.send(kS2c, map_change("next"));
         }},
        {snapshot_part_out_of_range,
         [](auto& s) { s.send(kS2c, {non_vital(snap_part(12, kNoBase, 0, 0, 0, Bytes(9)))}); }},
        {snapshot_part_inconsistent,
         [](auto& s) {
             s.send(kS2c, {non_vital(snap_part(12, kNoBase, 3, 0, 0, Bytes(900)))});
             s.send(kS2c, {non_vital(snap_part(12, kNoBase, 2, 0, 0, Bytes(900)))});
         }},
        {snapshot_part_inconsistent,
         [](auto& s) {
             s.send(kS2c, {non_vital(snap_part(12, kNoBase, 3, 0, 0, Bytes(900)))});
             s.snap_body(12, kNoBase, 0, body_of({0, 0, 0}));
         }},
        {snapshot_leftover,
         [](auto& s) {
             s.snap(1000, kNoBase, kPickupAndPlayer);
             const Bytes late = s.snap_datagram(1002, 1000, kPickupAndPlayer);
             s.send(kS2c, map_change("next"));
             s.send_datagram(kS2c, late);
         }},
        {snapshot_tick_jump,
         [](auto& s) {
             s.snap(12, kNoBase, kPickupAndPlayer);
             s.snap(100'000, kNoBase, kPickupAndPlayer);
         }},
        {snapshot_missing_descriptor,
         [](auto& s) {
             s.snap(12, kNoBase, {{{0x7fff, 1}, {1}}});
         }},
        {snapshot_unknown_type,
         [](auto& s) {
             s.snap(12, kNoBase, {{{45, 0}, {1}}, {{45, 1}, {1}}});
         }},
        {snapshot_missing_descriptor,
         [](auto& s) { // an earlier snapshot had the descriptor
             s.snap(12, kNoBase, {{{0, 0x7fff}, {1, 2, 3, 4}}, {{0x7fff, 1}, {1}}});
             s.snap(14, 12, {{{0x7fff, 1}, {1}}});
         }},
    };
}

std::vector<FindingRow> other_rows() {
    using enum FindingId;
    return {
        {map_not_found, [](auto& s) { enter_with_map_status(s, MapStatus::not_found); }},
        {map_crc_mismatch, [](auto& s) { enter_with_map_status(s, MapStatus::other_version); }},
        {map_crc_mismatch,
         [](auto& s) { // larger than announced
             s.enter_game();
             MessageBuilder chunk = message("map_data").number(0).number(1).number(0).number(101);
             s.send(kS2c, chunk.raw(Bytes(101)));
         }},
        {map_unreadable, [](auto& s) { enter_with_map_status(s, MapStatus::unreadable); }},
        {map_name_invalid, [](auto& s) { enter_with_map_status(s, MapStatus::invalid_name); }},
        {map_not_cached,
         [](auto& s) {
             s.maps().answer = {.status = MapStatus::found,
                                .physics = small_map(),
                                .detail = "could not be cached: No space left on device"};
             s.enter_game();
         }},
        {world_inside_solid, [](auto& s) { send_character_at(s, 19 * 32 + 16, 100); }},
        {world_outside_map, [](auto& s) { send_character_at(s, -100'000, 100); }},
        {session_joined_midway,
         [](auto& s) {
             s.assume_ddnet();
             s.send(kS2c, {non_vital(message("ping"))});
         },
         nullptr},
        {session_reconnected, [](auto& s) { s.join_ddnet(); }},
        {session_closed_silently, [](auto& s) { s.close("idle"); }},
        {session_server_silent,
         [](auto& s) {
             for (int i = 0; i < 4; ++i) {
                 s.pause(1'000'000'000);
                 s.send(kC2s, {non_vital(message("ping"))});
             }
         }},
        {session_antispoof,
         [](auto& s) {
             s.send(kS2c, {vital(map_change("dm1")), non_vital(snap_empty(1 << 30, kNoBase))});
         },
         kVanilla},
        {inspect_gap, [](auto& s) { s.lose_copies(3); }},
        {session_resync, [](auto& s) { s.resync(); }},
    };
}

} // namespace

TEST_CASE("a map that another session downloaded is used at once") {
    SessionScript script = joined_session();
    script.maps().answer = {.status = MapStatus::not_found};
    script.enter_game();
    script.snap(10, kNoBase, kPickupAndPlayer);
    script.maps().keep_elsewhere({.status = MapStatus::other_version});
    script.snap(12, 10, kPickupAndPlayer);
    CHECK(script.log().lines({"map"}) == Lines{"map dm1 none"});
    Ints character(22, 0);
    character[1] = 19 * 32 + 16;
    character[2] = 100;
    script.maps().keep_elsewhere({.status = MapStatus::found, .physics = small_map()});
    script.snap(14, kNoBase, {{{9, 0}, character}});
    script.snap(16, 14, {{{9, 0}, character}});
    CHECK(script.log().lines({"map"}) == Lines{"map dm1 none", "map dm1 wire"});
    CHECK(script.log().count_of("world.inside_solid") == 1);
}

TEST_CASE("every finding is reported when its condition occurs") {
    std::set<FindingId> found;
    for (const auto& rows : {packet_rows(), message_rows(), delta_rows(), snapshot_rows(),
                             part_rows(), other_rows()}) {
        for (const FindingRow& row : rows) {
            const std::string name{tw::record::finding_info(row.id).name};
            CAPTURE(name);
            SessionScript script;
            if (row.join != nullptr) {
                (script.*row.join)();
            }
            CHECK(script.log().count_of(name) == 0);
            row.play(script);
            CHECK(script.log().count_of(name) == 1);
            CHECK(script.session().totals().findings[static_cast<std::size_t>(row.id)] == 1);
            found.insert(row.id);
            // `records --verify` expects a record of each counted message.
            std::uint64_t messages = 0;
            std::uint64_t refused = 0; // refused control packets may have no record
            for (const tw::record::DirectionStats& side : script.session().totals().directions) {
                messages += side.messages + side.connless + side.control;
                refused += side.not_accepted + side.wrong_token;
            }
            const std::uint64_t records = script.log().lines({"message"}).size();
            CHECK(records <= messages);
            CHECK(records + refused >= messages);
        }
    }
    for (const tw::record::FindingInfo& info : tw::record::finding_table()) {
        CAPTURE(info.name);
        // Other tests cover findings in demos (tests/proxy/demo/play_demo_test.cpp), between views
        // (tests/proxy/world), in captures (partial_view_test.cpp), about one silent session
        // (server_silence_test.cpp) and about unwritten records
        // (tests/proxy/sink/record_limits_test.cpp).
        const bool elsewhere =
            info.name.starts_with("demo.") || info.name == "packet.undecided" ||
            info.name == "session.one_direction" || info.name == "session.unanswered" ||
            info.name == "world.views_differ" || info.name == "world.vanished" ||
            info.name == "world.per_viewer" || info.name == "world.late" ||
            info.name == "world.stray" || info.name == "session.messages_left_out";
        CHECK((found.contains(info.id) || elsewhere));
    }
}

TEST_CASE("an unknown item type is reported once per session and counted each time") {
    SessionScript script = playing_session();
    const Items items{{{45, 0}, {1}}, {{45, 1}, {2}}, {{16000, 3}, {1}}};
    script.snap(12, kNoBase, items);
    script.snap(14, 12, items);
    script.enter_game(); // another map
    script.snap(200, kNoBase, items);
    CHECK(script.log().count_of("snapshot.unknown_type") == 2);
    const auto id = static_cast<std::size_t>(FindingId::snapshot_unknown_type);
    CHECK(script.session().totals().findings[id] == 6);
}

TEST_CASE("the server's version decides the meaning of a removed message's id") {
    struct FindingRow {
        std::string_view version;
        bool named;
    };

    const FindingRow rows[] = {{"0.6.4, 12.9.2", true}, {"0.6.4, 16.4", false}, {"", true}};
    for (const FindingRow& row : rows) {
        CAPTURE(row.version);
        SessionScript script = joined_session();
        if (!row.version.empty()) {
            send_connless(script, connless_message("inf3").string("7").string(row.version));
        }
        script.send(kS2c, {vital(message("sv_player_time").number(1234).number(3))});
        const std::string line = script.log().lines({"message"}).back();
        CAPTURE(line);
        CHECK((line.find("sv_player_time") != std::string::npos) == row.named);
        CHECK(script.log().count_of("message.version_unknown") == (row.version.empty() ? 1 : 0));
    }
}

TEST_CASE("a correct connless packet is no finding, known or not") {
    SessionScript script = joined_session();
    for (const MessageBuilder& packet :
         {connless_message("gie3").byte(7),
          connless_message("iex+").string("7").string("1").string(""),
          connless_message("chal").text("secret"), connless_message("what").text("ever")}) {
        send_connless(script, packet);
    }
    CHECK(script.log().findings().empty());
}

TEST_CASE("a character at a possible position is no finding") {
    SessionScript script = joined_session();
    send_character_at(script, 100, 100);
    CHECK(script.log().findings().empty());
    CHECK(script.log().lines({"map"}) == Lines{"map dm1 folder"});
}

TEST_CASE("the table of findings is complete, and every row has a whole sentence") {
    std::set<std::string_view> names;
    for (const tw::record::FindingInfo& info : tw::record::finding_table()) {
        CAPTURE(info.name);
        CHECK(names.insert(info.name).second);
        CHECK(info.name.find('.') != std::string_view::npos);
        CHECK(info.sentence.ends_with('.'));
        CHECK(info.cause.ends_with('.'));
        CHECK(tw::record::find_finding(info.name) == info.id);
        CHECK(tw::record::parse_severity(tw::record::severity_name(info.severity)) ==
              info.severity);
    }
    CHECK(names.size() == tw::record::kFindingCount);
    CHECK_FALSE(tw::record::find_finding("snapshot").has_value());
    CHECK_FALSE(tw::record::parse_severity("fatal").has_value());
}
