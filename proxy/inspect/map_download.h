#pragma once

#include "proxy/inspect/map_source.h"
#include "proxy/wire/bodies.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tw::inspect {

/// Reassembles a map that a client downloads through the game connection; one that is known is only
/// held against its checksum.
///
/// The chunks are vital, so they come in order; their size (896 or 895 bytes) is whatever the first
/// one has, and only the last is shorter. In 0.7 they have neither number nor end. Memory grows with what arrives, never with what is
/// announced.
/// Source: protocol sheet, section 9.2.
class MapDownload {
  public:
    /// DDNet clients take maps up to 1 GiB; the largest real ones have a few MB.
    static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20U;

    enum class What : std::uint8_t {
        assemble,
        check, ///< keep no bytes
    };

    /// A map was announced: what arrives from now on belongs to it.
    void begin(const MapAnnouncement& announcement, What what = What::assemble);
    void clear();
    /// Takes no more of the one that is under way, and gives back its memory.
    void give_up();

    /// Chunks may be missing. Those of 0.7 have no numbers: nobody knows where the next belongs.
    void on_gap() {
        if (unnumbered_) {
            give_up();
        }
    }

    /// Where the next chunk of 0.7 stands in the file; nothing where that is not known.
    [[nodiscard]] std::optional<std::int64_t> next_offset() const;

    /// True when the map is complete: `take_bytes` hands it out, if it is assembled.
    [[nodiscard]] bool on_data(const wire::MapDataBody& chunk);

    /// Size of the map under way, 0 if there is none.
    [[nodiscard]] std::int64_t announced_size() const {
        return announcement_ ? announcement_->size : 0;
    }

    [[nodiscard]] const MapAnnouncement& announcement() const { return *announcement_; }

    [[nodiscard]] std::vector<std::byte> take_bytes();

    [[nodiscard]] bool keeps_bytes() const { return what_ == What::assemble; }

    /// Of what came so far.
    [[nodiscard]] std::uint32_t crc() const { return crc_; }

    [[nodiscard]] std::size_t memory_bytes() const { return bytes_.capacity(); }

  private:
    std::optional<MapAnnouncement> announcement_;
    What what_ = What::assemble;
    std::vector<std::byte> bytes_;
    std::int64_t size_ = 0; ///< of what came so far
    std::uint32_t crc_ = 0;
    std::int32_t next_chunk_ = 0;
    bool unnumbered_ = false; ///< 0.7: a chunk is what comes next, until all of it is there
};

} // namespace tw::inspect
