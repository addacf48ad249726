#include "proxy/inspect/map_tracker.h"

#include "map/game_layer.h"
#include "map/identity.h"
#include "proxy/wire/text.h"

#include <cstring>
#include <functional>
#include <limits>

namespace tw::inspect {

bool MapSource::is_first_report(std::string_view server, const MapAnnouncement& announcement,
                                std::string_view finding) {
    std::string text;
    for (const std::string_view part : {server, std::string_view{announcement.name}, finding}) {
        text.append(part) += '\0';
    }
    text += std::to_string(announcement.crc);
    const std::uint64_t wanted = std::hash<std::string>{}(text) | 1U; // 0 means a free slot
    for (std::size_t i = 0; i < reported_.size(); ++i) {
        std::atomic<std::uint64_t>& place = reported_[(wanted / 2 + i) % reported_.size()];
        std::uint64_t there = 0;
        if (place.compare_exchange_strong(there, wanted, std::memory_order_relaxed)) {
            return true;
        }
        if (there == wanted) {
            return false;
        }
    }
    return true;
}

namespace {

/// Value of next_chunk_ after the download was abandoned; no chunk has this number.
constexpr std::int32_t kAbandoned = std::numeric_limits<std::int32_t>::max();

} // namespace

void MapDownload::begin(const MapAnnouncement& announcement, Mode mode) {
    clear();
    mode_ = mode;
    if (announcement.size > 0 && announcement.size <= kMaxBytes) {
        announcement_ = announcement;
    }
}

void MapDownload::clear() {
    *this = {};
}

void MapDownload::abandon() {
    bytes_ = std::vector<std::byte>{};
    next_chunk_ = kAbandoned;
}

bool MapDownload::add_chunk(const wire::MapDataBody& chunk) {
    // Clients, too, drop a chunk of another map, a duplicate, and a chunk after a gap.
    if (!announcement_ || next_chunk_ == kAbandoned) {
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
    crc_ = map::continue_crc(crc_, chunk.data);
    size_ += size;
    ++next_chunk_;
    return chunk.numbered ? chunk.last != 0 : size_ == announcement_->size;
}

std::optional<std::int64_t> MapDownload::next_file_offset() const {
    return announcement_ && next_chunk_ != kAbandoned ? std::optional{size_} : std::nullopt;
}

std::vector<std::byte> MapDownload::take_bytes() {
    next_chunk_ = 0;
    size_ = 0;
    crc_ = 0;
    return std::exchange(bytes_, {});
}

namespace {

/// The steps by which clients sanitise map names.
constexpr std::uint8_t kNameCleaning = wire::kCleanAllControl | wire::kSkipBlanks;

/// Whether a DDNet server has no 0.7 file of this map. Such a server announces size 0 with the
/// previous map's checksum and hash, and 0.7 clients leave it.
bool is_withheld(const MapAnnouncement& announced) {
    return announced.any_version && announced.size == 0;
}

} // namespace

std::string clean_map_name(std::string_view text) {
    return wire::sanitize_string(std::as_bytes(std::span{text}), kNameCleaning);
}

void MapTracker::on_map_details(const wire::MapDetailsBody& details) {
    details_ = MapAnnouncement{.name = clean_map_name(details.name),
                               .crc = static_cast<std::uint32_t>(details.crc),
                               .size = details.size};
    details_->sha256.emplace();
    std::memcpy(details_->sha256->data(), details.sha256.data(), details_->sha256->size());
}

void MapTracker::on_map_change(const wire::MapChangeBody& change, bool translated,
                               Reporter& reporter) {
    MapAnnouncement announced{.name = clean_map_name(change.name),
                              .crc = static_cast<std::uint32_t>(change.crc),
                              .size = change.size,
                              .any_version = translated};
    if (!change.sha256.empty()) {
        announced.sha256.emplace();
        std::memcpy(announced.sha256->data(), change.sha256.data(), announced.sha256->size());
    } else if (details_ && details_->name == announced.name && details_->crc == announced.crc &&
               details_->size == announced.size) {
        announced.sha256 = details_->sha256;
    }
    details_.reset();
    restore(announced, reporter);
}

void MapTracker::restore(const MapAnnouncement& announced, Reporter& reporter) {
    announced_ = announced;
    // The number is read before the search, so that a map that is stored during the search is not
    // missed.
    const std::uint32_t num_stored_maps = maps_->num_stored_maps();
    set_current_map(announced, is_withheld(announced) ? FoundMap{} : maps_->find_map(announced),
                    reporter);
    if (tile_map_ == nullptr) {
        missing_ = MissingMap{announced, num_stored_maps};
    }
    download_.begin(announced,
                    tile_map_ == nullptr ? MapDownload::Mode::assemble : MapDownload::Mode::check);
}

void MapTracker::on_map_data(const wire::MapDataBody& data, Reporter& reporter) {
    const bool under_way = download_.announced_size() != 0;
    if (!download_.add_chunk(data)) {
        // If the chunk exceeded the announced size, add_chunk() has discarded the download.
        if (under_way && download_.announced_size() == 0 && announced_) {
            report_map_finding_once(record::FindingId::map_crc_mismatch, *announced_,
                                    "the map on the wire is larger than announced", reporter);
        }
        return;
    }
    const MapAnnouncement announced = download_.announcement();
    if (download_.keeps_bytes()) {
        set_current_map(announced, maps_->store_map(announced, download_.take_bytes()), reporter);
    } else {
        check_download(announced, reporter);
    }
}

/// Compares the checksum of a download with that of the known map file.
void MapTracker::check_download(const MapAnnouncement& announced, Reporter& reporter) {
    const std::uint32_t crc = download_.crc();
    download_.clear();
    if (crc != announced.crc) {
        report_map_finding_once(record::FindingId::map_crc_mismatch, announced,
                                "the map on the wire has crc " + map::to_hex(crc), reporter);
    }
}

void MapTracker::set_demo_map(const MapAnnouncement& announced, std::vector<std::byte> bytes,
                              Reporter& reporter) {
    set_current_map(announced,
                    bytes.empty() ? maps_->find_map(announced)
                                  : maps_->store_map(announced, std::move(bytes)),
                    reporter, "demo");
}

void MapTracker::search_missing_map(Reporter& reporter) {
    missing_->num_stored_maps = maps_->num_stored_maps();
    const FoundMap found = maps_->find_stored_map(missing_->announced);
    if (found.status == MapStatus::found) {
        set_current_map(MapAnnouncement{missing_->announced}, found, reporter);
    }
}

std::optional<std::int64_t> MapTracker::file_offset_of_chunk(const wire::MapDataBody& data) const {
    if (!data.numbered) {
        return download_.next_file_offset();
    }
    // The last chunk is shorter than the others, so its offset is counted from the end of the file.
    const auto size = static_cast<std::int64_t>(data.data.size());
    const std::int64_t offset =
        data.last != 0 ? download_.announced_size() - size : data.chunk * size;
    return offset >= 0 ? std::optional{offset} : std::nullopt;
}

void MapTracker::reset() {
    details_.reset();
    announced_.reset();
    missing_.reset();
    tile_map_.reset();
    download_.clear();
}

void MapTracker::report_map_finding_once(record::FindingId id, const MapAnnouncement& announced,
                                         std::string_view detail, Reporter& reporter) {
    const std::string finding =
        std::string{record::finding_info(id).name} + ' ' + std::string{detail};
    if (maps_->is_first_report(reporter.server(), announced, finding)) {
        reporter.report_finding({.id = id, .name = announced.name, .detail = detail});
    } else {
        reporter.count_finding(id);
    }
}

void MapTracker::set_current_map(const MapAnnouncement& announced, const FoundMap& found,
                                 Reporter& reporter, std::string_view kept) {
    tile_map_.reset();
    record::MapRecord record{.head = reporter.head(),
                             .name = announced.name,
                             .crc = announced.crc,
                             .size = announced.size,
                             .sha256 = announced.sha256 ? announced.sha256 : found.sha256,
                             .source = "none"};
    if (found.status == MapStatus::found) {
        record.source = found.from_wire ? kept : "folder";
        record.file = found.file;
        record.width = found.physics->width();
        record.height = found.physics->height();
        tile_map_ = std::make_unique<const record::TileMap>(found.physics);
        missing_.reset();
    }
    reporter.emit(record);
    if (found.status == MapStatus::found && !found.detail.empty()) {
        report_map_finding_once(record::FindingId::map_not_cached, announced, found.detail,
                                reporter);
    }
    static constexpr std::array kFindings{
        record::FindingId::count, record::FindingId::map_not_found,
        record::FindingId::map_crc_mismatch, record::FindingId::map_unreadable,
        record::FindingId::map_name_invalid};
    if (const record::FindingId id = kFindings[static_cast<std::size_t>(found.status)];
        id != record::FindingId::count) {
        report_map_finding_once(id, announced,
                                is_withheld(announced)
                                    ? "announced with size 0: the server has no such map for "
                                      "this client, which leaves"
                                    : std::string_view{found.detail},
                                reporter);
    }
}

} // namespace tw::inspect
