#include "proxy/record/roster.h"

#include <array>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

namespace tw::record {
namespace {

std::string name_of(const Roster& roster, std::uint16_t client) {
    const auto packed = roster.name(client);
    if (!packed) {
        return "none";
    }
    std::array<char, 4 * kPlayerNameInts> text{};
    return {text.data(), snapshot::decode_int_string(packed->ints, text)};
}

} // namespace

TEST_CASE("who joined is known by name until he leaves or the map changes") {
    Roster roster;
    CHECK(name_of(roster, 0) == "none");
    CHECK_FALSE(roster.own_id());
    roster.add_player({.client_id = 0, .name = "anna"});
    roster.add_player({.client_id = 63, .own = true, .name = "bob"});
    CHECK(name_of(roster, 0) == "anna");
    CHECK(name_of(roster, 63) == "bob");
    CHECK(roster.own_id() == 63);
    roster.add_player({.client_id = 0, .name = "cleo"}); // DDNet announces a renamed player again
    CHECK(name_of(roster, 0) == "cleo");
    roster.remove_player(0);
    CHECK(name_of(roster, 0) == "none");
    roster.clear();
    CHECK(name_of(roster, 63) == "none");
    CHECK_FALSE(roster.own_id());
}

TEST_CASE("a name is shown as its readers show it") {
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
        CHECK(name_of(roster, 5) == row.shown);
    }
}

TEST_CASE("a client that 0.7 cannot name is ignored") {
    Roster roster;
    for (const std::int32_t id : {-1, 64, INT32_MIN, INT32_MAX}) {
        roster.add_player({.client_id = id, .own = true, .name = "nobody"});
        roster.remove_player(id);
    }
    CHECK_FALSE(roster.own_id());
    CHECK(name_of(roster, 64) == "none");
    CHECK(name_of(roster, 65535) == "none");
}

} // namespace tw::record
