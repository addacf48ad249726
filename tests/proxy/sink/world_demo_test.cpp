#include "proxy/capture/capture_run.h"
#include "proxy/sink/world_demo.h"
#include "proxy/wire/message.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/record_log.h"
#include "tests/support/snapshot_messages.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using test::Items;

namespace {

/// Writes down what demos hold: snapshots as others do, and messages with what they say.
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
    return {.kind = wire::FieldValue::Kind::string,
            .name = name,
            .bytes = std::as_bytes(std::span{text.data(), text.size()})};
}

/// Worlds that go to demos in a folder.
class Stage {
  public:
    explicit Stage(int version = 5) : version_{version} {}

    void show(snapshot::Tick tick, const Items& items, std::uint32_t run = 1, bool complete = true,
              std::string_view server = "a:1", record::Timestamp time = 0,
              std::string_view map_name = "dm1") {
        const auto shown = test::to_snapshot(items);
        const record::MapRecord map{.name = map_name, .crc = 7, .source = "folder"};
        record::WorldRecord world{.head = {.time = time},
                                  .tick = tick,
                                  .server = server,
                                  .run = run,
                                  .complete = complete,
                                  .map = &map};
        world.shown = {.tick = tick, .rebuilt = true, .items = shown.view(), .types = &types_};
        demos_.on_record(&world);
    }

    /// A world of a server of 0.7 alone.
    void show_seven(snapshot::Tick tick, const Items& items, const record::Roster& roster) {
        const auto shown = test::to_snapshot(items);
        const record::MapRecord map{.name = "dm1", .crc = 7, .source = "folder"};
        record::TypeNames types;
        types.begin(snapshot::Dialect::seven);
        record::WorldRecord world{.tick = tick, .server = "a:1", .run = 1, .map = &map};
        world.complete = true;
        world.shown = {.tick = tick,
                       .rebuilt = true,
                       .items = shown.view(),
                       .types = &types,
                       .roster = &roster};
        demos_.on_record(&world);
    }

    /// Worlds of 0.6 have what 0.7 alone knows from now on.
    void mix() { types_.mix(); }

    /// Something that the server told everybody, in the world shown last.
    void say(std::string_view name, const std::vector<wire::FieldValue>& values,
             std::uint32_t run = 1) {
        const auto table = wire::message_table();
        const auto spec = std::ranges::find(table, name, &wire::MessageSpec::name);
        REQUIRE(spec != table.end());
        const auto payload = wire::encode_message(*spec, values);
        demos_.on_world_message(
            {.server = "a:1", .run = run, .spec = &*spec, .values = values, .payload = payload});
    }

    void say_in_chat(std::int64_t client, std::string_view text, std::uint32_t run = 1) {
        say("sv_chat",
            {{.name = "team"},
             {.name = "client_id", .integer = client},
             text_value("message", text)},
            run);
    }

    /// What each demo holds, as records.
    std::vector<std::vector<std::string>> end() {
        demos_.finish();
        files_.finish();
        std::vector<std::vector<std::string>> demos;
        for (const auto& path : folder_.files()) {
            test::NoMaps maps;
            DemoLog log;
            std::atomic<std::uint32_t> numbers{0};
            inspect::Inspector inspector{{}, maps, log, numbers};
            capture::CaptureRun run{{path.string()}, {}};
            run.read(inspector);
            demos.push_back(log.log.lines({"snapshot"}));
            said.insert(said.end(), log.messages.begin(), log.messages.end());
            names.push_back(path.filename().string());
        }
        return demos;
    }

    [[nodiscard]] sink::WorldDemoLosses losses() const { return demos_.losses(); }

    std::vector<std::string> names;
    std::vector<std::string> said; ///< in all of them

  private:
    test::FilledFolder folder_;
    record::TypeNames types_;
    sink::FileQueue files_{sink::FileQueue::Full::wait};
    int version_;
    sink::WorldDemo demos_{{.folder = folder_.path(), .version = version_}, files_};
};

const Items kSome{{{9, 1}, std::vector<std::int32_t>(22, 1)}};

} // namespace

TEST_CASE("each run of a server becomes a demo of all its worlds") {
    Stage stage;
    for (const std::uint32_t run : {1U, 2U}) {
        for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
            stage.show(tick, kSome, run);
        }
        stage.show(111, kSome, run, false); // an odd tick that only some were sent
    }
    const auto demos = stage.end();
    REQUIRE(!demos.empty());
    CHECK(stage.names.front().find("-world-dm1") != std::string::npos);
    CHECK(demos.front().size() == 5);
    CHECK(sentences_of(stage.losses()).empty());
}

