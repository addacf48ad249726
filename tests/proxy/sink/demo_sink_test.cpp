// Covers: proxy/sink/demo_sink.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/sink/demo_sink.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"
#include "tests/support/full_disk.h"
#include "tests/support/record_log.h"
#include "tests/support/session_script.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using sink::DemoSink;
using sink::FileQueue;
using snapshot::kNoBase;
using test::Bytes;
using test::Items;
using test::message;

namespace {

constexpr auto kS2c = wire::Direction::s2c;
const Items kFirst{{{4, 1}, {10, 20, 0, 0}}, {{10, 2}, {1, 2, 0, 0, 30}}};
const Items kSecond{{{4, 1}, {11, 20, 0, 0}}};

/// What a demo holds, as records.
std::vector<std::string> lines_of(const std::filesystem::path& demo) {
    test::NoMaps maps;
    test::RecordLog log;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, log, numbers};
    capture::CaptureRun run{{demo.string()}, {}};
    run.read(inspector);
    return log.lines({"map", "message", "snapshot", "finding"});
}

/// A session whose demos go to a folder.
class Stage {
  public:
    explicit Stage(sink::DemoOptions options = {}, std::size_t queue = 1 << 20)
        : files_{FileQueue::WhenFull::refuse, queue} {
        options.folder = folder_.path();
        demos_.emplace(options, files_);
        script_.emplace(inspect::Options{}, *demos_);
        script_->join_ddnet();
    }

    test::SessionScript& script() { return *script_; }

    DemoSink& demos() { return *demos_; }

    FileQueue& queue() { return files_; }

    std::vector<std::filesystem::path> end() {
        demos_->finish();
        files_.finish();
        return folder_.files();
    }

  private:
    test::FilledFolder folder_;
    FileQueue files_;
    std::optional<DemoSink> demos_;
    std::optional<test::SessionScript> script_;
};

sink::demo::Header header_of(const std::filesystem::path& path) {
    const capture::DemoFile file{path.string()};
    const auto head = capture::decode_demo_head(file.bytes());
    REQUIRE(head.has_value());
    return head->header;
}

} // namespace

TEST_CASE("a session becomes a demo of all it was shown") {
    Stage stage;
    stage.script().enter_game("dm1");
    stage.script().send(kS2c, message("sv_motd").string("welcome"));
    stage.script().snap(10, kNoBase, kFirst);
    stage.script().snap(12, 10, kSecond);
    stage.script().send(kS2c, message("sv_broadcast").string("go"));
    stage.script().snap(90, 12, kFirst);
    stage.script().close("idle");
    const auto files = stage.end();
    REQUIRE(files.size() == 1);
    CHECK(files[0].filename().string().ends_with("Z-s1-dm1.demo"));
    CHECK(lines_of(files[0]) ==
          std::vector<std::string>{"map dm1 none", "finding map.not_found dm1",
                                   "snapshot 10<--1 ok 2", "message s2c sv_motd #0",
                                   "snapshot 12<-10 ok 1", "message s2c sv_broadcast #0",
                                   "snapshot 90<-12 ok 2"});
    const auto header = header_of(files[0]);
    CHECK(header.version == 5); // nobody said which hash the map has
    CHECK(header.length == 1);
    CHECK(header.map_name == "dm1");
    CHECK(stage.demos().losses().unwritten() == 0);
}

TEST_CASE("a map in reach is in the demo, with its hash") {
    Stage stage;
    auto& answer = stage.script().maps().answer;
    answer.status = inspect::MapStatus::not_found;
    answer.sha256.emplace().fill(9);
    answer.file = std::make_shared<const Bytes>(test::bytes_of({1, 2, 3}));
    stage.script().enter_game("dm1");
    stage.script().snap(10, kNoBase, kFirst);
    stage.script().snap(12, 10, kSecond);
    const auto files = stage.end();
    REQUIRE(files.size() == 1);
    const auto header = header_of(files[0]);
    CHECK(header.version == 6);
    CHECK(header.sha256 == answer.sha256);
}

