// Covers: proxy/inspect/connection/session_checkpoint.cpp
#include "proxy/inspect/connection/session_checkpoint.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_log.h"
#include "tests/support/record_sink.h"
#include "tests/support/resized_traffic.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::decode_checkpoint;
using inspect::encode_checkpoint;
using inspect::SessionCheckpoint;
using inspect::TokenForm;

namespace {

using test::Bytes;

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();

SessionCheckpoint full_checkpoint() {
    SessionCheckpoint checkpoint{
        .map = inspect::MapAnnouncement{.name = "dm1", .crc = 0xf2159e21, .size = 5805}};
    checkpoint.map->sha256.emplace().fill(3);
    // Keys, ends and ints. Compared with the other snapshot, one item changes, one stays equal, one
    // is removed and one is added.
    checkpoint.snapshots = {
        {.tick = 5, .num_items = 2, .block = {0x10001, 0x10002, 1, 3, 10, 20, 30}},
        {.tick = 7, .num_items = 2, .block = {0x10001, 0x10002, 1, 3, 11, 20, 30}},
        {.tick = 8, .num_items = 0, .block = {}},
        {.tick = 9, .num_items = 2, .block = {0x10002, 0x7fffffff, 2, 3, kLeast, 30, kMost}}};
    checkpoint.token_form = TokenForm::ddnet;
    checkpoint.token = {1, 2, 3, 4};
    checkpoint.client_version = 18'090;
    checkpoint.learned_sizes = {
        {.type = 6, .size = 11, .num_items = 1, .num_snapshots = 24},
        {.type = 63, .size = 0, .is_confirmed = true},
        {.type = 0, .size = 255, .num_items = 0xFFFFFFFFU, .num_snapshots = 1U << 31U}};
    checkpoint.parts = {{.part_without_data = {.tick = 11,
                                               .delta_tick = 9,
                                               .num_parts = 3,
                                               .part = 1,
                                               .crc = -7,
                                               .data = {},
                                               .marked = true},
                         .data = Bytes(snapshot::kMaxPartSize, std::byte{9})}};
    return checkpoint;
}

SessionCheckpoint seven_checkpoint() {
    SessionCheckpoint checkpoint;
    checkpoint.dialect = snapshot::Dialect::seven;
    checkpoint.token_form = TokenForm::seven;
    checkpoint.is_translated_to_seven = true;
    checkpoint.map = inspect::MapAnnouncement{.name = "ctf1", .accepts_any_version = true};
    checkpoint.roster.add_player({.client_id = 1, .is_own = true, .team = -1, .name = "anna"});
    checkpoint.roster.add_player({.client_id = 63, .team = 1, .name = "bob"});
    return checkpoint;
}

void check_same_checkpoint(const SessionCheckpoint& one, const SessionCheckpoint& two) {
    CHECK((one.map == two.map));
    CHECK((one.roster == two.roster));
    CHECK(one.dialect == two.dialect);
    CHECK(one.token_form == two.token_form);
    CHECK(one.token == two.token);
    CHECK(one.is_translated_to_seven == two.is_translated_to_seven);
    CHECK(one.client_version == two.client_version);
    REQUIRE(one.learned_sizes.size() == two.learned_sizes.size());
    for (std::size_t i = 0; i < one.learned_sizes.size(); ++i) {
        inspect::LearnedSize expected = two.learned_sizes[i];
        expected.num_items = std::min<std::uint32_t>(expected.num_items, kMost);
        expected.num_snapshots = std::min<std::uint32_t>(expected.num_snapshots, kMost);
        CHECK((one.learned_sizes[i] == expected));
    }
    CHECK((one.snapshots == two.snapshots));
    REQUIRE(one.parts.size() == two.parts.size());
    for (std::size_t i = 0; i < one.parts.size(); ++i) {
        const auto values = [](const SessionCheckpoint::Part& part) {
            const snapshot::Part& head = part.part_without_data;
            return std::tuple{head.tick, head.delta_tick, head.num_parts, head.part,
                              head.crc,  head.marked,     part.data};
        };
        CHECK((values(one.parts[i]) == values(two.parts[i])));
        CHECK(one.parts[i].view().data.size() == one.parts[i].data.size());
    }
}

/// Returns an encoded checkpoint with the version, 0.6, and no connection, map, players or parts,
/// followed by these numbers.
Bytes checkpoint_with_snapshots(std::vector<std::int32_t> snapshots) {
    std::vector<std::int32_t> all{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    all.insert(all.end(), snapshots.begin(), snapshots.end());
    return test::body_of(all);
}

} // namespace

TEST_CASE("a checkpoint is decoded as it was encoded") {
    for (const SessionCheckpoint& checkpoint :
         {SessionCheckpoint{}, full_checkpoint(), seven_checkpoint()}) {
        const auto read = decode_checkpoint(encode_checkpoint(checkpoint)).value();
        check_same_checkpoint(read, checkpoint);
    }
}

TEST_CASE("a truncated checkpoint, or one with trailing bytes, is rejected") {
    Bytes bytes = encode_checkpoint(full_checkpoint());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(decode_checkpoint(std::span{bytes}.first(size)));
    }
    bytes.push_back(std::byte{0});
    CHECK_FALSE(decode_checkpoint(bytes));
}

