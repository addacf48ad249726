#pragma once

#include "map/identity.h"
#include "map/map.h"
#include "proxy/inspect/map_tracker.h"
#include "proxy/inspect/session.h"

#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::pipeline {

/// Finds maps in folders and among the maps that servers have sent. All sessions share one loaded
/// copy of a map, even if the map has several names. Thread-safe.
class MapFolders final : public inspect::MapSource {
  public:
    static constexpr std::uintmax_t kMaxCacheBytes = std::uintmax_t{1} << 30U;

    struct Options {
        /// Folder in which received maps are stored; empty: received maps stay only in memory.
        std::filesystem::path cache{};
        std::uintmax_t max_cache_bytes = kMaxCacheBytes; ///< size limit of the folder `cache`
        /// The budget to which the memory of maps is charged; null: none. Must outlive this object
        /// and the maps.
        inspect::MemoryBudget* memory = nullptr;
        bool includes_file_bytes = false; ///< true if results include the bytes of the map file
    };

    explicit MapFolders(std::vector<std::filesystem::path> folders)
        : MapFolders{std::move(folders), Options{}} {}

    MapFolders(std::vector<std::filesystem::path> folders, Options options)
        : folders_{std::move(folders)}, options_{std::move(options)} {}

    [[nodiscard]] inspect::MapSearchResult
    find_map(const inspect::MapAnnouncement& announcement) override;
    [[nodiscard]] inspect::MapSearchResult store_map(const inspect::MapAnnouncement& announcement,
                                                     std::vector<std::byte> bytes) override;
    [[nodiscard]] inspect::MapSearchResult
    find_stored_map(const inspect::MapAnnouncement& announcement) override;
    void free_unused_maps() override;

    /// Returns the loaded map whose file or announcement has this checksum; an empty result if no
    /// such map is loaded. The checksums of file and announcement may differ if
    /// MapAnnouncement::accepts_any_version is set.
    [[nodiscard]] inspect::MapSearchResult find_loaded_map(const map::Sha256& sha256);

  private:
    /// The limit of loaded maps, so that a server that keeps changing maps cannot exhaust memory.
    static constexpr std::size_t kMaxLoadedMaps = 16;

    [[nodiscard]] inspect::MapSearchResult
    find_map_in_folders(const inspect::MapAnnouncement& announcement);
    /// Stores a received map in the cache folder. Returns an error message; empty on success.
    [[nodiscard]] std::string store_in_cache(const inspect::MapAnnouncement& announcement,
                                             const map::Identity& identity,
                                             std::span<const std::byte> bytes) const;
    /// Loads the map in the file. If the same map is already loaded, returns the loaded copy.
    /// `what`: the map's name in error messages. Precondition: mutex_ is held.
    [[nodiscard]] inspect::MapSearchResult load_map(const map::Result<map::Map>& file,
                                                    const std::string& what);
    /// Returns the result of the first entry in found_maps_ for which `matches` is true; null if
    /// there is none. Precondition: mutex_ is held.
    template <typename Matches>
    [[nodiscard]] const inspect::MapSearchResult* find_result_if(const Matches& matches) const;
    /// Returns the earlier result for this announcement; null if there is none. Precondition:
    /// mutex_ is held.
    [[nodiscard]] const inspect::MapSearchResult*
    find_earlier_result(const inspect::MapAnnouncement& announcement) const;
    void store_result(const inspect::MapAnnouncement& announcement,
                      const inspect::MapSearchResult& found);

    std::vector<std::filesystem::path> folders_;
    Options options_;
    std::mutex mutex_;
    /// The maps that were found, with their announcements, oldest first.
    std::vector<std::pair<inspect::MapAnnouncement, inspect::MapSearchResult>> found_maps_;
};

} // namespace tw::pipeline
