#pragma once

#include "proxy/record/records.h"
#include "proxy/record/roster.h"
#include "proxy/world/view.h"
#include "snapshot/objects.h"
#include "snapshot/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tw::world {

/// Ids of players in a world, by their names: no two names have one. A name keeps its id beyond the tick
/// in which it was given, until another name is known to have it.
class NameIds {
  public:
    /// Players of whom no better id is known get one that no server has.
    static constexpr std::uint16_t kFirstMadeUp = 128;
    /// Beyond that, whoever was not seen for longest is forgotten.
    static constexpr std::size_t kMaxNames = 1024;

    NameIds() = default;
    NameIds(const NameIds&) = delete;
    NameIds& operator=(const NameIds&) = delete;
    NameIds(NameIds&&) = delete;
    NameIds& operator=(NameIds&&) = delete;
    ~NameIds() = default;

    /// Another run of the server.
    void reset();

    /// Ids that are given from now on are all different, until this is called again.
    void begin_tick() { ++tick_; }

    /// The server has this id for the name: whoever had it before has another name now, or left.
    void learn(const std::string& name, std::uint16_t id);

    /// Whether it was learned in this tick.
    [[nodiscard]] bool knows(const std::string& name) const;
    [[nodiscard]] bool knows(std::uint16_t id) const;

    /// The server's id of a name, as it was learned last.
    [[nodiscard]] std::optional<std::uint16_t> learned(const std::string& name) const;
    /// A name that plays in this tick keeps that id, whatever views offer.
    void keep_learned(const std::string& name);

    /// Clients show the name under this id, and nobody knows the server's. Without effect if the name
    /// has an id in this tick, or another name has this one.
    void offer(const std::string& name, std::uint16_t id);

    struct Id {
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
    };

    /// The last one of this name, or one that nobody has. Nothing: more names are in this tick than can
    /// be kept.
    [[nodiscard]] std::optional<Id> id_of(const std::string& name);

  private:
    struct Known {
        std::string name;
        std::uint16_t id = 0;
        record::IdKind kind = record::IdKind::server;
        std::uint64_t seen = 0;    ///< the tick in which it had this id last
        std::uint64_t learned = 0; ///< the tick in which the server was last known to have it
    };

    using Place = std::list<Known>::iterator;

    /// As many as a roster has room for are in use, while that is enough for a tick.
    static constexpr std::size_t kFewMadeUp = record::Roster::kMaxPlayers;

    void forget(Place known);
    /// Makes it the one that was seen last.
    void see(Place known);
    /// False: all that are kept were seen in this tick.
    [[nodiscard]] bool make_room();
    [[nodiscard]] std::uint16_t make_up();
    Place add(const std::string& name, std::uint16_t id, record::IdKind kind);

    std::list<Known> known_; ///< who was not seen for longest is the first
    std::map<std::string, Place> by_name_;
    std::map<std::uint16_t, Place> by_id_;
    std::uint64_t tick_ = 0;
};

/// Players that a view has no id for are drawn there as other things: a weapon that lies where the tee
/// is, and a laser from there for its hook, with ids of their own (views sheet, section 3).
class StandIns {
  public:
    /// Looks at the views of a tick, in which no id is rewritten yet.
    void gather(std::span<const View> views, const record::TypeNames& types);

    /// Whether an item of a translated view is one: no view that knows all has it, and it is where a
    /// tee is. Only of a view that says that it lacks players: others fire real lasers.
    [[nodiscard]] bool has(const snapshot::ObjectSpec& object,
                           const snapshot::ItemView& item) const;

  private:
    using Place = std::pair<std::int32_t, std::int32_t>;
    using Entity = std::pair<snapshot::Family, std::uint16_t>; ///< and its id

    void learn(const snapshot::SnapshotView& items, bool translated,
               const record::TypeNames& types);

    std::vector<Place> tees_;   ///< of all views; sorted
    std::vector<Entity> known_; ///< of those that know all; sorted
};

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

    /// As in record::SeenBy.
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
    StandIns phantoms_;                             ///< of the tick, if a view may have some
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

} // namespace tw::world
