#include "proxy/inspect/map_download.h"

#include <utility>

namespace tw::inspect {

void MapDownload::begin(const MapAnnouncement& announcement) {
    clear();
    if (announcement.size > 0 && announcement.size <= kMaxBytes) {
        announcement_ = announcement;
    }
}

void MapDownload::clear() {
    announcement_.reset();
    bytes_ = {};
    next_chunk_ = 0;
}

bool MapDownload::on_data(const wire::MapDataBody& chunk) {
    // A chunk of another map, one had before, or one behind a gap: clients drop it, too.
    if (!announcement_ || static_cast<std::uint32_t>(chunk.crc) != announcement_->crc ||
        chunk.chunk != next_chunk_) {
        return false;
    }
    if (bytes_.size() + chunk.data.size() > static_cast<std::size_t>(announcement_->size)) {
        clear();
        return false;
    }
    bytes_.insert(bytes_.end(), chunk.data.begin(), chunk.data.end());
    ++next_chunk_;
    return chunk.last != 0;
}

std::vector<std::byte> MapDownload::take_bytes() {
    next_chunk_ = 0;
    return std::exchange(bytes_, {});
}

} // namespace tw::inspect
