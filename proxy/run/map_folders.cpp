#include "proxy/run/map_folders.h"

#include "map/error.h"
#include "map/game_layer.h"
#include "proxy/sink/file_output.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace tw::run {

namespace {

std::error_code write_file(const std::string& path, std::span<const std::byte> bytes) {
    try {
        sink::FileOutput file{path};
        file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        return {file.error(), std::generic_category()};
    } catch (const std::system_error& error) {
        return error.code();
    }
}

} // namespace

MapFolders::MapFolders(std::vector<std::filesystem::path> folders, std::filesystem::path cache)
    : folders_{std::move(folders)}, cache_{std::move(cache)} {}

void MapFolders::remember(const inspect::MapAnnouncement& announcement,
                          const inspect::FoundMap& found) {
    if (found.status != inspect::MapStatus::found || known_as(announcement) != nullptr) {
        return;
    }
    if (kept_.size() == kKept) {
        kept_.erase(kept_.begin());
    }
    kept_.emplace_back(announcement, found);
}

inspect::FoundMap MapFolders::find(const inspect::MapAnnouncement& announcement) {
    const std::lock_guard lock{mutex_};
    if (const inspect::FoundMap* known = known_as(announcement)) {
        return *known;
    }
    inspect::FoundMap found = read(announcement);
    remember(announcement, found);
    return found;
}

inspect::FoundMap MapFolders::find_kept(const inspect::MapAnnouncement& announcement) {
    const std::lock_guard lock{mutex_};
    const inspect::FoundMap* known = known_as(announcement);
    return known == nullptr ? inspect::FoundMap{} : *known;
}

const inspect::FoundMap* MapFolders::known_as(const inspect::MapAnnouncement& announcement) const {
    const auto known = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& entry) { return entry.first == announcement; });
    return known == kept_.end() ? nullptr : &known->second;
}

inspect::FoundMap MapFolders::keep(const inspect::MapAnnouncement& announcement,
                                   std::vector<std::byte> bytes) {
    if (!map::is_valid_map_name(announcement.name)) {
        return {.status = inspect::MapStatus::name_invalid};
    }
    const map::Identity identity = map::identify(bytes);
    if (identity.crc != announcement.crc ||
        (announcement.sha256 && identity.sha256 != *announcement.sha256)) {
        return {.status = inspect::MapStatus::other_version,
                .detail = fmt::format("the map on the wire has crc {}, sha256 {}",
                                      map::to_hex(identity.crc), map::to_hex(identity.sha256))};
    }
    const std::string stored = store(announcement, identity, bytes);
    inspect::FoundMap found = load(map::Map::parse(std::move(bytes)), "the map on the wire");
    found.from_wire = true;
    if (!stored.empty()) {
        found.detail = stored;
    }
    const std::lock_guard lock{mutex_};
    if (found.status == inspect::MapStatus::found) {
        remember(announcement, found);
        count_kept(); // with the lock held: who sees the number finds the map
    }
    return found;
}

std::string MapFolders::store(const inspect::MapAnnouncement& announcement,
                              const map::Identity& identity,
                              std::span<const std::byte> bytes) const {
    if (cache_.empty()) {
        return {};
    }
    // The ecosystem's name for a downloaded map; the name was found to be one file's.
    const auto path = cache_ / fmt::format("{}_{}.map", announcement.name,
                                           announcement.sha256 ? map::to_hex(identity.sha256)
                                                               : map::to_hex(identity.crc));
    // Written aside and renamed, so that nobody ever reads half a map.
    auto aside = path;
    aside += fmt::format(".{}.tmp", ::getpid());
    std::error_code error = write_file(aside.string(), bytes);
    if (!error) {
        std::filesystem::rename(aside, path, error);
    }
    if (error) {
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
        return fmt::format("could not be kept in {}: {}", cache_.string(), error.message());
    }
    return {};
}

inspect::FoundMap MapFolders::load(const map::Result<map::Map>& file, const std::string& what) {
    const auto complain = [&](const map::MapError& error) {
        return inspect::FoundMap{.status = inspect::MapStatus::unreadable,
                                 .detail = fmt::format("{}: {} (offset {})", what,
                                                       map::error_info(error.code).sentence,
                                                       error.offset)};
    };
    if (!file) {
        return complain(file.error());
    }
    auto physics = file->physics();
    if (!physics) {
        return complain(physics.error());
    }
    return {.status = inspect::MapStatus::found,
            .physics = std::make_shared<const map::Physics>(*std::move(physics)),
            .sha256 = map::identify(file->datafile().bytes()).sha256};
}

inspect::FoundMap MapFolders::read(const inspect::MapAnnouncement& announcement) const {
    using enum inspect::MapStatus;
    if (!map::is_valid_map_name(announcement.name)) {
        return {.status = name_invalid};
    }
    std::vector<map::WrongMap> wrong;
    const auto path =
        map::find_map(folders_, announcement.name, announcement.crc, announcement.sha256, &wrong);
    if (path) {
        return load(map::Map::open(*path), path->string());
    }
    if (wrong.empty()) {
        return {.status = not_found};
    }
    return {.status = other_version,
            .detail = fmt::format("{} has crc {}", wrong.front().path.string(),
                                  map::to_hex(wrong.front().identity.crc))};
}

} // namespace tw::run
