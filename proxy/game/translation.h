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
#include <span>
#include <string>
#include <vector>

namespace tw::game {

/// What a number of a view is: a client's id in the world, or nobody's that is part of the game.
using ClientIds = std::map<std::uint16_t, std::optional<std::uint16_t>>;

/// Gives the players of translated views one id each. A server with more players than a client can count
/// shows it some of them under numbers of its own, and changes them while playing (views sheet,
/// section 3). Names are unique on a server: they tell who is who. A player's id is, if there is one:
///
/// 1. the server's: from a view that knows all, or as the player's own view was told it;
/// 2. the number that all views have for the player, of those that number as the server does as far as
///    is known;
/// 3. the number that the player's own view has;
/// 4. the one that the player had before;
/// 5. one that no server has.
class Translation {
  public:
    /// Another run of the server.
    void reset();

    /// Replaces the items of the translated views among those of a tick, and who plays in them; they
    /// live until the next call.
    void undo(std::vector<View>& views, const record::TypeNames& types);

    /// Of the clients of a translated view of the tick, by its place; null: they are the server's.
    [[nodiscard]] const ClientIds* ids_of(std::size_t view) const {
        return view < current_.size() && !current_[view]->ids.empty() ? &current_[view]->ids
                                                                      : nullptr;
    }

    /// As in record::Sightings.
    [[nodiscard]] std::span<const record::IdKind> id_kinds() const { return id_kinds_; }

    [[nodiscard]] std::span<const record::Renumbered> renumbered() const { return renumbered_; }

    /// Those views are needed no more.
    void release() { rewritten_.clear(); }

    /// What is remembered of views.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Remembers nothing of them, but who has which id.
    void forget_views();

  private:
    static constexpr std::size_t kNumberingBytes = 256;
    static constexpr std::size_t kPlayerBytes = 128; ///< with its place in `ids`

    /// Views that were missing for more ticks say nothing of the present.
    static constexpr std::uint64_t kRemembered = 50;

    /// A translated view, with the ids of the world.
    struct Rewritten {
        snapshot::Snapshot items;
        std::vector<std::uint32_t> untold;
        record::Roster roster;
    };

    struct Player {
        std::uint16_t number = 0;
        std::string name;
    };

    /// How a session's view numbers the players.
    struct Numbering {
        std::vector<std::int32_t> read{}; ///< what it was read from
        bool translated = false;
        std::optional<std::uint16_t> own{};  ///< its own player's number
        std::optional<std::uint16_t> told{}; ///< the server's, as what is about the viewer has it
        std::vector<Player> players{};       ///< by number
        std::string own_name{};              ///< empty: it has no player
        bool others = false; ///< there are some that it has no number for, and it says so
        std::uint64_t seen = 0;
        ClientIds ids{}; ///< of a translated one, in the world
    };

    [[nodiscard]] bool read(const View& view, const record::TypeNames& types, Numbering& into);
    [[nodiscard]] static std::size_t bytes_of(const Numbering& numbering);
    [[nodiscard]] bool forget_missing();
    void assign();
    void learn();
    void offer_agreed();
    void offer_own();
    [[nodiscard]] bool numbers_as_server(const Numbering& numbering) const;
    void gather_renumbered();
    void rewrite(View& view, const Numbering& numbering, const record::TypeNames& types,
                 Rewritten& out) const;

    /// `use(session, numbering)` for each with a view in this tick.
    template <typename Use>
    void each_present(const Use& use);

    NameIds ids_;
    Phantoms phantoms_;                             ///< of the tick, if a view may have some
    std::map<std::uint32_t, Numbering> numberings_; ///< by session
    std::vector<const Numbering*> current_;         ///< of the tick's views
    std::vector<std::uint32_t> present_;            ///< sessions of the tick before
    std::size_t bytes_ = 0;                         ///< of numberings_
    std::uint64_t ticks_ = 0;
    /// Clients are told their own number in their view as if it were the server's: several have one.
    bool told_is_number_ = false;
    std::vector<std::int32_t> reading_; ///< kept for its memory
    std::vector<record::IdKind> id_kinds_;
    std::vector<record::Renumbered> renumbered_;
    std::vector<Rewritten> rewritten_;
};

} // namespace tw::game
