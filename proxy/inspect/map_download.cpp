#include "proxy/inspect/map_download.h"

#include "map/identity.h"

#include <limits>
#include <utility>

namespace tw::inspect {

namespace {

constexpr std::int32_t kGivenUp = std::numeric_limits<std::int32_t>::max(); ///< none has it

} // namespace

void MapDownload::begin(const MapAnnouncement& announcement, What what) {
    clear();
    what_ = what;
    if (announcement.size > 0 && announcement.size <= kMaxBytes) {
        announcement_ = announcement;
    }
}

void MapDownload::clear() {
    *this = {};
}

void MapDownload::give_up() {
    bytes_ = std::vector<std::byte>{};
    next_chunk_ = kGivenUp;
}

bool MapDownload::on_data(const wire::MapDataBody& chunk) {
    // A chunk of another map, one had before, or one behind a gap: clients drop it, too.
    if (!announcement_ || next_chunk_ == kGivenUp) {
        return false;
    }
    if (chunk.numbered && (static_cast<std::uint32_t>(chunk.crc) != announcement_->crc ||
                           chunk.chunk != next_chunk_)) {
        return false;
    }
    unnumbered_ = !chunk.numbered;
    const auto size = static_cast<std::int64_t>(chunk.data.size());
    if (size_ + size > announcement_->size) {
        clear();
        return false;
    }
    if (keeps_bytes()) {
        bytes_.insert(bytes_.end(), chunk.data.begin(), chunk.data.end());
    }
    crc_ = map::crc_of(crc_, chunk.data);
    size_ += size;
    ++next_chunk_;
    return chunk.numbered ? chunk.last != 0 : size_ == announcement_->size;
}

std::optional<std::int64_t> MapDownload::next_offset() const {
    return announcement_ && next_chunk_ != kGivenUp ? std::optional{size_} : std::nullopt;
}

std::vector<std::byte> MapDownload::take_bytes() {
    next_chunk_ = 0;
    size_ = 0;
    crc_ = 0;
    return std::exchange(bytes_, {});
}

} // namespace tw::inspect