TEST_CASE("a session whose map is not known has no demo, and is counted") {
    Stage stage;
    stage.script().snap(10, kNoBase, kFirst);
    stage.script().snap(12, 10, kSecond);
    CHECK(stage.demos().losses().mapless == 1);
    CHECK(stage.demos().losses().unwritten() == 0);
    stage.script().enter_game("dm1");
    stage.script().snap(5, kNoBase, kSecond);
    stage.script().snap(7, 5, kFirst);
    const auto files = stage.end();
    REQUIRE(files.size() == 1);
    CHECK(header_of(files[0]).map_name == "dm1");
    CHECK(stage.demos().losses().mapless == 1);
}

TEST_CASE("each map has a demo of its own, and none is empty") {
    Stage stage;
    stage.script().enter_game("dm1");
    stage.script().snap(10, kNoBase, kFirst);
    stage.script().snap(12, 10, kSecond);
    stage.script().enter_game("../ctf1");
    stage.script().send(kS2c, message("sv_motd").string("on ctf1"));
    stage.script().snap(5, kNoBase, kSecond);
    stage.script().snap(7, 5, kFirst);
    stage.script().enter_game("dm2");
    stage.script().snap(5, kNoBase, kSecond); // no player plays a single tick
    const auto files = stage.end();
    CHECK(stage.demos().losses().single == 1);
    REQUIRE(files.size() == 2);
    const bool first = files[0].filename().string().ends_with("dm1.demo");
    const auto& other = files[first ? 1 : 0];
    CHECK(other.filename().string().ends_with("_._ctf1.demo"));
    const auto lines = lines_of(other);
    CHECK(std::ranges::count(lines, "message s2c sv_motd #0") == 1);
    CHECK(lines.back() == "snapshot 7<-5 ok 2");
    CHECK(header_of(other).map_name == "_._ctf1");
}

TEST_CASE("findings of warning or worse are markers") {
    Stage stage;
    stage.script().enter_game("dm1");
    stage.script().snap(100, kNoBase, kFirst);
    stage.script().snap(102, 100, kSecond);
    stage.script().send(kS2c, {test::vital(message("sv_emoticon").number(1).number(99))}); // info
    stage.script().snap(180, 102, kFirst);
    stage.script().send(kS2c, {test::vital(message("sv_emoticon").number(1))}); // warning
    const auto files = stage.end();
    REQUIRE(files.size() == 1);
    CHECK(header_of(files[0]).markers == std::vector<std::int32_t>{180});
}

TEST_CASE("a recorder that is killed leaves a demo that plays") {
    test::FilledFolder folder;
    FileQueue files;
    DemoSink demos{{.folder = folder.path()}, files};
    test::SessionScript script{{}, demos};
    script.join_ddnet();
    script.enter_game("dm1");
    snapshot::Tick base = kNoBase;
    for (snapshot::Tick tick = 10; tick < 110; tick += 2) {
        script.snap(tick, base, tick % 4 == 0 ? kFirst : kSecond);
        base = tick;
    }
    files.finish(); // and nobody ends the demo
    const auto made = folder.files();
    REQUIRE(made.size() == 1);
    const auto lines = lines_of(made[0]);
    CHECK(lines.size() > 2 + 30); // what came half a second before is not there yet
    CHECK(std::ranges::none_of(
        lines, [](const std::string& line) { return line.starts_with("finding demo"); }));
    CHECK(header_of(made[0]).length == 0);
}

TEST_CASE("messages with secrets are only there when they are asked for") {
    for (const bool show : {false, true}) {
        CAPTURE(show);
        Stage stage{{.folder = {}, .show_secrets = show}};
        stage.script().enter_game("dm1");
        stage.script().snap(10, kNoBase, kFirst);
        stage.script().snap(12, 10, kSecond);
        constexpr std::int32_t kWhisper = 3;
        stage.script().send(kS2c, message("sv_chat").number(kWhisper).number(1).string("psst"));
        stage.script().send(kS2c, message("sv_chat").number(0).number(1).string("hello"));
        const auto files = stage.end();
        REQUIRE(files.size() == 1);
        std::ifstream file{files[0], std::ios::binary};
        const auto lines = lines_of(files[0]);
        CHECK(std::ranges::count(lines, "message s2c sv_chat #0") == (show ? 2 : 1));
    }
}

