// Tests that the finding about a damaged delta names the damaged item, or none.

#include "snapshot/cursor.h"
#include "tests/support/doctest_lines.h"
#include "tests/support/session_script.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw::test;
using tw::snapshot::kNoBase;

namespace {

/// Returns the items of a snapshot with four tees, a projectile and a pickup.
Items world_items(std::int32_t step) {
    Items items;
    for (std::uint16_t id = 0; id < 4; ++id) {
        Ints tee(22, 0);
        tee[1] = 1000 + 300 * id + step;
        tee[2] = 500 + 40 * id;
        tee[3] = 200 * step;
        tee[5] = -10 * step * (id + 1);
        items[{9, id}] = tee;
    }
    items[{2, 7}] = {640, 320, 90 + step, -40, 1, 100};
    items[{4, 3}] = {336, 720, 1, 0};
    return items;
}

/// The position of an int in a delta's encoded body.
struct IntInBody {
    std::size_t begin = 0;
    std::size_t size = 0;
    std::int32_t value = 0;
};

std::vector<IntInBody> decode_body_ints(const Bytes& body) {
    std::vector<IntInBody> ints;
    for (std::size_t at = 0; at < body.size();) {
        IntInBody each{.begin = at};
        each.size = tw::snapshot::decode_varint(body.data() + at, body.size() - at, each.value);
        ints.push_back(each);
        at += each.size;
    }
    return ints;
}

/// Returns for each int of a delta without deletions the name of its item; empty if it has none.
Lines name_item_of_each_int(const std::vector<IntInBody>& ints) {
    Lines owner(ints.size());
    for (std::size_t at = 3; at + 2 < ints.size();) {
        const std::int32_t type = ints[at].value;
        const std::string name = type == 9 ? "character " : type == 2 ? "projectile " : "pickup ";
        const std::size_t size =
            tw::snapshot::agreed_size(static_cast<std::uint16_t>(type), tw::snapshot::kAgreedSizes);
        for (std::size_t i = 0; i < size; ++i) {
            owner[at + 2 + i] = name + std::to_string(ints[at + 1].value);
        }
        at += 2 + size;
    }
    return owner;
}

} // namespace

TEST_CASE("a flipped bit is reported with its item or as ambiguous, never with another item") {
    const Items base = world_items(0);
    const Items next = world_items(3);
    const Bytes body = delta_body(base, next);
    const auto ints = decode_body_ints(body);
    const auto owner = name_item_of_each_int(ints);
    std::size_t flips = 0;
    std::size_t named = 0;
    std::size_t explained = 0;
    for (std::size_t i = 0; i < ints.size(); ++i) {
        if (owner[i].empty()) {
            continue;
        }
        for (std::size_t bit = 0; bit < ints[i].size * 8; ++bit) {
            if (bit % 8 == 7) {
                continue; // a length bit: changing it moves every later int
            }
            Bytes damaged = body;
            damaged[ints[i].begin + bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
            auto script = playing_session();
            script.snap(10, kNoBase, base);
            script.log().clear();
            script.snap_body(12, 10, checksum_of(next), damaged);
            auto findings = script.log().findings();
            CAPTURE(i);
            CAPTURE(bit);
            REQUIRE(findings.size() == 1);
            CHECK(findings[0].starts_with("finding snapshot.crc_mismatch tick 12 "));
            ++flips;
            const bool is_named = findings[0].ends_with(" damaged_value");
            named += is_named ? 1U : 0U;
            CHECK(findings[0] == "finding snapshot.crc_mismatch tick 12 " +
                                     (is_named ? owner[i] + " damaged_value" : "ambiguous"));
            script.log().clear();
            script.snap(14, 10, world_items(6));
            script.snap(16, 14, world_items(9));
            script.snap(18, 16, world_items(12));
            findings = script.log().findings();
            REQUIRE(findings.size() == 1);
            const std::string found = "finding snapshot.explained tick 12 ";
            const bool is_open = findings[0] == found + "ambiguous";
            explained += is_open ? 0U : 1U;
            if (!is_open && findings[0] != found + owner[i] + " likely") {
                CHECK(findings[0] == found + owner[i] + " exact");
            }
        }
    }
    MESSAGE("of ", flips, " flips named at once ", named, ", explained ", explained);
    CHECK(flips > 600);
    CHECK(named > 10);
    CHECK(100 * explained > 80 * flips);
}

TEST_CASE("a bit that shifts all later ints is reported, and the next snapshot is verified") {
    const Items base = world_items(0);
    const Bytes body = delta_body(base, world_items(3));
    for (std::size_t at = 3; at < body.size(); ++at) {
        Bytes damaged = body;
        damaged[at] ^= std::byte{0x80};
        auto script = playing_session();
        script.snap(10, kNoBase, base);
        script.log().clear();
        script.snap_body(12, 10, checksum_of(world_items(3)), damaged);
        CAPTURE(at);
        const auto findings = script.log().findings();
        REQUIRE_FALSE(findings.empty());
        CHECK(findings.back().starts_with("finding snapshot."));
        CHECK(script.log().lines({"snapshot"}) == Lines{"snapshot 12<-10 bad"});
        // Clients drop it and continue from their last snapshot, and twscope does the same.
        script.snap(14, 10, world_items(4));
        CHECK(script.log().lines({"snapshot"}).back() == "snapshot 14<-10 ok 6");
    }
}

TEST_CASE("a missing part is reported with the tick that later deltas name as their base") {
    Items large;
    for (std::uint16_t id = 0; id < 330; ++id) {
        large[{13, id}] = {1'000'000, 1'000'000 + id};
    }
    auto script = playing_session();
    const auto parts = snap_parts(10, kNoBase, checksum_of(large), delta_body({}, large));
    REQUIRE(parts.size() == 4);
    for (const std::size_t part : {0U, 1U, 3U}) {
        script.send(kS2c, {non_vital(parts[part])});
    }
    script.send(kS2c, {non_vital(snap_between(12, 10, large, large))});
    script.snap(40, kNoBase, world_items(0));
    CHECK(script.log().lines({"snapshot", "finding"}) ==
          Lines{"finding snapshot.unknown_base tick 12", "snapshot 12<-10 bad",
                "finding snapshot.part_missing tick 10 part 2", "snapshot 40<--1 ok 6"});
}

TEST_CASE("a changed item size is reported with its item") {
    struct Row {
        std::string_view name;
        Ints delta;
        std::string finding;
    };

    const Row rows[] = {
        {"shorter",
         {0, 1, 0, 40, 7, 2, 5, 5},
         "finding snapshot.size_change tick 12 40/7 size_change"},
        {"longer",
         {0, 1, 0, 40, 7, 4, 5, 5, 5, 5},
         "finding snapshot.size_change tick 12 40/7 size_change"},
        {"although it is deleted",
         {1, 1, 0, 2621447, 40, 7, 2, 5, 5},
         "finding snapshot.size_change tick 12 40/7 size_change"},
        {"to nothing",
         {0, 1, 0, 40, 7, 0},
         "finding snapshot.size_change tick 12 40/7 size_change"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.name);
        auto script = playing_session();
        script.snap(10, kNoBase, {{{40, 7}, {1, 2, 3}}});
        script.log().clear();
        script.snap_body(12, 10, 0, body_of(row.delta));
        CHECK(script.log().findings() == Lines{row.finding});
    }
}
