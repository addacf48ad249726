#pragma once

#include "map/identity.h"
#include "map/map.h"
#include "proxy/inspect/map_source.h"

#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::run {

/// Maps from folders, and those that come over the wire. What was read once is kept and shared: many sessions play on one map. May be used by several workers.
class MapFolders final : public inspect::MapSource {
  public:
    /// `cache`: where maps that come over the wire are kept; empty: only in memory.
    explicit MapFolders(std::vector<std::filesystem::path> folders,
                        std::filesystem::path cache = {});

    [[nodiscard]] inspect::FoundMap find(const inspect::MapAnnouncement& announcement) override;
    [[nodiscard]] inspect::FoundMap keep(const inspect::MapAnnouncement& announcement,
                                         std::vector<std::byte> bytes) override;
    [[nodiscard]] inspect::FoundMap
    find_kept(const inspect::MapAnnouncement& announcement) override;

  private:
    /// A server that changes maps for ever must not fill the memory.
    static constexpr std::size_t kKept = 16;

    [[nodiscard]] inspect::FoundMap read(const inspect::MapAnnouncement& announcement) const;
    /// Returns what went wrong, which changes nothing else; empty when nothing did.
    [[nodiscard]] std::string store(const inspect::MapAnnouncement& announcement,
                                    const map::Identity& identity,
                                    std::span<const std::byte> bytes) const;
    [[nodiscard]] static inspect::FoundMap load(const map::Result<map::Map>& file,
                                                const std::string& what);
    /// What was found for this announcement; null if nothing was. The lock has to be held.
    [[nodiscard]] const inspect::FoundMap*
    known_as(const inspect::MapAnnouncement& announcement) const;
    void remember(const inspect::MapAnnouncement& announcement, const inspect::FoundMap& found);

    std::vector<std::filesystem::path> folders_;
    std::filesystem::path cache_;
    std::mutex mutex_;
    std::vector<std::pair<inspect::MapAnnouncement, inspect::FoundMap>> kept_; ///< oldest first
};

} // namespace tw::run
