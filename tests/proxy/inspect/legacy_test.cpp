// Covers: proxy/inspect/connection/session_checkpoint.cpp
#include "proxy/inspect/connection/session_checkpoint.h"
#include "tests/support/captured_traffic.h"
#include "tests/support/record_log.h"
#include "tests/support/resized_traffic.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::SessionCheckpoint;

namespace {

/// Two observers, one after the other, on one capture.
struct Relief {
    record::SessionStats before;
    record::SessionStats after;
    std::vector<std::string> findings;         ///< of the second
    std::vector<std::string> sessions;         ///< of the second
    std::size_t open_parts = 0;                ///< that the first had of incomplete snapshots
    std::size_t most_bytes = 0;                ///< of a session's checkpoint
    std::map<std::uint16_t, std::size_t> held; ///< items by type in the snapshots left
};

Relief relieve(const std::vector<test::TrafficDatagram>& traffic, bool with_checkpoint,
               std::size_t later = 0, const inspect::Options& options = {}) {
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    test::RecordLog first_log;
    test::RecordLog second_log;
    inspect::Inspector first{options, maps, first_log, numbers};
    inspect::Inspector second{options, maps, second_log, numbers};
    std::set<std::uint64_t> open;
    std::size_t at = 0;
    for (; at < traffic.size() / 2 + later; ++at) {
        const auto& each = traffic[at];
        if (open.insert(each.session).second) {
            first.on_open(each.session, each.time, "client", "server");
        }
        first.on_datagram(each.session, each.time, each.direction, each.bytes);
    }
    Relief relief;
    for (const std::uint64_t session : open) {
        const auto checkpoint = first.save(session);
        REQUIRE(checkpoint);
        const auto bytes = inspect::encode_checkpoint(*checkpoint);
        relief.most_bytes = std::max(relief.most_bytes, bytes.size());
        relief.open_parts += checkpoint->parts.size();
        for (const SessionCheckpoint::Snapshot& each : checkpoint->snapshots) {
            for (const std::uint32_t key : each.view().keys()) {
                ++relief.held[snapshot::ItemKey::from_packed(key).type];
            }
        }
        auto read = inspect::decode_checkpoint(bytes);
        REQUIRE(read);
        second.on_open(session, traffic[at].time, "client", "server",
                       with_checkpoint ? std::move(read) : std::nullopt);
    }
    CHECK_FALSE(first.save(0));
    first.finish(traffic[at].time, "handed over");
    for (; at < traffic.size(); ++at) {
        const auto& each = traffic[at];
        if (open.insert(each.session).second) {
            second.on_open(each.session, each.time, "client", "server");
        }
        second.on_datagram(each.session, each.time, each.direction, each.bytes);
    }
    second.finish(traffic.back().time, "end of capture");
    relief.before = first.totals();
    relief.after = second.totals();
    relief.findings = second_log.findings();
    relief.sessions = second_log.lines({"session"});
    return relief;
}

SessionCheckpoint::Snapshot two_items() {
    // keys, ends, data
    return {.tick = 5, .num_items = 2, .block = {1, 2, 1, 3, 10, 20, 30}};
}

} // namespace

TEST_CASE("an observer goes on where the one before it stopped") {
    for (const char* capture : {"bench-4.pcap.gz", "bench-64.pcap.gz", "ddnet-20.1.1-race.pcap.gz",
                                "teeworlds-0.7.5.pcap.gz"}) {
        CAPTURE(capture);
        const auto traffic = test::read_traffic(capture);
        const Relief blind = relieve(traffic, false);
        const Relief seamless = relieve(traffic, true);
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

TEST_CASE("a snapshot of which some parts came is whole when the others come") {
    const auto traffic = test::read_traffic("bench-64.pcap.gz");
    const std::size_t half = traffic.size() / 2;
    test::RecordLog log;
    test::TrafficInspector first{{.messages = false}, log};
    std::vector<std::size_t> cuts;
    std::size_t next = half;
    for (std::size_t at = 0; at < half + 4000 && cuts.size() < 3; ++at) {
        first.on_datagram(traffic[at]);
        const auto checkpoint =
            at < next ? std::nullopt : first.inspector().save(traffic[at].session);
        if (checkpoint && !checkpoint->parts.empty()) {
            cuts.push_back(at + 1 - half);
            next = at + 100;
        }
    }
    first.finish();
    REQUIRE(cuts.size() == 3);
    for (const std::size_t later : cuts) {
        CAPTURE(later);
        const Relief seamless = relieve(traffic, true, later);
        CHECK(seamless.open_parts > 0);
        CHECK(seamless.after.verified == seamless.after.snapshots);
        CHECK(seamless.after.incomplete == 0);
        CHECK(seamless.most_bytes < 200'000);
    }
}

TEST_CASE("of a server with other item sizes, the next observer decodes every snapshot, too") {
    test::ModSizes mod;
    mod.sizes[9] += 1;  // character
    mod.sizes[10] -= 1; // player_info
    for (const test::ModClients clients : {test::ModClients::knowing, test::ModClients::stock}) {
        CAPTURE(clients == test::ModClients::stock);
        const auto traffic = test::ResizedTraffic{"bench-4.pcap.gz"}.traffic_of(mod, clients);
        const Relief relief = relieve(traffic, true, 0, {.learn_sizes = true});
        // A stock client misreads, and so acknowledges less.
        CHECK(relief.before.verified > 100);
        CHECK(relief.after.verified > 100);
        CHECK(relief.after.verified == relief.after.snapshots);
        CHECK(std::ranges::any_of(relief.findings, [](const std::string& each) {
            return each.starts_with("finding snapshot.size_differs");
        }));
    }
}

TEST_CASE("a size is left to the next observer, also if no snapshot left has an item of the type") {
    constexpr std::uint16_t kTypes[] = {2, 14, 15, 17, 19, 20}; // projectiles and events
    bool was_gone = false;
    for (const std::uint16_t type : kTypes) {
        CAPTURE(type);
        test::ModSizes mod;
        mod.sizes[type] += 2;
        mod.added[type] = test::AddedInts::arbitrary;
        const auto traffic =
            test::ResizedTraffic{"bench-4.pcap.gz"}.traffic_of(mod, test::ModClients::knowing);
        const Relief relief = relieve(traffic, true, 0, {.learn_sizes = true});
        CAPTURE(relief.before.verified);
        CHECK(relief.after.verified == relief.after.snapshots);
        was_gone = was_gone || !relief.held.contains(type);
    }
    CHECK(was_gone);
}

TEST_CASE("what is left is looked at before it is believed") {
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
        SessionCheckpoint checkpoint{.map = std::nullopt, .snapshots = {two_items()}};
        row.spoil(checkpoint.snapshots.front());
        CHECK(checkpoint.is_sound() == row.sound);
    }
    CHECK_FALSE(
        SessionCheckpoint{.map = std::nullopt, .snapshots = {two_items(), two_items()}}.is_sound());
}
