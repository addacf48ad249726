#pragma once

#include "proxy/record/records.h"
#include "proxy/world/view.h"
#include "snapshot/snapshot.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace tw::world {

/// A player whose tee disappeared from where a view must show it.
struct Vanished {
    std::uint16_t client = 0;
    std::uint32_t witness = 0; ///< a session that saw the tee last and should still see it
    snapshot::Tick since = 0;  ///< the first tick without the tee
    std::int32_t x = 0;        ///< its last position
    std::int32_t y = 0;
};

/// A world and the data needed to interpret it.
struct WorldContext {
    const snapshot::SnapshotView& items;
    const record::TypeNames& types;
    const record::Roster* roster; ///< the players, if the items do not contain them
};

/// Finds tees that disappear from the middle of a view. Servers send no tee for players who are
/// dead, spectating or out of the game. DDNet also hides players of other teams and solo players,
/// so there only the player's own view counts, and only while its camera is on the tee. Vanilla
/// servers hide nothing within a view.
class MissingTeeCheck {
  public:
    /// Starts a new run of the server.
    void reset() { players_.clear(); }

    /// Examines a world that has all expected views. Returns each disappearance once.
    [[nodiscard]] std::vector<Vanished> look(snapshot::Tick tick, const WorldContext& world,
                                             std::span<const View> views);

    /// Notes a world that is no evidence, because views are missing. Players who die, spectate or
    /// leave in it have not disappeared, and sessions without a view in it are no witnesses.
    void pass_over(const WorldContext& world, std::span<const View> views);

  private:
    /// A tee that is missing for this many ticks, without a death, has disappeared.
    static constexpr snapshot::Tick kLong = 50;
    /// A longer gap between examined worlds is no evidence.
    static constexpr snapshot::Tick kStep = 4;
    static constexpr std::size_t kMaxPlayers = 1024;
    static constexpr std::size_t kMaxWitnesses = 128; ///< further witnesses add nothing

    struct Player {
        snapshot::Tick last = 0; ///< the last tick with a tee
        std::int32_t x = 0;
        std::int32_t y = 0;
        std::vector<std::uint32_t> witnesses{}; ///< sessions that must see its last position
        bool told = false;
    };

    void note_tees(snapshot::Tick tick, const WorldContext& world, std::span<const View> views,
                   bool vanilla);

    std::map<std::uint16_t, Player> players_;
    std::optional<snapshot::Tick> looked_;
};

} // namespace tw::world
