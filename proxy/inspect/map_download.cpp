#include "proxy/inspect/map_download.h"

#include "snapshot/cursor.h"

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

bool MapDownload::on_data(std::span<const std::byte> body) {
    snapshot::Cursor in{body};
    const std::int32_t last = in.var_int();
    const auto crc = static_cast<std::uint32_t>(in.var_int());
    const std::int32_t chunk = in.var_int();
    const std::int32_t size = in.var_int();
    const auto data = in.raw(size);
    // A chunk of another map, one had before, or one behind a gap: clients drop it, too.
    if (in.failed() || !announcement_ || crc != announcement_->crc || chunk != next_chunk_) {
        return false;
    }
    if (bytes_.size() + data.size() > static_cast<std::size_t>(announcement_->size)) {
        clear();
        return false;
    }
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    ++next_chunk_;
    return last != 0;
}

std::vector<std::byte> MapDownload::take_bytes() {
    next_chunk_ = 0;
    return std::exchange(bytes_, {});
}

} // namespace tw::inspect
