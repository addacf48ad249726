#include "map/identity.h"
#include "proxy/inspect/map_tracker.h"
#include "tests/support/session_script.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::MapAnnouncement;

TEST_CASE("mark_as_reported() is true once for each server, map and finding") {
    test::FakeMaps maps;
    const MapAnnouncement dm1{.name = "dm1", .crc = 1};
    CHECK(maps.mark_as_reported("127.0.0.1:8303", dm1, "map.crc_mismatch"));
    CHECK_FALSE(maps.mark_as_reported("127.0.0.1:8303", dm1, "map.crc_mismatch"));
    CHECK(maps.mark_as_reported("127.0.0.1:8304", dm1, "map.crc_mismatch"));
    CHECK(maps.mark_as_reported("127.0.0.1:8303", dm1, "map.not_found"));
    CHECK(maps.mark_as_reported("127.0.0.1:8303", {.name = "dm1", .crc = 2}, "map.crc_mismatch"));
    CHECK(maps.mark_as_reported("127.0.0.1:8303", {.name = "dm2", .crc = 1}, "map.crc_mismatch"));
    for (int i = 0; i < 5000; ++i) { // more reports than are remembered
        CHECK(
            maps.mark_as_reported("127.0.0.1:8303", {.name = std::to_string(i)}, "map.not_found"));
    }
    CHECK_FALSE(maps.mark_as_reported("127.0.0.1:8303", dm1, "map.crc_mismatch"));
}

TEST_CASE("a server's first session reports a wrong map, and every session counts it") {
    using record::FindingId;
    test::FakeMaps maps;
    maps.answer.status = inspect::MapStatus::other_version;
    test::RecordLog log;
    const auto workspace = std::make_unique<inspect::DecodeBuffers>();
    for (std::uint32_t number = 1; number <= 3; ++number) {
        const std::string server = number == 3 ? "127.0.0.1:8304" : "127.0.0.1:8303";
        inspect::Session session{number, "client", server, {}, maps, log};
        test::SessionScript peers; // only to build packets
        session.open_session(0);
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
        CHECK(session.totals().findings[static_cast<std::size_t>(FindingId::map_crc_mismatch)] ==
              1);
        CHECK(log.findings().size() == (number < 3 ? 1U : 2U));
    }
}

using tw::inspect::MapDownload;
using Chunk = tw::wire::MapDataBody;
using Bytes = std::vector<std::byte>;

namespace {

constexpr std::int32_t kCrc = -7;
const Bytes kWhole(10, std::byte{3});
const Bytes kLast(4, std::byte{5});

Chunk map_chunk(std::int32_t number, const Bytes& data, bool last = false) {
    return {.last = last ? 1 : 0,
            .crc = kCrc,
            .chunk = number,
            .size = static_cast<std::int32_t>(data.size()),
            .data = data};
}

MapDownload begin_map_download(std::int64_t size) {
    MapDownload download;
    download.begin_download(
        {.name = "ctf5", .crc = static_cast<std::uint32_t>(kCrc), .size = size});
    return download;
}

} // namespace

TEST_CASE("a map download is complete with its last chunk") {
    MapDownload download = begin_map_download(24);
    CHECK_FALSE(download.add_chunk(map_chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(map_chunk(1, kWhole)));
    CHECK(download.add_chunk(map_chunk(2, kLast, true)));
    CHECK(download.announcement().name == "ctf5");
    CHECK(download.take_bytes().size() == 24);
}

TEST_CASE("a map download ignores the chunks that clients drop") {
    MapDownload download = begin_map_download(24);
    CHECK_FALSE(download.add_chunk(map_chunk(1, kWhole))); // after a gap
    CHECK_FALSE(download.add_chunk(map_chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(map_chunk(0, kWhole))); // repeated
    Chunk other = map_chunk(1, kWhole);
    other.crc = 8; // of another map
    CHECK_FALSE(download.add_chunk(other));
    CHECK_FALSE(download.add_chunk(map_chunk(1, kWhole)));
    CHECK(download.add_chunk(map_chunk(2, kLast, true)));
    CHECK(download.take_bytes().size() == 24);
}

TEST_CASE("a map download never exceeds the announced size or the limit") {
    MapDownload longer = begin_map_download(15);
    CHECK_FALSE(longer.add_chunk(map_chunk(0, kWhole)));
    CHECK_FALSE(longer.add_chunk(map_chunk(1, kWhole, true)));
    CHECK(longer.announced_size() == 0); // the download was stopped
    for (const std::int64_t size :
         {std::int64_t{0}, std::int64_t{-1}, MapDownload::kMaxBytes + 1}) {
        CAPTURE(size);
        MapDownload refused = begin_map_download(size);
        CHECK_FALSE(refused.add_chunk(map_chunk(0, kWhole, true)));
    }
}

TEST_CASE("the download of a known map is only checked, not stored") {
    MapDownload download;
    download.begin_download({.name = "ctf5", .crc = static_cast<std::uint32_t>(kCrc), .size = 24},
                            MapDownload::Mode::compute_checksum);
    CHECK_FALSE(download.add_chunk(map_chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(map_chunk(1, kWhole)));
    CHECK(download.add_chunk(map_chunk(2, kLast, true)));
    CHECK_FALSE(download.keeps_bytes());
    CHECK(download.memory_bytes() == 0);
    Bytes all = kWhole;
    all.insert(all.end(), kWhole.begin(), kWhole.end());
    all.insert(all.end(), kLast.begin(), kLast.end());
    CHECK(download.received_crc() == tw::map::identify(all).crc);
}

TEST_CASE("an abandoned download accepts no more chunks") {
    MapDownload download = begin_map_download(24);
    CHECK_FALSE(download.add_chunk(map_chunk(0, kWhole)));
    download.abandon_download();
    CHECK(download.memory_bytes() == 0);
    for (const std::int32_t number : {0, 1, 2}) {
        CHECK_FALSE(download.add_chunk(map_chunk(number, kLast, true)));
    }
}
