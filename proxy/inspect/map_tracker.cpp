#include "proxy/inspect/map_tracker.h"

#include "map/game_layer.h"
#include "map/identity.h"
#include "proxy/wire/text.h"

#include <cstring>
#include <functional>
#include <limits>

namespace tw::inspect {

bool MapSource::mark_as_reported(std::string_view server, const MapAnnouncement& announcement,
                                 std::string_view finding) {
    std::string text;
    for (const std::string_view part : {server, std::string_view{announcement.name}, finding}) {
        text.append(part) += '\0';
    }
    text += std::to_string(announcement.crc);
    // The value is never 0, because 0 marks a free slot.
    const std::uint64_t wanted = std::hash<std::string>{}(text) | 1U;
    for (std::size_t i = 0; i < reported_findings_.size(); ++i) {
        std::atomic<std::uint64_t>& place =
            reported_findings_[(wanted / 2 + i) % reported_findings_.size()];
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

/// Value of next_chunk_number_ after the download was abandoned; no chunk has this number.
constexpr std::int32_t kAbandonedChunkNumber = std::numeric_limits<std::int32_t>::max();

} // namespace

void MapDownload::begin_download(const MapAnnouncement& announcement, Mode mode) {
    reset_download();
    download_mode_ = mode;
    if (announcement.size > 0 && announcement.size <= kMaxBytes) {
        announcement_ = announcement;
    }
}

void MapDownload::reset_download() {
    *this = {};
}

void MapDownload::abandon_download() {
    received_bytes_ = std::vector<std::byte>{};
    next_chunk_number_ = kAbandonedChunkNumber;
}

bool MapDownload::add_chunk(const wire::MapDataBody& chunk) {
    // Clients, too, drop a chunk of another map, a duplicate, and a chunk after a gap.
    if (!announcement_ || next_chunk_number_ == kAbandonedChunkNumber ||
        (chunk.numbered && (static_cast<std::uint32_t>(chunk.crc) != announcement_->crc ||
                            chunk.chunk != next_chunk_number_))) {
        return false;
    }
    has_unnumbered_chunks_ = !chunk.numbered;
    const auto size = static_cast<std::int64_t>(chunk.data.size());
    if (num_received_bytes_ + size > announcement_->size) {
        reset_download();
        return false;
    }
    if (keeps_bytes()) {
        received_bytes_.insert(received_bytes_.end(), chunk.data.begin(), chunk.data.end());
    }
    received_crc_ = map::continue_crc(received_crc_, chunk.data);
    num_received_bytes_ += size;
    ++next_chunk_number_;
    return chunk.numbered ? chunk.last != 0 : num_received_bytes_ == announcement_->size;
}

std::optional<std::int64_t> MapDownload::next_file_offset() const {
    return announcement_ && next_chunk_number_ != kAbandonedChunkNumber
               ? std::optional{num_received_bytes_}
               : std::nullopt;
}

std::vector<std::byte> MapDownload::take_bytes() {
    next_chunk_number_ = 0;
    num_received_bytes_ = 0;
    received_crc_ = 0;
    return std::exchange(received_bytes_, {});
}

namespace {

/// The steps by which clients sanitise map names.
constexpr std::uint8_t kMapNameSanitizing = wire::kCleanAllControl | wire::kSkipBlanks;

/// Whether a DDNet server has no 0.7 file of this map. Such a server announces size 0 with the
/// previous map's checksum and hash, and 0.7 clients disconnect.
bool is_map_withheld(const MapAnnouncement& announced) {
    return announced.accepts_any_version && announced.size == 0;
}

} // namespace

std::string clean_map_name(std::string_view text) {
    return wire::sanitize_string(std::as_bytes(std::span{text}), kMapNameSanitizing);
}

void MapTracker::on_map_details(const wire::MapDetailsBody& details) {
    announced_details_ = MapAnnouncement{.name = clean_map_name(details.name),
                                         .crc = static_cast<std::uint32_t>(details.crc),
                                         .size = details.size};
    announced_details_->sha256.emplace();
    std::memcpy(announced_details_->sha256->data(), details.sha256.data(),
                announced_details_->sha256->size());
}

void MapTracker::on_map_change(const wire::MapChangeBody& change, bool translated,
                               Reporter& reporter) {
    MapAnnouncement announced{.name = clean_map_name(change.name),
                              .crc = static_cast<std::uint32_t>(change.crc),
                              .size = change.size,
                              .accepts_any_version = translated};
    if (!change.sha256.empty()) {
        announced.sha256.emplace();
        std::memcpy(announced.sha256->data(), change.sha256.data(), announced.sha256->size());
    } else if (announced_details_ && announced_details_->name == announced.name &&
               announced_details_->crc == announced.crc &&
               announced_details_->size == announced.size) {
        announced.sha256 = announced_details_->sha256;
    }
    announced_details_.reset();
    set_announced_map(announced, reporter);
}

void MapTracker::set_announced_map(const MapAnnouncement& announced, Reporter& reporter) {
    announced_map_ = announced;
    // The number is read before the search. If a map is stored during the search, the session
    // therefore searches again.
    const std::uint32_t num_stored_maps = map_source_->num_stored_maps();
    set_current_map(announced,
                    is_map_withheld(announced) ? MapSearchResult{}
                                               : map_source_->find_map(announced),
                    reporter);
    if (tile_map_ == nullptr) {
        missing_map_ = MissingMap{announced, num_stored_maps};
    }
    download_.begin_download(announced, tile_map_ == nullptr ? MapDownload::Mode::assemble_file
                                                             : MapDownload::Mode::compute_checksum);
}

void MapTracker::on_map_data(const wire::MapDataBody& data, Reporter& reporter) {
    const bool under_way = download_.announced_size() != 0;
    if (!download_.add_chunk(data)) {
        // If the chunk exceeded the announced size, add_chunk() has discarded the download.
        if (under_way && download_.announced_size() == 0 && announced_map_) {
            report_map_finding_once(record::FindingId::map_crc_mismatch, *announced_map_,
                                    "the map on the wire is larger than announced", reporter);
        }
        return;
    }
    const MapAnnouncement announced = download_.announcement();
    if (download_.keeps_bytes()) {
        set_current_map(announced, map_source_->store_map(announced, download_.take_bytes()),
                        reporter);
    } else {
        check_download(announced, reporter);
    }
}

/// Compares the checksum of a download with that of the known map file.
void MapTracker::check_download(const MapAnnouncement& announced, Reporter& reporter) {
    const std::uint32_t crc = download_.received_crc();
    download_.reset_download();
    if (crc != announced.crc) {
        report_map_finding_once(record::FindingId::map_crc_mismatch, announced,
                                "the map on the wire has crc " + map::to_hex(crc), reporter);
    }
}

void MapTracker::set_demo_map(const MapAnnouncement& announced, std::vector<std::byte> bytes,
                              Reporter& reporter) {
    set_current_map(announced,
                    bytes.empty() ? map_source_->find_map(announced)
                                  : map_source_->store_map(announced, std::move(bytes)),
                    reporter, "demo");
}

void MapTracker::search_missing_map(Reporter& reporter) {
    missing_map_->num_stored_maps = map_source_->num_stored_maps();
    const MapSearchResult found = map_source_->find_stored_map(missing_map_->announced);
    if (found.status == MapStatus::found) {
        set_current_map(MapAnnouncement{missing_map_->announced}, found, reporter);
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

void MapTracker::forget_map() {
    announced_details_.reset();
    announced_map_.reset();
    missing_map_.reset();
    tile_map_.reset();
    download_.reset_download();
}

void MapTracker::report_map_finding_once(record::FindingId id, const MapAnnouncement& announced,
                                         std::string_view detail, Reporter& reporter) {
    const std::string finding =
        std::string{record::finding_info(id).name} + ' ' + std::string{detail};
    if (map_source_->mark_as_reported(reporter.server(), announced, finding)) {
        reporter.report_finding({.id = id, .name = announced.name, .detail = detail});
    } else {
        reporter.count_finding(id);
    }
}

void MapTracker::set_current_map(const MapAnnouncement& announced, const MapSearchResult& found,
                                 Reporter& reporter, std::string_view kept) {
    tile_map_.reset();
    record::MapRecord record{.head = reporter.head(),
                             .name = announced.name,
                             .crc = announced.crc,
                             .size = announced.size,
                             .sha256 = announced.sha256 ? announced.sha256 : found.sha256,
                             .source = "none"};
    if (found.status == MapStatus::found) {
        record.source = found.is_from_download ? kept : "folder";
        record.file = found.file_bytes;
        record.width = found.physics->width();
        record.height = found.physics->height();
        tile_map_ = std::make_unique<const record::TileMap>(found.physics);
        missing_map_.reset();
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
                                is_map_withheld(announced)
                                    ? "announced with size 0: the server has no such map for "
                                      "this client, which leaves"
                                    : std::string_view{found.detail},
                                reporter);
    }
}

} // namespace tw::inspect
