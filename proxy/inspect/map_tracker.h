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
    /// DDNet servers send 0.7 clients a converted file with the same tiles: accept any file of this
    /// name.
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
    std::shared_ptr<const map::Physics> physics{}; ///< set when found
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string detail{};   ///< human-readable error text
    bool from_wire = false; ///< reassembled from a client's download, not read from a folder
    /// The file's bytes, if the source was asked to keep them.
    std::shared_ptr<const std::vector<std::byte>> file{};
};

/// Finds and reads maps. Subclasses access the files.
class MapSource {
  public:
    MapSource() = default;
    MapSource(const MapSource&) = delete;
    MapSource& operator=(const MapSource&) = delete;
    MapSource(MapSource&&) = delete;
    MapSource& operator=(MapSource&&) = delete;
    virtual ~MapSource() = default;

    [[nodiscard]] virtual FoundMap find(const MapAnnouncement& announcement) = 0;
    /// Checks a downloaded map against its announcement and keeps it.
    [[nodiscard]] virtual FoundMap keep(const MapAnnouncement& announcement,
                                        std::vector<std::byte> bytes) = 0;

    /// Searches only the maps kept so far; reads no file.
    [[nodiscard]] virtual FoundMap find_kept(const MapAnnouncement& /*announcement*/) { return {}; }

    /// Frees maps that nobody uses, because memory is short.
    virtual void shed() {}

    /// Whether no session of this server has reported this finding for this map yet; marks it as
    /// reported. Thread-safe. After kMaxReported findings always true.
    [[nodiscard]] bool is_first_report(std::string_view server, const MapAnnouncement& announcement,
                                       std::string_view finding);

    /// Number of maps kept so far. A session that misses a map searches again when the number
    /// changes.
    [[nodiscard]] std::uint32_t num_kept() const noexcept {
        return num_kept_.load(std::memory_order_relaxed);
    }

  protected:
    /// To be called after find_kept can return the new map.
    void count_kept() noexcept { num_kept_.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t kMaxReported = 1024;

    std::atomic<std::uint32_t> num_kept_{0};
    /// Hashes of reported findings; 0: free slot.
    std::array<std::atomic<std::uint64_t>, kMaxReported> reported_{};
};

/// Reassembles a map that a client downloads through the game connection. For a map that is known
/// already, only the checksum is computed.
///
/// Chunks are vital, so they arrive in order. The first chunk sets the chunk size (896 or 895
/// bytes); only the last one is shorter. 0.7 chunks have neither a number nor an end mark. Memory
/// grows with the received bytes, not with the announced size.
/// Source: protocol sheet, section 9.2.
class MapDownload {
  public:
    /// DDNet clients accept maps up to 1 GiB; the largest real maps have a few MB.
    static constexpr std::int64_t kMaxBytes = std::int64_t{64} << 20U;

    enum class What : std::uint8_t {
        assemble,
        check, ///< compute the checksum only
    };

    /// Starts the download of an announced map.
    void begin(const MapAnnouncement& announcement, What what = What::assemble);
    void clear();
    /// Abandons the current download and frees its memory.
    void give_up();

    /// Chunks may be missing. 0.7 chunks have no numbers, so their position is then unknown and the
    /// download is abandoned.
    void on_gap() {
        if (unnumbered_) {
            give_up();
        }
    }

    /// File offset of the next 0.7 chunk; nullopt if unknown.
    [[nodiscard]] std::optional<std::int64_t> next_offset() const;

    /// Returns true when the map is complete; an assembled map can then be taken with `take_bytes`.
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
    bool unnumbered_ = false; ///< 0.7: chunks have no numbers and fill the map in order of arrival
};

/// The map name as receivers clean it.
[[nodiscard]] std::string clean_map_name(std::string_view text);

/// Tracks the map a connection plays on, from announcements, map folders and downloads. Writes a
/// record for each map in use.
class MapTracker {
  public:
    /// `server`: the server's address.
    MapTracker(MapSource& maps, std::string server) : maps_{&maps}, server_{std::move(server)} {}

    /// Map details: they belong to the following map change with the same name, crc and size.
    void on_details(const wire::MapDetailsBody& details);
    /// Returns the world of the announced map; null while the map is missing. `translated`: a DDNet
    /// server announces it to a 0.7 client.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_change(const wire::MapChangeBody& change, bool translated, Reporter& reporter);
    /// The downloaded map's world, when the download is complete; nullopt before.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    on_data(const wire::MapDataBody& data, Reporter& reporter);

    /// The world of a demo's map. `bytes`: the map file inside the demo; if empty, the map is
    /// searched.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_demo(const MapAnnouncement& announced, std::vector<std::byte> bytes, Reporter& reporter);

    /// The world of a map that was missing, once another session's client has downloaded it. Cheap
    /// enough to be called at every snapshot.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    find_missing(Reporter& reporter) {
        return missing_ && missing_->num_kept != maps_->num_kept() ? search_missing_map(reporter)
                                                                   : std::nullopt;
    }

    /// The map announced last; nullopt before the first one.
    [[nodiscard]] const std::optional<MapAnnouncement>& announced() const { return announced_; }

    /// Takes over the map from another observer's checkpoint. Returns the world, as on_change does.
    [[nodiscard]] std::shared_ptr<const record::World> restore(const MapAnnouncement& announced,
                                                               Reporter& reporter);

    /// File offset of a download's chunk; nullopt if unknown.
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
    /// Reports a finding once per server: the first session emits it, the others only count it.
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