TEST_CASE("a demo begins when somebody is told of the map") {
    Stage stage;
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        stage.show(tick, kSome, 1, true, "a:1", 0, tick < 104 ? "" : "dm1");
    }
    const auto demos = stage.end();
    REQUIRE(demos.size() == 1);
    CHECK(demos.front().size() == 8);
    CHECK(stage.names.front().find("-world-dm1") != std::string::npos);
    CHECK(stage.losses().demos.mapless == 0);
}

TEST_CASE("runs of which nobody is told what map they are on have no demo, and are counted") {
    Stage stage;
    for (const std::uint32_t run : {1U, 2U, 3U}) {
        for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
            stage.show(tick, kSome, run, true, "a:1", 0, run == 2 ? "dm1" : "");
        }
    }
    CHECK(stage.losses().demos.mapless == 2);
    CHECK(stage.end().size() == 1);
}

TEST_CASE("servers whose worlds come in turn have a demo each") {
    Stage stage;
    const Items others{{{9, 2}, std::vector<std::int32_t>(22, 3)}};
    for (snapshot::Tick tick = 100; tick < 120; tick += 2) {
        stage.show(tick, kSome, 1, true, "a:1");
        stage.show(tick + 5000, others, 1, true, "b:1");
    }
    const auto demos = stage.end();
    REQUIRE(demos.size() == 2);
    CHECK(demos[0].size() == 10);
    CHECK(demos[1].size() == 10);
    CHECK(stage.losses().demos.late == 0);
    CHECK(stage.losses().demos.snapshots == 0);
}

TEST_CASE("one more server than may have demos costs the others nothing, and is counted") {
    Stage stage;
    constexpr int kServers = 65;
    for (snapshot::Tick tick = 100; tick < 110; tick += 2) {
        for (int server = 0; server < kServers; ++server) {
            stage.show(tick, kSome, 1, true, "server:" + std::to_string(server),
                       std::int64_t{tick} * 20'000'000);
        }
    }
    const auto demos = stage.end();
    CHECK(demos.size() == kServers - 1);
    CHECK(std::ranges::all_of(demos, [](const auto& lines) { return lines.size() == 5; }));
    CHECK(stage.losses().worlds == 5);
}

