#pragma once

#include "proxy/inspect/reporter.h"
#include "proxy/record/records.h"
#include "proxy/wire/bodies.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::map {
class Physics;
} // namespace tw::map

namespace tw::inspect {

/// The map a server announces.
struct MapAnnouncement {
    std::string name{};
    std::uint32_t crc = 0;
    std::int64_t size = 0;
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    /// Accept any map file of this name, whatever its checksum: DDNet servers announce a converted
    /// file with the same tiles to 0.7 clients.
    bool any_version = false;

    friend bool operator==(const MapAnnouncement&, const MapAnnouncement&) = default;
};

enum class MapStatus : std::uint8_t {
    found,
    not_found,
    other_version, ///< a map of this name exists, but its checksum differs
    unreadable,
    name_invalid,
};

struct FoundMap {
    MapStatus status = MapStatus::not_found;
    std::shared_ptr<const map::Physics> physics{}; ///< the map's tiles; null if not found
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    /// Human-readable: why the map was not found, or not stored for later.
    std::string detail{};
    bool from_wire = false; ///< reassembled from a client's download, not read from a folder
    /// The file's bytes; null unless the source was configured to keep them.
    std::shared_ptr<const std::vector<std::byte>> file{};
};

/// Finds and reads map files for sessions. Subclasses decide where files are searched and kept.
class MapSource {
  public:
    MapSource() = default;
    MapSource(const MapSource&) = delete;
    MapSource& operator=(const MapSource&) = delete;
    MapSource(MapSource&&) = delete;
    MapSource& operator=(MapSource&&) = delete;
    virtual ~MapSource() = default;

    [[nodiscard]] virtual FoundMap find(const MapAnnouncement& announcement) = 0;
    /// Checks a downloaded map against its announcement and keeps it for later searches.
    [[nodiscard]] virtual FoundMap keep(const MapAnnouncement& announcement,
                                        std::vector<std::byte> bytes) = 0;

    /// Searches only maps kept by keep(); reads no file.
    [[nodiscard]] virtual FoundMap find_kept(const MapAnnouncement& /*announcement*/) { return {}; }

    /// Frees maps that no session uses, because memory is short.
    virtual void shed() {}

    /// Returns true if no session of this server has reported this finding for this map yet, and
    /// marks it as reported. Always true once kMaxReported findings are marked. Thread-safe.
    [[nodiscard]] bool is_first_report(std::string_view server, const MapAnnouncement& announcement,
                                       std::string_view finding);

    /// Number of maps kept so far. A session whose map was not found searches again when the number
    /// changes.
    [[nodiscard]] std::uint32_t num_kept() const noexcept {
        return num_kept_.load(std::memory_order_relaxed);
    }

  protected:
    /// Counts a kept map. To be called once find_kept can return the new map.
    void count_kept() noexcept { num_kept_.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t kMaxReported = 1024;

    std::atomic<std::uint32_t> num_kept_{0};
    /// Hashes of reported findings; 0: free slot.
    std::array<std::atomic<std::uint64_t>, kMaxReported> reported_{};
};

/// Reassembles a map that a client downloads from the game server. If the map is known already,
/// only its checksum is computed.
///
/// The map's chunks are vital, so they arrive in order. The first chunk sets the chunk size (896 or
/// 895 bytes); only the last chunk is shorter. 0.7 chunks have neither a number nor an end mark.
/// Memory grows with the received bytes, not with the announced size.
/// Source: DDNet's CServer (NETMSG_REQUEST_MAP_DATA) and CClient (NETMSG_MAP_DATA).
class MapDownload {
  public:
    /// DDNet clients accept maps up to 1 GiB; the largest real maps have a few MB.
    static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20U;

    enum class What : std::uint8_t {
        assemble,
        check, ///< only compute the map's checksum
    };

    /// Starts the download of an announced map.
    void begin(const MapAnnouncement& announcement, What what = What::assemble);
    void clear();
    /// Abandons the current download and frees its memory.
    void give_up();

    /// Chunks may have been missed. A 0.7 download is abandoned: 0.7 chunks have no numbers, so
    /// their positions in the file are unknown from now on.
    void on_gap() {
        if (unnumbered_) {
            give_up();
        }
    }

    /// File offset of the next 0.7 chunk; nullopt if unknown.
    [[nodiscard]] std::optional<std::int64_t> next_offset() const;

    /// Adds a chunk. Returns true when the map is complete; take_bytes() then returns its bytes,
    /// unless only the checksum is computed.
    [[nodiscard]] bool on_data(const wire::MapDataBody& chunk);

