#pragma once

#include "proxy/game/beams.h"
#include "proxy/game/difference_log.h"
#include "proxy/game/input.h"
#include "proxy/game/merge.h"
#include "proxy/game/seven_as_six.h"
#include "proxy/game/timeline.h"
#include "proxy/game/translation.h"
#include "proxy/game/vanishing.h"
#include "proxy/game/world_messages.h"
#include "proxy/record/records.h"
#include "proxy/record/stats.h"
#include "snapshot/object_set.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tw::game {

/// What worlds there were.
struct WorldTotals {
    record::WorldStats worlds{};
    record::FindingCounts findings{};

    void merge(const WorldTotals& other);
    void add_findings_to(record::SessionStats& stats) const;
};

/// What the servers' worlds are made with, one after the other: its memory is there once.
struct Workbench {
    Workbench(const snapshot::ObjectSet& known, Patience ticks)
        : objects{&known}, patience{ticks}, seven_as_six{known} {}

    const snapshot::ObjectSet* objects;
    Patience patience;
    OpenWorlds open_worlds{};
    SevenAsSix seven_as_six;
    ViewMerge merge{};
    std::vector<View> views{}; ///< of the world being made
    std::vector<Difference> differences{};
    record::WorldMessageSink* messages = nullptr; ///< null: nobody wants what is said
};

/// Which server it is: its address, and the name that the configuration has for it, which lives as
/// long as the run; empty: none.
struct ServerId {
    std::string address;
    std::string_view name{};

    friend auto operator<=>(const ServerId&, const ServerId&) = default;
};

/// The worlds of one server: one record for each tick that any session was sent.
class ServerWorlds {
  public:
    /// `bench`: has to outlive it. `run`: the one before its first.
    ServerWorlds(ServerId server, Workbench& bench, record::RecordSink& sink,
                 std::uint32_t run = 0);

    void on_input(const Input& input);
    void finish();

    [[nodiscard]] const WorldTotals& totals() const { return totals_; }

    [[nodiscard]] std::size_t sessions() const { return timeline_.sessions(); }

    /// When anything was last heard of it.
    [[nodiscard]] record::Timestamp heard() const { return heard_; }

    [[nodiscard]] std::uint32_t run() const { return run_; }

    /// Messages for which there was no room.
    [[nodiscard]] std::uint64_t lost_messages() const { return messages_.lost(); }

    /// What it keeps: views that wait, the world before, and what was said.
    [[nodiscard]] std::size_t bytes() const;

    /// Keeps less, if it keeps anything: the oldest tick closes with what it has, or else the next
    /// world is told as a whole and what was said is forgotten.
    void shed();

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
    void tell_messages(const record::WorldRecord& world);
    void tell_differences(std::span<const DifferenceLog::Told> told, record::Timestamp time);
    void tell_vanished(const record::WorldRecord& world);

    ServerId server_;
    Workbench* bench_;
    record::RecordSink* sink_;
    record::TypeNames types_;
    Timeline timeline_;
    std::unordered_map<std::uint32_t, std::shared_ptr<Place>> places_; ///< of open sessions
    std::shared_ptr<const Place> place_;                               ///< of the run
    Beams beams_;
    record::Roster roster_; ///< of the world being made, where no items tell who plays
    Translation translation_;
    std::vector<record::Renumbered> renumbered_; ///< of the world before
    WorldMessages messages_;
    DifferenceLog log_;
    Vanishing vanishing_;
    record::Timestamp time_ = 0;  ///< the latest there was
    record::Timestamp heard_ = 0; ///< which is earlier after a clock stepped back
    std::uint32_t run_;
    std::uint64_t ordinal_ = 0;
    snapshot::Snapshot previous_; ///< the world before
    WorldTotals totals_;
};

} // namespace tw::game
