#include "proxy/map_folders.h"

#include "map/error.h"
#include "map/game_layer.h"
#include "map/identity.h"
#include "map/map.h"
#include "proxy/settings.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace tw {

MapFolders::MapFolders(std::vector<std::filesystem::path> folders) : folders_{std::move(folders)} {
    for (const auto& folder : folders_) {
        std::error_code error;
        if (!std::filesystem::is_directory(folder, error)) {
            throw UsageError{fmt::format("--maps {}: {}", folder.string(),
                                         error ? error.message() : "is not a folder")};
        }
    }
}

inspect::FoundMap MapFolders::find(const inspect::MapAnnouncement& announcement) {
    const std::lock_guard lock{mutex_};
    const auto known = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const auto& entry) { return entry.first == announcement; });
    if (known != kept_.end()) {
        return known->second;
    }
    inspect::FoundMap found = read(announcement);
    if (found.status == inspect::MapStatus::found) {
        if (kept_.size() == kKept) {
            kept_.erase(kept_.begin());
        }
        kept_.emplace_back(announcement, found);
    }
    return found;
}

inspect::FoundMap MapFolders::read(const inspect::MapAnnouncement& announcement) const {
    using enum inspect::MapStatus;
    if (!map::is_valid_map_name(announcement.name)) {
        return {.status = name_invalid};
    }
    std::vector<map::WrongMap> wrong;
    const auto path =
        map::find_map(folders_, announcement.name, announcement.crc, announcement.sha256, &wrong);
    if (!path) {
        if (wrong.empty()) {
            return {.status = not_found};
        }
        return {.status = other_version,
                .detail = fmt::format("{} has crc {}", wrong.front().path.string(),
                                      map::to_hex(wrong.front().identity.crc))};
    }
    const auto complain = [&](const map::MapError& error) {
        return inspect::FoundMap{.status = inspect::MapStatus::unreadable,
                                 .detail = fmt::format("{}: {} (offset {})", path->string(),
                                                       map::error_info(error.code).sentence,
                                                       error.offset)};
    };
    const auto file = map::Map::open(*path);
    if (!file) {
        return complain(file.error());
    }
    auto physics = file->physics();
    if (!physics) {
        return complain(physics.error());
    }
    return {.status = found,
            .physics = std::make_shared<const map::Physics>(*std::move(physics)),
            .sha256 = map::identify(file->datafile().bytes()).sha256};
}

} // namespace tw
