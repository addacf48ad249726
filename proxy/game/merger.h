#pragma once

#include "proxy/game/beams.h"
#include "proxy/game/difference_log.h"
#include "proxy/game/input.h"
#include "proxy/game/merge.h"
#include "proxy/game/seven_as_six.h"
#include "proxy/game/timeline.h"
#include "proxy/game/translation.h"
#include "proxy/game/vanishing.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "snapshot/object_set.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tw::game {

/// What worlds there were.
struct WorldTotals {
    record::WorldStats worlds{};
    record::FindingCounts findings{};

    void merge(const WorldTotals& other);
    void add_findings_to(record::SessionStats& stats) const;
};

/// The worlds of one server: one record for each tick that any session was sent.
class ServerWorlds {
  public:
    ServerWorlds(std::string server, const snapshot::ObjectSet& objects, record::RecordSink& sink);

    void on_input(const Input& input);
    void finish();

    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

  private:
    /// A session's map, and where its positions land.
    struct Place {
        std::string name{};
        record::MapRecord map{};
        const record::World* seen = nullptr; ///< that `world` is a copy of
        std::optional<record::World> world{};
    };

    void take_map(const record::MapRecord& map);
    void take_world(const Input& input);
    void close(const ClosedWorld& closed);
    void begin_run(std::uint32_t run);
    /// Of the views at hand; a world with a view of 0.6 is one of 0.6, and so are those behind it.
    void begin_dialect(snapshot::Dialect dialect);
    void read_views(const OpenWorld& views);
    void gather_roster();
    void find_place();
    void tell(record::FindingRecord finding);
    void tell_differences(const record::WorldRecord& world);
    void tell_vanished(const record::WorldRecord& world);

    std::string server_;
    record::RecordSink* sink_;
    record::TypeNames types_;
    Timeline timeline_;
    std::map<std::uint32_t, std::shared_ptr<Place>> places_; ///< of open sessions
    std::shared_ptr<const Place> place_;                     ///< of the run
    Beams beams_;
    SevenAsSix seven_as_six_;
    record::Roster roster_; ///< of the world being made, where no items tell who plays
    Translation translation_;
    ViewMerge merge_;
    std::vector<View> views_; ///< of the world being made
    std::vector<Difference> differences_;
    DifferenceLog log_;
    Vanishing vanishing_;
    record::Timestamp time_ = 0;
    std::uint32_t run_ = 0;
    std::uint64_t ordinal_ = 0;
    snapshot::Snapshot previous_; ///< the world before
    WorldTotals totals_;
};

/// The worlds of all servers.
class Merger final : public InputSink {
  public:
    /// `objects`: what is known of items. Worlds, and what is found while making them, go to `sink`.
    Merger(const snapshot::ObjectSet& objects, record::RecordSink& sink)
        : objects_{&objects}, sink_{&sink} {}

    void on_input(const Input& input) override;
    /// Makes worlds of what is left.
    void finish();

    /// After `finish`.
    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

  private:
    /// More servers than this at one time are not looked at.
    static constexpr std::size_t kMaxServers = 256;

    const snapshot::ObjectSet* objects_;
    record::RecordSink* sink_;
    std::map<std::string, std::unique_ptr<ServerWorlds>, std::less<>> servers_;
    std::map<std::uint32_t, ServerWorlds*> sessions_; ///< whose they are
    record::Timestamp advanced_ = 0;
    WorldTotals totals_;
};

} // namespace tw::game
