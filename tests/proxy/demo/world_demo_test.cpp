// Covers: proxy/demo/world_demo.cpp
#include "proxy/demo/world_demo.h"
#include "proxy/record/roster.h"
#include "proxy/wire/message.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/inspect_file.h"
#include "tests/support/program.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <numeric>

using namespace tw;
using test::Items;

namespace {

/// Lists the records of demos: snapshots and messages with their fields.
class DemoLog final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        log.on_record(record);
        const auto* const* message = std::get_if<const record::MessageRecord*>(&record);
        if (message == nullptr || (*message)->system) {
            return;
        }
        std::string& line = messages.emplace_back((*message)->name);
        for (const wire::FieldValue& value : (*message)->values) {
            line += ' ';
            if (value.kind != wire::FieldValue::Kind::string) {
                line += std::to_string(value.integer);
            }
            for (const std::byte letter : value.bytes) {
                line += static_cast<char>(letter);
            }
        }
    }

    test::RecordLog log;
    std::vector<std::string> messages;
};

wire::FieldValue text_value(std::string_view name, std::string_view text) {
    return {.kind = wire::FieldValue::Kind::string, .name = name, .bytes = test::as_bytes(text)};
}

/// A script of worlds whose demos are written to a folder.
class WorldDemoScript {
  public:
    explicit WorldDemoScript(int version = 5) : version_{version} {}

    void write_world(snapshot::Tick tick, const Items& items, std::uint32_t run = 1,
                     bool complete = true, std::string_view server = "a:1",
                     record::Timestamp time = 0, std::string_view map_name = "dm1") {
        const record::MapRecord map{.name = map_name, .crc = 7, .source = "folder"};
        write({.head = {.time = time},
               .tick = tick,
               .server = server,
               .run = run,
               .complete = complete,
               .map = &map},
              items, types_);
    }

    /// Writes a world of a server whose clients all use 0.7.
    void write_seven_world(snapshot::Tick tick, const Items& items, const record::Roster& roster) {
        const record::MapRecord map{.name = "dm1", .crc = 7, .source = "folder"};
        record::ItemTypes types;
        types.start_connection(snapshot::Dialect::seven);
        write({.tick = tick, .server = "a:1", .run = 1, .complete = true, .map = &map}, items,
              types, &roster);
    }

    /// From now on, worlds of 0.6 also contain items that only 0.7 knows.
    void allow_seven_items() { types_.allow_both_dialects(); }

    /// Writes a message to all players, of the tick of the last world.
    void write_message(std::string_view name, const std::vector<wire::FieldValue>& values,
                       std::uint32_t run = 1) {
        const auto table = wire::message_table();
        const auto spec = std::ranges::find(table, name, &wire::MessageSpec::name);
        REQUIRE(spec != table.end());
        const auto payload = wire::encode_message(*spec, values);
        demos_.on_world_message(
            {.server = "a:1", .run = run, .spec = &*spec, .values = values, .payload = payload});
    }

    void write_chat(std::int64_t client, std::string_view text, std::uint32_t run = 1) {
        write_message("sv_chat",
                      {{.name = "team"},
                       {.name = "client_id", .integer = client},
                       text_value("message", text)},
                      run);
    }

    void write_race_finish() {
        write_message("sv_race_finish", {{.name = "client_id", .integer = 1},
                                         {.name = "time", .integer = 500},
                                         {.name = "diff"},
                                         {.name = "record_personal"},
                                         {.name = "record_server"}});
    }

    /// Returns the records of each demo as lines.
    std::vector<std::vector<std::string>> end() {
        demos_.end_demos();
        files_.finish_writing();
        std::vector<std::vector<std::string>> demos;
        for (const auto& path : folder_.files()) {
            DemoLog log;
            test::inspect_file(path, log);
            demos.push_back(log.log.lines({"snapshot"}));
            said.insert(said.end(), log.messages.begin(), log.messages.end());
            names.push_back(path.filename().string());
        }
        return demos;
    }

    /// Returns the records of the only demo.
    std::vector<std::string> end_only_demo() {
        const auto demos = end();
        REQUIRE(demos.size() == 1);
        return demos.front();
    }

    /// Returns the records of the demo of two ticks with these items.
    std::vector<std::string> demo_of(const Items& items) {
        write_world(100, items);
        write_world(102, items);
        return end_only_demo();
    }

