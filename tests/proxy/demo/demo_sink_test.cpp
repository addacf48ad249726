// Demos of 0.7 connections: reading a demo back gives what was decoded from the traffic.
#include "proxy/demo/demo_reader.h"
#include "proxy/demo/demo_sink.h"
#include "proxy/demo/world_demo.h"
#include "proxy/world/server_worlds.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/full_disk.h"
#include "tests/support/inspect_file.h"
#include "tests/support/program.h"
#include "tests/support/record_log.h"
#include "tests/support/record_sink.h"
#include "tests/support/session_script.h"

#include <thread>

using namespace tw;
using demo::DemoSink;
using snapshot::kNoBase;
using store::FileQueue;
using test::Bytes;
using test::Items;
using test::kMovedPickup;
using test::kPickupAndPlayer;
using test::kS2c;
using test::message;

namespace {

/// Returns the records of a demo as lines.
std::vector<std::string> record_lines_of(const std::filesystem::path& demo) {
    test::RecordLog log;
    test::inspect_file(demo, log);
    return log.lines({"map", "message", "snapshot", "finding"});
}

/// A script of a session whose demos are written to a folder.
class SessionDemoScript {
  public:
    explicit SessionDemoScript(demo::DemoOptions options = {}, std::size_t queue = 1 << 20)
        : files_{FileQueue::FullQueuePolicy::refuse, queue} {
        options.folder = folder_.path();
        demos_.emplace(options, files_);
        script_.emplace(inspect::Options{}, *demos_);
        script_->join_ddnet();
    }

    test::SessionScript& script() { return *script_; }

    /// Sends a snapshot of every second tick, in which something changes.
    void play_until(snapshot::Tick end) {
        for (snapshot::Tick tick = std::max(10, base_ + 2); tick < end; tick += 2) {
            script_->snap(tick, base_, tick % 4 == 0 ? kPickupAndPlayer : kMovedPickup);
            base_ = tick;
        }
    }

    /// Enters a game and sends two snapshots.
    void play_two_ticks(std::string_view map = "dm1") {
        script_->enter_game(map);
        script_->snap(10, kNoBase, kPickupAndPlayer);
        script_->snap(12, 10, kMovedPickup);
    }

    DemoSink& demos() { return *demos_; }

    FileQueue& queue() { return files_; }

    [[nodiscard]] std::vector<std::filesystem::path> files() const { return folder_.files(); }

    std::vector<std::filesystem::path> end() {
        demos_->end_demos();
        files_.finish_writing();
        return files();
    }

    std::filesystem::path end_only_demo() {
        const auto files = end();
        REQUIRE(files.size() == 1);
        return files[0];
    }

  private:
    test::TemporaryFolder folder_;
    FileQueue files_;
    std::optional<DemoSink> demos_;
    std::optional<test::SessionScript> script_;
    snapshot::Tick base_ = kNoBase;
};

bool is_playable(const std::filesystem::path& demo) {
    return std::ranges::none_of(record_lines_of(demo), [](const std::string& line) {
        return line.starts_with("finding demo");
    });
}

demo::DemoHeader read_demo_header(const std::filesystem::path& path) {
    const demo::DemoFile file{path.string()};
    const auto head = demo::decode_demo_parts(file.bytes());
    REQUIRE(head.has_value());
    return head->header;
}

} // namespace

TEST_CASE("a session becomes a demo with all its snapshots and messages") {
    SessionDemoScript stage;
    stage.script().enter_game("dm1");
    stage.script().send(kS2c, message("sv_motd").string("welcome"));
    stage.script().snap(10, kNoBase, kPickupAndPlayer);
    stage.script().snap(12, 10, kMovedPickup);
    stage.script().send(kS2c, message("sv_broadcast").string("go"));
    stage.script().snap(90, 12, kPickupAndPlayer);
    stage.script().close("idle");
    const auto demo = stage.end_only_demo();
    CHECK(demo.filename().string().ends_with("Z-s1-dm1.demo"));
    CHECK(record_lines_of(demo) ==
          std::vector<std::string>{"map dm1 none", "finding map.not_found dm1",
                                   "snapshot 10<--1 ok 2", "message s2c sv_motd #0",
                                   "snapshot 12<-10 ok 1", "message s2c sv_broadcast #0",
                                   "snapshot 90<-12 ok 2"});
    const auto header = read_demo_header(demo);
    CHECK(header.version == 5); // the hash of the map is unknown
    CHECK(header.length == 1);
    CHECK(header.map_name == "dm1");
    CHECK(stage.demos().losses().num_unwritten_chunks() == 0);
}

