// Covers: proxy/web/status_view.cpp
#include "proxy/web/page_feed.h"
#include "tests/support/captured_traffic.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include <doctest/doctest.h>

using tw::web::PageFeed;
using tw::web::StatusView;

TEST_CASE("merging the workers' views adds the totals and sorts the sessions by number") {
    PageFeed board{2};
    StatusView first;
    first.totals.snapshots = 3;
    first.sessions_open = 2;
    first.sessions = {{.number = 1}, {.number = 4}};
    first.items = {{"character", 2}};
    StatusView second;
    second.totals.snapshots = 4;
    second.sessions_open = 1;
    second.sessions = {{.number = 2}};
    second.items = {{"character", 5}, {"pickup", 1}};
    REQUIRE(board.try_publish_view(0, first));
    REQUIRE(board.try_publish_view(1, second));
    const StatusView all = board.read_merged_view();
    CHECK(all.totals.snapshots == 7);
    CHECK(all.sessions_open == 3);
    REQUIRE(all.sessions.size() == 3);
    CHECK(all.sessions[0].number == 1);
    CHECK(all.sessions[1].number == 2);
    CHECK(all.sessions[2].number == 4);
    CHECK(all.items.at("character") == 7);
    CHECK(all.items.at("pickup") == 1);
}

TEST_CASE("a table that is too long keeps the connected sessions, and the maps of all sessions") {
    PageFeed board{2};
    StatusView first;
    StatusView second;
    constexpr auto kMost = static_cast<std::uint32_t>(StatusView::kMaxSessions);
    for (std::uint32_t i = 1; i <= kMost; ++i) {
        first.sessions.push_back({.number = i, .has_player = i % 2 == 0});
        first.maps[i] = std::nullopt;
        second.sessions.push_back({.number = kMost + i, .has_player = i == kMost});
        second.maps[kMost + i] = std::array<std::uint8_t, 32>{static_cast<std::uint8_t>(i)};
    }
    REQUIRE(board.try_publish_view(0, first));
    REQUIRE(board.try_publish_view(1, second));
    const StatusView all = board.read_merged_view();
    REQUIRE(all.sessions.size() == kMost);
    CHECK(all.sessions[0].number == 1);
    CHECK(all.sessions.back().number == 2 * kMost);
    CHECK(std::ranges::is_sorted(all.sessions, {}, &tw::web::SessionView::number));
    CHECK(std::ranges::count(all.sessions, true, &tw::web::SessionView::has_player) ==
          kMost / 2 + 1);
    CHECK(all.maps.size() == 2 * kMost);
    CHECK_FALSE(all.maps.at(1).has_value());
    CHECK(all.maps.at(2 * kMost)->front() == kMost);
}

TEST_CASE("a worker's new view replaces its previous one") {
    PageFeed board{1};
    StatusView view;
    view.totals.snapshots = 1;
    REQUIRE(board.try_publish_view(0, view));
    view.totals.snapshots = 2;
    REQUIRE(board.try_publish_view(0, view));
    CHECK(view.totals.snapshots == 1);
    CHECK(board.read_merged_view().totals.snapshots == 2);
}

TEST_CASE("the tables of sessions and findings never exceed their limits") {
    StatusView all;
    for (std::uint32_t worker = 0; worker < 4; ++worker) {
        StatusView view;
        for (std::uint32_t i = 0; i < StatusView::kMaxSessions; ++i) {
            view.sessions.push_back({.number = 1 + worker + 4 * i});
            ++view.sessions_open;
        }
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(StatusView::kMaxFindings); ++i) {
            view.findings.push_back({.time_ms = i});
        }
        all.merge_with(view);
    }
    CHECK(all.sessions.size() == StatusView::kMaxSessions);
    CHECK(all.sessions_open == 4 * StatusView::kMaxSessions);
    CHECK(all.sessions.back().number == StatusView::kMaxSessions);
    REQUIRE(all.findings.size() == StatusView::kMaxFindings);
    CHECK(all.findings.front().time_ms == static_cast<std::int64_t>(StatusView::kMaxFindings) - 8);
}

