// The keys of items in the lines of snapshots and worlds.

#include "map/game_layer.h"
#include "proxy/record/records.h"
#include "proxy/sink/json_lines.h"
#include "tests/proxy/sink/sample_records.h"
#include "tests/support/json_records.h"
#include "tests/support/session_script.h"

#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace tw;
using test::write_json;

namespace {

/// Makes the records of consecutive snapshots of a session.
class SnapshotSequence {
  public:
    record::SnapshotRecord next_record(const test::Items& items) {
        std::swap(previous_, now_);
        now_ = test::to_snapshot(items);
        record::SnapshotRecord record{
            .rebuilt = true, .items = now_.view(), .ordinal = ordinal_, .types = &types_};
        if (ordinal_ != 0) {
            record.previous = previous_.view();
        }
        ++ordinal_;
        return record;
    }

  private:
    snapshot::Snapshot now_;
    snapshot::Snapshot previous_;
    record::ItemTypes types_;
    std::uint64_t ordinal_ = 0;
};

/// Returns the ids of the items that a line lists.
std::vector<std::int64_t> item_ids(const boost::json::value& line) {
    std::vector<std::int64_t> found;
    for (const auto& item : line.at("items").as_array()) {
        found.push_back(item.at("id").as_int64());
    }
    return found;
}

/// Writes records with one writer, and also writes each record with a new writer.
class WriterComparison {
  public:
    /// Returns the line that a new writer writes.
    const std::string& write(const record::Record& record) {
        json_.on_record(record);
        line_ = sink::json_line(record, kAll);
        alone_ += line_;
        return line_;
    }

    void check() {
        json_.flush();
        CHECK(together_.text == alone_);
    }

  private:
    static constexpr sink::JsonOptions kAll{.items = sink::ItemChoice::all};

    sink::TextOutput together_;
    sink::JsonLines json_{kAll, together_};
    std::string alone_;
    std::string line_;
};

/// Returns random items as servers send them. Between calls, some items and names change.
test::Items random_items(std::mt19937& random) {
    const auto below = [&](std::uint32_t limit) {
        return static_cast<std::int32_t>(random() % limit);
    };
    test::Items items;
    const auto maybe = [&](std::uint16_t type, std::uint16_t id, std::size_t size) {
        if (below(4) == 0) {
            return;
        }
        std::vector<std::int32_t> data(size);
        for (std::int32_t& value : data) {
            value = below(8) == 0 ? below(3) : 7;
        }
        items[{type, id}] = data;
    };
    for (std::uint16_t id = 0; id < 6; ++id) {
        maybe(9, id, 22);
        maybe(10, id, 5);
        maybe(13, id, 2);
        maybe(0x4001, id, 3);
        if (below(4) != 0) {
            std::vector<std::int32_t> info(17);
            test::pack_text(below(3) == 0 ? "bob" : "ann \"the\" tee", std::span{info}.first(4));
            items[{11, id}] = info;
        }
    }
    return items;
}

} // namespace

TEST_CASE("an item's text does not depend on what was written before it") {
    std::mt19937 random{20}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    WriterComparison lines;
    for (int round = 0; round < 300; ++round) {
        SnapshotSequence snapshots;
        const auto record = snapshots.next_record(random_items(random));
        lines.write(&record);
    }
    lines.check();
}

TEST_CASE("the sessions of an item do not depend on earlier worlds") {
    const std::vector<std::uint32_t> rows[] = {
        {1, 2, 3}, {1, 2, 4}, {7}, {}, {1, 2147483648U, 4294967295U}};
    std::mt19937 random{21}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    WriterComparison lines;
    for (int round = 0; round < 200; ++round) {
        SnapshotSequence snapshots;
        auto record = snapshots.next_record({{{13, 1}, {0, 0}}, {{13, 2}, {5, 5}}});
        const auto& sessions = rows[random() % std::size(rows)];
        const std::uint64_t all = (std::uint64_t{1} << sessions.size()) - 1;
        const std::vector<std::uint64_t> seen{random() & all, random() & all};
        const std::vector<std::uint32_t> missing_ints(seen.size());
        const record::ItemSightings sightings{
            .sessions = sessions, .bits = seen, .words_per_item = 1, .missing_ints = missing_ints};
        record.sightings = &sightings;
        const auto line = boost::json::parse(lines.write(&record));
        std::size_t index = 0;
        for (const auto& item : line.at("items").as_array()) {
            boost::json::array wanted;
            sightings.for_each_session(index++, [&](std::uint32_t session) {
                wanted.emplace_back(std::int64_t{session});
                return false;
            });
            CHECK(item.at("seen_by") == wanted);
        }
    }
    lines.check();
}

