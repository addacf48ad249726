#pragma once

#include "proxy/inspect/map_download.h"
#include "proxy/inspect/map_source.h"
#include "proxy/inspect/reporter.h"
#include "proxy/record/world.h"
#include "proxy/wire/bodies.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tw::inspect {

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
    [[nodiscard]] std::shared_ptr<const record::World> inherit(const MapAnnouncement& announced,
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