TEST_CASE("a known map is embedded in the demo with its hash") {
    SessionDemoScript stage;
    auto& answer = stage.script().maps().answer;
    answer.status = inspect::MapStatus::not_found;
    answer.sha256.emplace().fill(9);
    answer.file_bytes = std::make_shared<const Bytes>(test::bytes_of({1, 2, 3}));
    stage.play_two_ticks();
    const auto demo = stage.end_only_demo();
    const auto header = read_demo_header(demo);
    CHECK(header.version == 6);
    CHECK(header.sha256 == answer.sha256);
}

TEST_CASE("a session with an unknown map has no demo and is counted") {
    SessionDemoScript stage;
    stage.script().snap(10, kNoBase, kPickupAndPlayer);
    stage.script().snap(12, 10, kMovedPickup);
    CHECK(stage.demos().losses().sessions_without_map == 1);
    CHECK(stage.demos().losses().num_unwritten_chunks() == 0);
    stage.script().enter_game("dm1");
    stage.script().snap(5, kNoBase, kMovedPickup);
    stage.script().snap(7, 5, kPickupAndPlayer);
    const auto demo = stage.end_only_demo();
    CHECK(read_demo_header(demo).map_name == "dm1");
    CHECK(stage.demos().losses().sessions_without_map == 1);
}

TEST_CASE("each map gets a separate demo, and no demo is empty") {
    SessionDemoScript stage;
    stage.play_two_ticks();
    stage.script().enter_game("../ctf1");
    stage.script().send(kS2c, message("sv_motd").string("on ctf1"));
    stage.script().snap(5, kNoBase, kMovedPickup);
    stage.script().snap(7, 5, kPickupAndPlayer);
    stage.script().enter_game("dm2");
    stage.script().snap(5, kNoBase, kMovedPickup); // clients cannot play a demo with one snapshot
    const auto files = stage.end();
    CHECK(stage.demos().losses().single_snapshot_demos == 1);
    REQUIRE(files.size() == 2);
    const bool first = files[0].filename().string().ends_with("dm1.demo");
    const auto& other = files[first ? 1 : 0];
    CHECK(other.filename().string().ends_with("_._ctf1.demo"));
    const auto lines = record_lines_of(other);
    CHECK(std::ranges::count(lines, "message s2c sv_motd #0") == 1);
    CHECK(lines.back() == "snapshot 7<-5 ok 2");
    CHECK(read_demo_header(other).map_name == "_._ctf1");
}

TEST_CASE("findings of warning or worse are markers") {
    SessionDemoScript stage;
    stage.script().enter_game("dm1");
    stage.script().snap(100, kNoBase, kPickupAndPlayer);
    stage.script().snap(102, 100, kMovedPickup);
    stage.script().send(
        kS2c,
        {test::vital(message("sv_emoticon").number(1).number(99))}); // a finding of severity info
    stage.script().snap(180, 102, kPickupAndPlayer);
    stage.script().send(
        kS2c, {test::vital(message("sv_emoticon").number(1))}); // a finding of severity warning
    const auto demo = stage.end_only_demo();
    CHECK(read_demo_header(demo).markers == std::vector<std::int32_t>{180});
}

TEST_CASE("a killed recorder leaves a playable demo") {
    SessionDemoScript stage;
    stage.script().enter_game("dm1");
    stage.play_until(110);
    stage.queue().finish_writing(); // the demo is not ended
    const auto made = stage.files();
    REQUIRE(made.size() == 1);
    CHECK(record_lines_of(made[0]).size() > 2 + 30); // the last half second is not written yet
    CHECK(is_playable(made[0]));
    CHECK(read_demo_header(made[0]).length == 0);
}