    [[nodiscard]] demo::DemoLosses losses() const { return demos_.losses(); }

    std::vector<std::string> names;
    std::vector<std::string> said; ///< messages in all demos

  private:
    void write(record::WorldRecord world, const Items& items, const record::ItemTypes& types,
               const record::Roster* roster = nullptr) {
        const auto shown = test::to_snapshot(items);
        world.merged = {.tick = world.tick,
                        .rebuilt = true,
                        .items = shown.view(),
                        .types = &types,
                        .roster = roster};
        demos_.on_record(&world);
    }

    test::TemporaryFolder folder_;
    record::ItemTypes types_;
    store::FileQueue files_{store::FileQueue::FullQueuePolicy::wait};
    int version_;
    demo::WorldDemo demos_{{.folder = folder_.path(), .version = version_}, files_};
};

const Items kSome{{{9, 1}, std::vector<std::int32_t>(22, 1)}};

} // namespace

TEST_CASE("each run of a server becomes a demo with all its worlds") {
    WorldDemoScript stage;
    for (const std::uint32_t run : {1U, 2U}) {
        for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
            stage.write_world(tick, kSome, run);
        }
        stage.write_world(111, kSome, run, false); // an odd tick, which only some clients got
    }
    const auto demos = stage.end();
    REQUIRE(!demos.empty());
    CHECK(stage.names.front().find("-world-dm1") != std::string::npos);
    CHECK(demos.front().size() == 5);
    CHECK(describe_losses(stage.losses()).empty());
}

TEST_CASE("a demo begins when the map is known") {
    WorldDemoScript stage;
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        stage.write_world(tick, kSome, 1, true, "a:1", 0, tick < 104 ? "" : "dm1");
    }
    CHECK(stage.end_only_demo().size() == 8);
    CHECK(stage.names.front().find("-world-dm1") != std::string::npos);
    CHECK(stage.losses().sessions_without_map == 0);
}

TEST_CASE("runs with an unknown map have no demo and are counted") {
    WorldDemoScript stage;
    for (const std::uint32_t run : {1U, 2U, 3U}) {
        for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
            stage.write_world(tick, kSome, run, true, "a:1", 0, run == 2 ? "dm1" : "");
        }
    }
    CHECK(stage.losses().sessions_without_map == 2);
    CHECK(stage.end().size() == 1);
}

TEST_CASE("several servers at a time get one demo each") {
    WorldDemoScript stage;
    const Items others{{{9, 2}, std::vector<std::int32_t>(22, 3)}};
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        stage.write_world(tick, kSome, 1, true, "a:1");
        stage.write_world(tick + 5000, others, 1, true, "b:1");
    }
    const auto demos = stage.end();
    REQUIRE(demos.size() == 2);
    CHECK(demos[0].size() == 10);
    CHECK(demos[1].size() == 10);
    CHECK(stage.losses().late_snapshots == 0);
    CHECK(stage.losses().num_unwritten_chunks() == 0);
}

TEST_CASE("a server beyond the limit gets no demo and is counted") {
    WorldDemoScript stage;
    constexpr int kServers = 65;
    for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
        for (int server = 0; server < kServers; ++server) {
            stage.write_world(tick, kSome, 1, true, "server:" + std::to_string(server),
                              std::int64_t{tick} * 20'000'000);
        }
    }
    const auto demos = stage.end();
    CHECK(demos.size() == kServers - 1);
    CHECK(std::ranges::all_of(demos, [](const auto& lines) { return lines.size() == 5; }));
    CHECK(stage.losses().worlds_over_limit == 5);
}