TEST_CASE("an item that no session received has an empty seen_by") {
    SnapshotSequence snapshots;
    auto record = snapshots.next_record({{{13, 1}, {0, 0}}});
    const std::vector<std::uint32_t> missing_ints{0};
    const record::ItemSightings sightings{.missing_ints = missing_ints};
    record.sightings = &sightings;
    CHECK(write_json(&record).at("items").at(0).at("seen_by") == boost::json::array{});
}

TEST_CASE("a merged item without a known position has no place") {
    struct Row {
        std::string_view name;
        std::uint32_t missing_ints;
        bool counts_against_limit;
    };

    using record::ItemSightings;
    const Row rows[] = {{"all told", 0, true},
                        {"another field missing", ItemSightings::int_bit(2), true},
                        {"x missing", ItemSightings::int_bit(0), false},
                        {"y missing", ItemSightings::int_bit(1), false}};
    map::PhysicsLayers::Contents planes;
    planes.width = 1;
    planes.height = 1;
    auto& game = planes.records[static_cast<std::size_t>(map::Layer::game)];
    game = map::Block{4};
    std::ranges::fill(game.writable_bytes(), std::byte{0});
    const record::TileMap world{std::make_shared<const map::PhysicsLayers>(std::move(planes))};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SnapshotSequence snapshots;
        auto record = snapshots.next_record({{{4, 1}, {10, 20, 0, 0}}}); // the item is a pickup
        const std::vector<std::uint32_t> missing_ints{row.missing_ints};
        const ItemSightings sightings{.missing_ints = missing_ints};
        record.sightings = &sightings;
        record.tile_map = &world;
        const auto line = write_json(&record);
        const auto& item = line.at("items").at(0).as_object();
        CHECK((item.if_contains("at") != nullptr) == row.counts_against_limit);
    }
}

TEST_CASE("a world contains the kinds of ids and the renumbered players") {
    using record::IdKind;
    const std::vector<std::uint32_t> missing_ints(6);
    const std::vector<IdKind> kinds{IdKind::views, IdKind::server, IdKind::twscope};
    const std::vector<record::RenumberedClient> renumbered{{1, 5, 0}, {4294967295U, 0, 65535}};
    const test::Items items{{{9, 0}, std::vector<std::int32_t>(22)},
                            {{9, 1}, std::vector<std::int32_t>(22)},
                            {{9, 2}, std::vector<std::int32_t>(22)},
                            {{9, 3}, std::vector<std::int32_t>(22)},
                            {{11, 2}, std::vector<std::int32_t>(17)},
                            {{17, 9}, {0, 0, 2}}}; // (17, 9) is a death of client 2
    record::ItemSightings sightings{
        .missing_ints = missing_ints, .id_kinds = kinds, .renumbered = renumbered};
    SnapshotSequence snapshots;
    const auto next = [&](bool anew) {
        auto record = snapshots.next_record(items);
        sightings.has_new_renumbering = anew;
        record.sightings = &sightings;
        return write_json(&record);
    };
    const auto first = next(false);
    const auto& shown = first.at("items").as_array();
    CHECK(shown.at(0).at("id_kind") == "views");
    CHECK(shown.at(1).as_object().if_contains("id_kind") == nullptr);
    CHECK(shown.at(2).at("id_kind") == "twscope");
    CHECK(shown.at(3).as_object().if_contains("id_kind") == nullptr);
    CHECK(shown.at(4).at("id_kind") == "twscope");
    CHECK(shown.at(5).at("id_kind") == "twscope");
    const auto wanted = boost::json::parse("[[1,5,0],[4294967295,0,65535]]");
    CHECK(first.at("renumbered") == wanted);
    CHECK(next(false).as_object().if_contains("renumbered") == nullptr);
    CHECK(next(true).at("renumbered") == wanted);
    sightings.renumbered = {};
    CHECK(next(true).at("renumbered") == boost::json::array{});
}

