#include "proxy/pipeline/map_folders.h"

#include "map/error.h"
#include "map/game_layer.h"
#include "proxy/base/files.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace tw::pipeline {

namespace {

/// Returns the total size of the files in a folder in bytes; 0 if the folder cannot be read.
std::uintmax_t folder_size(const std::filesystem::path& folder) {
    std::uintmax_t bytes = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator each{folder, error}, end; !error && each != end;
         each.increment(error)) {
        std::error_code gone;
        const std::uintmax_t size = each->is_regular_file(gone) ? each->file_size(gone) : 0;
        bytes += gone ? 0 : size;
    }
    return bytes;
}

} // namespace

void MapFolders::store_result(const inspect::MapAnnouncement& announcement,
                              const inspect::MapSearchResult& found) {
    if (found.status != inspect::MapStatus::found || find_earlier_result(announcement) != nullptr) {
        return;
    }
    if (found_maps_.size() == kMaxLoadedMaps) {
        found_maps_.erase(found_maps_.begin());
    }
    found_maps_.emplace_back(announcement, found);
}

inspect::MapSearchResult MapFolders::find_map(const inspect::MapAnnouncement& announcement) {
    const std::lock_guard lock{mutex_};
    if (const inspect::MapSearchResult* known = find_earlier_result(announcement)) {
        return *known;
    }
    inspect::MapSearchResult found = find_map_in_folders(announcement);
    store_result(announcement, found);
    return found;
}

inspect::MapSearchResult MapFolders::find_stored_map(const inspect::MapAnnouncement& announcement) {
    const std::lock_guard lock{mutex_};
    const inspect::MapSearchResult* known = find_earlier_result(announcement);
    return known == nullptr ? inspect::MapSearchResult{} : *known;
}

template <typename Matches>
const inspect::MapSearchResult* MapFolders::find_result_if(const Matches& matches) const {
    const auto known = std::ranges::find_if(found_maps_, matches);
    return known == found_maps_.end() ? nullptr : &known->second;
}

const inspect::MapSearchResult*
MapFolders::find_earlier_result(const inspect::MapAnnouncement& announcement) const {
    return find_result_if([&](const auto& entry) { return entry.first == announcement; });
}

inspect::MapSearchResult MapFolders::store_map(const inspect::MapAnnouncement& announcement,
                                               std::vector<std::byte> bytes) {
    if (!map::is_valid_map_name(announcement.name)) {
        return {.status = inspect::MapStatus::invalid_name};
    }
    const map::Identity identity = map::identify(bytes);
    if (identity.crc != announcement.crc ||
        (announcement.sha256 && identity.sha256 != *announcement.sha256)) {
        return {.status = inspect::MapStatus::other_version,
                .detail = fmt::format("the map on the wire has crc {}, sha256 {}",
                                      map::to_hex(identity.crc), map::to_hex(identity.sha256))};
    }
    const std::lock_guard lock{mutex_};
    const auto map = map::Map::parse(std::move(bytes));
    inspect::MapSearchResult found = load_map(map, "the map on the wire");
    found.is_from_download = true;
    if (found.status == inspect::MapStatus::found) {
        found.detail = store_in_cache(announcement, identity, map->datafile().bytes());
        store_result(announcement, found);
        // The lock is still held, so a session that sees the new count finds the map.
        count_stored_map();
    }
    return found;
}

std::string MapFolders::store_in_cache(const inspect::MapAnnouncement& announcement,
                                       const map::Identity& identity,
                                       std::span<const std::byte> bytes) const {
    const std::filesystem::path& folder = options_.cache;
    if (folder.empty()) {
        return {};
    }
    // DDNet clients name downloaded maps like this. The announced name is valid as a file name.
    const auto path = folder / fmt::format("{}_{}.map", announcement.name,
                                           announcement.sha256 ? map::to_hex(identity.sha256)
                                                               : map::to_hex(identity.crc));
    std::error_code error;
    if (!std::filesystem::exists(path, error) &&
        folder_size(folder) + bytes.size() > options_.max_cache_bytes) {
        return fmt::format("was not cached in {}: it already holds {} MiB of maps; remove some",
                           folder.string(), options_.max_cache_bytes >> 20U);
    }
    error = base::replace_file(path, bytes);
    return error ? fmt::format("could not be cached in {}: {}", folder.string(), error.message())
                 : std::string{};
}

inspect::MapSearchResult MapFolders::find_loaded_map(const map::Sha256& sha256) {
    const std::lock_guard lock{mutex_};
    const inspect::MapSearchResult* known = find_result_if([&](const auto& entry) {
        return entry.second.sha256 == sha256 || entry.first.sha256 == sha256;
    });
    return known == nullptr ? inspect::MapSearchResult{} : *known;
}

void MapFolders::free_unused_maps() {
    const std::lock_guard lock{mutex_};
    std::vector<const map::PhysicsLayers*> unused;
    for (const auto& known : found_maps_) {
        const auto& physics = known.second.physics;
        const auto own = std::ranges::count_if(
            found_maps_, [&](const auto& entry) { return entry.second.physics == physics; });
        if (physics.use_count() == own) {
            unused.push_back(physics.get());
        }
    }
    std::erase_if(found_maps_, [&](const auto& entry) {
        return std::ranges::find(unused, entry.second.physics.get()) != unused.end();
    });
}

inspect::MapSearchResult MapFolders::load_map(const map::Result<map::Map>& file,
                                              const std::string& what) {
    const auto unreadable_map = [&](const map::MapError& error) {
        return inspect::MapSearchResult{.status = inspect::MapStatus::unreadable,
                                        .detail = fmt::format("{}: {} (offset {})", what,
                                                              map::error_info(error.code).sentence,
                                                              error.offset)};
    };
    if (!file) {
        return unreadable_map(file.error());
    }
    const std::span<const std::byte> bytes = file->datafile().bytes();
    inspect::MapSearchResult found{.status = inspect::MapStatus::found,
                                   .sha256 = map::sha256_of(bytes)};
    if (const inspect::MapSearchResult* known = find_result_if(
            [&](const auto& entry) { return entry.second.sha256 == found.sha256; })) {
        found.physics = known->physics;
        found.file_bytes = known->file_bytes;
        return found;
    }
    auto physics = file->physics();
    if (!physics) {
        return unreadable_map(physics.error());
    }
    const std::size_t memory = physics->memory_bytes();
    found.physics = inspect::make_shared_in_budget(options_.memory, *std::move(physics), memory);
    if (options_.includes_file_bytes) {
        found.file_bytes = inspect::make_shared_in_budget(
            options_.memory, std::vector<std::byte>{bytes.begin(), bytes.end()}, bytes.size());
    }
    return found;
}

inspect::MapSearchResult
MapFolders::find_map_in_folders(const inspect::MapAnnouncement& announcement) {
    using enum inspect::MapStatus;
    if (!map::is_valid_map_name(announcement.name)) {
        return {.status = invalid_name};
    }
    std::vector<map::WrongMap> wrong;
    const auto path =
        map::find_map(folders_, announcement.name, announcement.crc, announcement.sha256, &wrong);
    if (path) {
        return load_map(map::Map::open(*path), path->string());
    }
    if (wrong.empty()) {
        return {.status = not_found};
    }
    if (announcement.accepts_any_version) {
        return load_map(map::Map::open(wrong.front().path), wrong.front().path.string());
    }
    return {.status = other_version,
            .detail = fmt::format("{} has crc {}", wrong.front().path.string(),
                                  map::to_hex(wrong.front().identity.crc))};
}

} // namespace tw::pipeline
