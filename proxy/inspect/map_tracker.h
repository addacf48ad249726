#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/interface.h"
#include "proxy/record/records.h"
#include "proxy/wire/bodies.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw::map {
class PhysicsLayers;
} // namespace tw::map

namespace tw::inspect {

/// The map that a server announces.
struct MapAnnouncement {
    std::string name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    /// True if any map file with this name fits, whatever its checksum. To 0.7 clients, DDNet
    /// servers announce a converted file, which has the same tiles.
    bool accepts_any_version = false;

    friend bool operator==(const MapAnnouncement&, const MapAnnouncement&) = default;
};

enum class MapStatus : std::uint8_t {
    found,
    not_found,
    other_version, ///< a map of this name exists, but its checksum differs
    unreadable,
    invalid_name,
};

struct MapSearchResult {
    MapStatus status = MapStatus::not_found;
    /// The map's tiles; null if no map was found.
    std::shared_ptr<const map::PhysicsLayers> physics{};
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    /// A text for users: why no map was found, or why a downloaded map was not stored.
    std::string detail{};
    bool is_from_download = false; ///< the map comes from a client's download, not from a folder
    /// The bytes of the map file; null if the source is not configured to keep them.
    std::shared_ptr<const std::vector<std::byte>> file_bytes{};
};

/// Finds map files, and stores the map files that clients download, for all sessions.
class MapSource : public record::InterfaceBase {
  public:
    [[nodiscard]] virtual MapSearchResult find_map(const MapAnnouncement& announcement) = 0;
    /// Checks a downloaded map against its announcement and stores it for later searches.
    [[nodiscard]] virtual MapSearchResult store_map(const MapAnnouncement& announcement,
                                                    std::vector<std::byte> bytes) = 0;

    /// Like find_map(), but searches only the maps that store_map() stored, without reading files.
    [[nodiscard]] virtual MapSearchResult find_stored_map(const MapAnnouncement& /*announcement*/) {
        return {};
    }

    /// Frees the memory of maps that no session uses. Called when the memory budget is exceeded.
    virtual void free_unused_maps() {}

    /// Returns true if no session of this server has reported this finding for this map yet, and
    /// remembers the finding as reported. After kMaxReported findings, always returns true.
    /// Thread-safe.
    [[nodiscard]] bool mark_as_reported(std::string_view server,
                                        const MapAnnouncement& announcement,
                                        std::string_view finding);

    /// Returns the number of maps that store_map() has stored so far. When this number changes, a
    /// session whose map was not found searches again.
    [[nodiscard]] std::uint32_t num_stored_maps() const noexcept {
        return num_stored_.load(std::memory_order_relaxed);
    }

  protected:
    /// Counts a stored map. Implementations of store_map() must call this when find_stored_map()
    /// can find the map.
    void count_stored_map() noexcept { num_stored_.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t kMaxReported = 1024;

    std::atomic<std::uint32_t> num_stored_{0};
    /// A hash table of the reported findings. An element is the hash of a server, a map and a
    /// finding; 0 marks a free slot.
    std::array<std::atomic<std::uint64_t>, kMaxReported> reported_findings_{};
};

/// Reassembles a map that a client downloads from the game server. If the map file was already
/// found elsewhere, only the checksum of the download is computed.
///
/// The map's chunks are vital, so they arrive in order. The size of the first chunk is the chunk
/// size (896 or 895 bytes); only the last chunk is shorter. 0.7 chunks have neither a number nor an
/// end mark. Memory grows with the received bytes, not with the announced size.
/// Source: DDNet's CServer (NETMSG_REQUEST_MAP_DATA) and CClient (NETMSG_MAP_DATA).
class MapDownload {
  public:
    /// The largest map that is reassembled. DDNet clients accept maps up to 1 GiB, but the largest
    /// real maps have a few MB.
    static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20U;

    enum class Mode : std::uint8_t {
        assemble_file,
        compute_checksum, ///< only compute the map's checksum, without storing its bytes
    };

    void begin_download(const MapAnnouncement& announcement, Mode mode = Mode::assemble_file);
    void reset_download();
    /// Abandons the current download and frees its memory.
    void abandon_download();

    /// Called when chunks of the map may have been missed. Abandons a 0.7 download: 0.7 chunks have
    /// no numbers, so the positions of later chunks in the file are unknown.
    void on_missed_datagrams() {
        if (has_unnumbered_chunks_) {
            abandon_download();
        }
    }

    /// Returns the file offset of the next 0.7 chunk; nullopt if unknown.
    [[nodiscard]] std::optional<std::int64_t> next_file_offset() const;