TEST_CASE("a server that was silent for ten seconds is replaced by another") {
    WorldDemoScript stage;
    for (int server = 0; server < 100; ++server) {
        for (snapshot::Tick tick = 100; tick < 106; tick += 2) {
            stage.write_world(tick, kSome, 1, true, "server:" + std::to_string(server),
                              server * 1'000'000'000LL);
        }
    }
    CHECK(stage.end().size() == 100);
    CHECK(stage.losses().worlds_over_limit == 0);
}

TEST_CASE("items beyond the limit of a snapshot are left out and counted") {
    Items many;
    for (std::uint16_t i = 0; i < 1100; ++i) {
        many[{4, i}] = {i, i, 0, 0}; // pickups are entities
        many[{14, i}] = {i, i};      // explosions are events
    }
    many[{9, 5}] = std::vector<std::int32_t>(22, 5);
    many[{6, 0}] = std::vector<std::int32_t>(8, 6);
    WorldDemoScript stage;
    CHECK(stage.demo_of(many).front() == "snapshot 100<--1 ok 1024");
    CHECK(stage.losses().items_over_limit == 2 * (2202 - 1024));
    CHECK(stage.losses().ticks_over_limit == 2);
    CHECK(stage.losses().items_without_id == 0);
    CHECK(stage.losses().num_unwritten_chunks() == 0);
}

TEST_CASE("items that only 0.7 knows are not in 0.6 demos and not counted") {
    Items items{{{9, 5}, std::vector<std::int32_t>(22, 5)}};
    items[{23, 5}] = {100};     // a player_info_race
    items[{24, 0}] = {1, 2, 3}; // a game_data_race
    WorldDemoScript stage;
    stage.allow_seven_items();
    CHECK(stage.demo_of(items).front() == "snapshot 100<--1 ok 1");
    CHECK(describe_losses(stage.losses()).empty());
}

TEST_CASE("a snapshot in a demo has at most the size limit of servers") {
    Items large;
    for (std::uint16_t i = 0; i < 500; ++i) {
        large[{60, i}] = std::vector<std::int32_t>(100, i); // an item of a mod
    }
    large[{9, 5}] = std::vector<std::int32_t>(22, 5);
    WorldDemoScript stage;
    stage.demo_of(large);
    CHECK(stage.losses().items_over_limit > 0);
    CHECK(stage.losses().ticks_over_limit == 2);
}

TEST_CASE("the player items of 0.7 demos fit into each snapshot") {
    Items many;
    for (std::uint16_t i = 0; i < 1100; ++i) {
        many[{4, i}] = {i, i, 0}; // pickups
    }
    record::Roster roster;
    constexpr std::uint16_t kPlayers = 64;
    for (std::uint16_t client = 0; client < kPlayers; ++client) {
        roster.set_player(client, {});
    }
    roster.set_player(200, {}); // not a valid client id in 0.7
    WorldDemoScript stage;
    stage.write_seven_world(100, many, roster);
    stage.write_seven_world(102, many, roster);
    Items large;
    for (std::uint16_t i = 0; i < 600; ++i) {
        large[{60, i}] = std::vector<std::int32_t>(24, i); // an item of a mod
    }
    stage.write_seven_world(104, large, roster);
    const auto lines = stage.end_only_demo();
    CHECK(lines.size() == 3);
    CHECK(lines.front() == "snapshot 100<--1 ok 1024");
    CHECK(stage.losses().items_over_limit ==
          2 * (1100 + kPlayers - 1024) + 600 - (65536 - 8 - 64 * 240) / 104);
    CHECK(stage.losses().num_unwritten_chunks() == 0);
}

TEST_CASE("players with made-up ids get free ids in demos, and others are counted") {
    constexpr std::uint16_t kPlayers = 20;
    for (const int version : {4, 5}) {
        CAPTURE(version);
        Items items;
        for (std::uint16_t i = 0; i < kPlayers; ++i) {
            const auto client = static_cast<std::uint16_t>(128 + i);
            items[{9, client}] = std::vector<std::int32_t>(22, 1);
            items[{10, client}] = {0, client, 0, 0, 0};
        }
        WorldDemoScript stage{version};
        const std::uint64_t there = version == 4 ? 16 : kPlayers;
        CHECK(stage.demo_of(items).front() == "snapshot 100<--1 ok " + std::to_string(2 * there));
        CHECK(stage.losses().items_without_id == 2 * 2 * (kPlayers - there));
        CHECK(stage.losses().ticks_without_id == (version == 4 ? 2 : 0));
        CHECK(stage.losses().items_over_limit == 0);
    }
}

TEST_CASE("messages are in the demo of their run with the demo's client ids") {
    Items items = kSome;
    items[{9, 128}] = std::vector<std::int32_t>(22, 1);
    WorldDemoScript stage;
    stage.write_chat(1, "before the first world");
    stage.write_world(100, items);
    stage.write_chat(-1, "the server");
    stage.write_chat(1, "hi");
    stage.write_world(102, items);
    stage.write_world(103, items, 1, false); // only some clients got this tick
    stage.write_chat(128, "made up");
    stage.write_chat(200, "not there");
    stage.write_chat(1, "another run", 2);
    stage.write_message("sv_kill_msg", {{.name = "killer", .integer = 128},
                                        {.name = "victim", .integer = 1},
                                        {.name = "weapon", .integer = 3},
                                        {.name = "mode_special"}});
    stage.write_race_finish();
    stage.write_world(104, items);
    stage.end_only_demo();
    CHECK(stage.said == std::vector<std::string>{"sv_chat 0 -1 the server", "sv_chat 0 1 hi",
                                                 "sv_chat 0 63 made up", "sv_kill_msg 63 1 3 0",
                                                 "sv_race_finish 1 500 0 0 0"});
    CHECK(stage.losses().messages_without_id == 1);
}

TEST_CASE("demos for vanilla contain only messages that vanilla knows") {
    Items items = kSome;
    items[{9, 20}] = std::vector<std::int32_t>(22, 1);
    WorldDemoScript stage{4};
    stage.write_world(100, items);
    stage.write_chat(20, "hi");
    stage.write_race_finish();
    stage.write_world(102, items);
    stage.end_only_demo();
    CHECK(stage.said == std::vector<std::string>{"sv_chat 0 15 hi"});
}

namespace tw::test {

namespace {

using Ids = std::vector<std::uint16_t>;

/// A world with a tee of each of these clients; each hooks the one before it.
struct HookingTees {
    Items all;
    snapshot::Snapshot items;
    record::ItemTypes types;
    record::SnapshotRecord world;

    explicit HookingTees(const Ids& clients) {
        std::int32_t before = -1;
        for (const std::uint16_t client : clients) {
            std::vector<std::int32_t> tee(22);
            tee[1] = client; // the position shows which client's tee it is
            tee[8] = before;
            all[{snapshot::kCharacterType, client}] = tee;
            all[{snapshot::kPlayerInfoType, client}] = {0, client, 0, 0, 0};
            all[{snapshot::kClientInfoType, client}] = std::vector<std::int32_t>(17);
            before = client;
        }
        all[{4, 200}] = {1, 2, 0, 0}; // a pickup, whose id is not a client id
        rebuild_world();
    }

    void add(snapshot::ItemKey key, const std::vector<std::int32_t>& data) {
        all[key] = data;
        rebuild_world();
    }

    void rebuild_world() {
        items = to_snapshot(all);
        world = {.tick = 100, .rebuilt = true, .items = items.view(), .types = &types};
    }
};

/// Returns "client:id hooks id" for each tee; the tee's position contains the client.
std::vector<std::string> hook_texts(const snapshot::SnapshotView& items) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].key.type == snapshot::kCharacterType) {
            found.push_back(std::to_string(items[i].data[1]) + ":" +
                            std::to_string(items[i].key.id) + " hooks " +
                            std::to_string(items[i].data[8]));
        }
    }
    return found;
}