TEST_CASE("a damaged checkpoint is rejected or consistent") {
    const Bytes bytes = encode_checkpoint(full_checkpoint());
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (const unsigned changed : {0xFFU, 0x80U, 0x01U}) {
            CAPTURE(at);
            Bytes wrong = bytes;
            wrong[at] ^= static_cast<std::byte>(changed);
            const auto read = decode_checkpoint(wrong);
            CHECK((!read || read->is_consistent()));
        }
    }
}

TEST_CASE("impossible values in a checkpoint are rejected") {
    struct Row {
        const char* name;
        std::vector<std::int32_t> snapshots;
        bool good;
    };

    const Row rows[] = {
        {"none", {0}, true},
        {"an empty one", {6, 0, 0}, true},
        {"an item", {6, 1, 0x10001, 2, 7, 0}, true},
        {"an item as it was", {6, 1, 0x10001, 2, 7, 2, 1, 0x10001, 0, 0}, true},
        {"an item as it never was", {6, 1, 0x10001, 0, 0}, false},
        {"a tick twice", {6, 0, 0, 0, 0}, false},
        {"a tick before all ticks", {6, 0, 6, 0, 0}, false},
        {"a step forward", {6, 0, -1, 0, 0}, false},
        {"a key twice", {6, 2, 0x10001, 1, 0, 1, 0}, false},
        {"keys in the wrong order", {6, 2, 0x10002, 1, -1, 1, 0}, false},
        {"fewer items than none", {6, -1, 0}, false},
        {"more items than any has", {6, 1025, 0}, false},
        {"more items than there are", {6, 2, 0x10001, 1, 0}, false},
        {"more ints than there are", {6, 1, 0x10001, 9, 7, 0}, false},
        {"an item smaller than nothing", {6, 1, 0x10001, -1, 0}, false},
        {"larger than any number of bytes", {6, 1, 0x10001, kMost, 0}, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(decode_checkpoint(checkpoint_with_snapshots(row.snapshots)).has_value() == row.good);
    }
    CHECK_FALSE(
        decode_checkpoint(test::body_of({3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}))); // another version
    CHECK_FALSE(decode_checkpoint(
        test::body_of({1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}))); // 0.6 with 0.7's token
    CHECK_FALSE(
        decode_checkpoint(test::body_of({1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0}))); // an unknown form
    CHECK_FALSE(decode_checkpoint({}));
}

TEST_CASE("impossible learned sizes in a checkpoint are rejected") {
    struct Row {
        const char* name;
        std::vector<std::int32_t> sizes;
        bool good;
    };

    const Row rows[] = {
        {"none", {0}, true},
        {"one", {1, 9, 23, 1, 3, 3}, true},
        {"the same one twice", {2, 9, 23, 1, 3, 3, 9, 24, 1, 3, 3}, true},
        {"a type that has no agreed size", {1, 64, 23, 1, 3, 3}, false},
        {"a type below all types", {1, -1, 23, 1, 3, 3}, false},
        {"a size larger than any", {1, 9, 256, 1, 3, 3}, false},
        {"a size below nothing", {1, 9, -1, 1, 3, 3}, false},
        {"fewer items than none", {1, 9, 23, 1, -1, 3}, false},
        {"fewer snapshots than none", {1, 9, 23, 1, 3, -1}, false},
        {"neither confirmed nor not", {1, 9, 23, 2, 3, 3}, false},
        {"more than there are types", {65}, false},
        {"fewer than none", {-1}, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        std::vector<std::int32_t> all{2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        all.insert(all.end(), row.sizes.begin(), row.sizes.end());
        all.insert(all.end(), {0, 0}); // no parts, no snapshots
        CHECK(decode_checkpoint(test::body_of(all)).has_value() == row.good);
    }
}

TEST_CASE("the decoded size of a checkpoint is limited") {
    std::vector<std::int32_t> ints{6, 1, 0x10001, 16'001};
    ints.resize(ints.size() + 16'000, 5);
    std::vector<std::int32_t> many{1'000'000, 1, 0x10001, 2, 7};
    for (int i = 0; i < 400; ++i) {
        many.insert(many.end(), {1, 1, 0x10001, 0});
    }
    ints.push_back(0);
    many.push_back(0);
    CHECK(decode_checkpoint(checkpoint_with_snapshots(ints)));
    CHECK_FALSE(decode_checkpoint(checkpoint_with_snapshots(many)));
    ints[3] = 16'601;
    ints.insert(ints.end() - 1, 600, 5);
    CHECK_FALSE(decode_checkpoint(checkpoint_with_snapshots(ints)));
}

TEST_CASE("the oldest snapshots are left out of a checkpoint that is too large") {
    SessionCheckpoint checkpoint;
    std::uint32_t chance = 1;
    for (snapshot::Tick tick = 0; tick < 250; ++tick) {
        SessionCheckpoint::Snapshot& each = checkpoint.snapshots.emplace_back();
        each.tick = tick;
        each.num_items = 1;
        each.block = {0x10001, 16'000};
        for (int i = 0; i < 16'000; ++i) {
            chance = chance * 1'664'525 + 1'013'904'223;
            each.block.push_back(static_cast<std::int32_t>(chance));
        }
    }
    const Bytes bytes = encode_checkpoint(checkpoint);
    CHECK(bytes.size() <= inspect::kMaxEncodedCheckpoint);
    const auto read = decode_checkpoint(bytes).value();
    CHECK(read.snapshots.size() > 40);
    CHECK(read.snapshots.size() < 250);
    CHECK(read.snapshots.back().block == checkpoint.snapshots.back().block);
    CHECK(read.snapshots.back().tick == 249);
}

namespace {

/// The results of two observers of a capture. The second continues from the first's checkpoint.
struct TakeoverResult {
    record::SessionStats before;
    record::SessionStats after;
    std::vector<std::string> findings;         ///< of the second observer
    std::vector<std::string> sessions;         ///< of the second observer
    std::size_t open_parts = 0;                ///< parts of incomplete snapshots in the checkpoints
    std::size_t most_bytes = 0;                ///< size of the largest checkpoint
    std::map<std::uint16_t, std::size_t> held; ///< number of items by type in the checkpoints
};

/// Passes a datagram to an inspector, whose sessions are `open`.
void feed_datagram(inspect::Inspector& inspector, std::set<std::uint64_t>& open,
                   const test::TrafficDatagram& each) {
    if (open.insert(each.session).second) {
        inspector.on_open(each.session, each.time, "client", "server");
    }
    inspector.on_datagram(each.session, each.time, each.direction, each.bytes);
}

TakeoverResult take_over_capture(const std::vector<test::TrafficDatagram>& traffic,
                                 bool with_checkpoint, std::size_t later = 0,
                                 const inspect::Options& options = {}) {
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    test::RecordLog first_log;
    test::RecordLog second_log;
    inspect::Inspector first{options, maps, first_log, numbers};
    inspect::Inspector second{options, maps, second_log, numbers};
    std::set<std::uint64_t> open;
    std::size_t at = 0;
    for (; at < traffic.size() / 2 + later; ++at) {
        feed_datagram(first, open, traffic[at]);
    }
    TakeoverResult relief;
    for (const std::uint64_t session : open) {
        const auto checkpoint = first.make_checkpoint(session).value();
        const auto bytes = inspect::encode_checkpoint(checkpoint);
        relief.most_bytes = std::max(relief.most_bytes, bytes.size());
        relief.open_parts += checkpoint.parts.size();
        for (const SessionCheckpoint::Snapshot& each : checkpoint.snapshots) {
            for (const std::uint32_t key : each.view().keys()) {
                ++relief.held[snapshot::ItemKey::from_packed(key).type];
            }
        }
        auto read = inspect::decode_checkpoint(bytes);
        REQUIRE(read);
        second.on_open(session, traffic[at].time, "client", "server",
                       with_checkpoint ? std::move(read) : std::nullopt);
    }
    CHECK_FALSE(first.make_checkpoint(0));
    first.close_all_sessions(traffic[at].time, "handed over");
    for (; at < traffic.size(); ++at) {
        feed_datagram(second, open, traffic[at]);
    }
    second.close_all_sessions(traffic.back().time, "end of capture");
    relief.before = first.totals();
    relief.after = second.totals();
    relief.findings = second_log.findings();
    relief.sessions = second_log.lines({"session"});
    return relief;
}

SessionCheckpoint::Snapshot two_item_snapshot() {
    // keys, ends, data
    return {.tick = 5, .num_items = 2, .block = {1, 2, 1, 3, 10, 20, 30}};
}

} // namespace

TEST_CASE("an observer continues a session from the previous observer's checkpoint") {
    for (const char* capture : {"bench-4.pcap.gz", "bench-64.pcap.gz", "ddnet-20.1.1-race.pcap.gz",
                                "teeworlds-0.7.5.pcap.gz"}) {
        CAPTURE(capture);
        const auto traffic = test::read_traffic(capture);
        const TakeoverResult blind = take_over_capture(traffic, false);
        const TakeoverResult seamless = take_over_capture(traffic, true);
        CHECK(seamless.before.verified == blind.before.verified);
        CHECK(std::ranges::count(blind.sessions, "session open resumed") == 0);
        CHECK(std::ranges::count(seamless.sessions, "session open resumed") > 0);
        CHECK(blind.after.unknown_base > 0);
        CHECK(seamless.after.unknown_base == 0);
        CHECK(seamless.after.mismatched == 0);
        CHECK(seamless.after.verified == seamless.after.snapshots);
        CHECK(std::ranges::find(seamless.findings, "finding session.joined_midway") ==
              seamless.findings.end());
    }
}

TEST_CASE("a requested summary has the time of the last inspected datagram") {
    struct Times final : test::TypedRecordSink<Times> {
        void on(const record::SummaryRecord& summary) { all.push_back(summary.head.time); }

        std::vector<record::Timestamp> all;
    };

    const auto traffic = test::read_traffic("bench-4.pcap.gz");
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    Times times;
    inspect::Inspector inspector{{}, maps, times, numbers};
    std::set<std::uint64_t> open;
    std::map<std::uint64_t, record::Timestamp> last;
    for (std::size_t i = 0; i < traffic.size() / 2; ++i) {
        feed_datagram(inspector, open, traffic[i]);
        last[traffic[i].session] = traffic[i].time;
    }
    inspector.emit_summaries();
    REQUIRE(times.all.size() == last.size());
    CHECK(std::ranges::all_of(last, [&](const auto& each) {
        return std::ranges::find(times.all, each.second) != times.all.end();
    }));
}

TEST_CASE("a session closed elsewhere is not reported until its next datagram") {
    const auto traffic = test::read_traffic("vanilla-0.6.5-ctf.pcap.gz");
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    test::RecordLog first_log;
    test::RecordLog log;
    inspect::Inspector first{{}, maps, first_log, numbers};
    inspect::Inspector second{{}, maps, log, numbers};
    std::set<std::uint64_t> sessions;
    for (const auto& each : traffic) {
        feed_datagram(first, sessions, each);
    }
    std::erase_if(sessions,
                  [&](std::uint64_t each) { return !first.make_checkpoint(each)->is_closed; });
    REQUIRE(sessions.size() > 2);
    const record::Timestamp later = traffic.back().time + 1;
    for (const std::uint64_t session : sessions) {
        second.on_open(session, later, "client", "server", first.make_checkpoint(session));
        second.on_missed_datagrams(session, later, 1, "ring_full");
        CHECK(second.make_checkpoint(session)->is_closed);
    }
    second.emit_summaries();
    CHECK(second.num_sessions_opened() == 0);
    CHECK(log.lines({"session", "summary", "finding", "message"}).empty());
    for (const auto& each : traffic) {
        second.on_datagram(each.session, each.time, each.direction, each.bytes);
    }
    second.close_all_sessions(later, "shutdown");
    const auto lines = log.lines({"session"});
    CHECK(std::ranges::count(lines, "session open") == static_cast<long>(sessions.size()));
    CHECK(second.totals().verified > 0);
    CHECK(second.totals().verified == second.totals().snapshots);
    CHECK(second.num_sessions_opened() == sessions.size());
}

TEST_CASE("a session closed elsewhere without later datagrams is never reported") {
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    test::RecordLog log;
    inspect::Inspector next{{}, maps, log, numbers};
    next.on_open(7, 1, "client", "server", SessionCheckpoint{.map = {}, .is_closed = true});
    next.on_close(7, 2, "idle");
    CHECK_FALSE(next.make_checkpoint(7));
    next.close_all_sessions(3, "shutdown");
    CHECK(log.lines({"session", "summary", "finding"}).empty());
    CHECK(next.num_sessions_opened() == 0);
}

TEST_CASE("a partly received snapshot is completed after a takeover") {
    const auto traffic = test::read_traffic("bench-64.pcap.gz");
    const std::size_t half = traffic.size() / 2;
    test::RecordLog log;
    test::TrafficInspector first{{.emits_message_records = false}, log};
    std::vector<std::size_t> cuts;
    std::size_t next = half;
    for (std::size_t at = 0; at < half + 4000 && cuts.size() < 3; ++at) {
        first.on_datagram(traffic[at]);
        const auto checkpoint =
            at < next ? std::nullopt : first.inspector().make_checkpoint(traffic[at].session);
        if (checkpoint && !checkpoint->parts.empty()) {
            cuts.push_back(at + 1 - half);
            next = at + 100;
        }
    }
    first.finish();
    REQUIRE(cuts.size() == 3);
    for (const std::size_t later : cuts) {
        CAPTURE(later);
        const TakeoverResult seamless = take_over_capture(traffic, true, later);
        CHECK(seamless.open_parts > 0);
        CHECK(seamless.after.verified == seamless.after.snapshots);
        CHECK(seamless.after.incomplete == 0);
        CHECK(seamless.most_bytes < 200'000);
    }
}

TEST_CASE("learned item sizes survive a takeover") {
    test::ModSizes mod;
    mod.sizes[9] += 1;  // character
    mod.sizes[10] -= 1; // player_info
    for (const test::ModClients clients : {test::ModClients::knowing, test::ModClients::stock}) {
        CAPTURE(clients == test::ModClients::stock);
        const auto traffic = test::ResizedTraffic{"bench-4.pcap.gz"}.traffic_of(mod, clients);
        const TakeoverResult relief = take_over_capture(traffic, true, 0, {.learn_sizes = true});
        // A standard client rejects such snapshots and acknowledges fewer.
        CHECK(relief.before.verified > 100);
        CHECK(relief.after.verified > 100);
        CHECK(relief.after.verified == relief.after.snapshots);
        CHECK(std::ranges::any_of(relief.findings, [](const std::string& each) {
            return each.starts_with("finding snapshot.size_differs");
        }));
    }
}

TEST_CASE("a learned size survives a takeover without an item of its type") {
    constexpr std::uint16_t kTypes[] = {2, 14, 15, 17, 19, 20}; // projectiles and events
    bool was_gone = false;
    for (const std::uint16_t type : kTypes) {
        CAPTURE(type);
        test::ModSizes mod;
        mod.sizes[type] += 2;
        mod.added[type] = test::AddedInts::arbitrary;
        const auto traffic =
            test::ResizedTraffic{"bench-4.pcap.gz"}.traffic_of(mod, test::ModClients::knowing);
        const TakeoverResult relief = take_over_capture(traffic, true, 0, {.learn_sizes = true});
        CAPTURE(relief.before.verified);
        CHECK(relief.after.verified == relief.after.snapshots);
        was_gone = was_gone || !relief.held.contains(type);
    }
    CHECK(was_gone);
}

TEST_CASE("is_consistent() detects impossible snapshots in a checkpoint") {
    struct Row {
        const char* name;
        std::function<void(SessionCheckpoint::Snapshot&)> spoil;
        bool sound;
    };

    const Row rows[] = {
        {"as it was", [](auto&) {}, true},
        {"nothing in it", [](auto& s) { s = SessionCheckpoint::Snapshot{}; }, true},
        {"a tick before all ticks", [](auto& s) { s.tick = -1; }, false},
        {"more items than there are", [](auto& s) { s.num_items = 4; }, false},
        {"more items than any has", [](auto& s) { s.num_items = 0xFFFFFFFF; }, false},
        {"a key twice", [](auto& s) { s.block[1] = 1; }, false},
        {"keys in the wrong order", [](auto& s) { s.block[0] = 3; }, false},
        {"an end before the one before", [](auto& s) { s.block[2] = 4; }, false},
        {"ints of no item", [](auto& s) { s.block.push_back(1); }, false},
        {"fewer ints than items say", [](auto& s) { s.block.pop_back(); }, false},
        {"an end far out", [](auto& s) { s.block[3] = -1; }, false},
        {"larger than a snapshot may be", [](auto& s) { s.block.resize(20'000); }, false},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        SessionCheckpoint checkpoint{.map = std::nullopt, .snapshots = {two_item_snapshot()}};
        row.spoil(checkpoint.snapshots.front());
        CHECK(checkpoint.is_consistent() == row.sound);
    }
    CHECK_FALSE(SessionCheckpoint{.map = std::nullopt,
                                  .snapshots = {two_item_snapshot(), two_item_snapshot()}}
                    .is_consistent());
}
