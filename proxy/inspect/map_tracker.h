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
    /// A server of DDNet gives its 0.7 clients a converted file with the same tiles: any of this
    /// name will do.
    bool any_version = false;

    friend bool operator==(const MapAnnouncement&, const MapAnnouncement&) = default;
};

enum class MapStatus : std::uint8_t {
    found,
    not_found,
    other_version, ///< the name is there, the checksum is not
    unreadable,
    name_invalid,
};

struct FoundMap {
    MapStatus status = MapStatus::not_found;
    std::shared_ptr<const map::Physics> physics{}; ///< set when found
    std::optional<std::array<std::uint8_t, 32>> sha256{};
    std::string detail{};   ///< what is wrong, for people
    bool from_wire = false; ///< some client's download, not a file of a folder
    /// The file, where the source was asked to keep what it reads.
    std::shared_ptr<const std::vector<std::byte>> file{};
};

/// Finds and reads maps; files are its business, not the inspector's.
class MapSource {
  public:
    MapSource() = default;
    MapSource(const MapSource&) = delete;
    MapSource& operator=(const MapSource&) = delete;
    MapSource(MapSource&&) = delete;
    MapSource& operator=(MapSource&&) = delete;
    virtual ~MapSource() = default;

    [[nodiscard]] virtual FoundMap find(const MapAnnouncement& announcement) = 0;
    /// A map that came over the wire: checks it against its announcement and keeps it.
    [[nodiscard]] virtual FoundMap keep(const MapAnnouncement& announcement,
                                        std::vector<std::byte> bytes) = 0;

    /// Only among the maps kept so far, without looking at any file.
    [[nodiscard]] virtual FoundMap find_kept(const MapAnnouncement& /*announcement*/) { return {}; }

    /// Gives up what nobody uses, because memory is wanted.
    virtual void shed() {}

    /// Whether this is found of a map for the first time in any session of this server; of one server
    /// every session finds the same. Any thread may ask. Beyond kMaxReported everything is new.
    [[nodiscard]] bool is_news(std::string_view server, const MapAnnouncement& announcement,
                               std::string_view finding);

    /// How many maps were kept: whoever misses one asks again when this has changed.
    [[nodiscard]] std::uint32_t num_kept() const noexcept {
        return num_kept_.load(std::memory_order_relaxed);
    }

  protected:
    /// To be called once find_kept gives the map.
    void count_kept() noexcept { num_kept_.fetch_add(1, std::memory_order_relaxed); }

  private:
    static constexpr std::size_t kMaxReported = 1024;

    std::atomic<std::uint32_t> num_kept_{0};
    std::array<std::atomic<std::uint64_t>, kMaxReported> reported_{}; ///< hashes; 0: free
};

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

/// As receivers read it.
[[nodiscard]] std::string clean_map_name(std::string_view text);

/// Follows which map a connection plays on: announcements, files in folders, downloads through the
/// game. Each map in use becomes a record.
class MapTracker {
  public:
    /// `server`: names it among all of a run.
    MapTracker(MapSource& maps, std::string server) : maps_{&maps}, server_{std::move(server)} {}

    /// The details belong to the change that follows them with the same name, crc and size.
    void on_details(const wire::MapDetailsBody& details);
    /// The world the announced map makes; null while the map is not there.
    /// `translated`: by a server of DDNet for a client of 0.7.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_change(const wire::MapChangeBody& change, bool translated, Reporter& reporter);
    /// The same when a download is complete; nothing before.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    on_data(const wire::MapDataBody& data, Reporter& reporter);

    /// The same for a demo. `bytes`: the map it holds; empty: none, so that it has to be found.
    [[nodiscard]] std::shared_ptr<const record::World>
    on_demo(const MapAnnouncement& announced, std::vector<std::byte> bytes, Reporter& reporter);

    /// The same when the map was missing and another session's client downloaded it meanwhile; to
    /// be asked at every snapshot, which costs next to nothing.
    [[nodiscard]] std::optional<std::shared_ptr<const record::World>>
    find_missing(Reporter& reporter) {
        return missing_ && missing_->num_kept != maps_->num_kept() ? ask_again(reporter)
                                                                   : std::nullopt;
    }

    /// The map that was announced last; nothing before.
    [[nodiscard]] const std::optional<MapAnnouncement>& announced() const { return announced_; }

    /// What another observer was told; as on_change.
    [[nodiscard]] std::shared_ptr<const record::World> restore(const MapAnnouncement& announced,
                                                               Reporter& reporter);

    /// Where a chunk of the download stands in its file; nothing where that is not known.
    [[nodiscard]] std::optional<std::int64_t> offset_of(const wire::MapDataBody& data) const;

    /// A new connection.
    void reset();

    [[nodiscard]] std::size_t memory_bytes() const { return download_.memory_bytes(); }

    /// Copies were lost: what has no numbers cannot be put in its place any more.
    void on_gap() { download_.on_gap(); }

    /// Gives up a download that is under way, and its memory.
    void shed() { download_.give_up(); }

  private:
    /// A map that nobody had when it was announced.
    struct Missing {
        MapAnnouncement announced;
        std::uint32_t num_kept; ///< by the source when it was asked
    };

    [[nodiscard]] std::optional<std::shared_ptr<const record::World>> ask_again(Reporter& reporter);
    void check_download(const MapAnnouncement& announced, Reporter& reporter);
    /// Of all sessions of a server the first reports it, the others count.
    void report(record::FindingId id, const MapAnnouncement& announced, std::string_view detail,
                Reporter& reporter);
    [[nodiscard]] std::shared_ptr<const record::World> use(const MapAnnouncement& announced,
                                                           const FoundMap& found,
                                                           Reporter& reporter,
                                                           std::string_view kept = "wire");

    MapSource* maps_;
    std::string server_;
    std::optional<MapAnnouncement> details_;
    std::optional<MapAnnouncement> announced_;
    std::optional<Missing> missing_;
    MapDownload download_;
};

} // namespace tw::inspect