Ids client_id_range(std::uint16_t first, std::uint16_t last) {
    Ids ids(last - first + 1U);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
}

} // namespace

TEST_CASE("players with made-up ids get ids that clients draw, and keep them") {
    demo::DemoClientIds players{false};
    const auto shown = [&](const Ids& clients) {
        const HookingTees crowd{clients};
        const auto placed = players.assign_ids(crowd.world);
        CHECK(placed.num_left_out == 0);
        CHECK(placed.items.size() == 3 * clients.size() + 1);
        CHECK(placed.items.find({4, 200}));
        for (std::size_t i = 0; i < placed.items.size(); ++i) {
            if (placed.items[i].key.type == snapshot::kPlayerInfoType) {
                CHECK(placed.items[i].data[1] == placed.items[i].key.id);
            }
        }
        return hook_texts(placed.items);
    };
    using Tees = std::vector<std::string>;
    CHECK(shown({3, 100}) == Tees{"3:3 hooks -1", "100:100 hooks 3"});
    CHECK(shown({3, 128, 200}) == Tees{"3:3 hooks -1", "200:62 hooks 63", "128:63 hooks 3"});
    CHECK(shown({3, 200}) == Tees{"3:3 hooks -1", "200:62 hooks 3"});
    CHECK(shown({3, 129, 200}) == Tees{"3:3 hooks -1", "129:61 hooks 3", "200:62 hooks 61"});
    // The server now uses that id for a player.
    CHECK(shown({62, 200}) == Tees{"200:60 hooks 62", "62:62 hooks -1"});
    CHECK(shown({3, 128, 129, 200}) ==
          Tees{"3:3 hooks -1", "200:60 hooks 61", "129:61 hooks 63", "128:63 hooks 3"});
}

