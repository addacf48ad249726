#include "proxy/web/board.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include <doctest/doctest.h>

using tw::web::StatusBoard;
using tw::web::View;

TEST_CASE("the views of all workers add up, sessions in order of appearance") {
    StatusBoard board{2};
    View first;
    first.totals.snapshots = 3;
    first.sessions_open = 2;
    first.sessions = {{.number = 1}, {.number = 4}};
    first.items = {{"character", 2}};
    View second;
    second.totals.snapshots = 4;
    second.sessions_open = 1;
    second.sessions = {{.number = 2}};
    second.items = {{"character", 5}, {"pickup", 1}};
    REQUIRE(board.try_publish(0, first));
    REQUIRE(board.try_publish(1, second));
    const View all = board.read();
    CHECK(all.totals.snapshots == 7);
    CHECK(all.sessions_open == 3);
    REQUIRE(all.sessions.size() == 3);
    CHECK(all.sessions[0].number == 1);
    CHECK(all.sessions[1].number == 2);
    CHECK(all.sessions[2].number == 4);
    CHECK(all.items.at("character") == 7);
    CHECK(all.items.at("pickup") == 1);
}

TEST_CASE("a table that is too long keeps those who are connected, and the map of everyone") {
    StatusBoard board{2};
    View first;
    View second;
    constexpr auto kMost = static_cast<std::uint32_t>(View::kMaxSessions);
    for (std::uint32_t i = 1; i <= kMost; ++i) {
        first.sessions.push_back({.number = i, .connected = i % 2 == 0});
        first.maps[i] = std::nullopt;
        second.sessions.push_back({.number = kMost + i, .connected = i == kMost});
        second.maps[kMost + i] = std::array<std::uint8_t, 32>{static_cast<std::uint8_t>(i)};
    }
    REQUIRE(board.try_publish(0, first));
    REQUIRE(board.try_publish(1, second));
    const View all = board.read();
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

TEST_CASE("what a worker publishes replaces what it published before") {
    StatusBoard board{1};
    View view;
    view.totals.snapshots = 1;
    REQUIRE(board.try_publish(0, view));
    view.totals.snapshots = 2;
    REQUIRE(board.try_publish(0, view));
    CHECK(view.totals.snapshots == 1);
    CHECK(board.read().totals.snapshots == 2);
}

TEST_CASE("tables stay at their limits however much comes in") {
    View all;
    for (std::uint32_t worker = 0; worker < 4; ++worker) {
        View view;
        for (std::uint32_t i = 0; i < View::kMaxSessions; ++i) {
            view.sessions.push_back({.number = 1 + worker + 4 * i});
            ++view.sessions_open;
        }
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(View::kMaxFindings); ++i) {
            view.findings.push_back({.time_ms = i});
        }
        all.merge(view);
    }
    CHECK(all.sessions.size() == View::kMaxSessions);
    CHECK(all.sessions_open == 4 * View::kMaxSessions);
    CHECK(all.sessions.back().number == View::kMaxSessions);
    REQUIRE(all.findings.size() == View::kMaxFindings);
    CHECK(all.findings.front().time_ms == static_cast<std::int64_t>(View::kMaxFindings) - 8);
}

TEST_CASE("each server keeps a table of its own, and all together one") {
    StatusBoard board{2};
    constexpr auto kMost = static_cast<std::uint32_t>(View::kMaxSessions);
    View first;
    View second;
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
    View all = board.read();
    CHECK(all.servers.at("ctf").sessions == 2 * kMost);
    REQUIRE(all.sessions.size() == 2 * kMost);
    CHECK(all.sessions.front().number == kMost + 1);
    CHECK(all.sessions.back().number == 3 * kMost);
    all.limit_sessions();
    REQUIRE(all.sessions.size() == kMost);
    CHECK(all.sessions.back().number == 2 * kMost);
}
