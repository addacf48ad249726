// Covers: proxy/inspect/map_tracker.cpp
#include "map/identity.h"
#include "proxy/inspect/map_tracker.h"

#include <vector>

#include <doctest/doctest.h>

using tw::inspect::MapDownload;
using Chunk = tw::wire::MapDataBody;
using Bytes = std::vector<std::byte>;

namespace {

constexpr std::int32_t kCrc = -7;
const Bytes kWhole(10, std::byte{3});
const Bytes kLast(4, std::byte{5});

Chunk chunk(std::int32_t number, const Bytes& data, bool last = false) {
    return {.last = last ? 1 : 0,
            .crc = kCrc,
            .chunk = number,
            .size = static_cast<std::int32_t>(data.size()),
            .data = data};
}

MapDownload begun(std::int64_t size) {
    MapDownload download;
    download.begin({.name = "ctf5", .crc = static_cast<std::uint32_t>(kCrc), .size = size});
    return download;
}

} // namespace

TEST_CASE("a map is complete with its last chunk") {
    MapDownload download = begun(24);
    CHECK_FALSE(download.add_chunk(chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(chunk(1, kWhole)));
    CHECK(download.add_chunk(chunk(2, kLast, true)));
    CHECK(download.announcement().name == "ctf5");
    CHECK(download.take_bytes().size() == 24);
}

TEST_CASE("chunks that a client drops are dropped") {
    MapDownload download = begun(24);
    CHECK_FALSE(download.add_chunk(chunk(1, kWhole))); // behind a gap
    CHECK_FALSE(download.add_chunk(chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(chunk(0, kWhole))); // again
    Chunk other = chunk(1, kWhole);
    other.crc = 8; // of another map
    CHECK_FALSE(download.add_chunk(other));
    CHECK_FALSE(download.add_chunk(chunk(1, kWhole)));
    CHECK(download.add_chunk(chunk(2, kLast, true)));
    CHECK(download.take_bytes().size() == 24);
}

TEST_CASE("a map grows no larger than it was announced, and none is announced too large") {
    MapDownload longer = begun(15);
    CHECK_FALSE(longer.add_chunk(chunk(0, kWhole)));
    CHECK_FALSE(longer.add_chunk(chunk(1, kWhole, true)));
    CHECK(longer.announced_size() == 0); // given up
    for (const std::int64_t size :
         {std::int64_t{0}, std::int64_t{-1}, MapDownload::kMaxBytes + 1}) {
        CAPTURE(size);
        MapDownload refused = begun(size);
        CHECK_FALSE(refused.add_chunk(chunk(0, kWhole, true)));
    }
}

TEST_CASE("a known map is checked as it comes, and not kept") {
    MapDownload download;
    download.begin({.name = "ctf5", .crc = static_cast<std::uint32_t>(kCrc), .size = 24},
                   MapDownload::Mode::check);
    CHECK_FALSE(download.add_chunk(chunk(0, kWhole)));
    CHECK_FALSE(download.add_chunk(chunk(1, kWhole)));
    CHECK(download.add_chunk(chunk(2, kLast, true)));
    CHECK_FALSE(download.keeps_bytes());
    CHECK(download.memory_bytes() == 0);
    Bytes all = kWhole;
    all.insert(all.end(), kWhole.begin(), kWhole.end());
    all.insert(all.end(), kLast.begin(), kLast.end());
    CHECK(download.crc() == tw::map::identify(all).crc);
}

TEST_CASE("a download that is given up takes no more") {
    MapDownload download = begun(24);
    CHECK_FALSE(download.add_chunk(chunk(0, kWhole)));
    download.abandon();
    CHECK(download.memory_bytes() == 0);
    for (const std::int32_t number : {0, 1, 2}) {
        CHECK_FALSE(download.add_chunk(chunk(number, kLast, true)));
    }
}