TEST_CASE("each server has a limited table of sessions, and all servers together another") {
    PageFeed board{2};
    constexpr auto kMost = static_cast<std::uint32_t>(StatusView::kMaxSessions);
    StatusView first;
    StatusView second;
    for (std::uint32_t i = 1; i <= kMost; ++i) {
        first.sessions.push_back({.number = i, .server_name = "ctf"});
        second.sessions.push_back({.number = 2 * kMost + i, .server_name = "race"});
        second.sessions.push_back({.number = kMost + i, .server_name = "ctf", .has_player = true});
    }
    first.servers["ctf"] = {.sessions = kMost};
    second.servers["ctf"] = {.sessions = kMost, .players = kMost};
    second.servers["race"] = {.sessions = kMost};
    REQUIRE(board.try_publish_view(0, first));
    REQUIRE(board.try_publish_view(1, second));
    StatusView all = board.read_merged_view();
    CHECK(all.servers.at("ctf").sessions == 2 * kMost);
    REQUIRE(all.sessions.size() == 2 * kMost);
    CHECK(all.sessions.front().number == kMost + 1);
    CHECK(all.sessions.back().number == 3 * kMost);
    all.limit_sessions(false);
    REQUIRE(all.sessions.size() == kMost);
    CHECK(all.sessions.back().number == 2 * kMost);
}

using namespace tw;

namespace {

/// Inspects the first datagrams of a capture with four players for the page.
struct InspectedCapture {
    explicit InspectedCapture(std::size_t datagrams) {
        for (const test::TrafficDatagram& datagram : test::read_traffic("bench-4.pcap.gz")) {
            if (datagrams-- == 0) {
                break;
            }
            run.on_datagram(datagram);
        }
    }

    web::StatusView view() {
        web::StatusView view;
        tap.fill_view(view, run.inspector());
        return view;
    }

    web::StatusCollector tap;
    test::TrafficInspector run{{.emits_message_records = false}, tap};
};

constexpr std::size_t kAllDatagrams = 100'000'000;

} // namespace

TEST_CASE("the page shows each session with its player and its own totals") {
    InspectedCapture watched{kAllDatagrams};
    const web::StatusView view = watched.view();
    REQUIRE(view.sessions.size() == 4);
    CHECK(view.sessions_open == 4);
    CHECK(view.players == 4);
    CHECK(view.maps.size() == 4);
    CHECK(std::ranges::all_of(view.sessions, [&](const web::SessionView& session) {
        return view.maps.at(session.number) == session.map_sha256;
    }));
    std::uint64_t snapshots = 0;
    std::set<std::string> names;
    for (const web::SessionView& session : view.sessions) {
        CAPTURE(session.number);
        CHECK(session.snapshots > 1000);
        CHECK(session.verified == session.snapshots);
        CHECK(session.protocol == "0.6+ddnet");
        CHECK(session.largest_snapshot > 0);
        CHECK(session.bytes[1] > session.bytes[0]);
        CHECK_FALSE(session.client.empty());
        CHECK_FALSE(session.place.empty());
        names.insert(session.name);
        snapshots += session.snapshots;
    }
    CHECK(names.size() == 4);
    CHECK(snapshots == view.totals.snapshots);
}

TEST_CASE("players are looked up again after the clock was set back") {
    constexpr record::Timestamp kHour = 3600LL * 1'000'000'000;
    auto traffic = test::read_traffic("bench-4.pcap.gz");
    InspectedCapture watched{traffic.size() / 2};
    const web::StatusView before = watched.view();
    for (std::size_t i = traffic.size() / 2; i < traffic.size(); ++i) {
        traffic[i].time -= kHour;
        watched.run.on_datagram(traffic[i]);
    }
    const web::StatusView after = watched.view();
    REQUIRE(before.sessions.size() == 4);
    REQUIRE(after.sessions.size() == 4);
    CHECK_FALSE(std::ranges::equal(before.sessions, after.sessions, {}, &web::SessionView::place,
                                   &web::SessionView::place));
}

