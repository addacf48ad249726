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

/// A player whose tee is gone from where somebody must see it.
struct Vanished {
    std::uint16_t client = 0;
    std::uint32_t witness = 0; ///< a session that saw the tee last, and must see it
    snapshot::Tick since = 0;  ///< the first tick without
    std::int32_t x = 0;        ///< where it was before
    std::int32_t y = 0;
};

/// A world, and what it is told in.
struct Whereabouts {
    const snapshot::SnapshotView& items;
    const record::TypeNames& types;
    const record::Roster* roster; ///< who plays, where the items do not tell
};

/// Looks for tees that vanish from the middle of a view. Servers send no tee of who died, watches, or
/// is out of the game; DDNet hides those of other teams and of solo players, so that there only the
/// player's own view proves anything, and that not while it looks elsewhere. Vanilla hides nothing
/// within a view.
class MissingTeeCheck {
  public:
    /// Another run of the server.
    void reset() { players_.clear(); }

    /// A world with all views that were due, and these views. What is found is told once.
    [[nodiscard]] std::vector<Vanished> look(snapshot::Tick tick, const Whereabouts& world,
                                             std::span<const View> views);

    /// A world that proves nothing. Who died in it, watches or is away has not vanished later, and a
    /// session that lacks it cannot say so.
    void pass_over(const Whereabouts& world, std::span<const View> views);

  private:
    /// After so many ticks without a tee, and without a death, it has vanished.
    static constexpr snapshot::Tick kLong = 50;
    /// A gap in what is looked at proves nothing.
    static constexpr snapshot::Tick kStep = 4;
    static constexpr std::size_t kMaxPlayers = 1024;
    static constexpr std::size_t kMaxWitnesses = 128; ///< more prove no more

    struct Player {
        snapshot::Tick last = 0; ///< with a tee
        std::int32_t x = 0;
        std::int32_t y = 0;
        std::vector<std::uint32_t> witnesses{}; ///< that must see it where it was
        bool told = false;
    };

    void note_tees(snapshot::Tick tick, const Whereabouts& world, std::span<const View> views,
                   bool vanilla);

    std::map<std::uint16_t, Player> players_;
    std::optional<snapshot::Tick> looked_;
};

} // namespace tw::world