TEST_CASE("demos contain messages with secrets only on request") {
    for (const bool show : {false, true}) {
        CAPTURE(show);
        SessionDemoScript stage{{.folder = {}, .show_secrets = show}};
        stage.play_two_ticks();
        constexpr std::int32_t kWhisper = 3;
        stage.script().send(kS2c, message("sv_chat").number(kWhisper).number(1).string("psst"));
        stage.script().send(kS2c, message("sv_chat").number(0).number(1).string("hello"));
        const auto demo = stage.end_only_demo();
        const auto lines = record_lines_of(demo);
        CHECK(std::ranges::count(lines, "message s2c sv_chat #0") == (show ? 2 : 1));
    }
}

TEST_CASE("a demo for vanilla contains only items and messages of vanilla") {
    SessionDemoScript stage{{.folder = {}, .version = 4}};
    stage.script().enter_game("dm1");
    const std::vector<std::int32_t> info(5, 0);
    const Items items{{{0, 0x7fff}, {1, 2, 3, 4}},
                      {{4, 1}, {10, 20, 0, 0}},
                      {{9, 15}, std::vector<std::int32_t>(22, 0)},
                      {{9, 16}, std::vector<std::int32_t>(22, 0)},
                      {{10, 0}, {0, 3, 0, 0, 0}},
                      {{10, 1}, {0, 16, 0, 0, 0}},
                      {{10, 17}, {0, 3, 0, 0, 0}},
                      {{11, 15}, std::vector<std::int32_t>(17, 0)},
                      {{11, 16}, std::vector<std::int32_t>(17, 0)},
                      {{0x7fff, 1}, {7}}};
    stage.script().snap(10, kNoBase, items);
    stage.script().snap(12, 10, kMovedPickup);
    stage.script().send(kS2c, message("sv_emoticon").number(15).number(1));
    stage.script().send(kS2c, message("sv_emoticon").number(16).number(1));
    const auto demo = stage.end_only_demo();
    CHECK(read_demo_header(demo).version == 4);
    const auto lines = record_lines_of(demo);
    CHECK(std::ranges::count(lines, "snapshot 10<--1 ok 4") == 1);
    CHECK(std::ranges::count(lines, "message s2c sv_emoticon #0") == 1);
}

TEST_CASE("a demo for vanilla contains no client id that vanilla cannot store") {
    struct Row {
        const char* name;
        std::uint16_t type;
        std::size_t field;
        std::int32_t said;
        std::int32_t written;
    };

    const Row rows[] = {
        {"hooked by a core", 8, 8, 16, -1},        {"hooked", 9, 8, 63, -1},
        {"hooked, and known", 9, 8, 15, 15},       {"nobody hooked", 9, 8, -1, -1},
        {"carrier of the red flag", 7, 2, 16, -1}, {"carrier of the blue flag", 7, 3, 127, -1},
        {"known carrier", 7, 3, 15, 15},           {"flag at its stand", 7, 2, -2, -2},
        {"flag that is missing", 7, 2, -3, -3},    {"watched", 12, 0, 16, -1},
        {"watched, and known", 12, 0, 0, 0},       {"another field", 9, 1, 2000, 2000},
        {"another one of flags", 7, 0, 99, 99},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::vector<std::int32_t> data(snapshot::kAgreedSizes[row.type]);
        data[row.field] = row.said;
        snapshot::Snapshot kept;
        demo::copy_vanilla_items(test::to_snapshot({{{row.type, 1}, data}}).view(), kept);
        data[row.field] = row.written;
        CHECK(kept == test::to_snapshot({{{row.type, 1}, data}}));
    }
}

TEST_CASE("a full queue ends a demo, and another begins later") {
    SessionDemoScript stage{{}, 600}; // space for a header and little more
    stage.script().enter_game("dm1");
    stage.play_until(2000);
    CHECK(std::ranges::all_of(stage.end(), is_playable));
}

TEST_CASE("a full disk ends a demo, which stays playable, and another begins later") {
    SessionDemoScript stage;
    stage.script().enter_game("dm1");
    stage.play_until(200);
    while (stage.queue().queued_bytes() != 0) {
        std::this_thread::yield();
    }
    {
        const test::FullDisk disk;
        stage.play_until(230);
        while (stage.queue().num_lost_blocks() == 0) {
            std::this_thread::yield();
        }
        stage.play_until(300);
    }
    CHECK(stage.demos().losses().unwritten_snapshots > 10);
    stage.play_until(1000);
    const auto files = stage.end();
    REQUIRE(files.size() == 2);
    std::vector<std::string> last;
    for (const auto& file : files) {
        CHECK(is_playable(file));
        const auto lines = record_lines_of(file);
        last.push_back(lines.back().substr(0, lines.back().find('<')));
    }
    std::ranges::sort(last);
    CHECK(last[0] <= "snapshot 200");
    CHECK(last[1] == "snapshot 998");
}

