#pragma once

#include "map/identity.h"
#include "map/map.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/session.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tw::pipeline {

/// Maps from folders, and those that come over the wire. What was read once is kept and shared: many
/// sessions play on one map, and it stands in memory once, whatever names it goes by. May be used by
/// several workers.
class MapFolders final : public inspect::MapSource {
  public:
    /// A folder of maps that clients downloaded grows no larger.
    static constexpr std::uintmax_t kCacheQuota = std::uintmax_t{1} << 30U;

    struct Options {
        std::filesystem::path cache{}; ///< where maps from the wire go; empty: only into memory
        std::uintmax_t cache_quota = kCacheQuota; ///< bytes of all maps in it
        /// What maps are charged to; null: to nothing. Has to outlive this and the maps.
        inspect::MemoryBudget* memory = nullptr;
        bool with_files = false; ///< what is found comes with its bytes
    };

    explicit MapFolders(std::vector<std::filesystem::path> folders)
        : MapFolders{std::move(folders), Options{}} {}

    MapFolders(std::vector<std::filesystem::path> folders, Options options)
        : folders_{std::move(folders)}, options_{std::move(options)} {}

    [[nodiscard]] inspect::FoundMap find(const inspect::MapAnnouncement& announcement) override;
    [[nodiscard]] inspect::FoundMap keep(const inspect::MapAnnouncement& announcement,
                                         std::vector<std::byte> bytes) override;
    [[nodiscard]] inspect::FoundMap
    find_kept(const inspect::MapAnnouncement& announcement) override;
    void shed() override;

    /// The map with this checksum, if it is kept; null: it is not.
    [[nodiscard]] std::shared_ptr<const map::Physics> physics_of(const map::Sha256& sha256);

  private:
    /// A server that changes maps for ever must not fill the memory.
    static constexpr std::size_t kKept = 16;

    [[nodiscard]] inspect::FoundMap read(const inspect::MapAnnouncement& announcement);
    /// Returns what went wrong, which changes nothing else; empty when nothing did.
    [[nodiscard]] std::string store(const inspect::MapAnnouncement& announcement,
                                    const map::Identity& identity,
                                    std::span<const std::byte> bytes) const;
    /// The map of a file's bytes, unless it is here already. The lock has to be held.
    [[nodiscard]] inspect::FoundMap load(const map::Result<map::Map>& file,
                                         const std::string& what);
    /// Adds the file's bytes where they were asked for. The lock has to be held.
    void add_file(inspect::FoundMap& found, std::span<const std::byte> bytes) const;
    [[nodiscard]] std::shared_ptr<const map::Physics> find_physics(const map::Sha256& sha256) const;
    /// What was found for this announcement; null if nothing was. The lock has to be held.
    [[nodiscard]] const inspect::FoundMap*
    known_as(const inspect::MapAnnouncement& announcement) const;
    void remember(const inspect::MapAnnouncement& announcement, const inspect::FoundMap& found);

    std::vector<std::filesystem::path> folders_;
    Options options_;
    std::mutex mutex_;
    std::vector<std::pair<inspect::MapAnnouncement, inspect::FoundMap>> kept_; ///< oldest first
};

} // namespace tw::pipeline
