#pragma once

#include "proxy/inspect/map_source.h"

#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

namespace tw {

/// Maps from the folders given with --maps. What was read once is kept and shared: many sessions
/// play on one map. May be used by several workers.
class MapFolders final : public inspect::MapSource {
  public:
    /// Errors: UsageError when a folder is not there.
    explicit MapFolders(std::vector<std::filesystem::path> folders);

    [[nodiscard]] inspect::FoundMap find(const inspect::MapAnnouncement& announcement) override;

  private:
    /// A server that changes maps for ever must not fill the memory.
    static constexpr std::size_t kKept = 16;

    [[nodiscard]] inspect::FoundMap read(const inspect::MapAnnouncement& announcement) const;

    std::vector<std::filesystem::path> folders_;
    std::mutex mutex_;
    std::vector<std::pair<inspect::MapAnnouncement, inspect::FoundMap>> kept_; ///< oldest first
};

} // namespace tw
