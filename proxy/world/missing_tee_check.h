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

/// Finds tees that disappear although a session's camera is near. Servers send no tee of players
/// who are dead, spectating or not in the game. DDNet also hides players of other teams and solo
/// players. Therefore, on DDNet, only the player's own session is a witness, while its camera is at
/// the tee. Vanilla servers hide no tee near the camera.
class MissingTeeCheck {
  public:
    /// Forgets all players. Called when the server restarted or changed the map.
    void reset() { players_.clear(); }

    /// Examines a merged snapshot. Returns findings about the tees that disappeared, each once.
    /// `is_complete`: false if the merged snapshot lacks some sessions' views. Then nothing is
    /// reported, because a missing tee may be in the lacking views. Players who die or spectate are
    /// excused nevertheless, and sessions without a view are no longer witnesses of any tee.
    [[nodiscard]] std::vector<record::FindingRecord>
    find_disappeared_tees(const record::WorldRecord& world, std::span<const View> views,
                          bool is_complete);

  private:
    /// A tee has disappeared if it is missing for this many ticks and its player did not die.
    static constexpr snapshot::Tick kMissingTicks = 50;
    /// If more ticks than this lie between two examined snapshots, a tee missing in the second
    /// snapshot does not count as disappeared.
    static constexpr snapshot::Tick kMaxTickStep = 4;
    static constexpr std::size_t kMaxPlayers = 1024;
    static constexpr std::size_t kMaxWitnesses = 128; ///< limit of PlayerHistory::witnesses

    struct PlayerHistory {
        snapshot::Tick last_tee_tick = 0; ///< the last tick in which the player had a tee
        std::int32_t x = 0;
        std::int32_t y = 0;
        /// Sessions whose view must contain the tee as long as it is at (x, y).
        std::vector<std::uint32_t> witnesses{};
        bool is_reported = false;
    };

    void store_tees_and_witnesses(const record::WorldRecord& world, std::span<const View> views,
                                  bool vanilla);

    std::map<std::uint16_t, PlayerHistory> players_;
    std::optional<snapshot::Tick> last_examined_;
};

} // namespace tw::world
