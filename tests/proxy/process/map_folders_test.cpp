// Covers: proxy/pipeline/map_folders.cpp
#include "map/identity.h"
#include "proxy/pipeline/map_folders.h"
#include "tests/map/map_builder.h"
#include "tests/support/program.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

using namespace tw;
using namespace tw::test;
using inspect::MapAnnouncement;
using inspect::MapSearchResult;
using inspect::MapStatus;
using pipeline::MapFolders;

namespace {

using Bytes = std::vector<std::byte>;

Bytes make_map_with_tile(std::uint8_t tile) {
    map::test::MapBuilder builder{4, 4};
    return builder.set_game(1, 1, tile).build();
}

const Bytes kMapFile = make_map_with_tile(1);

MapAnnouncement make_announcement(const std::string& name, const Bytes& bytes = kMapFile,
                                  bool with_sha256 = true) {
    const map::Identity identity = map::identify(bytes);
    MapAnnouncement announcement{
        .name = name, .crc = identity.crc, .size = static_cast<std::int64_t>(bytes.size())};
    if (with_sha256) {
        announcement.sha256 = identity.sha256;
    }
    return announcement;
}

void write_map_file(const std::string& path, const Bytes& bytes) {
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
    write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::size_t count_files_in(const std::string& folder) {
    const std::filesystem::recursive_directory_iterator all{folder};
    return static_cast<std::size_t>(std::count_if(
        begin(all), end(all), [](const auto& entry) { return entry.is_regular_file(); }));
}

} // namespace

TEST_CASE("a map is found by its checksum, under each possible file name") {
    const map::Identity identity = map::identify(kMapFile);

    struct Row {
        std::string file;
        bool with_sha256;
    };

    const Row rows[] = {
        {"dm1.map", true},
        {"dm1.map", false},
        {"dm1_" + map::to_hex(identity.crc) + ".map", false},
        {"dm1_" + map::to_hex(identity.sha256) + ".map", true},
        {"maps/dm1.map", true},
        {"downloadedmaps/dm1_" + map::to_hex(identity.sha256) + ".map", true},
    };
    for (const Row& row : rows) {
        CAPTURE(row.file);
        const TemporaryFolder folder;
        const TemporaryFolder empty;
        write_map_file(folder.file(row.file), kMapFile);
        MapFolders maps{{empty.path(), folder.path()}};
        const MapSearchResult found =
            maps.find_map(make_announcement("dm1", kMapFile, row.with_sha256));
        CHECK(found.status == MapStatus::found);
        CHECK(found.physics != nullptr);
        CHECK(found.sha256 == identity.sha256);
    }
}

TEST_CASE("a map that cannot be used is reported with the reason") {
    const std::string text = "this is no map, whatever its name says";
    const Bytes no_map{reinterpret_cast<const std::byte*>(text.data()),
                       reinterpret_cast<const std::byte*>(text.data()) + text.size()};
    Bytes cut = kMapFile;
    cut.resize(cut.size() / 2);
    const TemporaryFolder folder;
    write_map_file(folder.file("other.map"), make_map_with_tile(2));
    write_map_file(folder.file("nonsense.map"), no_map);
    write_map_file(folder.file("cut.map"), cut);
    std::filesystem::create_directory(folder.file("folder.map"));

    struct Row {
        MapAnnouncement announcement;
        MapStatus status;
        std::string detail;
    };

    const Row rows[] = {
        {make_announcement("missing"), MapStatus::not_found, ""},
        {make_announcement("folder"), MapStatus::not_found, ""},
        {make_announcement("other"), MapStatus::other_version, "other.map has crc"},
        {make_announcement("other", kMapFile, false), MapStatus::other_version,
         "other.map has crc"},
        {make_announcement("nonsense", no_map), MapStatus::unreadable, "nonsense.map"},
        {make_announcement("cut", cut), MapStatus::unreadable, "offset"},
        {make_announcement(""), MapStatus::invalid_name, ""},
        {make_announcement("../other", make_map_with_tile(2)), MapStatus::invalid_name, ""},
        {make_announcement("/etc/passwd"), MapStatus::invalid_name, ""},
        {make_announcement(std::string{"a\0b", 3}), MapStatus::invalid_name, ""},
    };
    MapFolders maps{{folder.path(), folder.file("no such folder")}};
    for (const Row& row : rows) {
        CAPTURE(row.announcement.name);
        const MapSearchResult found = maps.find_map(row.announcement);
        CHECK(found.status == row.status);
        CHECK(found.physics == nullptr);
        CAPTURE(found.detail);
        CHECK(found.detail.find(row.detail) != std::string::npos);
    }
}

TEST_CASE("a map of another version is found by the checksum announced to a 0.7 client, too") {
    MapAnnouncement announcement = make_announcement("dm1", make_map_with_tile(2));
    announcement.accepts_any_version = true;
    const TemporaryFolder folder;
    write_map_file(folder.file("dm1.map"), kMapFile);
    MapFolders maps{{folder.path()}};
    const MapSearchResult found = maps.find_map(announcement);
    REQUIRE(found.physics != nullptr);
    CHECK(maps.find_loaded_map(*announcement.sha256).physics == found.physics);
    CHECK(maps.find_loaded_map(map::identify(kMapFile).sha256).physics == found.physics);
    CHECK(maps.find_loaded_map(map::identify(make_map_with_tile(3)).sha256).physics == nullptr);
}

TEST_CASE("the latest maps stay loaded and are shared, older ones are dropped") {
    constexpr std::size_t kKept = 16;
    const auto name = [](std::size_t i) { return "map" + std::to_string(i); };
    const TemporaryFolder folder;
    MapFolders maps{{folder.path()}};
    for (std::size_t i = 0; i <= kKept; ++i) {
        write_map_file(folder.file(name(i) + ".map"), kMapFile);
        REQUIRE(maps.find_map(make_announcement(name(i))).status == MapStatus::found);
    }
    for (std::size_t i = 0; i <= kKept; ++i) {
        std::filesystem::remove(folder.file(name(i) + ".map"));
    }
    CHECK(maps.find_map(make_announcement(name(0))).status == MapStatus::not_found);
    const MapSearchResult once = maps.find_map(make_announcement(name(1)));
    CHECK(once.status == MapStatus::found);
    CHECK(once.physics == maps.find_map(make_announcement(name(1))).physics);
    CHECK(maps.find_map(make_announcement(name(kKept))).status == MapStatus::found);
    CHECK(maps.find_map(make_announcement(name(kKept), kMapFile, false)).status ==
          MapStatus::not_found);
}

TEST_CASE("a loaded map is found by its file's checksum, with the file if that is kept") {
    const TemporaryFolder folder;
    write_map_file(folder.file("one.map"), kMapFile);
    for (const bool includes_file_bytes : {false, true}) {
        MapFolders maps{{folder.path()}, {.includes_file_bytes = includes_file_bytes}};
        const auto sha256 = map::identify(kMapFile).sha256;
        CHECK(maps.find_loaded_map(sha256).physics == nullptr);
        const MapSearchResult found = maps.find_map(make_announcement("one"));
        CHECK(maps.find_loaded_map(sha256).physics == found.physics);
        const auto file = maps.find_loaded_map(sha256).file_bytes;
        CHECK((file != nullptr) == includes_file_bytes);
        CHECK((file == nullptr || *file == kMapFile));
    }
}

TEST_CASE("a missing map is searched for again") {
    const TemporaryFolder folder;
    MapFolders maps{{folder.path()}};
    CHECK(maps.find_map(make_announcement("dm1")).status == MapStatus::not_found);
    write_map_file(folder.file("dm1.map"), kMapFile);
    CHECK(maps.find_map(make_announcement("dm1")).status == MapStatus::found);
}

TEST_CASE("a received map is stored under the game's file name, and found again") {
    const map::Identity identity = map::identify(kMapFile);
    for (const bool with_sha256 : {false, true}) {
        CAPTURE(with_sha256);
        const TemporaryFolder cache;
        const MapAnnouncement announcement = make_announcement("dm1", kMapFile, with_sha256);
        MapFolders maps{{}, {.cache = cache.path()}};
        CHECK(maps.find_stored_map(announcement).status == MapStatus::not_found);
        const MapSearchResult kept = maps.store_map(announcement, kMapFile);
        CHECK(kept.status == MapStatus::found);
        CHECK(kept.detail.empty());
        CHECK(maps.num_stored_maps() == 1);
        for (const MapSearchResult& found :
             {kept, maps.find_stored_map(announcement), maps.find_map(announcement)}) {
            CHECK(found.physics == kept.physics);
            CHECK(found.is_from_download);
        }
        const std::string id =
            with_sha256 ? map::to_hex(identity.sha256) : map::to_hex(identity.crc);
        CHECK(read_text(cache.file("dm1_" + id + ".map")) ==
              std::string{reinterpret_cast<const char*>(kMapFile.data()), kMapFile.size()});
        CHECK(count_files_in(cache.path()) == 1);
        CHECK(MapFolders{{cache.path()}}.find_map(announcement).status == MapStatus::found);
        MapFolders without_cache{{}};
        CHECK(without_cache.find_map(announcement).status == MapStatus::not_found);
        CHECK(without_cache.store_map(announcement, kMapFile).is_from_download);
        CHECK(without_cache.find_map(announcement).physics != nullptr);
    }
}

TEST_CASE("a received map that is not the announced one is neither used nor stored") {
    const Bytes other = make_map_with_tile(2);
    MapAnnouncement wrong_sha256 = make_announcement("dm1");
    wrong_sha256.sha256->front() ^= 1U;

    struct Row {
        MapAnnouncement announcement;
        Bytes bytes;
        MapStatus status;
    };

    const Row rows[] = {
        {make_announcement("dm1"), other, MapStatus::other_version},
        {make_announcement("dm1"), {}, MapStatus::other_version},
        {wrong_sha256, kMapFile, MapStatus::other_version},
        {make_announcement("../dm1"), kMapFile, MapStatus::invalid_name},
    };
    for (const Row& row : rows) {
        CAPTURE(row.announcement.name);
        const TemporaryFolder outside;
        const std::string cache = outside.file("cache");
        std::filesystem::create_directory(cache);
        MapFolders maps{{}, {.cache = cache}};
        CHECK(maps.store_map(row.announcement, row.bytes).status == row.status);
        CHECK(maps.find_map(row.announcement).status != MapStatus::found);
        CHECK(maps.find_stored_map(row.announcement).status == MapStatus::not_found);
        CHECK(maps.num_stored_maps() == 0);
        CHECK(count_files_in(outside.path()) == 0);
    }
}

TEST_CASE("an unwritable cache is reported, and the map is still used") {
    const TemporaryFolder folder;
    write_text(folder.file("plain"), "");
    const MapAnnouncement announcement = make_announcement("dm1");
    // A folder has the name that the file should get.
    const std::string taken = folder.file("taken");
    std::filesystem::create_directories(
        taken + "/dm1_" + map::to_hex(map::identify(kMapFile).sha256) + ".map/in the way");
    for (const std::string& cache : {folder.file("missing"), folder.file("plain"), taken}) {
        CAPTURE(cache);
        MapFolders maps{{}, {.cache = cache}};
        const MapSearchResult kept = maps.store_map(announcement, kMapFile);
        CHECK(kept.status == MapStatus::found);
        CHECK(kept.detail.find("could not be cached in " + cache) != std::string::npos);
        CHECK(maps.find_map(announcement).status == MapStatus::found);
    }
    CHECK(count_files_in(folder.path()) == 1); // no partial file remains
}

TEST_CASE("a map with several names is loaded only once") {
    const TemporaryFolder folder;
    write_map_file(folder.file("dm1.map"), kMapFile);
    write_map_file(folder.file("copy.map"), kMapFile);
    inspect::MemoryBudget memory;
    {
        MapFolders maps{{folder.path()}, {.memory = &memory}};
        const MapSearchResult first = maps.find_map(make_announcement("dm1"));
        const std::size_t once = memory.used_bytes();
        CHECK(once == first.physics->memory_bytes());
        CHECK(maps.find_map(make_announcement("dm1", kMapFile, false)).physics == first.physics);
        CHECK(maps.find_map(make_announcement("copy")).physics == first.physics);
        CHECK(maps.store_map(make_announcement("again"), kMapFile).physics == first.physics);
        CHECK(memory.used_bytes() == once);

        maps.free_unused_maps(); // the map is still used
        CHECK(memory.used_bytes() == once);
        CHECK(maps.find_stored_map(make_announcement("dm1")).status == MapStatus::found);
    }
    CHECK(memory.used_bytes() == 0);
}

TEST_CASE("unused maps are dropped when memory is needed") {
    inspect::MemoryBudget memory;
    MapFolders maps{{}, {.memory = &memory}};
    for (const char* name : {"dm1", "the same"}) {
        CHECK(maps.store_map(make_announcement(name), kMapFile).status == MapStatus::found);
    }
    CHECK(memory.used_bytes() != 0);
    maps.free_unused_maps();
    CHECK(memory.used_bytes() == 0);
    CHECK(maps.find_stored_map(make_announcement("dm1")).status == MapStatus::not_found);
}

TEST_CASE("a cache stores only valid maps, and no more than its quota") {
    const TemporaryFolder cache;
    MapFolders maps{{}, {.cache = cache.path(), .max_cache_bytes = kMapFile.size() + 10}};

    const Bytes broken{std::byte{'D'}, std::byte{'A'}, std::byte{'T'}, std::byte{'A'}};
    CHECK(maps.store_map(make_announcement("broken", broken), broken).status ==
          MapStatus::unreadable);
    CHECK(count_files_in(cache.path()) == 0);

    CHECK(maps.store_map(make_announcement("dm1"), kMapFile).detail.empty());
    CHECK(count_files_in(cache.path()) == 1);
    const MapSearchResult second =
        maps.store_map(make_announcement("dm2", make_map_with_tile(2)), make_map_with_tile(2));
    CHECK(second.status == MapStatus::found);
    CHECK(second.detail.find("was not cached in " + cache.path()) != std::string::npos);
    CHECK(count_files_in(cache.path()) == 1);
    // A stored map can be received again.
    CHECK(maps.store_map(make_announcement("dm1"), kMapFile).detail.empty());
}

TEST_CASE("several workers can search for maps at the same time") {
    constexpr std::size_t kThreads = 4;
    const TemporaryFolder folder;
    write_map_file(folder.file("dm1.map"), kMapFile);
    MapFolders maps{{folder.path()}};
    std::vector<MapSearchResult> found(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(found.size());
    for (MapSearchResult& each : found) {
        threads.emplace_back([&] { each = maps.find_map(make_announcement("dm1")); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const MapSearchResult& each : found) {
        CHECK(each.status == MapStatus::found);
        CHECK(each.physics == found.front().physics);
    }
}