TEST_CASE(
    "an absent player's id is reassigned if none is free, and players without an id are left out") {
    demo::DemoClientIds players{false};
    for (const std::uint16_t first : Ids{128, 192, 256}) {
        const HookingTees crowd{client_id_range(first, static_cast<std::uint16_t>(first + 63))};
        CHECK(players.assign_ids(crowd.world).num_left_out == 0);
    }
    const HookingTees crowd{client_id_range(128, 192)};
    const auto placed = players.assign_ids(crowd.world);
    CHECK(placed.num_left_out == 3);
    CHECK(placed.items.size() == 3 * 64 + 1);
}

TEST_CASE("in demos for vanilla, players with high ids get free ids below 16") {
    demo::DemoClientIds players{true};
    const HookingTees crowd{{2, 20, 128}};
    CHECK(hook_texts(players.assign_ids(crowd.world).items) ==
          std::vector<std::string>{"2:2 hooks -1", "128:14 hooks 15", "20:15 hooks 2"});
    const HookingTees full{client_id_range(0, 16)};
    CHECK(players.assign_ids(full.world).num_left_out == 3);
}

TEST_CASE("flag carriers and owners of projectiles have the demo's client ids") {
    struct Row {
        std::string_view name;
        snapshot::ItemKey key;
        std::vector<std::int32_t> world;
        std::vector<std::int32_t> demo;
    };

    // Client 128 has id 15 in the demo, client 3 keeps its id, and no client has the id 40.
    const Row rows[] = {
        {"carriers", {7, 0}, {1, 2, 128, 3}, {1, 2, 15, 3}},
        {"a carrier who is not there is somebody", {7, 0}, {1, 2, 40, -1}, {1, 2, -1, -1}},
        {"flags at their stand, and missing", {7, 0}, {1, 2, -2, -3}, {1, 2, -2, -3}},
        {"an old projectile",
         {2, 9},
         {100, 200, 5, 0x1200 | 128, 1, 7},
         {100, 200, 5, 0x1200 | 15, 1, 7}},
        {"an old projectile of somebody who is not there",
         {2, 9},
         {100, 200, 5, 0x200 | 40, 1, 7},
         {100, 200, 5, 0x300, 1, 7}},
        {"an old projectile of nobody",
         {2, 9},
         {100, 200, 5, 0x300 | 128, 1, 7},
         {100, 200, 5, 0x300 | 128, 1, 7}},
        {"a projectile of vanilla", {2, 9}, {100, 200, 5, 128, 1, 7}, {100, 200, 5, 128, 1, 7}},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        demo::DemoClientIds players{true};
        HookingTees crowd{{3, 128}};
        crowd.add(row.key, row.world);
        const auto placed = players.assign_ids(crowd.world);
        const auto at = placed.items.find(row.key);
        REQUIRE(at);
        const auto data = placed.items[*at].data;
        CHECK(std::vector<std::int32_t>{data.begin(), data.end()} == row.demo);
    }
}

TEST_CASE("in 0.7 demos, names have the demo's client ids") {
    demo::DemoClientIds players{false};
    snapshot::Snapshot items;
    items.append({snapshot::kSevenCharacterType, 70}, std::vector<std::int32_t>(22));
    record::ItemTypes types;
    types.start_connection(snapshot::Dialect::seven);
    record::Roster roster;
    roster.set_player(5, {.team = 1});
    roster.set_player(70, {.team = 2});
    const record::SnapshotRecord world{
        .rebuilt = true, .items = items.view(), .types = &types, .roster = &roster};
    const auto placed = players.assign_ids(world);
    CHECK(placed.items.find({snapshot::kSevenCharacterType, 63}));
    REQUIRE(placed.roster->find(63) != nullptr);
    CHECK(placed.roster->find(63)->team == 2);
    CHECK(placed.roster->find(5)->team == 1);
    CHECK(placed.roster->find(70) == nullptr);
}

} // namespace tw::test
