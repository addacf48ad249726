#pragma once

#include "proxy/inspect/map_source.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// Puts together a map that a client downloads through the game connection.
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

    /// The body of a map_data message. True when the map is complete: `bytes` holds it.
    [[nodiscard]] bool on_data(std::span<const std::byte> body);

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