TEST_CASE("items are counted by name, and the counts add up to those of the snapshots") {
    InspectedCapture watched{kAllDatagrams};
    const web::StatusView view = watched.view();
    std::uint64_t counted = 0;
    for (const auto& [type, count] : view.items) {
        counted += count;
    }
    CHECK(view.items.contains("character"));
    CHECK(view.items.contains("player_info"));
    // Items that only describe types are not counted.
    const auto held = static_cast<std::uint64_t>(view.totals.items.sum);
    CHECK(counted <= held);
    CHECK(counted > held / 2);
}

TEST_CASE("a session that ends is forgotten") {
    InspectedCapture watched{kAllDatagrams};
    REQUIRE_FALSE(watched.view().sessions.empty());
    watched.run.finish();
    const web::StatusView view = watched.view();
    CHECK(view.sessions.empty());
    CHECK(view.sessions_open == 0);
    CHECK(view.totals.snapshots > 0);
}

TEST_CASE("a session that a peer closed is counted separately until it reopens") {
    InspectedCapture watched{kAllDatagrams};
    CHECK(watched.view().sessions_closed == 0);
    record::SessionRecord closed{
        .head = {.session = watched.view().sessions.front().number, .server_name = "ctf"},
        .event = record::SessionEvent::close};
    watched.tap.on_record(record::Record{&closed});
    web::StatusView view = watched.view();
    CHECK(view.sessions_closed == 1);
    CHECK(view.servers.at("ctf").closed == 1);
    web::StatusView all;
    all.merge_with(view);
    all.merge_with(view);
    CHECK(all.sessions_closed == 2);
    CHECK(all.servers.at("ctf").closed == 2);
    closed.event = record::SessionEvent::open;
    watched.tap.on_record(record::Record{&closed});
    CHECK(watched.view().sessions_closed == 0);
}

TEST_CASE("a session is shown even before its records arrive") {
    InspectedCapture watched{1};
    const web::StatusView view = watched.view();
    REQUIRE(view.sessions.size() == 1);
    CHECK(view.sessions.front().number == 1);
    CHECK(view.sessions.front().name.empty());
    CHECK(view.sessions.front().datagrams[0] + view.sessions.front().datagrams[1] == 1);
}

TEST_CASE("an explanation replaces the finding's line") {
    web::StatusCollector sink;
    const auto find = [&](record::FindingId id, snapshot::Tick tick, std::uint32_t session) {
        const record::FindingRecord finding{.head = {.session = session}, .id = id, .tick = tick};
        sink.on_record(record::Record{&finding});
    };
    find(record::FindingId::snapshot_crc_mismatch, 12, 1);
    find(record::FindingId::snapshot_crc_mismatch, 12, 2);
    find(record::FindingId::snapshot_crc_mismatch, 120, 1);
    find(record::FindingId::snapshot_explained, 12, 1);
    find(record::FindingId::snapshot_explained, 1,
         1); // the line of the finding was already dropped
    const record::FindingRecord explained{
        .head = {.session = 1},
        .id = record::FindingId::snapshot_explained,
        .tick = 12,
        .item = record::FindingItem{.type_id = 9, .id = 2, .type = "character"},
        .field = "x",
        .value = 5,
        .expected = 4};
    sink.on_record(record::Record{&explained});
    test::NoMaps maps;
    std::atomic<std::uint32_t> numbers{0};
    const inspect::Inspector inspector{{}, maps, sink, numbers};
    web::StatusView view;
    sink.fill_view(view, inspector);
    REQUIRE(view.findings.size() == 3);
    CHECK(view.findings[0].severity == "error");
    CHECK(view.findings[0].text.starts_with(
        "error snapshot.crc_mismatch: session 1, tick 12, character 2 x 5 instead of 4. "));
    CHECK(view.findings[1].text.starts_with("error snapshot.crc_mismatch: session 2, tick 12. "));
    CHECK(view.findings[2].text.starts_with("error snapshot.crc_mismatch: session 1, tick 120. "));
}