TEST_CASE("a server that was silent for ten seconds gives its place to another") {
    Stage stage;
    for (int server = 0; server < 100; ++server) {
        for (snapshot::Tick tick = 100; tick < 106; tick += 2) {
            stage.show(tick, kSome, 1, true, "server:" + std::to_string(server),
                       server * 1'000'000'000LL);
        }
    }
    CHECK(stage.end().size() == 100);
    CHECK(stage.losses().worlds == 0);
}

TEST_CASE("what is more than a snapshot holds is left out in order, and counted") {
    Items many;
    for (std::uint16_t i = 0; i < 1100; ++i) {
        many[{4, i}] = {i, i, 0, 0}; // pickups: entities
        many[{14, i}] = {i, i};      // explosions: events
    }
    many[{9, 5}] = std::vector<std::int32_t>(22, 5);
    many[{6, 0}] = std::vector<std::int32_t>(8, 6);
    Stage stage;
    stage.show(100, many);
    stage.show(102, many);
    const auto demos = stage.end();
    REQUIRE(demos.size() == 1);
    CHECK(demos.front().front() == "snapshot 100<--1 ok 1024");
    CHECK(stage.losses().items_over_limit == 2 * (2202 - 1024));
    CHECK(stage.losses().ticks_over_limit == 2);
    CHECK(stage.losses().items_without_id == 0);
    CHECK(stage.losses().demos.snapshots == 0);
}

TEST_CASE("what 0.6 has no place for is not in its demos, and not missing") {
    Items items{{{9, 5}, std::vector<std::int32_t>(22, 5)}};
    items[{23, 5}] = {100};     // the race of a player
    items[{24, 0}] = {1, 2, 3}; // and of the map
    Stage stage;
    stage.mix();
    stage.show(100, items);
    stage.show(102, items);
    const auto demos = stage.end();
    REQUIRE(demos.size() == 1);
    CHECK(demos.front().front() == "snapshot 100<--1 ok 1");
    CHECK(sentences_of(stage.losses()).empty());
}

TEST_CASE("a snapshot of a demo has no more bytes than a server's") {
    Items large;
    for (std::uint16_t i = 0; i < 500; ++i) {
        large[{60, i}] = std::vector<std::int32_t>(100, i); // a mod's
    }
    large[{9, 5}] = std::vector<std::int32_t>(22, 5);
    Stage stage;
    stage.show(100, large);
    stage.show(102, large);
    const auto demos = stage.end();
    REQUIRE(demos.size() == 1);
    CHECK(stage.losses().items_over_limit > 0);
    CHECK(stage.losses().ticks_over_limit == 2);
}

TEST_CASE("what a demo of 0.7 says of players in each snapshot finds room in it") {
    Items many;
    for (std::uint16_t i = 0; i < 1100; ++i) {
        many[{4, i}] = {i, i, 0}; // pickups
    }
    record::Roster roster;
    constexpr std::uint16_t kPlayers = 64;
    for (std::uint16_t client = 0; client < kPlayers; ++client) {
        roster.set_player(client, {});
    }
    roster.set_player(200, {}); // no client of 0.7
    Stage stage;
    stage.show_seven(100, many, roster);
    stage.show_seven(102, many, roster);
    Items large;
    for (std::uint16_t i = 0; i < 600; ++i) {
        large[{60, i}] = std::vector<std::int32_t>(24, i); // a mod's
    }
    stage.show_seven(104, large, roster);
    const auto demos = stage.end();
    REQUIRE(demos.size() == 1);
    CHECK(demos.front().size() == 3);
    CHECK(demos.front().front() == "snapshot 100<--1 ok 1024");
    CHECK(stage.losses().items_over_limit ==
          2 * (1100 + kPlayers - 1024) + 600 - (65536 - 8 - 64 * 240) / 104);
    CHECK(stage.losses().demos.snapshots == 0);
}

TEST_CASE(
    "demos have the players of made-up ids for whom clients have room, and count the others") {
    constexpr std::uint16_t kPlayers = 20;
    for (const int version : {4, 5}) {
        CAPTURE(version);
        Items items;
        for (std::uint16_t i = 0; i < kPlayers; ++i) {
            const auto client = static_cast<std::uint16_t>(128 + i);
            items[{9, client}] = std::vector<std::int32_t>(22, 1);
            items[{10, client}] = {0, client, 0, 0, 0};
        }
        Stage stage{version};
        stage.show(100, items);
        stage.show(102, items);
        const std::uint64_t there = version == 4 ? 16 : kPlayers;
        const auto demos = stage.end();
        REQUIRE(demos.size() == 1);
        CHECK(demos.front().front() == "snapshot 100<--1 ok " + std::to_string(2 * there));
        CHECK(stage.losses().items_without_id == 2 * 2 * (kPlayers - there));
        CHECK(stage.losses().ticks_without_id == (version == 4 ? 2 : 0));
        CHECK(stage.losses().items_over_limit == 0);
    }
}

TEST_CASE("what is said stands in the demo of its run, with the ids that its players have there") {
    Items items = kSome;
    items[{9, 128}] = std::vector<std::int32_t>(22, 1);
    Stage stage;
    stage.say_in_chat(1, "before the first world");
    stage.show(100, items);
    stage.say_in_chat(-1, "the server");
    stage.say_in_chat(1, "hi");
    stage.show(102, items);
    stage.show(103, items, 1, false); // only some were sent it
    stage.say_in_chat(128, "made up");
    stage.say_in_chat(200, "not there");
    stage.say_in_chat(1, "another run", 2);
    stage.say("sv_kill_msg", {{.name = "killer", .integer = 128},
                              {.name = "victim", .integer = 1},
                              {.name = "weapon", .integer = 3},
                              {.name = "mode_special"}});
    stage.say("sv_race_finish", {{.name = "client_id", .integer = 1},
                                 {.name = "time", .integer = 500},
                                 {.name = "diff"},
                                 {.name = "record_personal"},
                                 {.name = "record_server"}});
    stage.show(104, items);
    REQUIRE(stage.end().size() == 1);
    CHECK(stage.said == std::vector<std::string>{"sv_chat 0 -1 the server", "sv_chat 0 1 hi",
                                                 "sv_chat 0 63 made up", "sv_kill_msg 63 1 3 0",
                                                 "sv_race_finish 1 500 0 0 0"});
    CHECK(stage.losses().messages_without_id == 1);
}

TEST_CASE("demos for vanilla have what it knows of what is said") {
    Items items = kSome;
    items[{9, 20}] = std::vector<std::int32_t>(22, 1);
    Stage stage{4};
    stage.show(100, items);
    stage.say_in_chat(20, "hi");
    stage.say("sv_race_finish", {{.name = "client_id", .integer = 1},
                                 {.name = "time", .integer = 500},
                                 {.name = "diff"},
                                 {.name = "record_personal"},
                                 {.name = "record_server"}});
    stage.show(102, items);
    REQUIRE(stage.end().size() == 1);
    CHECK(stage.said == std::vector<std::string>{"sv_chat 0 15 hi"});
}