TEST_CASE("the changed items, all items or no items are listed") {
    const test::Items first{{{13, 1}, {0, 0}}, {{13, 2}, {5, 5}}, {{14, 3}, {7, 7}}};
    const test::Items second{{{13, 1}, {0, 0}}, {{13, 2}, {5, 6}}, {{15, 4}, {1, 1}}};

    struct Row {
        sink::ItemChoice choice;
        std::vector<std::int64_t> ids;
        bool full;
    };

    const Row rows[] = {{sink::ItemChoice::changed, {2, 4}, false},
                        {sink::ItemChoice::all, {1, 2, 4}, true}};
    for (const Row& row : rows) {
        SnapshotSequence snapshots;
        const auto a = snapshots.next_record(first);
        CHECK(item_ids(write_json(&a, {.items = row.choice})) ==
              std::vector<std::int64_t>{1, 2, 3});
        const auto b = snapshots.next_record(second);
        const auto line = write_json(&b, {.items = row.choice});
        CHECK(item_ids(line) == row.ids);
        CHECK(line.at("removed") == boost::json::parse("[[14,3]]"));
        CHECK(line.as_object().contains("full") == row.full);
    }
    SnapshotSequence snapshots;
    const auto record = snapshots.next_record(first);
    const auto none = write_json(&record, {.items = sink::ItemChoice::none});
    CHECK_FALSE(none.as_object().contains("items"));
    CHECK_FALSE(none.as_object().contains("removed"));
    CHECK(none.at("num_items").as_int64() == 3);
}

TEST_CASE("raw ints are written on request") {
    SnapshotSequence snapshots;
    const auto record = snapshots.next_record({{{13, 1}, {8, 9}}});
    CHECK_FALSE(write_json(&record).at("items").at(0).as_object().contains("data"));
    CHECK(write_json(&record, {.raw = true}).at("items").at(0).at("data") ==
          boost::json::parse("[8,9]"));
}

TEST_CASE("items that belong to a client contain its name, if known") {
    std::vector<std::int32_t> info(17, 0);
    test::pack_text("ann", std::span{info}.first(4));
    SnapshotSequence snapshots;
    const auto record = snapshots.next_record({{{11, 3}, info},
                                               {{9, 3}, std::vector<std::int32_t>(22)},
                                               {{9, 4}, std::vector<std::int32_t>(22)},
                                               {{10, 7}, {0, 3, 0, 0, 0}},
                                               {{17, 1}, {10, 20, 3}},
                                               {{17, 2}, {10, 20, -1}},
                                               {{17, 3}, {10, 20, 70000}},
                                               {{4, 3}, {10, 20, 0, 0}}});
    std::string players;
    const auto line = write_json(&record);
    for (const auto& item : line.at("items").as_array()) {
        const auto* player = item.as_object().if_contains("player");
        players +=
            fmt::format("{}/{} {}, ", item.at("type_id").as_int64(), item.at("id").as_int64(),
                        player == nullptr ? "-" : std::string{player->as_string()});
    }
    CHECK(players == "4/3 -, 9/3 ann, 9/4 -, 10/7 ann, 11/3 -, 17/1 ann, 17/2 -, 17/3 -, ");
}

TEST_CASE("a pickup has the name of a weapon only if it is one") {
    struct Row {
        std::int32_t type;
        std::string names;
    };

    const Row rows[] = {{0, R"({"type":"health"})"},
                        {1, R"({"type":"armor"})"},
                        {2, R"({"type":"weapon","subtype":"grenade"})"},
                        {3, R"({"type":"ninja","subtype":"grenade"})"},
                        {4, ""},
                        {-1, ""},
                        {32, ""}};
    for (const Row& row : rows) {
        CAPTURE(row.type);
        SnapshotSequence snapshots;
        const auto record = snapshots.next_record({{{4, 1}, {10, 20, row.type, 3}}});
        const auto line = write_json(&record);
        const auto* names = line.at("items").at(0).as_object().if_contains("names");
        const auto* type = names == nullptr ? nullptr : names->as_object().if_contains("type");
        if (row.names.empty()) {
            CHECK(
                (names == nullptr || (type != nullptr && !names->as_object().contains("subtype"))));
        } else {
            REQUIRE(names != nullptr);
            CHECK(*names == boost::json::parse(row.names));
        }
    }
}

TEST_CASE("with changed, the first snapshot and every 250th list all items") {
    SnapshotSequence snapshots;
    for (int ordinal = 0; ordinal <= 501; ++ordinal) {
        const auto record = snapshots.next_record({{{13, 1}, {8, 9}}, {{13, 2}, {ordinal, 0}}});
        const auto line = write_json(&record);
        CAPTURE(ordinal);
        const bool full = ordinal % 250 == 0;
        CHECK(line.as_object().contains("full") == full);
        CHECK(line.at("items").as_array().size() == (full ? 2 : 1));
    }
}

TEST_CASE("a snapshot that could not be rebuilt has no items and says so") {
    const record::SnapshotRecord record{.tick = 5, .delta_tick = 3, .crc_wanted = 7};
    const auto line = write_json(&record);
    CHECK_FALSE(line.at("ok").as_bool());
    CHECK(line.at("crc_got").is_null());
    CHECK_FALSE(line.as_object().contains("items"));
}