    /// Adds a chunk. Returns whether the map is complete. In the mode `assemble_file`, take_bytes()
    /// then returns the bytes of the map.
    [[nodiscard]] bool add_chunk(const wire::MapDataBody& chunk);

    /// Returns the announced size of the map in bytes; 0 if no download has begun.
    [[nodiscard]] std::int64_t announced_size() const {
        return announcement_ ? announcement_->size : 0;
    }

    [[nodiscard]] const MapAnnouncement& announcement() const { return *announcement_; }

    [[nodiscard]] std::vector<std::byte> take_bytes();

    [[nodiscard]] bool keeps_bytes() const { return download_mode_ == Mode::assemble_file; }

    /// Returns the CRC-32 of the map's bytes received so far.
    [[nodiscard]] std::uint32_t received_crc() const { return received_crc_; }

    [[nodiscard]] std::size_t memory_bytes() const { return received_bytes_.capacity(); }

  private:
    std::optional<MapAnnouncement> announcement_;
    Mode download_mode_ = Mode::assemble_file;
    std::vector<std::byte> received_bytes_;
    std::int64_t num_received_bytes_ = 0;
    std::uint32_t received_crc_ = 0;
    std::int32_t next_chunk_number_ = 0;
    bool has_unnumbered_chunks_ = false; ///< chunks have no numbers, as in 0.7
};

/// Returns the map name as clients sanitise it: control characters become spaces, and leading
/// blanks are removed.
[[nodiscard]] std::string clean_map_name(std::string_view text);

/// Tracks which map the server of a connection plays. Finds the map in the map source or in the
/// client's download. Emits a record for each map.
class MapTracker {
  public:
    explicit MapTracker(MapSource& maps) : map_source_{&maps} {}

    /// Called when the server sent the details of a map. The details are used for the next map
    /// change if both have the same name, crc and size.
    void on_map_details(const wire::MapDetailsBody& details);
    /// Called when the server announced a map. `translated`: whether a DDNet server announced the
    /// map to a 0.7 client.
    void on_map_change(const wire::MapChangeBody& change, bool translated, Reporter& reporter);
    void on_map_data(const wire::MapDataBody& data, Reporter& reporter);
    /// Sets the map of a demo. `bytes`: the map file inside the demo; if empty, the map source is
    /// searched.
    void set_demo_map(const MapAnnouncement& announced, std::vector<std::byte> bytes,
                      Reporter& reporter);

    /// Searches again for a missing map if another session's client has downloaded a map since the
    /// last search. Cheap enough to be called for every snapshot.
    void search_missing_map_if_due(Reporter& reporter) {
        if (missing_map_ && missing_map_->num_stored_maps != map_source_->num_stored_maps()) {
            search_missing_map(reporter);
        }
    }

    /// Returns the tiles of the current map; null if the map is missing.
    [[nodiscard]] const record::TileMap* tile_map() const { return tile_map_.get(); }

    /// Returns the map of the server's newest announcement; nullopt before the first announcement.
    [[nodiscard]] const std::optional<MapAnnouncement>& announced_map() const {
        return announced_map_;
    }

    /// Sets the map that the server announced, or that a checkpoint contains, and searches for it.
    void set_announced_map(const MapAnnouncement& announced, Reporter& reporter);

    /// Returns the chunk's offset in the map file; nullopt if unknown.
    [[nodiscard]] std::optional<std::int64_t>
    file_offset_of_chunk(const wire::MapDataBody& data) const;

    /// Forgets the map. Called when a new connection begins.
    void forget_map();

    [[nodiscard]] std::size_t memory_bytes() const { return download_.memory_bytes(); }

    void on_missed_datagrams() { download_.on_missed_datagrams(); }

    void abandon_download() { download_.abandon_download(); }

  private:
    struct MissingMap {
        MapAnnouncement announced;
        std::uint32_t num_stored_maps; ///< value of MapSource::num_stored_maps() at the last search
    };

    void search_missing_map(Reporter& reporter);
    void check_download(const MapAnnouncement& announced, Reporter& reporter);
    /// Reports a finding about a map once per server. The first session with the finding emits it.
    /// Other sessions only count it.
    void report_map_finding_once(record::FindingId id, const MapAnnouncement& announced,
                                 std::string_view detail, Reporter& reporter);
    void set_current_map(const MapAnnouncement& announced, const MapSearchResult& found,
                         Reporter& reporter, std::string_view kept = "wire");

    MapSource* map_source_;
    std::optional<MapAnnouncement> announced_details_; ///< from the newest map details message
    std::optional<MapAnnouncement> announced_map_;
    std::optional<MissingMap> missing_map_;
    std::unique_ptr<const record::TileMap> tile_map_;
    MapDownload download_;
};

} // namespace tw::inspect