TEST_CASE("texts become file names that cannot leave their folder") {
    CHECK(demo::safe_file_name("Kobra 4") == "Kobra_4");
    CHECK(demo::safe_file_name("../../etc/passwd") == "_._.._etc_passwd");
    CHECK(demo::safe_file_name("") == "unknown");
    CHECK(demo::safe_file_name(std::string(200, 'a')).size() == 64);
    CHECK(demo::safe_file_name("\xc3\xa4.") == "__.");
}

using namespace tw::demo;

TEST_CASE("each kind of loss has its sentence, and no loss has none") {
    CHECK(describe_losses(DemoLosses{}).empty());
    DemoLosses losses{.late_snapshots = 2,
                      .large_snapshots = 1,
                      .unwritten_snapshots = 8,
                      .large_messages = 1,
                      .early_messages = 2,
                      .sessions_without_map = 4};
    losses.merge({.late_snapshots = 5, .large_snapshots = 1, .single_snapshot_demos = 6});
    CHECK(
        describe_losses(losses) ==
        std::vector<std::string>{"left out 7 snapshots that arrived after a newer one",
                                 "left out 2 snapshots: too large for a demo",
                                 "left out 8 snapshots: the disk was full or too slow",
                                 "left out 1 message: too large for a demo",
                                 "left out 2 messages: too many before the first snapshot",
                                 "4 sessions have no demo: their map is unknown",
                                 "6 sessions have no demo: they have only one snapshot of a map"});
    DemoLosses of_worlds{.items_over_limit = 1, .items_without_id = 1, .ticks_without_id = 3};
    of_worlds.merge({.ticks_over_limit = 1,
                     .items_without_id = 2,
                     .ticks_without_id = 1,
                     .worlds_over_limit = 5,
                     .messages_without_id = 6,
                     .messages_over_limit = 7});
    CHECK(describe_losses(of_worlds) ==
          std::vector<std::string>{"left out 1 item in 1 tick: more than a snapshot holds",
                                   "left out 3 items in 4 ticks: no id left for their players",
                                   "left out 5 worlds: too many servers at once",
                                   "left out 6 messages: no id left for their players",
                                   "left out 7 messages: too many at once"});
}

namespace tw::test {

namespace {

using snapshot::ItemKey;
using Ints = std::vector<std::int32_t>;
using Shown = std::map<ItemKey, Ints>;

constexpr std::uint16_t kFirstOfDemos = 13;
constexpr std::uint16_t kLastOfDemos = 15;

/// Collects the snapshots of a 0.7 session, without the items that only demos have.
class SevenSnapshots final : public TypedRecordSink<SevenSnapshots> {
  public:
    std::vector<std::pair<snapshot::Tick, Shown>> all;
    std::set<std::string> names; ///< names of the players
    int damaged = 0;

    void on(const record::FindingRecord& found) {
        const auto& info = record::finding_info(found.id);
        damaged += info.name.starts_with("demo.") || info.name.starts_with("message.") ? 1 : 0;
    }

    void on(const record::WorldRecord& world) { on(world.merged); }

    void on(const record::SnapshotRecord& it) {
        if (!it.rebuilt || it.types->dialect() != snapshot::Dialect::seven) {
            return;
        }
        Shown items;
        for (std::size_t i = 0; i < it.items.size(); ++i) {
            const auto item = it.items[i];
            if (item.key.type < kFirstOfDemos || item.key.type > kLastOfDemos) {
                items[item.key] = {item.data.begin(), item.data.end()};
            }
        }
        REQUIRE(it.roster != nullptr);
        it.roster->for_each_player(
            [&](std::uint16_t /*client*/, const record::Roster::KnownPlayer& entry) {
                std::array<char, 16> text{};
                names.emplace(text.data(), snapshot::decode_int_string(entry.name, text));
            });
        all.emplace_back(it.tick, std::move(items));
    }
};

/// Collects the snapshots of a session with all their items.
class AllItemSnapshots final : public TypedRecordSink<AllItemSnapshots> {
  public:
    void on(const record::SnapshotRecord& it) {
        Shown shown;
        for (std::size_t i = 0; i < it.items.size(); ++i) {
            const auto item = it.items[i];
            shown[item.key] = {item.data.begin(), item.data.end()};
            of_demos += item.key.type >= kFirstOfDemos && item.key.type <= kLastOfDemos ? 1 : 0;
        }
        all.emplace(it.tick, std::move(shown));
    }

