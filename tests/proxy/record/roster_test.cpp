#include "proxy/record/roster.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

namespace tw::record {
namespace {

std::string roster_name(const Roster& roster, std::uint16_t client) {
    const auto packed = roster.name(client);
    if (!packed) {
        return "none";
    }
    std::array<char, 4 * kPlayerNameInts> text{};
    return {text.data(), snapshot::decode_int_string(packed->ints, text)};
}

} // namespace

TEST_CASE("a player's name is known until the player leaves or the map changes") {
    Roster roster;
    CHECK(roster_name(roster, 0) == "none");
    CHECK_FALSE(roster.own_id());
    roster.add_player({.client_id = 0, .name = "anna"});
    roster.add_player({.client_id = 63, .is_own = true, .name = "bob"});
    CHECK(roster_name(roster, 0) == "anna");
    CHECK(roster_name(roster, 63) == "bob");
    CHECK(roster.own_id() == 63);
    roster.add_player({.client_id = 0, .name = "cleo"}); // DDNet announces a renamed player again
    CHECK(roster_name(roster, 0) == "cleo");
    roster.remove_player(0);
    CHECK(roster_name(roster, 0) == "none");
    roster.clear();
    CHECK(roster_name(roster, 63) == "none");
    CHECK_FALSE(roster.own_id());
}

TEST_CASE("a name is sanitised and truncated as in clients") {
    struct Row {
        std::string_view sent;
        std::string_view shown;
    };

    const Row rows[] = {
        {"", ""},
        {"exactly15bytes!", "exactly15bytes!"},
        {"sixteen bytes in", "sixteen bytes i"},
        {"  leads\tand tabs", "leads and tabs"},
        {"fourteen bytes\xc3\xa4", "fourteen bytes"}, // the last character does not fit
        {"\xc3\xa4\xc3\xb6\xc3\xbc", "\xc3\xa4\xc3\xb6\xc3\xbc"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.sent);
        Roster roster;
        roster.add_player({.client_id = 5, .name = row.sent});
        CHECK(roster_name(roster, 5) == row.shown);
    }
}

TEST_CASE("a client id that is invalid in 0.7 is ignored") {
    Roster roster;
    for (const std::int32_t id : {-1, 64, INT32_MIN, INT32_MAX}) {
        roster.add_player({.client_id = id, .is_own = true, .name = "nobody"});
        roster.remove_player(id);
    }
    CHECK_FALSE(roster.own_id());
    CHECK(roster_name(roster, 64) == "none");
    CHECK(roster_name(roster, 65535) == "none");
}

namespace {

using Ints = std::vector<std::int32_t>;

/// Packs a text into ints as servers send names: four bytes per int, 128 added to each byte.
Ints name_ints(std::string_view name) {
    Ints ints;
    for (std::size_t i = 0; i < 4; ++i) {
        std::uint32_t value = 0;
        for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) {
            const unsigned byte = k < name.size() ? static_cast<unsigned char>(name[k]) : 0U;
            value = value << 8U | ((byte + 128U) & 0xffU);
        }
        ints.push_back(static_cast<std::int32_t>(value));
    }
    ints.back() &= static_cast<std::int32_t>(0xffffff00U);
    ints.resize(17);
    return ints;
}

/// Ann has id 2 and receives the snapshots, Bob has id 5.
snapshot::Snapshot game_snapshot(bool named, bool alive) {
    snapshot::Snapshot snapshot;
    if (alive) {
        Ints character(22);
        character[1] = 1616;
        character[2] = 1040;
        snapshot.append({9, 2}, character);
    }
    snapshot.append({10, 2}, Ints{1, 2, 0, 7, 30});
    snapshot.append({10, 5}, Ints{0, 5, 0, 0, 30});
    if (named) {
        snapshot.append({11, 2}, name_ints("Ann"));
    }
    return snapshot;
}

SnapshotRecord snapshot_record_of(const snapshot::Snapshot& snapshot) {
    SnapshotRecord record;
    record.rebuilt = true;
    record.items = snapshot.view();
    return record;
}

} // namespace

TEST_CASE("the local player is found by the player info") {
    const snapshot::Snapshot snapshot = game_snapshot(true, true);
    const auto player = local_player(snapshot_record_of(snapshot)).value();
    CHECK(player.name == "Ann");
    CHECK(player.place == "x=1616 y=1040");
    CHECK(player.score == 7);
}

TEST_CASE("a score is a time if the snapshot of a 0.7 session has the data of a race") {
    Roster roster;
    roster.set_own_id(2);
    ItemTypes types;
    types.start_connection(snapshot::Dialect::seven);
    snapshot::Snapshot snapshot;
    snapshot.append({11, 2}, Ints{0, 83450, 30});
    SnapshotRecord record = snapshot_record_of(snapshot);
    record.types = &types;
    record.roster = &roster;
    CHECK(local_player(record)->score == 83450);
    CHECK_FALSE(local_player(record)->is_score_time);
    snapshot.append({24, 0}, Ints{-1, 2, 0});
    record.items = snapshot.view();
    CHECK(local_player(record)->score == 83450);
    CHECK(local_player(record)->is_score_time);
}

TEST_CASE("a player without a name or a tee is shown") {
    const snapshot::Snapshot snapshot = game_snapshot(false, false);
    const auto player = local_player(snapshot_record_of(snapshot)).value();
    CHECK(player.name == "client 2");
    CHECK(player.place == "not in the game");
}

TEST_CASE("a snapshot without local player info, or not rebuilt, has no local player") {
    snapshot::Snapshot demo;
    demo.append({10, 5}, Ints{0, 5, 0, 0, 30});
    CHECK_FALSE(local_player(snapshot_record_of(demo)).has_value());
    const snapshot::Snapshot snapshot = game_snapshot(true, true);
    SnapshotRecord broken = snapshot_record_of(snapshot);
    broken.rebuilt = false;
    CHECK_FALSE(local_player(broken).has_value());
}

} // namespace tw::record
