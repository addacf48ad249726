#pragma once

#include "proxy/inspect/map_source.h"
#include "proxy/wire/bodies.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// Reassembles a map that a client downloads through the game connection.
///
/// The chunks are vital, so they come in order; their size (896 or 895 bytes) is whatever the first
/// one has, and only the last is shorter. Memory grows with what arrives, never with what is
/// announced.
/// Source: protocol sheet, section 9.2.
class MapDownload {
  public:
    /// DDNet clients take maps up to 1 GiB; the largest real ones have a few MB.
    static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20U;

    /// A map was announced: what arrives from now on belongs to it.
    void begin(const MapAnnouncement& announcement);
    void clear();

    /// True when the map is complete: `take_bytes` hands it out.
    [[nodiscard]] bool on_data(const wire::MapDataBody& chunk);

    /// Size of the map under way, 0 if there is none.
    [[nodiscard]] std::int64_t announced_size() const {
        return announcement_ ? announcement_->size : 0;
    }

    [[nodiscard]] const MapAnnouncement& announcement() const { return *announcement_; }

    [[nodiscard]] std::vector<std::byte> take_bytes();

  private:
    std::optional<MapAnnouncement> announcement_;
    std::vector<std::byte> bytes_;
    std::int32_t next_chunk_ = 0;
};

} // namespace tw::inspect