    std::multiset<std::pair<snapshot::Tick, Shown>> all;
    std::size_t of_demos = 0;
};

void read_demo(const std::filesystem::path& path, record::RecordSink& into) {
    const demo::DemoHeader header = read_demo_header(path);
    CHECK(header.version == demo::kSevenDemoVersion);
    CHECK(header.net_version == demo::kSevenNetVersion);
    inspect_file(path, into);
}

void read_demos(const TemporaryFolder& folder, record::RecordSink& into) {
    for (const auto& path : folder.files()) {
        read_demo(path, into);
    }
}

/// Writes the records that `play` passes on as demos, without losses.
void film(const TemporaryFolder& folder, demo::DemoOptions options,
          const std::function<void(record::RecordSink& demos)>& play) {
    store::FileQueue files{store::FileQueue::FullQueuePolicy::wait, 1 << 20};
    options.folder = folder.path();
    demo::DemoSink demos{options, files};
    play(demos);
    demos.end_demos();
    files.finish_writing();
    CHECK(demos.losses().num_unwritten_chunks() == 0);
}

/// Returns the snapshots sorted by tick and content, because demos contain one session each.
std::multiset<std::pair<snapshot::Tick, Shown>> sorted_snapshots(const SevenSnapshots& snapshots) {
    return {snapshots.all.begin(), snapshots.all.end()};
}

} // namespace

TEST_CASE("every snapshot of a demo of 0.7 is the one that was decoded, with the players' names") {
    for (const int version : {4, 6}) {
        CAPTURE(version);
        const TemporaryFolder folder;
        SevenSnapshots decoded;
        film(folder, {.folder = {}, .version = version}, [&](record::RecordSink& demos) {
            BothSinks both{decoded, demos};
            TrafficInspector{{}, both}.play(read_traffic("teeworlds-0.7.5.pcap.gz"));
        });
        SevenSnapshots read;
        read_demos(folder, read);
        CHECK(decoded.all.size() > 1000);
        CHECK(read.damaged == 0);
        CHECK(read.all.size() == decoded.all.size());
        CHECK((sorted_snapshots(read) == sorted_snapshots(decoded)));
        CHECK(read.names == decoded.names);
        CHECK(read.names.size() > 1);
    }
}

TEST_CASE("a demo of 0.7 that is made of a demo holds what that one holds, whether or not it has "
          "messages") {
    // Without messages, only the items of demos contain the players and the state of the game.
    for (const bool messages : {true, false}) {
        CAPTURE(messages);
        const TemporaryFolder first;
        const TemporaryFolder second;
        film(first, {.folder = {}, .messages = messages}, [](record::RecordSink& demos) {
            TrafficInspector{{}, demos}.play(read_traffic("teeworlds-0.7.5.pcap.gz"));
        });
        AllItemSnapshots of_first;
        for (const auto& path : first.files()) {
            read_demo(path, of_first);
            film(second, {.folder = {}, .messages = messages},
                 [&](record::RecordSink& demos) { read_demo(path, demos); });
        }
        AllItemSnapshots of_second;
        read_demos(second, of_second);
        CHECK(of_first.of_demos > 1000);
        CHECK(of_first.all.size() > 1000);
        CHECK((of_first.all == of_second.all));
    }
}

TEST_CASE("worlds of a 0.7 server become a 0.7 demo") {
    const TemporaryFolder folder;
    SevenSnapshots worlds;
    {
        store::FileQueue files{store::FileQueue::FullQueuePolicy::wait, 1 << 20};
        demo::WorldDemo demos{{.folder = folder.path()}, files};
        BothSinks both{worlds, demos};
        world::WorldMerger merger{snapshot::ObjectSet::standard(), both};
        world::WorldInputConverter feed{merger};
        TrafficInspector inspector{{.emits_message_records = false}, feed};
        inspector.play(read_traffic("teeworlds-0.7.5.pcap.gz"));
        merger.merge_waiting_ticks();
        demos.end_demos();
        files.finish_writing();
        CHECK(describe_losses(demos.losses()).empty());
    }
    SevenSnapshots read;
    read_demos(folder, read);
    CHECK(worlds.all.size() > 500);
    CHECK(read.damaged == 0);
    CHECK((sorted_snapshots(read) == sorted_snapshots(worlds)));
    CHECK(read.names == worlds.names);
}

TEST_CASE("announced players are in each snapshot, and items that only demos have are replaced") {
    using Kind = wire::FieldValue::Kind;
    std::vector<wire::FieldValue> values{
        {.name = "client_id", .integer = 3},
        {.name = "local", .integer = 1},
        {.name = "team", .integer = 1},
        {.kind = Kind::string, .name = "name", .bytes = test::as_bytes("anna")},
        {.name = "country", .integer = 276},
        {.kind = Kind::array_begin, .name = "skin_part_names"}};
    for (int i = 0; i < 6; ++i) {
        values.push_back(
            {.kind = Kind::string, .bytes = test::as_bytes(i == 1 ? "duodonny" : "standard")});
    }
    values.push_back({.kind = Kind::end});
    values.push_back({.kind = Kind::array_begin, .name = "skin_part_colors"});
    for (int i = 0; i < 6; ++i) {
        values.push_back({.integer = 100 + i});
    }
    values.push_back({.kind = Kind::end});
    demo::SevenDemoItems items;
    const auto send = [&](std::string_view name, std::vector<wire::FieldValue> of) {
        items.on_message({.head = {.direction = wire::Direction::s2c}, .name = name, .values = of});
    };
    send("sv_client_info", values);
    for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{64}, std::int64_t{INT64_MAX}}) {
        values[0].integer = id;
        send("sv_client_info", values);
        send("sv_client_drop", {{.name = "client_id", .integer = id}});
    }
    send("sv_team", {{.name = "client_id", .integer = 3}, {.name = "team", .integer = -1}});
    send("sv_tune_params",
         {{.name = "laser_damage", .integer = 500}, // this parameter does not exist in 0.7
          {.name = "a", .integer = 1000},
          {.name = "b", .integer = 2000}});
    snapshot::Snapshot from;
    from.append({10, 3}, Ints(22));
    from.append({13, 9}, Ints(58, 7)); // servers do not send this item
    from.append({22, 1}, Ints(7));
    snapshot::Snapshot to;
    record::Roster roster;
    roster.set_player(3, {});
    roster.set_player(5, {.team = 1});
    roster.set_player(200, {});
    items.copy_with_demo_items(from.view(), &roster, to);
    std::vector<ItemKey> keys;
    for (std::size_t i = 0; i < to.view().size(); ++i) {
        keys.push_back(to.view()[i].key);
    }
    CHECK(keys == std::vector<ItemKey>{{10, 3}, {13, 3}, {13, 5}, {15, 0}, {22, 1}});
    const auto info = to.view()[1].data;
    CHECK(info[0] == 1);
    CHECK(info[1] == -1); // the player is a spectator now
    CHECK(info[9] == 276);
    std::array<char, 24> part{};
    CHECK(std::string_view{part.data(), snapshot::decode_int_string(info.subspan(16, 6), part)} ==
          "duodonny");
    CHECK(info[57] == 105);
    CHECK(to.view()[2].data[1] == 1);
    const auto other = to.view()[2].data; // a player that only the roster contains
    CHECK(snapshot::decode_int_string(other.subspan(6, 3), part) == 0); // the clan is empty
    for (std::size_t at = 10; at < 46; at += 6) {
        CHECK(snapshot::decode_int_string(other.subspan(at, 6), part) ==
              0); // each skin part is empty
    }
    CHECK(other[9] == -1); // the country is unknown
    CHECK(to.view()[3].data[0] == 1000);
    CHECK(to.view()[3].data[1] == 2000);
    send("sv_client_drop", {{.name = "client_id", .integer = 3}});
    items.copy_with_demo_items({}, nullptr, to);
    CHECK(to.view().size() == 1);
    items.clear();
    items.copy_with_demo_items({}, nullptr, to);
    CHECK(to.view().empty());
}

} // namespace tw::test
