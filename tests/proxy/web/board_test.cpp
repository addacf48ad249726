#include "proxy/web/board.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <doctest/doctest.h>

using tw::web::StatusBoard;
using tw::web::StatusView;

TEST_CASE("merging the workers' views adds the totals and sorts the sessions by number") {
    StatusBoard board{2};
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
    REQUIRE(board.try_publish(0, first));
    REQUIRE(board.try_publish(1, second));
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
    StatusBoard board{2};
    StatusView first;
    StatusView second;
    constexpr auto kMost = static_cast<std::uint32_t>(StatusView::kMaxSessions);
    for (std::uint32_t i = 1; i <= kMost; ++i) {
        first.sessions.push_back({.number = i, .connected = i % 2 == 0});
        first.maps[i] = std::nullopt;
        second.sessions.push_back({.number = kMost + i, .connected = i == kMost});
        second.maps[kMost + i] = std::array<std::uint8_t, 32>{static_cast<std::uint8_t>(i)};
    }
    REQUIRE(board.try_publish(0, first));
    REQUIRE(board.try_publish(1, second));
    const StatusView all = board.read_merged_view();
    REQUIRE(all.sessions.size() == kMost);
    CHECK(all.sessions[0].number == 1);
    CHECK(all.sessions.back().number == 2 * kMost);
    CHECK(std::ranges::is_sorted(all.sessions, {}, &tw::web::SessionView::number));
    CHECK(std::ranges::count(all.sessions, true, &tw::web::SessionView::connected) ==
          kMost / 2 + 1);
    CHECK(all.maps.size() == 2 * kMost);
    CHECK_FALSE(all.maps.at(1).has_value());
    CHECK(all.maps.at(2 * kMost)->front() == kMost);
}

TEST_CASE("a worker's new view replaces its previous one") {
    StatusBoard board{1};
    StatusView view;
    view.totals.snapshots = 1;
    REQUIRE(board.try_publish(0, view));
    view.totals.snapshots = 2;
    REQUIRE(board.try_publish(0, view));
    CHECK(view.totals.snapshots == 1);
    CHECK(board.read_merged_view().totals.snapshots == 2);
}

TEST_CASE("tables never exceed their limits") {
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
    StatusBoard board{2};
    constexpr auto kMost = static_cast<std::uint32_t>(StatusView::kMaxSessions);
    StatusView first;
    StatusView second;
    for (std::uint32_t i = 1; i <= kMost; ++i) {
        first.sessions.push_back({.number = i, .server_name = "ctf"});
        second.sessions.push_back({.number = 2 * kMost + i, .server_name = "race"});
        second.sessions.push_back({.number = kMost + i, .server_name = "ctf", .connected = true});
    }
    first.servers["ctf"] = {.sessions = kMost};
    second.servers["ctf"] = {.sessions = kMost, .players = kMost};
    second.servers["race"] = {.sessions = kMost};
    REQUIRE(board.try_publish(0, first));
    REQUIRE(board.try_publish(1, second));
    StatusView all = board.read_merged_view();
    CHECK(all.servers.at("ctf").sessions == 2 * kMost);
    REQUIRE(all.sessions.size() == 2 * kMost);
    CHECK(all.sessions.front().number == kMost + 1);
    CHECK(all.sessions.back().number == 3 * kMost);
    all.limit_sessions();
    REQUIRE(all.sessions.size() == kMost);
    CHECK(all.sessions.back().number == 2 * kMost);
}
