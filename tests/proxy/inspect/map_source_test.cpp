// Covers: proxy/inspect/map_tracker.cpp
#include "proxy/inspect/map_tracker.h"
#include "tests/support/session_script.h"

#include <string>

#include <doctest/doctest.h>

using namespace tw;
using inspect::MapAnnouncement;

TEST_CASE("what is found of a map is news once for each server, map and finding") {
    test::FakeMaps maps;
    const MapAnnouncement dm1{.name = "dm1", .crc = 1};
    CHECK(maps.is_first_report("127.0.0.1:8303", dm1, "map.crc_mismatch"));
    CHECK_FALSE(maps.is_first_report("127.0.0.1:8303", dm1, "map.crc_mismatch"));
    CHECK(maps.is_first_report("127.0.0.1:8304", dm1, "map.crc_mismatch"));
    CHECK(maps.is_first_report("127.0.0.1:8303", dm1, "map.not_found"));
    CHECK(maps.is_first_report("127.0.0.1:8303", {.name = "dm1", .crc = 2}, "map.crc_mismatch"));
    CHECK(maps.is_first_report("127.0.0.1:8303", {.name = "dm2", .crc = 1}, "map.crc_mismatch"));
    for (int i = 0; i < 5000; ++i) { // more than are remembered: nothing is lost
        CHECK(maps.is_first_report("127.0.0.1:8303", {.name = std::to_string(i)}, "map.not_found"));
    }
    CHECK_FALSE(maps.is_first_report("127.0.0.1:8303", dm1, "map.crc_mismatch"));
}

TEST_CASE("of all sessions of a server the first reports a wrong map, and every one counts it") {
    using record::FindingId;
    test::FakeMaps maps;
    maps.answer.status = inspect::MapStatus::other_version;
    test::RecordLog log;
    const auto workspace = std::make_unique<inspect::Workspace>();
    for (std::uint32_t number = 1; number <= 3; ++number) {
        const std::string server = number == 3 ? "127.0.0.1:8304" : "127.0.0.1:8303";
        inspect::Session session{number, "client", server, {}, maps, log};
        test::SessionScript peers; // only to build packets
        session.open(0);
        for (const auto& [direction, kind] :
             {std::pair{wire::Direction::c2s, wire::ControlKind::connect},
              std::pair{wire::Direction::s2c, wire::ControlKind::connectaccept}}) {
            session.on_datagram(0, direction, wire::encode_control({.kind = kind}), *workspace);
        }
        session.on_datagram(
            0, wire::Direction::s2c,
            peers.pack(
                wire::Direction::s2c,
                {test::vital(test::message("map_change").string("dm1").number(1).number(9))}),
            *workspace);
        CHECK(session.current().findings[static_cast<std::size_t>(FindingId::map_crc_mismatch)] ==
              1);
        CHECK(log.findings().size() == (number < 3 ? 1U : 2U));
    }
}
