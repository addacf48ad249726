#pragma once

#include "proxy/game/name_ids.h"
#include "proxy/game/phantoms.h"
#include "proxy/game/view.h"
#include "proxy/record/world.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tw::game {

/// What an id of a view is: a client's at the server, or nobody's that is part of the game.
using ClientIds = std::map<std::uint16_t, std::optional<std::uint16_t>>;

/// Gives the players of a translated view the ids that the server knows them by. A server with more
/// players than a client can count shows it some of them under ids of its own, and changes them while
/// playing (views sheet, section 3). Names are unique on a server: they tell who is who.
class Translation {
  public:
    /// Another run of the server.
    void reset() { ids_.reset(); }

    /// Replaces the items of the translated views among those of a tick, and who plays in them; they
    /// live until the next call.
    void undo(std::vector<View>& views, const record::TypeNames& types);

    /// Of the clients of a translated view of the tick, by its place; null: they are the server's.
    [[nodiscard]] const ClientIds* ids_of(std::size_t view) const {
        return view < players_.size() && !players_[view].ids.empty() ? &players_[view].ids
                                                                     : nullptr;
    }

    /// Those views are needed no more.
    void release() { rewritten_.clear(); }

  private:
    /// A translated view, with the server's ids.
    struct Rewritten {
        snapshot::Snapshot items;
        std::vector<std::uint32_t> untold;
        record::Roster roster;
    };

    void learn_names(const View& view);
    /// Each client is told its own id, whatever others it has for the rest.
    void learn_own_name(const View& view, const record::TypeNames& types);

    /// A translated view's players.
    struct Players {
        ClientIds ids;
        bool others = false; ///< there are some that it has no id for, and it says so
    };

    [[nodiscard]] Players players_of(const View& view);
    void rewrite(View& view, const Players& players, const record::TypeNames& types,
                 Rewritten& out) const;

    NameIds ids_;
    Phantoms phantoms_;            ///< of the tick at hand, where a view may have some
    std::vector<Players> players_; ///< by place of the view
    std::vector<Rewritten> rewritten_;
};

} // namespace tw::game