    /// Announced size of the current map; 0 if there is no download.
    [[nodiscard]] std::int64_t announced_size() const {
        return announcement_ ? announcement_->size : 0;
    }

    [[nodiscard]] const MapAnnouncement& announcement() const { return *announcement_; }

    [[nodiscard]] std::vector<std::byte> take_bytes();

    [[nodiscard]] bool keeps_bytes() const { return what_ == What::assemble; }

    /// CRC-32 of the bytes received so far.
    [[nodiscard]] std::uint32_t crc() const { return crc_; }

    [[nodiscard]] std::size_t memory_bytes() const { return bytes_.capacity(); }

  private:
    std::optional<MapAnnouncement> announcement_;
    What what_ = What::assemble;
    std::vector<std::byte> bytes_;
    std::int64_t size_ = 0; ///< bytes received so far
    std::uint32_t crc_ = 0;
    std::int32_t next_chunk_ = 0;
    bool unnumbered_ = false; ///< 0.7: chunks have no numbers and follow each other in the file
};

/// The map name as receivers sanitise it.
[[nodiscard]] std::string clean_map_name(std::string_view text);

/// Tracks the map that a connection's server plays, using its announcements, the map source and
/// client downloads. Emits a record for each map.
class MapTracker {
  public:
    /// `server`: the server's address.
    MapTracker(MapSource& maps, std::string server) : maps_{&maps}, server_{std::move(server)} {}

    /// The server sent a map's details. They are used for the next map change if its name, crc and
    /// size are the same.
    void on_details(const wire::MapDetailsBody& details);
    /// The server announced a map. Returns the map's world; null while the map is missing.
    /// `translated`: a DDNet server announced it to a 0.7 client.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_change(const wire::MapChangeBody& change, bool translated, Reporter& reporter);
    /// The server sent a chunk of the map. Returns the world of the downloaded map when the
    /// download is complete, else nullopt.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    on_data(const wire::MapDataBody& data, Reporter& reporter);

    /// Returns the world of a demo's map. `bytes`: the map file inside the demo; if empty, the map
    /// source is searched.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_demo(const MapAnnouncement& announced, std::vector<std::byte> bytes, Reporter& reporter);

    /// Returns the world of a map that was missing until another session's client downloaded it;
    /// nullopt if nothing has changed. Cheap enough to be called for every snapshot.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    find_missing(Reporter& reporter) {
        return missing_ && missing_->num_kept != maps_->num_kept() ? search_missing_map(reporter)
                                                                   : std::nullopt;
    }

    /// The map announced last; nullopt before the first one.
    [[nodiscard]] const std::optional<MapAnnouncement>& announced() const { return announced_; }

    /// Takes the map from another observer's checkpoint. Returns its world; null if the map is
    /// missing.
    [[nodiscard]] std::shared_ptr<const record::World> restore(const MapAnnouncement& announced,
                                                               Reporter& reporter);

    /// The chunk's offset in the map file; nullopt if unknown.
    [[nodiscard]] std::optional<std::int64_t> offset_of(const wire::MapDataBody& data) const;

    /// A new connection begins.
    void reset();

    [[nodiscard]] std::size_t memory_bytes() const { return download_.memory_bytes(); }

    /// Copies of datagrams were lost: unnumbered chunks cannot be placed any more.
    void on_gap() { download_.on_gap(); }

    /// Abandons the current download and frees its memory.
    void shed() { download_.give_up(); }

  private:
    /// A map that was announced but not found.
    struct Missing {
        MapAnnouncement announced;
        std::uint32_t num_kept; ///< MapSource::num_kept() at the last search
    };

    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    search_missing_map(Reporter& reporter);
    void check_download(const MapAnnouncement& announced, Reporter& reporter);
    /// Reports a finding about a map once per server: the first session emits it, other sessions
    /// only count it.
    void report(record::FindingId id, const MapAnnouncement& announced, std::string_view detail,
                Reporter& reporter);
    [[nodiscard]] std::shared_ptr<const record::World>
    set_current_map(const MapAnnouncement& announced, const FoundMap& found, Reporter& reporter,
                    std::string_view kept = "wire");

    MapSource* maps_;
    std::string server_;
    std::optional<MapAnnouncement> details_;
    std::optional<MapAnnouncement> announced_;
    std::optional<Missing> missing_;
    MapDownload download_;
};

} // namespace tw::inspect
