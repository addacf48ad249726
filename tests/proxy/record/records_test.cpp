#include "map/map.h"
#include "proxy/record/records.h"
#include "tests/map/map_builder.h"
#include "tests/proxy/record/records_page.h"
#include "tests/support/program.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::record {

TEST_CASE("a finding is described in one line with its item and numbers") {
    FindingRecord record;
    record.head.session = 3;
    record.id = FindingId::snapshot_crc_mismatch;
    const FindingInfo& info = finding_info(record.id);
    const std::string sentence{info.sentence};
    CHECK(describe_finding(record) == "error snapshot.crc_mismatch: session 3. " + sentence);

    record.tick = 4711;
    record.item = FindingItem{.type_id = 9, .id = 2, .type = "character"};
    record.crc_wanted = 100;
    record.crc_got = -5;
    record.detail = "since tick 4700";
    CHECK(describe_finding(record) ==
          "error snapshot.crc_mismatch: session 3, tick 4711, character 2, checksum -5 instead of "
          "100. " +
              sentence + " (since tick 4700)");
    record.item->type = {};
    CHECK(describe_finding(record).find(", type 9 2, ") != std::string::npos);
}

TEST_CASE("a finding about another size contains both sizes") {
    FindingRecord record{.id = FindingId::snapshot_size_differs,
                         .item = FindingItem{.type_id = 4, .id = 33, .type = "pickup"},
                         .value = 5,
                         .limit = 4};
    CHECK(describe_finding(record).find(", pickup has 5 ints instead of 4 (seen in pickup 33). ") !=
          std::string::npos);
    record.tick = 68;
    CHECK(describe_finding(record).find(": session 0, tick 68, pickup") != std::string::npos);
    record.since_tick = 20;
    CHECK(describe_finding(record).find(": session 0, since tick 20, pickup") != std::string::npos);
    record.value = 0;
    CHECK(describe_finding(record).find(
              ", pickup states its number of ints in each delta instead of 4 (") !=
          std::string::npos);
}

TEST_CASE("a finding about a frozen game says how long it was frozen") {
    const FindingRecord record{.id = FindingId::snapshot_client_stalled, .value = 516};
    CHECK(describe_finding(record).ends_with("no usable snapshot for 516 ms; its game froze."));
}

TEST_CASE("a name that repeats the id, or a detail that repeats the sentence, is not shown") {
    FindingRecord record{.id = FindingId::snapshot_size_out_of_range,
                         .item = FindingItem{.type_id = 529},
                         .name = "size_out_of_range",
                         .detail = "The size of an updated item is negative."};
    CHECK(describe_finding(record) ==
          "error snapshot.size_out_of_range: session 0, misread as type 529 (not the real "
          "type). " +
              std::string{finding_info(record.id).sentence});
    record = {.id = FindingId::snapshot_crc_mismatch, .name = "unknown", .detail = "a detail"};
    const std::string line = describe_finding(record);
    CHECK(line.find(", wrong value unknown. ") != std::string::npos);
    CHECK(line.ends_with(" (a detail)"));
    CHECK(finding_display_name("map.not_found", "not_found") == "not_found");
    CHECK(finding_display_name("packet.huffman_truncated", "huffman_truncated").empty());
    CHECK(finding_display_name("packet.not_accepted", "wrong_token") == "wrong_token");
}

TEST_CASE("a silent server is a warning, and its next answer is information") {
    for (const FindingId id : {FindingId::session_server_silent, FindingId::session_unanswered}) {
        FindingRecord record{.id = id, .detail = "began"};
        CHECK(severity_of(record) == Severity::warning);
        CHECK(describe_finding(record).starts_with("warning session."));
        record.detail = "ended";
        CHECK(severity_of(record) == Severity::info);
        CHECK(describe_finding(record).starts_with("info session."));
    }
    const FindingRecord other{.id = FindingId::snapshot_crc_mismatch, .detail = "ended"};
    CHECK(severity_of(other) == Severity::error);
}

TEST_CASE("possible causes are counted, and the likeliest is named") {
    FindingRecord record;
    record.id = FindingId::snapshot_crc_mismatch;
    const CauseCandidate likeliest{.item = {.type_id = 9, .id = 2, .type = "character"},
                                   .field = "x"};
    record.candidates = CauseCandidateSummary{.count = 7, .likeliest = {&likeliest, 1}};
    CHECK(describe_finding(record).starts_with(
        "error snapshot.crc_mismatch: session 0, 7 candidates (the "
        "likeliest: character 2 x). "));
    record.candidates->count = 1;
    CHECK(describe_finding(record).find(", 1 candidate (") != std::string::npos);
}

TEST_CASE("an explanation is described like the finding that it explains") {
    FindingRecord record;
    record.id = FindingId::snapshot_explained;
    record.item = FindingItem{.type_id = 9, .id = 2, .type = "character"};
    record.field = "x";
    record.value = 5;
    record.expected = 4;
    CHECK(describe_finding(record).starts_with(
        "info snapshot.explained: session 0, character 2 x 5 instead of 4. "));
    CHECK(describe_explained_mismatch(record).starts_with(
        "error snapshot.crc_mismatch: session 0, character 2 x 5 instead of 4. "));
}

