#include "map/identity.h"
#include "proxy/pipeline/map_folders.h"
#include "tests/map/map_builder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using inspect::MapStatus;

TEST_CASE("a received map is used by all sessions to which it is announced") {
    map::test::MapBuilder builder{4, 4};
    const std::vector<std::byte> bytes = builder.set_game(1, 1, 1).build();
    const map::Identity identity = map::identify(bytes);
    const inspect::MapAnnouncement told{.name = "dm1",
                                        .crc = identity.crc,
                                        .size = static_cast<std::int64_t>(bytes.size()),
                                        .sha256 = identity.sha256};
    inspect::MapAnnouncement other = told;
    other.sha256->front() ^= 1U;

    pipeline::MapFolders maps{{}};
    CHECK(maps.num_stored() == 0);
    CHECK(maps.find(told).status == MapStatus::not_found);
    CHECK(maps.find_stored(told).status == MapStatus::not_found);

    CHECK(maps.store_map(other, bytes).status == MapStatus::other_version);
    CHECK(maps.num_stored() == 0);

    const inspect::FoundMap kept = maps.store_map(told, bytes);
    CHECK(kept.status == MapStatus::found);
    CHECK(kept.from_wire);
    CHECK(maps.num_stored() == 1);
    for (const inspect::FoundMap& found : {maps.find_stored(told), maps.find(told)}) {
        CHECK(found.status == MapStatus::found);
        CHECK(found.physics == kept.physics);
        CHECK(found.from_wire);
    }
    CHECK(maps.find_stored(other).status == MapStatus::not_found);
}
