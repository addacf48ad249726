// Demos of connections of 0.7: what is written is read back as it was decoded.
// Covers: proxy/sink/demo_sink.cpp
#include "proxy/capture/capture_run.h"
#include "proxy/capture/demo_reader.h"
#include "proxy/sink/demo_sink.h"
#include "proxy/sink/world_demo.h"
#include "proxy/world/server_worlds.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/demo_bytes.h"

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tw::test {

namespace {

using snapshot::ItemKey;
using Ints = std::vector<std::int32_t>;
using Shown = std::map<ItemKey, Ints>;

constexpr std::uint16_t kFirstOfDemos = 13;
constexpr std::uint16_t kLastOfDemos = 15;

/// Every snapshot of 0.7, without what only demos have.
class Snapshots final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        if (const auto* const* found = std::get_if<const record::FindingRecord*>(&record)) {
            const auto& info = record::finding_info((*found)->id);
            damaged += info.name.starts_with("demo.") || info.name.starts_with("message.") ? 1 : 0;
        }
        if (const auto* const* it = std::get_if<const record::SnapshotRecord*>(&record)) {
            add(**it);
        } else if (const auto* const* world = std::get_if<const record::WorldRecord*>(&record)) {
            add((*world)->shown);
        }
    }

    std::vector<std::pair<snapshot::Tick, Shown>> all;
    std::set<std::string> names; ///< of those who play
    int damaged = 0;

  private:
    void add(const record::SnapshotRecord& it) {
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
        it.roster->each([&](std::uint16_t /*client*/, const record::Roster::Entry& entry) {
            std::array<char, 16> text{};
            names.emplace(text.data(), snapshot::decode_int_string(entry.name, text));
        });
        all.emplace_back(it.tick, std::move(items));
    }
};

/// Every snapshot with all that is in it.
class AllItems final : public record::RecordSink {
  public:
    void on_record(const record::Record& record) override {
        const auto* const* it = std::get_if<const record::SnapshotRecord*>(&record);
        if (it == nullptr) {
            return;
        }
        const auto& items = (*it)->items;
        Shown shown;
        for (std::size_t i = 0; i < items.size(); ++i) {
            const auto item = items[i];
            shown[item.key] = {item.data.begin(), item.data.end()};
            of_demos += item.key.type >= kFirstOfDemos && item.key.type <= kLastOfDemos ? 1 : 0;
        }
        all.emplace((*it)->tick, std::move(shown));
    }

    std::multiset<std::pair<snapshot::Tick, Shown>> all;
    std::size_t of_demos = 0;
};

class Both final : public record::RecordSink {
  public:
    explicit Both(std::vector<record::RecordSink*> sinks) : sinks_{std::move(sinks)} {}

    void on_record(const record::Record& record) override {
        for (record::RecordSink* const sink : sinks_) {
            sink->on_record(record);
        }
    }

  private:
    std::vector<record::RecordSink*> sinks_;
};

void read_demo(const std::filesystem::path& path, record::RecordSink& into) {
    const capture::DemoFile file{path.string()};
    const auto head = capture::decode_demo_head(file.bytes());
    REQUIRE(head.has_value());
    CHECK(head->header.version == sink::demo::kSevenVersion);
    CHECK(head->header.net_version == sink::demo::kSevenNetVersion);
    NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    inspect::Inspector inspector{{}, maps, into, numbers};
    capture::CaptureRun run{{path.string()}, {}};
    run.read(inspector);
    CHECK_FALSE(run.damaged());
}

/// In the order of their ticks and contents: demos are of sessions, one after the other.
std::multiset<std::pair<snapshot::Tick, Shown>> sorted(const Snapshots& snapshots) {
    return {snapshots.all.begin(), snapshots.all.end()};
}

} // namespace

TEST_CASE("every snapshot of a demo of 0.7 is the one that was decoded, with the players' names") {
    for (const int version : {4, 6}) {
        CAPTURE(version);
        const FilledFolder folder;
        Snapshots decoded;
        {
            sink::FileQueue files{sink::FileQueue::WhenFull::wait, 1 << 20};
            sink::DemoSink demos{{.folder = folder.path(), .version = version}, files};
            Both both{{&decoded, &demos}};
            TrafficInspector inspector{{}, both};
            for (const auto& datagram : read_traffic("teeworlds-0.7.5.pcap.gz")) {
                inspector.on_datagram(datagram);
            }
            inspector.finish();
            demos.finish();
            files.finish();
            CHECK(demos.losses().unwritten() == 0);
        }
        Snapshots read;
        for (const auto& path : folder.files()) {
            read_demo(path, read);
        }
        CHECK(decoded.all.size() > 1000);
        CHECK(read.damaged == 0);
        CHECK(read.all.size() == decoded.all.size());
        CHECK((sorted(read) == sorted(decoded)));
        CHECK(read.names == decoded.names);
        CHECK(read.names.size() > 1);
    }
}