TEST_CASE("texts from peers cannot control the terminal") {
    FindingRecord record;
    record.id = FindingId::packet_too_short;
    record.name = "\x1b[2J";
    record.detail = "a\nb";
    const std::string line = describe_finding(record);
    CHECK(line.find(", \\u001b[2J.") != std::string::npos);
    CHECK(line.find("(a\\u000ab)") != std::string::npos);
}

namespace {

/// A map of 20 by 20 tiles, solid in the rightmost column.
TileMap small_map() {
    map::test::MapBuilder builder{20, 20};
    for (int y = 0; y < 20; ++y) {
        builder.set_game(19, y, map::kTileSolid);
    }
    return TileMap{
        std::make_shared<const map::PhysicsLayers>(*map::Map::parse(builder.build())->physics())};
}

} // namespace

TEST_CASE("a misplaced character is shown with the wall that it touches") {
    struct Row {
        int x, y;
        PositionFault where;
        int tile_x, tile_y;
        std::string_view game;
    };

    constexpr int kWall = 19 * 32;
    const Row rows[] = {
        {kWall + 16, 100, PositionFault::inside_solid, 19, 3, "solid"},
        {kWall - 1, 100, PositionFault::inside_solid, 19, 2, "solid"},
        {kWall - 14, 112, PositionFault::inside_solid, 19, 3, "solid"},
        {kWall - 15, 100, PositionFault::none, 18, 3, "air"},
        {-100'000, 100, PositionFault::outside_map, 0, 3, "air"},
    };
    const TileMap map = small_map();
    for (const Row& row : rows) {
        CAPTURE(row.x);
        CHECK(map.check_position(row.x, row.y) == row.where);
        const map::Location place = map.tiles_at_impossible_position(row.x, row.y);
        CHECK(place.position.x == row.x);
        CHECK(place.position.y == row.y);
        CHECK(place.tile.x == row.tile_x);
        CHECK(place.tile.y == row.tile_y);
        CHECK(map::tile_name(map::Layer::game, place.game) == row.game);
    }
}

TEST_CASE("a snapshot's descriptors override the types learned before") {
    struct Type {
        std::uint16_t number;
        std::int32_t uuid; ///< first int of the UUID
    };

    struct Row {
        std::string_view name;
        std::vector<Type> now;
        std::optional<std::uint8_t> first; ///< first byte of the UUID of type kOne
        std::optional<std::uint8_t> second;
    };

    constexpr std::uint16_t kOne = 0x7ffe;
    constexpr std::uint16_t kTwo = 0x7fff;
    constexpr std::int32_t kByte = 1 << 24;
    const auto described = [](const std::vector<Type>& types) {
        snapshot::Snapshot items;
        for (const Type& type : types) {
            items.append({snapshot::kDescriptorType, type.number},
                         std::vector<std::int32_t>{type.uuid, 0, 0, 0});
        }
        items.append({snapshot::kCharacterType, 0}, std::vector<std::int32_t>(22));
        return items;
    };
    const Row rows[] = {
        {"the same", {{kOne, kByte}}, 1, std::nullopt},
        {"another UUID", {{kOne, 2 * kByte}}, 2, std::nullopt},
        {"one more", {{kOne, kByte}, {kTwo, 3 * kByte}}, 1, 3},
        {"another instead", {{kTwo, kByte}}, 1, 1},
        {"none", {}, 1, std::nullopt},
    };
    const auto first_byte = [](const ItemTypes::TypeInfo* entry) {
        return entry == nullptr ? std::nullopt : std::optional<std::uint8_t>{entry->uuid[0]};
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        const snapshot::Snapshot before = described({{kOne, kByte}});
        const snapshot::Snapshot now = described(row.now);
        ItemTypes types;
        types.learn_types(before.view());
        types.learn_types(now.view(), before.view());
        CHECK(first_byte(types.find(kOne)) == row.first);
        CHECK(first_byte(types.find(kTwo)) == row.second);
    }
}

TEST_CASE("RECORDS.md has the keys and sentences of all schemas") {
    const std::string page = test::read_text(TW_RECORDS_PAGE);
    REQUIRE(!page.empty());
    for (const std::string& complaint : test::page_complaints(page)) {
        FAIL_CHECK(complaint);
    }
}

TEST_CASE("a missing key and an unknown key in RECORDS.md are reported") {
    const std::string page = test::read_text(TW_RECORDS_PAGE);
    for (const auto& table : test::page_tables()) {
        CAPTURE(table.heading);
        REQUIRE(!table.lines.empty());
        const std::string& line = table.lines.front();
        const std::size_t at = page.find(line, page.find('\n' + table.heading));
        REQUIRE(at != std::string::npos);
        std::string less = page;
        less.erase(at, line.size() + 1);
        CHECK(test::page_complaints(less).size() == 1);
        std::string more = page;
        more.insert(at, "| `another` | Nobody writes it. |\n");
        CHECK(test::page_complaints(more).size() == 1);
    }
}

} // namespace tw::record