TEST_CASE("a demo for vanilla has nothing that it does not know") {
    Stage stage{{.folder = {}, .version = 4}};
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
    stage.script().snap(12, 10, kSecond);
    stage.script().send(kS2c, message("sv_emoticon").number(15).number(1));
    stage.script().send(kS2c, message("sv_emoticon").number(16).number(1));
    const auto files = stage.end();
    REQUIRE(files.size() == 1);
    CHECK(header_of(files[0]).version == 4);
    const auto lines = lines_of(files[0]);
    CHECK(std::ranges::count(lines, "snapshot 10<--1 ok 4") == 1);
    CHECK(std::ranges::count(lines, "message s2c sv_emoticon #0") == 1);
}

TEST_CASE("a demo for vanilla names no client that it has no room for") {
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
        sink::keep_vanilla_items(test::to_snapshot({{{row.type, 1}, data}}).view(), kept);
        data[row.field] = row.written;
        CHECK(kept == test::to_snapshot({{{row.type, 1}, data}}));
    }
}

TEST_CASE("a queue that is full ends a demo, and another begins later") {
    Stage stage{{}, 600}; // for a head and little more
    stage.script().enter_game("dm1");
    snapshot::Tick base = kNoBase;
    for (snapshot::Tick tick = 10; tick < 2000; tick += 2) {
        stage.script().snap(tick, base, tick % 4 == 0 ? kFirst : kSecond);
        base = tick;
    }
    const auto files = stage.end();
    for (const auto& file : files) {
        const auto lines = lines_of(file);
        CHECK(std::ranges::none_of(
            lines, [](const std::string& line) { return line.starts_with("finding demo"); }));
    }
}

TEST_CASE("a disk that was full for a while ends a demo whole, and another begins") {
    Stage stage;
    stage.script().enter_game("dm1");
    snapshot::Tick base = kNoBase;
    const auto play_until = [&](snapshot::Tick end) {
        for (snapshot::Tick tick = std::max(10, base + 2); tick < end; tick += 2) {
            stage.script().snap(tick, base, tick % 4 == 0 ? kFirst : kSecond);
            base = tick;
        }
    };
    play_until(200);
    while (stage.queue().queued_bytes() != 0) {
        std::this_thread::yield();
    }
    {
        const test::FullDisk disk;
        play_until(230);
        while (stage.queue().lost() == 0) {
            std::this_thread::yield();
        }
        play_until(300);
    }
    CHECK(stage.demos().losses().unwritten_snapshots > 10);
    play_until(1000);
    const auto files = stage.end();
    REQUIRE(files.size() == 2);
    std::vector<std::string> last;
    for (const auto& file : files) {
        const auto lines = lines_of(file);
        CHECK(std::ranges::none_of(
            lines, [](const std::string& line) { return line.starts_with("finding demo"); }));
        last.push_back(lines.back().substr(0, lines.back().find('<')));
    }
    std::ranges::sort(last);
    CHECK(last[0] <= "snapshot 200");
    CHECK(last[1] == "snapshot 998");
}

TEST_CASE("texts become names of files that stay in their folder") {
    CHECK(sink::safe_file_name("Kobra 4") == "Kobra_4");
    CHECK(sink::safe_file_name("../../etc/passwd") == "_._.._etc_passwd");
    CHECK(sink::safe_file_name("") == "unknown");
    CHECK(sink::safe_file_name(std::string(200, 'a')).size() == 64);
    CHECK(sink::safe_file_name("\xc3\xa4.") == "__.");
}

using namespace tw::sink;

TEST_CASE("each kind of loss has its sentence, and no loss has none") {
    CHECK(loss_sentences(DemoLosses{}).empty());
    DemoLosses losses{.late = 2,
                      .large_snapshots = 1,
                      .unwritten_snapshots = 8,
                      .large_messages = 1,
                      .early_messages = 2,
                      .mapless = 4};
    losses.merge({.late = 5, .large_snapshots = 1, .single = 6});
    CHECK(
        loss_sentences(losses) ==
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
                     .worlds = 5,
                     .messages_without_id = 6,
                     .messages_over_limit = 7});
    CHECK(loss_sentences(of_worlds) ==
          std::vector<std::string>{"left out 1 item in 1 tick: more than a snapshot holds",
                                   "left out 3 items in 4 ticks: no id left for their players",
                                   "left out 5 worlds: too many servers at once",
                                   "left out 6 messages: no id left for their players",
                                   "left out 7 messages: too many at once"});
}