TEST_CASE("a demo of 0.7 that is made of a demo holds what that one holds, whether or not it has "
          "messages") {
    // Without messages only the items of demos say who plays and how the game goes.
    for (const bool messages : {true, false}) {
        CAPTURE(messages);
        const FilledFolder first;
        const FilledFolder second;
        const auto film = [&](const FilledFolder& folder, const auto& play) {
            sink::FileQueue files{sink::FileQueue::WhenFull::wait, 1 << 20};
            sink::DemoSink demos{{.folder = folder.path(), .messages = messages}, files};
            play(demos);
            demos.finish();
            files.finish();
        };
        film(first, [](record::RecordSink& demos) {
            TrafficInspector inspector{{}, demos};
            for (const auto& datagram : read_traffic("teeworlds-0.7.5.pcap.gz")) {
                inspector.on_datagram(datagram);
            }
            inspector.finish();
        });
        AllItems of_first;
        for (const auto& path : first.files()) {
            read_demo(path, of_first);
            film(second, [&](record::RecordSink& demos) { read_demo(path, demos); });
        }
        AllItems of_second;
        for (const auto& path : second.files()) {
            read_demo(path, of_second);
        }
        CHECK(of_first.of_demos > 1000);
        CHECK(of_first.all.size() > 1000);
        CHECK((of_first.all == of_second.all));
    }
}

TEST_CASE("worlds of a server of 0.7 become a demo of it") {
    const FilledFolder folder;
    Snapshots worlds;
    {
        sink::FileQueue files{sink::FileQueue::WhenFull::wait, 1 << 20};
        sink::WorldDemo demos{{.folder = folder.path()}, files};
        Both both{{&worlds, &demos}};
        world::WorldMerger merger{snapshot::ObjectSet::standard(), both};
        world::WorldInputConverter feed{merger};
        TrafficInspector inspector{{.messages = false}, feed};
        for (const auto& datagram : read_traffic("teeworlds-0.7.5.pcap.gz")) {
            inspector.on_datagram(datagram);
        }
        inspector.finish();
        merger.finish();
        demos.finish();
        files.finish();
        CHECK(loss_sentences(demos.losses()).empty());
    }
    Snapshots read;
    for (const auto& path : folder.files()) {
        read_demo(path, read);
    }
    CHECK(worlds.all.size() > 500);
    CHECK(read.damaged == 0);
    CHECK((sorted(read) == sorted(worlds)));
    CHECK(read.names == worlds.names);
}

TEST_CASE("who is told of stands in each snapshot; what no server sends is not taken from one") {
    const auto text = [](std::string_view value) { return std::as_bytes(std::span{value}); };
    using Kind = wire::FieldValue::Kind;
    std::vector<wire::FieldValue> values{
        {.name = "client_id", .integer = 3},
        {.name = "local", .integer = 1},
        {.name = "team", .integer = 1},
        {.kind = Kind::string, .name = "name", .bytes = text("anna")},
        {.name = "country", .integer = 276},
        {.kind = Kind::array_begin, .name = "skin_part_names"}};
    for (int i = 0; i < 6; ++i) {
        values.push_back({.kind = Kind::string, .bytes = text(i == 1 ? "duodonny" : "standard")});
    }
    values.push_back({.kind = Kind::end});
    values.push_back({.kind = Kind::array_begin, .name = "skin_part_colors"});
    for (int i = 0; i < 6; ++i) {
        values.push_back({.integer = 100 + i});
    }
    values.push_back({.kind = Kind::end});
    sink::SevenDemoItems items;
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
    send("sv_tune_params", {{.name = "laser_damage", .integer = 500}, // not of 0.7
                            {.name = "a", .integer = 1000},
                            {.name = "b", .integer = 2000}});
    snapshot::Snapshot from;
    from.append({10, 3}, Ints(22));
    from.append({13, 9}, Ints(58, 7)); // only demos have it
    from.append({22, 1}, Ints(7));
    snapshot::Snapshot to;
    record::Roster roster;
    roster.set_player(3, {});
    roster.set_player(5, {.team = 1});
    roster.set_player(200, {});
    items.add(from.view(), &roster, to);
    std::vector<ItemKey> keys;
    for (std::size_t i = 0; i < to.view().size(); ++i) {
        keys.push_back(to.view()[i].key);
    }
    CHECK(keys == std::vector<ItemKey>{{10, 3}, {13, 3}, {13, 5}, {15, 0}, {22, 1}});
    const auto info = to.view()[1].data;
    CHECK(info[0] == 1);
    CHECK(info[1] == -1); // watches now
    CHECK(info[9] == 276);
    std::array<char, 24> part{};
    CHECK(std::string_view{part.data(), snapshot::decode_int_string(info.subspan(16, 6), part)} ==
          "duodonny");
    CHECK(info[57] == 105);
    CHECK(to.view()[2].data[1] == 1);
    const auto other = to.view()[2].data; // of whom only the roster tells
    CHECK(snapshot::decode_int_string(other.subspan(6, 3), part) == 0); // clan
    for (std::size_t at = 10; at < 46; at += 6) {
        CHECK(snapshot::decode_int_string(other.subspan(at, 6), part) == 0); // skin part
    }
    CHECK(other[9] == -1); // country
    CHECK(to.view()[3].data[0] == 1000);
    CHECK(to.view()[3].data[1] == 2000);
    send("sv_client_drop", {{.name = "client_id", .integer = 3}});
    items.add({}, nullptr, to);
    CHECK(to.view().size() == 1);
    items.clear();
    items.add({}, nullptr, to);
    CHECK(to.view().empty());
}

} // namespace tw::test
